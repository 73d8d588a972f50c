//! `docs/reference.md` contains every command's help, word for word.

use crate::user::User;

/// Every command that the program lists, each followed by its subcommands.
fn commands(user: &User, above: &[String]) -> Vec<Vec<String>> {
    let mut words: Vec<&str> = above.iter().map(String::as_str).collect();
    words.push("--help");
    let help = user.takeback(&words).out;
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let mut commands = Vec::new();
    // A continuation line is indented further.
    let names = list.lines().take_while(|line| !line.is_empty());
    for name in names.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()) {
        if !name.is_empty() {
            let command = [above, &[name.to_owned()]].concat();
            let below = self::commands(user, &command);
            commands.push(command);
            commands.extend(below);
        }
    }
    commands
}

/// `TAKEBACK_UPDATE_REFERENCE=1` rewrites the page.
#[test]
fn the_reference_is_what_help_says() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let text = std::fs::read_to_string(&file).expect("the reference is there");
    let (before, rest) = text.split_once("<!-- help -->\n").expect("where help begins");
    let (_, after) = rest.split_once("<!-- end of help -->").expect("where help ends");
    let user = User::new();
    let mut help = String::new();
    let commands = commands(&user, &[]);
    assert!(commands.len() > 12, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let answer = user.succeeds(&words);
        let command = command.join(" ");
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
