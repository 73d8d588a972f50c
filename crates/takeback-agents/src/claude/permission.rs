//! What the program may do without asking again.

use std::collections::HashSet;

use serde_json::Value;

use super::wire::WirePermission;
use crate::talk::Decision;

/// A call that waits for somebody's leave.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) tool: String,
    pub(super) input: Value,
    pub(super) call: String,
}

/// What was allowed for the rest of the session: a tool, or for a shell one command.
#[derive(Debug, Default)]
pub(super) struct Leave {
    always: HashSet<(String, Option<String>)>,
}

impl Leave {
    /// An answer that needs nobody.
    pub(super) fn standing(&self, asked: &Asked) -> Option<WirePermission> {
        // Its answers would have to be chosen from a list; the user's next message does as well.
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

fn kind_of(asked: &Asked) -> (String, Option<String>) {
    let command = asked.input["command"].as_str().map(str::to_owned);
    (asked.tool.clone(), command)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(tool: &str, input: Value) -> Asked {
        Asked { tool: tool.to_owned(), input, call: "c".to_owned() }
    }

    #[test]
    fn what_is_always_allowed_is_a_tool_or_a_command() {
        let mut leave = Leave::default();
        let write = |path: &str| asked("Write", json!({ "file_path": path }));
        let run = |command: &str| asked("Bash", json!({ "command": command }));
        assert_eq!(leave.standing(&write("a")), None);
        assert_eq!(leave.given(&write("a"), Decision::Allow), allow(&write("a")));
        assert_eq!(leave.standing(&write("a")), None);
        leave.given(&write("a"), Decision::AllowAlways);
        assert_eq!(leave.standing(&write("b")), Some(allow(&write("b"))));
        leave.given(&run("ls"), Decision::AllowAlways);
        assert_eq!(leave.standing(&run("ls")), Some(allow(&run("ls"))));
        assert_eq!(leave.standing(&run("rm -r x")), None);
        let denied = leave.given(&run("rm -r x"), Decision::Deny("no".to_owned()));
        assert_eq!(denied, WirePermission::Deny { message: "no".to_owned() });
    }
}
