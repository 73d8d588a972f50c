//! The manual pages that `scripts/man` writes.

#[path = "../../examples/man/pages.rs"]
mod pages;

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::reference::commands;

/// A page as a terminal shows it, without warnings of groff.
fn rendered(text: &[u8]) -> String {
    let mut groff = Command::new("groff")
        .args(["-man", "-Tutf8", "-ww", "-P-c", "-P-b", "-P-u"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("groff runs");
    groff.stdin.take().expect("a pipe").write_all(text).expect("a page");
    let output = groff.wait_with_output().expect("groff ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).expect("text")
}

fn has_groff() -> bool {
    Command::new("groff").arg("--version").stdout(Stdio::null()).status().is_ok()
}

#[test]
fn every_command_has_a_page_that_names_its_options() {
    let pages = pages::pages();
    let mut names: Vec<String> =
        commands().iter().map(|name| format!("takeback-{}.1", name.join("-"))).collect();
    names.insert(0, "takeback.1".to_owned());
    assert_eq!(pages.iter().map(|page| page.name.clone()).collect::<Vec<_>>(), names);
    let has_groff = has_groff();
    for page in &pages {
        let source = String::from_utf8(page.text.clone()).expect("text").replace("\\-", "-");
        let words: Vec<&str> = page.name.trim_end_matches(".1").split('-').skip(1).collect();
        let program = takeback::command_line::program();
        let command = words
            .iter()
            .fold(&program, |at, word| at.find_subcommand(word).expect("there is such a command"));
        let shown = if has_groff { rendered(&page.text) } else { source.clone() };
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            if let Some(long) = argument.get_long() {
                assert!(
                    shown.contains(&format!("--{long}")),
                    "{}: no --{long}: {shown}",
                    page.name
                );
            }
        }
        for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"] {
            assert!(
                source.contains(&format!("\n.SH {heading}"))
                    || source.contains(&format!(".SH \"{heading}\"")),
                "{}: no {heading}",
                page.name
            );
        }
        assert_eq!(source.contains(".SH EXAMPLES"), !words.is_empty(), "{}", page.name);
    }
}
