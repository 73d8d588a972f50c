//! A workspace in a git repository whose user is `me@example.com`.

use std::path::Path;
use std::process::Command;

use takeback_core::{Repository, look_around};
use takeback_testkit::Sandbox;

pub(super) struct Project {
    pub(super) sandbox: Sandbox,
    pub(super) repository: Repository,
}

impl Project {
    /// With `a.txt` committed before the log begins.
    pub(super) fn new(text: &str) -> Self {
        let sandbox = Sandbox::in_memory();
        sandbox.date_files();
        git(&sandbox.root(), "init -q -b main");
        git(&sandbox.root(), "config user.name Me");
        git(&sandbox.root(), "config user.email me@example.com");
        let repository = Repository::around(&sandbox.root()).unwrap();
        let mut project = Self { sandbox, repository };
        project.sandbox.write("a.txt", text);
        project.commit("base");
        look_around(&mut project.sandbox.workspace).unwrap();
        project
    }

    pub(super) fn git(&self, line: &str) -> String {
        git(&self.sandbox.root(), line)
    }

    /// Commits everything.
    pub(super) fn commit(&mut self, message: &str) {
        self.git("add -A");
        self.git(&format!("commit -qm {message}"));
    }

    /// You write a file, and Takeback notices.
    pub(super) fn you_write(&mut self, path: &str, text: &str) {
        self.sandbox.milliseconds_pass(1000);
        self.sandbox.write(path, text);
        look_around(&mut self.sandbox.workspace).unwrap();
    }

    /// A session that changes a file, with a model.
    pub(super) fn agent_turn(&mut self, session: &str, model: &str, path: &str, text: &str) {
        self.sandbox.prompt(session, "go on");
        self.sandbox.agent_writes(session, path, text);
        self.sandbox.turn_end_by(session, model);
    }
}

pub(super) fn git(folder: &Path, line: &str) -> String {
    let output = Command::new("git")
        .args(line.split(' '))
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_EDITOR", "true")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
