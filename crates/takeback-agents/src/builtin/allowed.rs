//! What the agent may do without asking, which grows with what somebody allows for good.

use super::Permissions;
use super::tools::Needs;

/// What needs nobody's word for the rest of the session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowed {
    edits: bool,
    shell: bool,
}

impl Allowed {
    pub(crate) fn by(permissions: Permissions) -> Self {
        let shell = permissions == Permissions::AllowAll;
        Self { edits: shell || permissions == Permissions::AcceptEdits, shell }
    }

    pub(super) fn covers(self, needs: Needs) -> bool {
        match needs {
            Needs::Nothing => true,
            Needs::Edits => self.edits,
            Needs::Shell => self.shell,
        }
    }

    pub(super) fn add(&mut self, needs: Needs) {
        match needs {
            Needs::Nothing => {}
            Needs::Edits => self.edits = true,
            Needs::Shell => self.shell = true,
        }
    }
}
