//! Permissions that the user granted for the rest of the session.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;
use takeback_core::middleware::{command_in, paths_in};

use super::wire::WirePermission;
use crate::chat_agent::Decision;

/// A call that waits for permission.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PendingCall {
    pub(super) tool: String,
    pub(super) input: Value,
    pub(super) call: String,
    pub(super) scope: PermissionScope,
}

/// How far a permanent permission reaches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum PermissionScope {
    /// Every call of the tool inside the folder.
    Inside,
    /// This command, or this input outside the folder, and no other.
    Only(String),
}

impl PermissionScope {
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
pub(super) struct SessionPermissions {
    always: HashSet<(String, PermissionScope)>,
}

impl SessionPermissions {
    /// The decision on a call that needs no question to the user.
    pub(super) fn stored_decision(&self, call: &PendingCall) -> Option<WirePermission> {
        // Its answer would be a choice from a list; the user's next message serves as well.
        if call.tool == "AskUserQuestion" {
            let message = "Ask in plain text: the user answers with the next message.".to_owned();
            return Some(WirePermission::Deny { message });
        }
        self.always.contains(&grant_of(call)).then(|| allow(call))
    }

    /// The answer for the program; remembers [`Decision::AllowAlways`].
    pub(super) fn apply(&mut self, call: &PendingCall, decision: Decision) -> WirePermission {
        match decision {
            Decision::Allow => allow(call),
            Decision::AllowAlways => {
                self.always.insert(grant_of(call));
                allow(call)
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

fn allow(call: &PendingCall) -> WirePermission {
    WirePermission::Allow { updated_input: call.input.clone() }
}

fn grant_of(call: &PendingCall) -> (String, PermissionScope) {
    (call.tool.clone(), call.scope.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(tool: &str, input: Value) -> PendingCall {
        let scope = PermissionScope::of(&input, |path| path.starts_with("/proj"));
        PendingCall { tool: tool.to_owned(), input, call: "c".to_owned(), scope }
    }

    #[test]
    fn always_allowed_is_a_tool_inside_the_folder_or_one_command() {
        let mut permissions = SessionPermissions::default();
        let write = |path: &str| call("Write", json!({ "file_path": path }));
        let run = |command: &str| call("Bash", json!({ "command": command }));
        let (a, b) = (write("/proj/a"), write("/proj/b"));
        assert_eq!(permissions.stored_decision(&a), None);
        assert_eq!(permissions.apply(&a, Decision::Allow), allow(&a));
        assert_eq!(permissions.stored_decision(&a), None);
        permissions.apply(&a, Decision::AllowAlways);
        assert_eq!(permissions.stored_decision(&b), Some(allow(&b)));
        let (outside, other) = (write("/home/a"), write("/home/b"));
        assert_eq!(permissions.stored_decision(&outside), None);
        permissions.apply(&outside, Decision::AllowAlways);
        assert_eq!(permissions.stored_decision(&outside), Some(allow(&outside)));
        assert_eq!(permissions.stored_decision(&other), None);
        permissions.apply(&run("ls"), Decision::AllowAlways);
        assert_eq!(permissions.stored_decision(&run("ls")), Some(allow(&run("ls"))));
        assert_eq!(permissions.stored_decision(&run("rm -r x")), None);
        let denied = permissions.apply(&run("rm -r x"), Decision::Deny("no".to_owned()));
        assert_eq!(denied, WirePermission::Deny { message: "no".to_owned() });
    }
}
