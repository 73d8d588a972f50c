//! `docs/reference.md` holds every command's help, word for word, and the settings files of every agent.

use takeback_agents::{AGENTS, AgentKind};

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
    let user = User::new();
    let mut help = String::new();
    let commands = commands(&user, &[]);
    assert!(commands.len() > 12, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let answer = user.succeeds(&words);
        let command = command.join(" ");
        let (own, _global) = answer.out.split_once("\nGlobal options:").expect("global options");
        help.push_str(&format!("\n### `takeback {command}`\n\n```text\n{}\n```\n", own.trim_end()));
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
