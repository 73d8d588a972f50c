//! Repositories in the workspace: their files come back, their `.git` stays as it is.

use std::fs;
use std::process::Command;

use takeback_testkit::Sandbox;

use super::{Row, row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row(
            "nested repository's dirty file",
            |s| {
                repository(s, ".");
                repository(s, "nested");
                s.write("nested/tracked", "dirty\n");
                s.write("nested/untracked", "untracked\n");
            },
            |s| {
                s.write("nested/tracked", "committed\n");
                s.remove("nested/untracked");
            },
        ),
        row(
            "submodule",
            |s| {
                repository(s, ".");
                repository(s, "../library");
                git(s, ".", &["submodule", "add", "-q", "../library", "sub"]);
                assert!(fs::metadata(s.at("sub/.git")).unwrap().is_file());
                s.write("sub/tracked", "dirty\n");
                s.write("sub/untracked", "untracked\n");
            },
            |s| {
                s.remove("sub/tracked");
                s.write("sub/untracked", "changed\n");
                s.write("sub/made/file", "made\n");
            },
        ),
        row(
            "worktree",
            |s| {
                repository(s, ".");
                git(s, ".", &["worktree", "add", "-q", "tree"]);
                assert!(fs::metadata(s.at("tree/.git")).unwrap().is_file());
                s.write("tree/tracked", "dirty\n");
            },
            |s| {
                s.remove("tree/tracked");
                s.write("tracked", "changed\n");
                s.write("tree/made", "made\n");
            },
        ),
        row(
            "repository that the agent commits to",
            |s| {
                repository(s, ".");
                s.write("tracked", "dirty\n");
            },
            |s| {
                s.write("tracked", "the agent's\n");
                s.write("made", "made\n");
                git(s, ".", &["add", "-A"]);
                git(s, ".", &["commit", "-qm", "the agent's"]);
            },
        )
        .keeping_the_agents_git(),
    ]
}

impl Row {
    /// What the agent did to the repository itself is not taken back.
    fn keeping_the_agents_git(self) -> Self {
        Self {
            expect: |expected, damaged| {
                expected.0.retain(|path, _| !path.starts_with(b".git/"));
                let git = damaged.0.iter().filter(|(path, _)| path.starts_with(b".git/"));
                expected.0.extend(git.map(|(path, thing)| (path.clone(), thing.clone())));
            },
            ..self
        }
    }
}

fn repository(s: &Sandbox, folder: &str) {
    fs::create_dir_all(s.at(folder)).unwrap();
    git(s, folder, &["init", "-q"]);
    fs::write(s.at(folder).join("tracked"), "committed\n").unwrap();
    git(s, folder, &["add", "tracked"]);
    git(s, folder, &["commit", "-qm", "first"]);
}

fn git(s: &Sandbox, folder: &str, args: &[&str]) {
    let mut command = Command::new("git");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
        command.env_remove(name);
    }
    let done = command
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"])
        .args(["-c", "init.defaultBranch=main", "-c", "gc.auto=0"])
        .args(args)
        .current_dir(s.at(folder))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git is installed");
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}
