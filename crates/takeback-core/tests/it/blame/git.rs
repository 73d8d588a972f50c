//! Lines that commits have: older than the log, or brought in by git.

use std::path::PathBuf;
use std::process::Command;

use takeback_core::history::{LineOrigin, ask_git, blame};
use takeback_core::look_around;
use takeback_store::{Author, WorkPath};
use takeback_testkit::Sandbox;

/// Seconds since 1970; long before the sandbox's clock.
const LONG_AGO: i64 = 1_600_000_000;

/// Runs git as this person. `at`: the time of a commit; `None`: now, which is later than the sandbox's clock.
pub(crate) fn git_as(root: &std::path::Path, person: &str, at: Option<i64>, line: &str) {
    let mut command = Command::new("git");
    command.args(["-c", "commit.gpgSign=false", "-c", "init.defaultBranch=main"]);
    command.args(line.split(' ')).current_dir(root);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), person);
        command.env(format!("GIT_{role}_EMAIL"), format!("{person}@example.com"));
        if let Some(at) = at {
            command.env(format!("GIT_{role}_DATE"), format!("{at} +0000"));
        }
    }
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "git {line}: {output:?}");
}

/// A repository in a workspace whose files are dated.
struct Project {
    sandbox: Sandbox,
    time: i64,
}

impl Project {
    fn new(text: &str) -> Self {
        let sandbox = Sandbox::in_memory();
        sandbox.date_files();
        let mut project = Self { sandbox, time: LONG_AGO };
        project.sandbox.write("a.txt", text);
        project.git("init");
        project.commit("ada");
        project
    }

    fn git(&self, line: &str) {
        git_as(&self.sandbox.root(), "nobody", None, line);
    }

    /// Commits everything, long ago.
    fn commit(&mut self, person: &str) {
        self.time += 60;
        self.git("add -A");
        git_as(&self.sandbox.root(), person, Some(self.time), "commit -qm change");
    }

    /// Somebody's commit on a branch of its own, made outside the workspace's sight.
    fn commit_elsewhere(&mut self, person: &str, branch: &str, text: &str) {
        let tree = tempfile::tempdir().expect("a folder");
        let at: PathBuf = tree.path().join("tree");
        self.git(&format!("worktree add -qb {branch} {}", at.display()));
        std::fs::write(at.join("a.txt"), text).expect("it is written");
        self.time += 60;
        git_as(&at, person, Some(self.time), "commit -qam elsewhere");
        self.git(&format!("worktree remove {}", at.display()));
    }

    fn look(&mut self) {
        look_around(&mut self.sandbox.workspace).unwrap();
    }

    /// The session runs a git command as the user.
    fn agent_git(&mut self, session: &str, line: &str) {
        self.sandbox.milliseconds_pass(5000);
        self.sandbox.agent_runs(session, &format!("git {line}"), |sandbox| {
            git_as(&sandbox.root(), "user", None, line);
        });
    }

    /// Each line's author: who committed it, where git says so; else as the log has it.
    #[track_caller]
    fn expect(&mut self, expected: &[(&str, &str)]) {
        self.look();
        let workspace = &self.sandbox.workspace;
        let mut blame = blame(&*workspace.store, &WorkPath::new("a.txt").unwrap()).unwrap();
        ask_git(&mut blame, workspace).unwrap();
        assert_eq!(blame.git_problem, None);
        let author = |line: &takeback_core::history::BlamedLine| match (&line.commit, line.origin) {
            (Some(commit), _) => format!("commit of {}", commit.commit.name),
            (None, LineOrigin::Before { .. }) => "before".to_owned(),
            (None, LineOrigin::Unknown { .. }) => "unknown".to_owned(),
            (None, LineOrigin::Change { seq, .. }) => match &blame.changes[&seq].author {
                Author::Agent { session, .. } => session.0.clone(),
                Author::Human => "you".to_owned(),
                other => format!("{other:?}"),
            },
        };
        let found: Vec<(String, String)> = blame
            .lines
            .iter()
            .map(|line| (String::from_utf8_lossy(&line.text).trim().to_owned(), author(line)))
            .collect();
        let found: Vec<(&str, &str)> =
            found.iter().map(|(text, author)| (text.as_str(), author.as_str())).collect();
        assert_eq!(found, expected);
    }
}

const ADA: &str = "commit of ada";
const BOB: &str = "commit of bob";

#[test]
fn lines_older_than_the_log_have_their_commits() {
    let mut project = Project::new("one\ntwo\n");
    project.sandbox.write("a.txt", "one\ntwo\nthree\n");
    project.commit("bob");
    // Not committed when recording began.
    project.sandbox.write("a.txt", "one\ntwo\nthree\nfour, by whoever\n");
    project.sandbox.prompt("s", "go on");
    project.sandbox.agent_writes("s", "a.txt", "one\ntwo\nthree\nfour, by whoever\nfive\n");
    let expected =
        [("one", ADA), ("two", ADA), ("three", BOB), ("four, by whoever", "before"), ("five", "s")];
    project.expect(&expected);
    // Later commits claim nothing, and neither does a rewritten history.
    project.commit("carol");
    project.expect(&expected);
    project.git("commit -q --amend -m other");
    project.expect(&expected);
}

#[test]
fn a_merge_brings_lines_with_their_commits_and_the_act_stays_the_agents() {
    let mut project = Project::new("one\ntwo\n");
    project.commit_elsewhere("bob", "feature", "zero, by bob\none\ntwo\n");
    let point = project.sandbox.prompt("s", "merge the feature");
    project.sandbox.agent_writes("s", "a.txt", "one\ntwo\nby the agent\n");
    project.git("commit -qam agent");
    project.agent_git("s", "merge -q --no-edit feature");
    project.expect(&[("zero, by bob", BOB), ("one", ADA), ("two", ADA), ("by the agent", "s")]);
    project.sandbox.rewind_to(point);
    assert_eq!(project.sandbox.read("a.txt"), "one\ntwo\n", "the agent merged, so that goes back");
}

#[test]
fn a_merge_that_is_not_committed_and_a_squash_bring_lines_with_their_commits() {
    for line in ["merge -q --no-commit --no-ff feature", "merge -q --squash feature"] {
        let mut project = Project::new("one\ntwo\n");
        project.commit_elsewhere("bob", "feature", "zero, by bob\none\ntwo\n");
        project.sandbox.prompt("s", "merge the feature");
        project.sandbox.agent_writes("s", "a.txt", "one\ntwo\nby the agent\n");
        project.git("commit -qam agent");
        project.agent_git("s", line);
        project.expect(&[("zero, by bob", BOB), ("one", ADA), ("two", ADA), ("by the agent", "s")]);
    }
}

#[test]
fn a_checkout_brings_lines_with_their_commits_whoever_runs_it() {
    let mut project = Project::new("one\ntwo\n");
    project.commit_elsewhere("bob", "feature", "one\ntwo\nthree, by bob\n");
    project.sandbox.prompt("s", "look at the feature");
    let theirs = [("one", ADA), ("two", ADA), ("three, by bob", BOB)];
    project.agent_git("s", "checkout -q feature");
    project.expect(&theirs);
    project.agent_git("s", "checkout -q main");
    project.expect(&theirs[..2]);
    project.sandbox.turn_end("s");
    project.sandbox.milliseconds_pass(60_000);
    project.git("checkout -q feature");
    project.expect(&theirs);
}

#[test]
fn a_checkout_by_you_is_not_your_writing() {
    let mut project = Project::new("one\ntwo\n");
    project.commit_elsewhere("bob", "feature", "one\ntwo\nthree, by bob\n");
    project.look();
    project.sandbox.milliseconds_pass(60_000);
    project.git("checkout -q feature");
    project.expect(&[("one", ADA), ("two", ADA), ("three, by bob", BOB)]);
    project.sandbox.write("a.txt", "one\nmine\ntwo\nthree, by bob\n");
    project.expect(&[("one", ADA), ("mine", "you"), ("two", ADA), ("three, by bob", BOB)]);
}

#[test]
fn what_a_command_writes_and_commits_is_its_own() {
    let mut project = Project::new("one\ntwo\n");
    project.sandbox.prompt("s", "add and commit");
    for line in ["commit -qam mine", "commit -qa --amend --no-edit"] {
        project.sandbox.agent_runs("s", &format!("sed && git {line}"), |sandbox| {
            let text = sandbox.read("a.txt");
            sandbox.write("a.txt", format!("{text}by {line}\n"));
            git_as(&sandbox.root(), "user", None, line);
        });
    }
    project.expect(&[
        ("one", ADA),
        ("two", ADA),
        ("by commit -qam mine", "s"),
        ("by commit -qa --amend --no-edit", "s"),
    ]);
}

#[test]
fn what_is_added_to_an_old_commit_is_not_as_old() {
    let mut project = Project::new("one\ntwo\n");
    project.sandbox.prompt("s", "amend");
    project.sandbox.agent_runs("s", "sed && git commit --amend", |sandbox| {
        sandbox.write("a.txt", "one\ntwo\nthree, by the agent\n");
        // The author and time of ada's commit stay.
        git_as(&sandbox.root(), "user", None, "commit -qa --amend --no-edit");
    });
    project.expect(&[("one", ADA), ("two", ADA), ("three, by the agent", "s")]);
}

#[test]
fn a_rebase_keeps_the_prompts_of_its_own_lines_and_the_commits_of_the_others() {
    let mut project = Project::new("one\ntwo\nthree\nfour\n");
    project.commit_elsewhere("bob", "upstream", "zero, by bob\none\ntwo\nthree\nfour\n");
    project.sandbox.prompt("s", "add a line");
    project.sandbox.agent_writes("s", "a.txt", "one\ntwo\nthree\nfour\nby the agent\n");
    project.git("commit -qam agent");
    project.agent_git("s", "rebase -q upstream");
    project.expect(&[
        ("zero, by bob", BOB),
        ("one", ADA),
        ("two", ADA),
        ("three", ADA),
        ("four", ADA),
        ("by the agent", "s"),
    ]);
}

#[test]
fn a_cherry_pick_keeps_the_commit_it_was_picked_from() {
    let mut project = Project::new("one\ntwo\nthree\nfour\n");
    project.commit_elsewhere("bob", "feature", "zero, by bob\none\ntwo\nthree\nfour\n");
    project.sandbox.prompt("s", "pick");
    project.sandbox.agent_writes("s", "a.txt", "one\ntwo\nthree\nfour\nby the agent\n");
    project.git("commit -qam agent");
    project.agent_git("s", "cherry-pick feature");
    project.expect(&[
        ("zero, by bob", BOB),
        ("one", ADA),
        ("two", ADA),
        ("three", ADA),
        ("four", ADA),
        ("by the agent", "s"),
    ]);
}

#[test]
fn lines_of_a_prompt_keep_it_through_what_git_does_to_their_commits() {
    let mut project = Project::new("one\ntwo\n");
    project.sandbox.prompt("s", "add a line");
    project.sandbox.agent_writes("s", "a.txt", "one\nby the agent\ntwo\n");
    let expected = [("one", ADA), ("by the agent", "s"), ("two", ADA)];
    for lines in [
        &["stash -q", "stash pop -q"][..],
        &["commit -qam first", "commit -q --amend -m other"],
        &["reset -q --soft HEAD~1", "commit -qm squashed"],
        &["checkout -qb other HEAD~1", "cherry-pick main"],
        &["checkout -q main", "reset -q --hard HEAD~1", "merge -q other"],
    ] {
        for line in lines {
            project.agent_git("s", line);
        }
        project.expect(&expected);
    }
}

#[test]
fn a_line_next_to_an_agents_is_not_the_agents() {
    let mut project = Project::new("one\ntwo\n");
    project.sandbox.prompt("s", "add a line");
    project.sandbox.agent_writes("s", "a.txt", "one\nby the agent\ntwo\n");
    project.sandbox.turn_end("s");
    project.sandbox.milliseconds_pass(60_000);
    project.sandbox.write("a.txt", "one\nmine, above\nby the agent\nmine, below\ntwo\n");
    project.look();
    // The agent's command touches the file, and commits all of it.
    project.sandbox.prompt("s", "commit");
    project.sandbox.agent_runs("s", "sed && git commit", |sandbox| {
        let text = sandbox.read("a.txt").replace("two", "two, by sed");
        sandbox.write("a.txt", text);
        git_as(&sandbox.root(), "user", None, "commit -qam all");
    });
    project.expect(&[
        ("one", ADA),
        ("mine, above", "you"),
        ("by the agent", "s"),
        ("mine, below", "you"),
        ("two, by sed", "s"),
    ]);
}

#[test]
fn another_repository_inside_answers_for_its_own_files() {
    let mut project = Project::new("one\n");
    let inner = project.sandbox.at("inner");
    project.sandbox.write("inner/a.txt", "inside\n");
    git_as(&inner, "x", None, "init");
    git_as(&inner, "x", None, "add -A");
    git_as(&inner, "dora", Some(LONG_AGO), "commit -qm inner");
    project.look();
    let workspace = &project.sandbox.workspace;
    let mut blame = blame(&*workspace.store, &WorkPath::new("inner/a.txt").unwrap()).unwrap();
    ask_git(&mut blame, workspace).unwrap();
    let commit = blame.lines[0].commit.as_ref().expect("it was committed");
    assert_eq!(commit.commit.name, "dora");
}

#[test]
fn a_repository_that_git_cannot_read_is_reported() {
    let mut project = Project::new("one\n");
    project.look();
    project.sandbox.write(".git/HEAD", "damaged\n");
    let workspace = &project.sandbox.workspace;
    let mut blame = blame(&*workspace.store, &WorkPath::new("a.txt").unwrap()).unwrap();
    ask_git(&mut blame, workspace).unwrap();
    let problem = blame.git_problem.expect("git fails");
    assert!(problem.contains("not a git repository"), "{problem}");
    assert_eq!(blame.lines[0].commit, None);
}
