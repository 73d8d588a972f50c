//! The agent's five tools: their descriptions for the model, and what they do.
//!
//! In: a call as the model made it. Out: an [`Outcome`], one line for people and a text for the model.
//! The file tools read and write nothing outside of the workspace, not even through
//! links. Changes are not recorded here: the caller does that.

pub(crate) mod limit;
mod paths;
mod read;
mod shell;
mod write;

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use takeback_core::Workspace;

use super::signals::Signals;

/// A call whose input has the right shape.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    Read(ReadInput),
    Write(WriteInput),
    Edit(EditInput),
    List(ListInput),
    Shell(ShellInput),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct ReadInput {
    pub(crate) path: String,
    /// The first line, from 1.
    #[serde(default)]
    pub(crate) offset: Option<usize>,
    #[serde(default)]
    pub(crate) limit: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct WriteInput {
    pub(crate) path: String,
    pub(crate) content: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct EditInput {
    pub(crate) path: String,
    pub(crate) old_string: String,
    pub(crate) new_string: String,
    #[serde(default)]
    pub(crate) replace_all: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct ListInput {
    #[serde(default)]
    pub(crate) path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct ShellInput {
    pub(crate) command: String,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) ok: bool,
    pub(crate) line: String,
    /// For the model.
    pub(crate) text: String,
}

impl Outcome {
    fn done(line: impl Into<String>, text: impl Into<String>) -> Self {
        Self { ok: true, line: line.into(), text: text.into() }
    }

    pub(crate) fn failed(why: impl Into<String>) -> Self {
        let why = why.into();
        Self { ok: false, line: first_line(&why).to_owned(), text: why }
    }
}

pub(crate) const NAMES: [&str; 5] = ["read_file", "write_file", "edit_file", "list_files", "shell"];

impl Call {
    /// The error is a text for the model.
    pub(crate) fn parse(tool: &str, input: &Value) -> Result<Self, String> {
        match tool {
            "read_file" => ReadInput::deserialize(input).map(Self::Read),
            "write_file" => WriteInput::deserialize(input).map(Self::Write),
            "edit_file" => EditInput::deserialize(input).map(Self::Edit),
            "list_files" => ListInput::deserialize(input).map(Self::List),
            "shell" => ShellInput::deserialize(input).map(Self::Shell),
            _ => {
                return Err(format!("there is no tool {tool}; the tools are {}", NAMES.join(", ")));
            }
        }
        .map_err(|error| format!("the input of {tool} is invalid: {error}"))
    }

    /// One line for people.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Read(read) => format!("Read {}", first_line(&read.path)),
            Self::Write(write) => format!("Write {}", first_line(&write.path)),
            Self::Edit(edit) => format!("Edit {}", first_line(&edit.path)),
            Self::List(list) => format!("List {}", first_line(list.path.as_deref().unwrap_or("."))),
            Self::Shell(shell) => {
                let line = first_line(&shell.command);
                let more = if line.len() < shell.command.trim().len() { " …" } else { "" };
                format!("$ {line}{more}")
            }
        }
    }

    /// What it would do, in full.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Read(_) | Self::List(_) => String::new(),
            Self::Write(write) => write.content.clone(),
            Self::Edit(edit) => {
                let marked = |mark: char, text: &str| -> String {
                    text.lines().map(|line| format!("{mark} {line}\n")).collect()
                };
                marked('-', &edit.old_string) + &marked('+', &edit.new_string)
            }
            Self::Shell(shell) => shell.command.clone(),
        }
    }

    /// Whether its files are where the tools may read or write; checked before the user is asked.
    pub(crate) fn check(&self, workspace: &Workspace) -> Result<(), String> {
        match self {
            Self::Read(ReadInput { path, .. }) => {
                paths::resolve_for_read(workspace, path).map(drop)
            }
            Self::List(ListInput { path }) => {
                paths::resolve_for_read(workspace, path.as_deref().unwrap_or(".")).map(drop)
            }
            Self::Write(WriteInput { path, .. }) | Self::Edit(EditInput { path, .. }) => {
                paths::resolve_for_write(workspace, path).map(drop)
            }
            Self::Shell(_) => Ok(()),
        }
    }

    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        signals: &Signals,
        shell_limit: Duration,
    ) -> Outcome {
        let done = match self {
            Self::Read(read) => read::read(workspace, read),
            Self::List(list) => read::list(workspace, list.path.as_deref().unwrap_or(".")),
            Self::Write(write) => write::write(workspace, write),
            Self::Edit(edit) => write::edit(workspace, edit),
            Self::Shell(shell) => {
                shell::run(workspace.root.path(), &shell.command, signals, shell_limit)
            }
        };
        done.unwrap_or_else(Outcome::failed)
    }
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

/// `1 line`, `2 lines`.
fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A tool's description for the model.
pub(crate) struct Description {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// JSON schema of its input.
    pub(crate) input: Value,
}

pub(crate) fn descriptions() -> Vec<Description> {
    let text = |about: &str| json!({"type": "string", "description": about});
    let number = |about: &str| json!({"type": "integer", "minimum": 1, "description": about});
    let path = || text("Relative to the workspace folder, or absolute inside of it.");
    let object = |properties: Value, required: &[&str]| json!({"type": "object", "properties": properties, "required": required});
    vec![
        Description {
            name: "read_file",
            text: "Reads a text file. Long files are cut: continue with offset.",
            input: object(
                json!({
                    "path": path(),
                    "offset": number("The first line to read, from 1."),
                    "limit": number("How many lines to read."),
                }),
                &["path"],
            ),
        },
        Description {
            name: "write_file",
            text: "Writes a whole file. Creates its folders and replaces existing contents.",
            input: object(
                json!({"path": path(), "content": text("The whole content.")}),
                &["path", "content"],
            ),
        },
        Description {
            name: "edit_file",
            text: "Replaces a text in a file. The old text must occur exactly once, unless \
                   replace_all is set.",
            input: object(
                json!({
                    "path": path(),
                    "old_string": text("The text to replace, exactly as in the file."),
                    "new_string": text("The replacement."),
                    "replace_all": {"type": "boolean"},
                }),
                &["path", "old_string", "new_string"],
            ),
        },
        Description {
            name: "list_files",
            text: "Lists one folder, without subfolders. Names of folders end with a slash.",
            input: object(json!({"path": path()}), &[]),
        },
        Description {
            name: "shell",
            text: "Runs a command with sh in the workspace folder and returns its output. Processes \
                   that it leaves running are killed when it ends.",
            input: object(json!({"command": text("The command.")}), &["command"]),
        },
    ]
}
