//! The program's own rewind, tried on the same state and then reverted.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use takeback_testkit::Thing;

use super::setup::{ClaudeChat, config, environment};

/// What it left behind.
pub(super) struct Alone(BTreeMap<PathBuf, Thing>);

impl Alone {
    pub(super) fn text(&self, path: &str) -> Option<String> {
        match self.0.get(&PathBuf::from(path)) {
            Some(Thing::File { bytes, .. }) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }
}

impl ClaudeChat {
    /// The program alone goes back to a prompt, the newest being 1, and says that it did. Another
    /// process does it, with a copy of all that it knows; `harm` is done to that copy first. Then
    /// every file is as it was before.
    pub(super) fn alone(&self, number: usize, harm: impl FnOnce(PathBuf)) -> Alone {
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
        // The folder itself must stay: the session runs in it.
        run(Command::new("find").arg(&work).args(["-mindepth", "1", "-delete"]));
        run(Command::new("cp").arg("-a").arg(kept.join(".")).arg(&work));
        run(Command::new("rm").arg("-r").args([&kept, &knows]));
        assert_eq!(self.user.tree(), before);
        Alone(tree)
    }
}

fn run(command: &mut Command) {
    assert!(command.status().expect("it runs").success(), "{command:?}");
}
