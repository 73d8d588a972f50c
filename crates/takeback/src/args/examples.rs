//! An example or more for every command, at the end of its help and in its manual page.

use clap::Command;
use clap::builder::StyledStr;

/// A command, and lines to type with what they do.
type Examples = (&'static str, &'static [(&'static str, &'static str)]);

const EXAMPLES: &[Examples] = &[
    ("demo", &[("takeback demo", "Watch a rewind in a temporary folder")]),
    (
        "run",
        &[
            ("takeback run -- npm run format", "Record what a command changes"),
            ("takeback run -- aider", "Record an agent that has no hooks"),
        ],
    ),
    (
        "chat",
        &[
            ("takeback chat", "Start a conversation"),
            ("takeback chat -c", "Continue the last one"),
            ("takeback chat 'Add discounts'", "Start with a prompt"),
        ],
    ),
    (
        "init",
        &[
            ("takeback init --dry-run", "See the changes to your agents' settings"),
            ("takeback init --agent claude", "Install the hooks for one agent"),
        ],
    ),
    ("uninstall", &[("takeback uninstall --dry-run", "See what would be removed")]),
    ("doctor", &[("takeback doctor", "Check hooks and store after an update")]),
    (
        "record",
        &[
            ("my-agent | takeback record", "Record the events of your own agent"),
            (
                r#"echo '{"event":"prompt","session":"s1","text":"Add tax"}' | takeback record"#,
                "Record one event",
            ),
        ],
    ),
    ("hook", &[("takeback hook --agent claude < payload.json", "Record one hook payload")]),
    (
        "serve",
        &[
            ("takeback serve --stdio", "Serve the program that starts it"),
            ("takeback serve --ensure", "Start a server if none runs, and print its socket"),
        ],
    ),
    ("mcp", &[("takeback mcp", "The command to name in an agent's MCP settings")]),
    (
        "checkpoint",
        &[
            ("takeback checkpoint", "Make a point"),
            (
                "takeback checkpoint before-refactoring",
                "Make a point with a label; it never expires",
            ),
        ],
    ),
    (
        "log",
        &[
            ("takeback log", "The newest points"),
            ("takeback log src --by agent", "Where agents changed something in src"),
            ("takeback log -S parse_header", "Where a text appeared or disappeared"),
            ("takeback log --ops", "Only rewinds, undos and redos"),
        ],
    ),
    (
        "show",
        &[
            ("takeback show", "The newest point"),
            ("takeback show @~2 -p", "The third newest, with the changes as a diff"),
        ],
    ),
    (
        "diff",
        &[
            ("takeback diff", "What changed since the newest point"),
            ("takeback diff @~1!", "What the last prompt but one changed"),
            ("takeback diff 14:00 --by you", "Your own changes since 14:00"),
        ],
    ),
    (
        "blame",
        &[
            ("takeback blame src/cart.rs", "Who wrote each line"),
            ("takeback blame src/cart.rs -L 10-20", "Only some lines"),
        ],
    ),
    ("why", &[("takeback why src/cart.rs:12", "The prompt and the change behind line 12")]),
    ("history", &[("takeback history src/cart.rs", "The points after which the file changed")]),
    (
        "cat",
        &[
            ("takeback cat @~1:src/cart.rs", "The file as it was two points ago"),
            ("takeback cat 14:00:src/cart.rs > old.rs", "As it was at 14:00, into a file"),
        ],
    ),
    (
        "stats",
        &[
            ("takeback stats --since 3d", "Who wrote how much in three days"),
            ("takeback stats @~5..@", "Between two points"),
        ],
    ),
    (
        "bisect",
        &[
            ("takeback bisect -- cargo test", "The prompt after which the tests fail"),
            ("takeback bisect --good @~9 --with node_modules -- npm test", "With unrecorded files"),
        ],
    ),
    (
        "fork",
        &[
            ("takeback fork @ ../try", "The files as they were at the newest point, in ../try"),
            ("takeback fork now ../try --count 3", "Three copies of the files as they are"),
            ("takeback fork 14:00 ../try --all", "With .git and build output"),
        ],
    ),
    (
        "compare",
        &[
            ("takeback compare ../try-1 ../try-2", "What each fork changed"),
            ("takeback compare ../try-1 ../try-2 -- cargo test", "And how the tests end in it"),
        ],
    ),
    (
        "rewind",
        &[
            ("takeback rewind", "Choose a point from a menu"),
            ("takeback rewind @ --dry-run", "See what taking back the last prompt would do"),
            ("takeback rewind @~1 --path src", "Take back two prompts, in src only"),
        ],
    ),
    (
        "revert",
        &[
            ("takeback revert @~3", "Take back one turn, keep the later ones"),
            ("takeback revert @.2", "Take back the second call of the last turn"),
            ("takeback revert @~5..@~2", "Take back a range"),
        ],
    ),
    (
        "restore",
        &[
            ("takeback restore src/main.rs", "The file as it was before the last prompt"),
            ("takeback restore 'src/**' --from @~3", "A folder as it was three prompts ago"),
            ("takeback restore src/main.rs --hunk", "Choose which changes to take back"),
        ],
    ),
    (
        "adopt",
        &[
            ("takeback adopt ../try-2 --dry-run", "See what would come back from a fork"),
            ("takeback adopt ../try-2", "Merge what happened there into this folder"),
        ],
    ),
    (
        "resolve",
        &[
            ("takeback resolve", "Decide about each conflict"),
            ("takeback resolve --take mine", "Keep your version everywhere"),
            ("takeback resolve src/main.rs --tool", "Use your merge tool"),
        ],
    ),
    (
        "undo",
        &[
            ("takeback undo", "Take back the last operation"),
            ("takeback undo --dry-run", "See what that would do"),
            ("takeback undo 3f2a9c01", "Take back an older operation, keep the later ones"),
        ],
    ),
    ("redo", &[("takeback redo", "Redo the last undone operation")]),
    (
        "label",
        &[
            ("takeback label @ works", "Label the newest point"),
            ("takeback label works --remove", "Remove the label"),
        ],
    ),
    ("pin", &[("takeback pin @~3", "Keep the fourth newest point")]),
    ("unpin", &[("takeback unpin @~3", "Let it expire again")]),
    ("sessions", &[("takeback sessions -n 5", "The five newest sessions")]),
    ("session", &[("takeback session archive 3fa94c21", "Archive a session")]),
    ("session archive", &[("takeback session archive 3fa94c21", "Archive a session")]),
    (
        "session delete",
        &[("takeback session delete 3fa94c21 --dry-run", "See what would be deleted")],
    ),
    ("cleanup", &[("takeback cleanup --dry-run", "See what would be removed")]),
    ("du", &[("takeback du -n 30", "The 30 largest paths in the store")]),
    (
        "status",
        &[
            ("takeback status", "What is protected, and what is not"),
            ("takeback status --line", "One line for a shell prompt"),
        ],
    ),
    ("recover", &[("takeback recover --dry-run", "See whether a rewind is unfinished")]),
    ("verify", &[("takeback verify", "Read and check everything")]),
    (
        "config",
        &[
            ("takeback config", "Every setting"),
            ("takeback config pointsPerSession", "One value"),
            ("takeback config set pointsPerSession 100", "Keep more points"),
        ],
    ),
    ("config get", &[("takeback config get archiveDays", "One value")]),
    (
        "config set",
        &[
            ("takeback config set archiveDays 30", "For all your projects"),
            ("takeback config set archiveDays 30 --scope project", "For this project"),
            ("takeback config set derivedFolders out,generated", "A list"),
        ],
    ),
    ("config unset", &[("takeback config unset archiveDays", "Use the default again")]),
    ("config edit", &[("takeback config edit", "Open your settings in your editor")]),
    (
        "config path",
        &[("takeback config path --scope project", "Where this project's settings are")],
    ),
    ("workspaces", &[("takeback workspaces", "The protected folders")]),
    ("forget", &[("takeback forget --dry-run", "See what would be deleted")]),
    (
        "purge",
        &[("takeback purge secrets.env --dry-run", "See what would be removed from history")],
    ),
    ("relocate", &[("takeback relocate ~/old/shop", "This folder was ~/old/shop before")]),
    (
        "notes",
        &[
            ("takeback notes write main..HEAD", "The commits of this branch"),
            ("takeback notes show", "The note of the commit that is checked out"),
        ],
    ),
    (
        "notes write",
        &[
            ("takeback notes write --dry-run", "See the note of the commit that is checked out"),
            ("takeback notes write main..HEAD", "The commits of this branch"),
        ],
    ),
    ("notes show", &[("takeback notes show HEAD~1", "The note of an earlier commit")]),
    (
        "export",
        &[
            ("takeback export shop.bundle", "All points"),
            ("takeback export shop.bundle works", "One point"),
            ("takeback export --agent-trace traces.jsonl", "Who wrote which lines"),
            ("takeback export --patch turns.mbox", "One patch per turn, for `git am`"),
            (
                "takeback export --git review --session 4f1c",
                "A session as commits on the branch review",
            ),
        ],
    ),
    (
        "import",
        &[
            ("takeback import shop.bundle --dry-run", "See what would be added"),
            ("takeback import --from claude", "Claude Code's own history of this folder"),
        ],
    ),
    (
        "completions",
        &[
            ("takeback completions bash > ~/.local/share/bash-completion/completions/takeback", ""),
            ("takeback completions zsh > ~/.zfunc/_takeback", ""),
            ("takeback completions fish > ~/.config/fish/completions/takeback.fish", ""),
        ],
    ),
    (
        "state",
        &[
            ("takeback state list", "The executions"),
            ("takeback state resume exec-1", "The state to continue from"),
        ],
    ),
    ("state save", &[("takeback state save < checkpoint.json", "Save a step and the files")]),
    (
        "state list",
        &[
            ("takeback state list", "The executions"),
            ("takeback state list exec-1", "The checkpoints of one"),
        ],
    ),
    ("state show", &[("takeback state show ckpt-exec-1-3", "The checkpoint of step 3")]),
    (
        "state diff",
        &[("takeback state diff ckpt-exec-1-2 ckpt-exec-1-3", "What step 3 changed in the state")],
    ),
    (
        "state resume",
        &[
            ("takeback state resume exec-1", "The last success"),
            ("takeback state resume exec-1 --from-step 3", "To retry step 3"),
        ],
    ),
    (
        "state rollback",
        &[("takeback state rollback ckpt-exec-1-2 --dry-run", "See what would be done")],
    ),
    ("state fork", &[("takeback state fork ckpt-exec-1-2 other-way", "Branch off after step 2")]),
    ("state delete", &[("takeback state delete exec-1 --dry-run", "See what would be deleted")]),
    ("state export", &[("takeback state export exec-1 exec-1.json", "Into a new file")]),
    (
        "state effect",
        &[
            ("takeback state effect exec-1 mail --step 3 < mail.json", "Before sending a mail"),
            ("takeback state effect exec-1 mail --receipt < sent.json", "After it was sent"),
        ],
    ),
];

/// The examples of a command, by its full name (`state save`).
pub(crate) fn examples_of(name: &str) -> &'static [(&'static str, &'static str)] {
    let found = EXAMPLES.iter().find(|(of, _)| *of == name);
    found.map_or(&[], |(_, examples)| examples)
}

/// Every command's help ends with its examples.
pub(super) fn with_examples(command: Command) -> Command {
    let styles = command.get_styles().clone();
    below(command, "", &|command, name| {
        let examples = examples_of(name);
        if examples.is_empty() {
            return command;
        }
        let header = styles.get_header();
        let mut text = format!("{header}Examples:{header:#}");
        let longest = examples.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
        let is_narrow = examples.iter().all(|(_, meaning)| longest + meaning.len() + 4 <= COLUMNS);
        for (line, meaning) in examples {
            if meaning.is_empty() {
                text.push_str(&format!("\n  {line}"));
            } else if is_narrow {
                text.push_str(&format!("\n  {line:longest$}  {meaning}"));
            } else {
                text.push_str(&format!("\n  {line}\n      {meaning}"));
            }
        }
        command.after_help(StyledStr::from(text))
    })
}

/// A terminal's columns.
const COLUMNS: usize = 80;

fn below(command: Command, name: &str, with: &dyn Fn(Command, &str) -> Command) -> Command {
    let command = command.mut_subcommands(|sub| {
        let name = format!("{name} {}", sub.get_name()).trim_start().to_owned();
        below(sub, &name, with)
    });
    with(command, name)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::args::{Args, command_line};

    /// The names of all commands that help lists.
    fn names(command: &Command, above: &str) -> Vec<String> {
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        visible
            .flat_map(|sub| {
                let name = format!("{above} {}", sub.get_name()).trim_start().to_owned();
                let mut all = names(sub, &name);
                all.insert(0, name);
                all
            })
            .collect()
    }

    #[test]
    fn every_command_has_examples_of_itself() {
        let mut listed = names(&command_line(), "");
        let mut named: Vec<String> = EXAMPLES.iter().map(|(name, _)| (*name).to_owned()).collect();
        listed.sort();
        named.sort();
        assert_eq!(named, listed);
        for (name, examples) in EXAMPLES {
            let shows = |line: &str| line.contains(&format!("takeback {name}"));
            assert!(examples.iter().all(|(line, _)| shows(line)), "{name}");
        }
    }

    #[test]
    fn every_example_is_valid_and_fits_a_terminal() {
        for (name, examples) in EXAMPLES {
            let mut command = command_line();
            let path: Vec<&str> = name.split(' ').collect();
            let sub = path.iter().fold(&mut command, |at, word| {
                at.find_subcommand_mut(word).expect("the command is there")
            });
            let help = sub.render_help().to_string();
            let (_, shown) = help.split_once("Examples:\n").expect("help shows them");
            for line in shown.lines().filter(|line| !line.contains(" > ")) {
                assert!(line.chars().count() <= COLUMNS, "{line}");
            }
            for (line, _) in *examples {
                assert!(shown.contains(line), "{line}: {shown}");
                let at = line.find("takeback ").expect("it starts Takeback");
                let words = words(&line[at..]);
                drop(Args::of(&words).unwrap_or_else(|error| panic!("{line}: {error}")));
            }
        }
    }

    /// The words of a line up to a redirection, as a shell splits them.
    fn words(line: &str) -> Vec<OsString> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for c in line.chars() {
            match c {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                c => words.last_mut().expect("there is a word").push(c),
            }
        }
        let words = words.into_iter().take_while(|word| !["<", ">", "|"].contains(&word.as_str()));
        words.map(OsString::from).collect()
    }
}
