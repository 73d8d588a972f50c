//! A repository in a workspace, and what people and agents do to it with git.

use std::path::{Path, PathBuf};
use std::process::Command;

use takeback_core::history::{BlamedLine, LineOrigin, ask_git, blame};
use takeback_core::look_around;
use takeback_store::{Author, WorkPath};
use takeback_testkit::Sandbox;

/// Seconds since 1970; long before the sandbox's clock.
pub(super) const LONG_AGO: i64 = 1_600_000_000;

/// Runs git as this person. `at`: the time of a commit; `None`: now, which is later than the sandbox's clock.
#[track_caller]
pub(crate) fn git_as(root: &Path, person: &str, at: Option<i64>, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let (text, is_done) = try_git(root, person, at, &words);
    assert!(is_done, "git {line}: {text}");
    text.trim().to_owned()
}

/// As [`git_as`]; what git printed, and whether it succeeded.
pub(super) fn try_git(
    root: &Path,
    person: &str,
    at: Option<i64>,
    words: &[&str],
) -> (String, bool) {
    let mut command = Command::new("git");
    command.args(["-c", "commit.gpgSign=false", "-c", "init.defaultBranch=main"]);
    command.args(["-c", "gc.auto=0", "-c", "protocol.file.allow=always"]);
    command.args(words).current_dir(root);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    command.env("GIT_EDITOR", "true");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), person);
        command.env(format!("GIT_{role}_EMAIL"), format!("{person}@example.com"));
        if let Some(at) = at {
            command.env(format!("GIT_{role}_DATE"), format!("{at} +0000"));
        }
    }
    let output = command.output().expect("git runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout) + &text(&output.stderr), output.status.success())
}

/// A repository in a workspace whose files are dated.
pub(super) struct Project {
    pub(super) sandbox: Sandbox,
    time: i64,
}

impl Project {
    pub(super) fn new(text: &str) -> Self {
        let sandbox = Sandbox::in_memory();
        sandbox.date_files();
        let mut project = Self { sandbox, time: LONG_AGO };
        project.sandbox.write("a.txt", text);
        project.git("init");
        project.commit("ada");
        project
    }

    pub(super) fn git(&self, line: &str) {
        git_as(&self.sandbox.root(), "nobody", None, line);
    }

    /// Commits everything, long ago.
    pub(super) fn commit(&mut self, person: &str) {
        self.time += 60;
        self.git("add -A");
        git_as(&self.sandbox.root(), person, Some(self.time), "commit -qm change");
    }

    /// A person's commit on a branch of its own, made where the workspace does not look.
    pub(super) fn commit_elsewhere(&mut self, person: &str, branch: &str, text: &str) {
        let tree = tempfile::tempdir().expect("a folder");
        let at: PathBuf = tree.path().join("tree");
        self.git(&format!("worktree add -qb {branch} {}", at.display()));
        std::fs::write(at.join("a.txt"), text).expect("it is written");
        self.time += 60;
        git_as(&at, person, Some(self.time), "commit -qam elsewhere");
        self.git(&format!("worktree remove {}", at.display()));
    }

    pub(super) fn look(&mut self) {
        look_around(&mut self.sandbox.workspace).unwrap();
    }

    /// The session runs a git command as the user.
    pub(super) fn agent_git(&mut self, session: &str, line: &str) {
        self.sandbox.milliseconds_pass(5000);
        self.sandbox.agent_runs(session, &format!("git {line}"), |sandbox| {
            git_as(&sandbox.root(), "user", None, line);
        });
    }

    /// You run a git command, a minute later.
    pub(super) fn your_git(&mut self, line: &str) {
        self.sandbox.milliseconds_pass(60_000);
        self.git(line);
    }

    /// Each line of a file, and its author: who committed it, where git says so; else as the log has it.
    pub(super) fn authors_of(&self, path: &str) -> Vec<(String, String)> {
        let workspace = &self.sandbox.workspace;
        let mut blame = blame(&*workspace.store, &WorkPath::new(path).unwrap()).unwrap();
        ask_git(&mut blame, workspace).unwrap();
        assert_eq!(blame.git_problem, None);
        let author = |line: &BlamedLine| match (&line.commit, line.origin) {
            (Some(commit), _) => format!("commit of {}", commit.commit.name),
            (None, LineOrigin::Before { .. }) => "before".to_owned(),
            (None, LineOrigin::Unknown { .. }) => "unknown".to_owned(),
            (None, LineOrigin::Change { seq, .. }) => match &blame.changes[&seq].author {
                Author::Agent { session, .. } => session.0.clone(),
                Author::Human => "you".to_owned(),
                other => format!("{other:?}"),
            },
        };
        let text = |line: &[u8]| String::from_utf8_lossy(line).trim().to_owned();
        blame.lines.iter().map(|line| (text(&line.text), author(line))).collect()
    }

    #[track_caller]
    pub(super) fn expect(&mut self, expected: &[(&str, &str)]) {
        self.expect_in("a.txt", expected);
    }

    #[track_caller]
    pub(super) fn expect_in(&mut self, path: &str, expected: &[(&str, &str)]) {
        self.look();
        let found = self.authors_of(path);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(text, author)| (text.as_str(), author.as_str())).collect();
        assert_eq!(found, expected);
    }
}
