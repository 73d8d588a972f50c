//! Permissions that the user granted for the rest of the session.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;
use takeback_core::middleware::{command_in, paths_in};

use super::wire::WirePermission;
use crate::chat_agent::Decision;

/// A call that waits for permission.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) tool: String,
    pub(super) input: Value,
    pub(super) call: String,
    pub(super) reach: Reach,
}

/// How far a permanent permission reaches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Reach {
    /// Every call of the tool inside the folder.
    Inside,
    /// This command, or this input outside the folder, and no other.
    Only(String),
}

impl Reach {
    /// `is_inside`: whether a path leads into the folder, with links resolved.
    pub(super) fn of(input: &Value, is_inside: impl Fn(&Path) -> bool) -> Self {
        if let Some(command) = command_in(input) {
            return Self::Only(command);
        }
        let outside: Vec<String> = paths_in(input)
            .iter()
            .filter(|path| !is_inside(path))
            .map(|path| path.display().to_string())
            .collect();
        if outside.is_empty() { Self::Inside } else { Self::Only(outside.join("\n")) }
    }
}

/// The permissions of a session.
#[derive(Debug, Default)]
pub(super) struct Leave {
    always: HashSet<(String, Reach)>,
}

impl Leave {
    /// The decision that needs no user.
    pub(super) fn standing(&self, asked: &Asked) -> Option<WirePermission> {
        // Its answers would be a choice from a list; the user's next message does as well.
        if asked.tool == "AskUserQuestion" {
            let message = "Ask in plain text: the user answers with the next message.".to_owned();
            return Some(WirePermission::Deny { message });
        }
        self.always.contains(&kind_of(asked)).then(|| allow(asked))
    }

    pub(super) fn given(&mut self, asked: &Asked, decision: Decision) -> WirePermission {
        match decision {
            Decision::Allow => allow(asked),
            Decision::AllowAlways => {
                self.always.insert(kind_of(asked));
                allow(asked)
            }
            Decision::Deny(message) => WirePermission::Deny { message },
        }
    }
}

impl WirePermission {
    pub(super) fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }
}

fn allow(asked: &Asked) -> WirePermission {
    WirePermission::Allow { updated_input: asked.input.clone() }
}

fn kind_of(asked: &Asked) -> (String, Reach) {
    (asked.tool.clone(), asked.reach.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(tool: &str, input: Value) -> Asked {
        let reach = Reach::of(&input, |path| path.starts_with("/proj"));
        Asked { tool: tool.to_owned(), input, call: "c".to_owned(), reach }
    }

    #[test]
    fn what_is_always_allowed_is_a_tool_inside_the_folder_or_a_command() {
        let mut leave = Leave::default();
        let write = |path: &str| asked("Write", json!({ "file_path": path }));
        let run = |command: &str| asked("Bash", json!({ "command": command }));
        let (a, b) = (write("/proj/a"), write("/proj/b"));
        assert_eq!(leave.standing(&a), None);
        assert_eq!(leave.given(&a, Decision::Allow), allow(&a));
        assert_eq!(leave.standing(&a), None);
        leave.given(&a, Decision::AllowAlways);
        assert_eq!(leave.standing(&b), Some(allow(&b)));
        let (outside, other) = (write("/home/a"), write("/home/b"));
        assert_eq!(leave.standing(&outside), None);
        leave.given(&outside, Decision::AllowAlways);
        assert_eq!(leave.standing(&outside), Some(allow(&outside)));
        assert_eq!(leave.standing(&other), None);
        leave.given(&run("ls"), Decision::AllowAlways);
        assert_eq!(leave.standing(&run("ls")), Some(allow(&run("ls"))));
        assert_eq!(leave.standing(&run("rm -r x")), None);
        let denied = leave.given(&run("rm -r x"), Decision::Deny("no".to_owned()));
        assert_eq!(denied, WirePermission::Deny { message: "no".to_owned() });
    }
}
