//! HEAD beside a rewind, in real repositories.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use takeback_core::rewind::{CrossedCommit, FollowUp, GitFollowUp, GitStatus};
use takeback_core::rewind::{RewindRequest, Target, preview};
use takeback_core::{HeadMove, git_state};
use takeback_store::{GitState, PointId, SessionId};
use takeback_testkit::Sandbox;

use super::follow_up;
use crate::blame::project::git_as;

struct Project {
    sandbox: Sandbox,
}

impl Project {
    /// A repository with `a.txt` and `b.txt`, and a prompt in session `s`.
    fn new() -> (Self, PointId) {
        let mut project = Self { sandbox: Sandbox::in_memory() };
        project.sandbox.write("a.txt", "one\n");
        project.sandbox.write("b.txt", "one\n");
        project.git("init");
        project.git("add -A");
        project.git("commit -qm first");
        let point = project.sandbox.prompt("s", "add discounts");
        (project, point)
    }

    fn git(&self, line: &str) {
        git_as(&self.sandbox.root(), "ada", None, line);
    }

    /// What git prints, with the user's own settings left out.
    fn prints(&self, line: &str) -> String {
        let mut command = Command::new("git");
        command.args(line.split(' ')).current_dir(self.sandbox.root());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let output = command.output().expect("git runs");
        assert!(output.status.success(), "git {line}: {output:?}");
        String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
    }

    fn head(&self) -> String {
        self.prints("rev-parse HEAD")
    }

    /// The session changes `a.txt`, creates `new.txt`, and commits everything.
    fn agent_commits(&mut self) {
        self.sandbox.agent_writes("s", "a.txt", "two\n");
        self.sandbox.agent_writes("s", "new.txt", "new\n");
        self.sandbox.agent_runs("s", "git commit -qam Discounts", commit_everything);
    }

    /// Rewinds; what git makes of it.
    fn rewind(&mut self, point: PointId) -> Option<GitFollowUp> {
        let receipt = self.sandbox.rewind_to(point);
        assert!(receipt.success && receipt.changed_files(), "{receipt:?}");
        follow_up(&self.sandbox, &receipt).git
    }

    fn rewound(&mut self, point: PointId) -> GitStatus {
        self.rewind(point).and_then(|git| git.status).expect("git shows something")
    }
}

/// At the time that the sandbox's clock shows.
fn commit_everything(sandbox: &Sandbox) {
    git_as(&sandbox.root(), "ada", None, "add -A");
    let now = (sandbox.workspace.ambient.now)().0 / 1000;
    git_as(&sandbox.root(), "ada", Some(now), "commit -qm Discounts");
}

/// Every file of the repository, and when it was written.
fn repository_of(sandbox: &Sandbox) -> BTreeMap<String, (Vec<u8>, std::time::SystemTime)> {
    let mut files = BTreeMap::new();
    let mut open = vec![sandbox.at(".git")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let written = entry.metadata().unwrap().modified().unwrap();
                files.insert(path.display().to_string(), (std::fs::read(&path).unwrap(), written));
            }
        }
    }
    files
}

fn on(branch: &str, head: &str) -> GitState {
    GitState { head: Some(head.to_owned()), branch: Some(branch.to_owned()) }
}

#[test]
fn after_an_agents_commit_it_says_what_git_status_shows_and_how_to_drop_the_commit() {
    let (mut project, point) = Project::new();
    let first = project.head();
    project.agent_commits();
    // Neither taken back nor counted.
    project.sandbox.write("b.txt", "mine\n");
    let second = project.head();
    let request = RewindRequest::new(Target::Point(point));
    let head = HeadMove { before: on("main", &first), after: on("main", &second) };
    let shown = preview(&mut project.sandbox.workspace, &request).unwrap();
    let before = FollowUp::of_preview(&project.sandbox.workspace, &shown).unwrap();
    let expected = GitFollowUp { head: head.clone(), status: None };
    assert_eq!(before, FollowUp { git: Some(expected), installs: Vec::new() });
    let receipt = project.sandbox.rewind_to(point);
    let untouched = repository_of(&project.sandbox);
    let after = follow_up(&project.sandbox, &receipt).git;
    assert_eq!(repository_of(&project.sandbox), untouched, "git is only read");
    let status = GitStatus {
        modified: 1,
        deleted: 1,
        commits: vec![CrossedCommit {
            id: second,
            summary: "Discounts".to_owned(),
            session: Some(SessionId::from("s")),
        }],
        reset: Some(format!("git reset {}", &first[..12])),
        ..GitStatus::default()
    };
    assert_eq!(after, Some(GitFollowUp { head, status: Some(status.clone()) }));
    assert_eq!(project.prints("status --porcelain"), " M a.txt\n M b.txt\n D new.txt");
    project.git(&status.reset.unwrap()["git ".len()..]);
    assert_eq!(project.prints("status --porcelain"), " M b.txt");
}

#[test]
fn nothing_is_said_when_head_did_not_move() {
    let (mut project, point) = Project::new();
    project.sandbox.agent_writes("s", "a.txt", "two\n");
    assert_eq!(project.rewind(point), None);
    let undone = project.sandbox.undo();
    assert_eq!(follow_up(&project.sandbox, &undone), FollowUp::default());
}

#[test]
fn an_undo_compares_with_the_state_before_the_rewind() {
    let (mut project, point) = Project::new();
    project.agent_commits();
    assert!(project.rewind(point).is_some());
    let undone = project.sandbox.undo();
    assert_eq!(follow_up(&project.sandbox, &undone).git, None, "the files are HEAD's again");
    project.sandbox.redo();
    project.git("reset -q --soft HEAD~1");
    let undone = project.sandbox.undo();
    let git = follow_up(&project.sandbox, &undone).git.expect("HEAD moved since the redo");
    // It went back: no commit is behind the difference, but the index still has it.
    assert_eq!(git.status, Some(GitStatus { modified: 1, added: 1, ..GitStatus::default() }));
}

#[test]
fn a_commit_is_the_agents_only_if_its_own_command_made_it() {
    type Story = fn(&mut Sandbox);
    let stories: [Story; 2] = [
        |sandbox| sandbox.agent_runs("s", "make release", commit_everything),
        |sandbox| {
            sandbox.agent_runs("s", "git commit", |_| ());
            commit_everything(sandbox);
        },
    ];
    for story in stories {
        let (mut project, point) = Project::new();
        project.sandbox.agent_writes("s", "a.txt", "two\n");
        story(&mut project.sandbox);
        let status = project.rewound(point);
        let sessions: Vec<_> = status.commits.iter().map(|commit| &commit.session).collect();
        assert_eq!((sessions, status.reset), (vec![&None], None));
    }
}

#[test]
fn commits_that_others_have_or_made_are_not_to_be_dropped() {
    for spoil in [
        |project: &Project| project.git("update-ref refs/remotes/origin/main HEAD"),
        |project: &Project| project.git("tag v1"),
        |project: &Project| project.git("commit -q --allow-empty -m mine"),
        |project: &Project| project.git("checkout -qb other"),
        |project: &Project| project.git("commit -q --amend --allow-empty -m reworded"),
    ] {
        let (mut project, point) = Project::new();
        project.agent_commits();
        spoil(&project);
        let status = project.rewound(point);
        assert_eq!((status.modified, status.reset), (1, None));
    }
}

#[test]
fn what_is_staged_survives_the_reset() {
    let (mut project, point) = Project::new();
    project.agent_commits();
    project.sandbox.write("b.txt", "staged\n");
    project.git("add b.txt");
    project.sandbox.write("b.txt", "newer\n");
    let reset = project.rewound(point).reset.expect("a command");
    assert!(reset.starts_with("git reset --soft "), "{reset}");
    project.git(&reset["git ".len()..]);
    assert_eq!(project.prints("show :b.txt"), "staged");
}

#[test]
fn another_branch_has_no_commits_to_drop() {
    let (mut project, point) = Project::new();
    let first = project.head();
    project.git("checkout -qb feature");
    project.git("commit -q --amend -m rewritten");
    project.agent_commits();
    let git = project.rewind(point).expect("HEAD moved");
    let after = on("feature", &project.head());
    assert_eq!(git.head, HeadMove { before: on("main", &first), after });
    let status = GitStatus { modified: 1, deleted: 1, ..GitStatus::default() };
    assert_eq!(git.status, Some(status));
}

#[test]
fn no_program_of_a_repository_runs() {
    let (mut project, point) = Project::new();
    project.sandbox.agent_writes("s", ".gitattributes", "a.txt filter=evil\n");
    project.agent_commits();
    let ran = project.sandbox.outside().join("ran");
    let script = project.sandbox.outside().join("evil");
    std::fs::write(&script, format!("#!/bin/sh\ntouch {}\ncat\n", ran.display())).unwrap();
    std::process::Command::new("chmod").arg("+x").arg(&script).status().unwrap();
    for key in ["filter.evil.clean", "filter.evil.process", "core.fsmonitor", "diff.external"] {
        project.git(&format!("config {key} {}", script.display()));
    }
    project.git("config filter.evil.required true");
    let hooks = project.sandbox.at(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    std::fs::copy(&script, hooks.join("post-index-change")).unwrap();
    // The rewind takes the attributes back as well; the user has the same elsewhere.
    std::fs::create_dir_all(project.sandbox.at(".git/info")).unwrap();
    std::fs::write(project.sandbox.at(".git/info/attributes"), "a.txt filter=evil\n").unwrap();
    let status = project.rewound(point);
    assert!(!ran.exists(), "the repository's programs ran");
    // Only the filter could tell how `a.txt` differs.
    assert_eq!((status.modified, status.deleted), (0, 2));
}

#[test]
fn a_damaged_repository_only_shortens_the_answer() {
    let (mut project, point) = Project::new();
    project.agent_commits();
    std::fs::remove_dir_all(project.sandbox.at(".git/objects")).unwrap();
    let git = project.rewind(point).expect("the branch is still a file");
    assert_eq!(git.status, None);
    std::fs::remove_dir_all(project.sandbox.at(".git")).unwrap();
    let undone = project.sandbox.undo();
    assert_eq!(follow_up(&project.sandbox, &undone), FollowUp::default());
}

#[test]
fn many_files_are_counted_like_few() {
    let (mut project, point) = Project::new();
    project.sandbox.agent_runs("s", "git commit", |sandbox| {
        for n in 0..300 {
            sandbox.write(&format!("many/{n}.txt"), "new\n");
        }
        commit_everything(sandbox);
    });
    project.sandbox.write("untracked.txt", "mine\n");
    let status = project.rewound(point);
    assert_eq!((status.deleted, status.untracked, status.commits.len()), (300, 0, 1));
}

#[test]
fn a_subfolder_of_a_repository_and_a_worktree_know_what_is_checked_out() {
    let (project, _) = Project::new();
    let root = project.sandbox.root();
    let (head, main) = (project.head(), on("main", &project.head()));
    project.sandbox.write("sub/deep/c.txt", "c\n");
    for folder in ["", "sub", "sub/deep"] {
        assert_eq!(git_state(&root.join(folder)).as_ref(), Some(&main), "{folder}");
    }
    project.git("pack-refs --all");
    assert_eq!(git_state(&root.join("sub")), Some(main));
    let tree = project.sandbox.outside().join("tree");
    project.git(&format!("worktree add -qb feature {}", tree.display()));
    std::fs::create_dir(tree.join("sub")).unwrap();
    for folder in [tree.clone(), tree.join("sub")] {
        assert_eq!(git_state(&folder), Some(on("feature", &head)));
    }
    project.git("checkout -q --detach");
    assert_eq!(git_state(&root), Some(GitState { head: Some(head), branch: None }));
    assert_eq!(git_state(Path::new("/proc/self")), None);
}

#[test]
fn branches_that_are_not_files_are_not_guessed() {
    let sandbox = Sandbox::in_memory();
    git_as(&sandbox.root(), "ada", None, "init --ref-format=reftable");
    assert_eq!(git_state(&sandbox.root()), None);
}

#[test]
fn a_workspace_in_a_repository_counts_its_own_files() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "one\n");
    let top = sandbox.outside();
    git_as(&top, "ada", None, "init");
    git_as(&top, "ada", None, "add work");
    git_as(&top, "ada", None, "commit -qm first");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.agent_runs("s", "git commit -qam second", |sandbox| {
        let now = (sandbox.workspace.ambient.now)().0 / 1000;
        git_as(&sandbox.outside(), "ada", Some(now), "commit -qam second");
    });
    let receipt = sandbox.rewind_to(point);
    let status = follow_up(&sandbox, &receipt).git.and_then(|git| git.status).expect("a status");
    assert_eq!((status.modified, status.commits.len()), (1, 1));
    assert!(status.reset.is_some());
}
