//! `docs/reference.md` holds every command's help, word for word.

use crate::home::User;

const COMMANDS: [&str; 15] = [
    "demo",
    "run",
    "record",
    "checkpoint",
    "log",
    "show",
    "diff",
    "rewind",
    "undo",
    "redo",
    "status",
    "recover",
    "verify",
    "export",
    "import",
];

/// Rewritten with `TAKEBACK_UPDATE_REFERENCE=1`.
#[test]
fn the_reference_is_what_help_says() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let text = std::fs::read_to_string(&file).expect("the reference is there");
    let (before, rest) = text.split_once("<!-- help -->\n").expect("where help begins");
    let (_, after) = rest.split_once("<!-- end of help -->").expect("where help ends");
    let user = User::new();
    let mut help = String::new();
    for command in COMMANDS {
        let answer = user.takeback(&[command, "--help"]);
        assert_eq!(answer.code, 0);
        let (own, _for_all) = answer.out.split_once("\nOptions for all:").expect("options for all");
        help.push_str(&format!("\n### `takeback {command}`\n\n```text\n{}\n```\n", own.trim_end()));
    }
    let expected = format!("{before}<!-- help -->\n{help}\n<!-- end of help -->{after}");
    if std::env::var_os("TAKEBACK_UPDATE_REFERENCE").is_some() {
        std::fs::write(&file, &expected).expect("the reference is written");
    }
    assert!(
        std::fs::read_to_string(&file).expect("it is there") == expected,
        "docs/reference.md is not what --help says; TAKEBACK_UPDATE_REFERENCE=1 rewrites it"
    );
}
