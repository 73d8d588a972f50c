//! What the agent may do without asking. Grows when the user always allows something.

use std::collections::HashSet;

use super::Permissions;
use super::tools::Call;

/// What needs no question for the rest of the session.
#[derive(Debug, Clone)]
pub(crate) struct GrantedPermissions {
    /// Edits of any file: the tools do not leave the workspace.
    edits: bool,
    /// Any command.
    shell: bool,
    commands: HashSet<String>,
}

impl GrantedPermissions {
    pub(crate) fn new(permissions: Permissions) -> Self {
        let shell = permissions == Permissions::AllowAll;
        let edits = shell || permissions == Permissions::AcceptEdits;
        Self { edits, shell, commands: HashSet::new() }
    }

    pub(super) fn covers(&self, call: &Call) -> bool {
        match call {
            Call::Read(_) | Call::List(_) => true,
            Call::Write(_) | Call::Edit(_) => self.edits,
            Call::Shell(shell) => self.shell || self.commands.contains(&shell.command),
        }
    }

    /// Allows similar calls: any edit, or the same command again.
    pub(super) fn add(&mut self, call: &Call) {
        match call {
            Call::Read(_) | Call::List(_) => {}
            Call::Write(_) | Call::Edit(_) => self.edits = true,
            Call::Shell(shell) => {
                self.commands.insert(shell.command.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn always_allowed_is_any_edit_or_the_same_command() {
        let mut allowed = GrantedPermissions::new(Permissions::Ask);
        let shell = |command: &str| Call::parse("shell", &json!({ "command": command })).unwrap();
        let write = |path: &str| {
            Call::parse("write_file", &json!({ "path": path, "content": "" })).unwrap()
        };
        let edit = json!({ "path": "b", "old_string": "x", "new_string": "y" });
        let edit = Call::parse("edit_file", &edit).unwrap();
        let list = Call::parse("list_files", &json!({})).unwrap();
        let covered = |allowed: &GrantedPermissions| {
            [&shell("ls"), &shell("ls; rm -r x"), &write("a"), &edit, &list]
                .map(|call| allowed.covers(call))
        };
        assert_eq!(covered(&allowed), [false, false, false, false, true]);
        allowed.add(&shell("ls"));
        assert_eq!(covered(&allowed), [true, false, false, false, true]);
        allowed.add(&write("c"));
        assert_eq!(covered(&allowed), [true, false, true, true, true]);
        let accepting = GrantedPermissions::new(Permissions::AcceptEdits);
        assert_eq!(covered(&accepting), [false, false, true, true, true]);
        assert_eq!(covered(&GrantedPermissions::new(Permissions::AllowAll)), [true; 5]);
    }
}
