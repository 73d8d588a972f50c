//! `docs/reference.md` holds every command's help, word for word, and the settings files of every agent.

use clap::Command;
use takeback::command_line::program;
use takeback_agents::{AGENTS, AgentKind};

use crate::user::User;

/// Every command that the program lists, each followed by its subcommands.
pub(crate) fn commands() -> Vec<Vec<String>> {
    below(&program(), &[])
}

fn below(command: &Command, above: &[String]) -> Vec<Vec<String>> {
    let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    visible
        .flat_map(|sub| {
            let name = [above, &[sub.get_name().to_owned()]].concat();
            let mut all = below(sub, &name);
            all.insert(0, name);
            all
        })
        .collect()
}

/// `TAKEBACK_UPDATE_REFERENCE=1` rewrites the page.
#[test]
fn the_reference_is_what_help_says() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference.md");
    let text = std::fs::read_to_string(&file).expect("the reference is there");
    let user = User::new();
    let mut help = String::new();
    for command in commands() {
        let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let answer = user.succeeds(&words);
        let command = command.join(" ");
        let (own, rest) = answer.out.split_once("\nGlobal options:").expect("global options");
        let (_, examples) = rest.split_once("\nExamples:").expect("examples");
        let (own, examples) = (own.trim_end(), examples.trim_end());
        help.push_str(&format!(
            "\n### `takeback {command}`\n\n```text\n{own}\n\nExamples:{examples}\n```\n"
        ));
    }
    let expected = with_section(&text, "help", &help);
    let expected = with_section(&expected, "agents", &settings_files());
    if std::env::var_os("TAKEBACK_UPDATE_REFERENCE").is_some() {
        std::fs::write(&file, &expected).expect("the reference is written");
    }
    assert!(
        std::fs::read_to_string(&file).expect("it is there") == expected,
        "docs/reference.md is not what --help and the table of agents say; \
         TAKEBACK_UPDATE_REFERENCE=1 rewrites it"
    );
}

/// The text with another section of this name, which is between two comments.
fn with_section(text: &str, name: &str, section: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = text.split_once(&begin).expect("where it begins");
    let (_, after) = rest.split_once(&end).expect("where it ends");
    format!("{before}{begin}{section}\n{end}{after}")
}

fn settings_files() -> String {
    let row = |agent: &&AgentKind| {
        let file = format!("`~/{}/{}`", agent.home.default, agent.hooks_file.user);
        let variable = agent.home.variable.map(|variable| format!("`{variable}`"));
        let project = agent.hooks_file.project;
        let title = agent.title;
        format!("| {title} | {file} | {} | `{project}` |\n", variable.unwrap_or_default())
    };
    let rows: String = AGENTS.iter().map(row).collect();
    format!("\n| agent | file | moved by | in a project |\n|---|---|---|---|\n{rows}")
}
