//! The agent's own rewind, run on the same state and then reverted.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use takeback_testkit::Thing;

use super::setup::{ClaudeChat, config, environment};

/// The files after the agent's own rewind.
pub(super) struct SdkRewind(BTreeMap<PathBuf, Thing>);

impl SdkRewind {
    pub(super) fn text(&self, path: &str) -> Option<String> {
        match self.0.get(&PathBuf::from(path)) {
            Some(Thing::File { bytes, .. }) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }
}

impl ClaudeChat {
    /// Rewinds to a prompt (1 is the newest) with the agent sdk, which must report success. Another process
    /// does it, with a copy of the agent's data, to which `harm` is applied first. Then all files are restored.
    pub(super) fn rewind_with_sdk(&self, number: usize, harm: impl FnOnce(PathBuf)) -> SdkRewind {
        let before = self.user.tree();
        let (work, home) = (self.user.work(), self.user.home());
        let (kept, knows) = (home.join("kept"), home.join("knows"));
        run(Command::new("cp").arg("-a").arg(&work).arg(&kept));
        run(Command::new("cp").arg("-a").arg(config(&self.user)).arg(&knows));
        harm(knows.clone());
        let checkpoint = &self.metadata()[number - 1];
        let mut command = Command::new(&self.program);
        command.args(["-p", "--resume", checkpoint["sessionId"].as_str().expect("a session")]);
        command.args(["--rewind-files", checkpoint["id"].as_str().expect("an id")]);
        command.current_dir(&work).env_clear().env("HOME", &home).env("PATH", "/usr/bin:/bin");
        command.envs(environment(&self.user, &self.model.url()));
        command.env("CLAUDE_CONFIG_DIR", &knows);
        command.env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1");
        let output = command.output().expect("it runs");
        let says = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(says.contains("Files rewound to state at message"), "{output:?}");
        let tree = self.user.tree();
        // The folder itself must stay, because the session runs in it.
        run(Command::new("find").arg(&work).args(["-mindepth", "1", "-delete"]));
        run(Command::new("cp").arg("-a").arg(kept.join(".")).arg(&work));
        run(Command::new("rm").arg("-r").args([&kept, &knows]));
        assert_eq!(self.user.tree(), before);
        SdkRewind(tree)
    }
}

fn run(command: &mut Command) {
    assert!(command.status().expect("it runs").success(), "{command:?}");
}
