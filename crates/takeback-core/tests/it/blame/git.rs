//! Lines that commits have: older than the log, or brought in by git.

use takeback_core::history::{ask_git, blame};
use takeback_store::WorkPath;

use super::project::{LONG_AGO, Project, git_as};

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

/// A command in a repository, by you or by a session.
fn by(project: &mut Project, who: &str, line: &str) {
    match who {
        "you" => project.your_git(line),
        session => project.agent_git(session, line),
    }
}

#[test]
fn what_git_brings_in_keeps_its_commits_whoever_runs_it_and_an_agents_act_can_be_taken_back() {
    let commands: &[&[&str]] = &[
        &["merge -q --no-edit feature"],
        &["merge -q --no-ff --no-edit feature"],
        &["merge -q --squash feature"],
        &["rebase -q feature"],
        &["cherry-pick feature"],
        &["pull -q --no-rebase --no-edit . feature"],
        &["pull -q --rebase . feature"],
        &["fetch -q . feature", "reset -q --soft HEAD", "cherry-pick FETCH_HEAD"],
        &["merge -q --no-edit feature", "commit -q --amend -m other"],
        &["cherry-pick --no-commit feature", "commit -qm squashed"],
    ];
    for commands in commands {
        for who in ["you", "s"] {
            let mut project = Project::new("one\ntwo\nthree\nfour\n");
            let theirs = "zero, by bob\none\ntwo\nthree\nfour\n";
            project.commit_elsewhere("bob", "feature", theirs);
            project.sandbox.prompt("s", "add a line");
            let ours = "one\ntwo\nthree\nfour\nby the agent\n";
            project.sandbox.agent_writes("s", "a.txt", ours);
            project.git("commit -qam agent");
            project.sandbox.turn_end("s");
            let point = project.sandbox.prompt("s", "bring it in");
            for line in *commands {
                by(&mut project, who, line);
            }
            println!("{commands:?} by {who}");
            project.expect(&[
                ("zero, by bob", BOB),
                ("one", ADA),
                ("two", ADA),
                ("three", ADA),
                ("four", ADA),
                ("by the agent", "s"),
            ]);
            project.sandbox.rewind_to(point);
            let kept = format!("zero, by bob\n{ours}");
            let expected = if who == "s" { ours } else { &kept };
            assert_eq!(project.sandbox.read("a.txt"), expected, "the act is whose who ran it");
        }
    }
}

#[test]
fn what_git_takes_away_and_brings_back_keeps_its_authors_whoever_runs_it() {
    let commands: &[&[&str]] = &[
        &["stash -q", "stash pop -q"],
        &["stash -q", "stash apply -q"],
        &["commit -qam all", "checkout -q HEAD~1", "checkout -q main"],
        &["commit -qam all", "switch -qc other HEAD~1", "switch -q main"],
        &["commit -qam all", "reset -q --hard HEAD~1", "reset -q --hard ORIG_HEAD"],
        &["commit -qam all", "rm -q a.txt", "checkout -q HEAD -- a.txt"],
        &["commit -qam all", "rm -q a.txt", "restore -q --source HEAD --staged --worktree a.txt"],
        &["commit -qam all", "revert --no-edit HEAD", "revert --no-edit HEAD"],
    ];
    for commands in commands {
        for who in ["you", "t"] {
            let mut project = Project::new("one\ntwo\n");
            project.sandbox.prompt("s", "add a line");
            project.sandbox.agent_writes("s", "a.txt", "one\nby the agent\ntwo\n");
            project.sandbox.turn_end("s");
            project.sandbox.milliseconds_pass(60_000);
            project.sandbox.write("a.txt", "one\nby the agent\ntwo\nmine\n");
            for line in *commands {
                project.look();
                by(&mut project, who, line);
            }
            println!("{commands:?} by {who}");
            project.expect(&[("one", ADA), ("by the agent", "s"), ("two", ADA), ("mine", "you")]);
        }
    }
}

#[test]
fn a_renamed_file_keeps_its_authors_before_and_after_a_commit_whoever_renames_it() {
    for who in ["you", "t"] {
        for (before, after) in [(true, false), (false, true), (true, true), (false, false)] {
            let mut project = Project::new("one\ntwo\n");
            project.sandbox.prompt("s", "add a line");
            project.sandbox.agent_writes("s", "a.txt", "one\nby the agent\ntwo\n");
            project.sandbox.turn_end("s");
            if before {
                project.look();
                project.git("commit -qam agent");
            }
            by(&mut project, who, "mv a.txt b.txt");
            if after {
                project.look();
                project.git("commit -qam renamed");
            }
            let expected = [("one", ADA), ("by the agent", "s"), ("two", ADA)];
            project.expect_in("b.txt", &expected);
        }
    }
}

#[test]
fn your_line_that_no_scan_has_seen_stays_yours_when_a_command_rewrites_the_file() {
    for committed_by in [None, Some("you"), Some("s")] {
        let mut project = Project::new("one\ntwo\n");
        project.sandbox.prompt("s", "replace");
        project.sandbox.agent_writes("s", "a.txt", "one\nby the agent\ntwo\n");
        project.sandbox.milliseconds_pass(60_000);
        project.sandbox.write("a.txt", "one\nby the agent\nmine\ntwo\n");
        project.sandbox.milliseconds_pass(60_000);
        project.sandbox.agent_runs("s", "sed -i s/two/2nd/ a.txt", |sandbox| {
            let text = sandbox.read("a.txt").replace("two", "2nd");
            sandbox.write("a.txt", text);
        });
        if let Some(who) = committed_by {
            by(&mut project, who, "commit -qam all");
        }
        let expected = [("one", ADA), ("by the agent", "s"), ("mine", "you"), ("2nd", "s")];
        project.expect(&expected);
    }
}

#[test]
fn who_rewrites_a_committed_line_is_its_author() {
    let mut project = Project::new("one\ntwo\n");
    project.sandbox.prompt("s", "add lines");
    project.sandbox.agent_writes("s", "a.txt", "one\nagent 1\nagent 2\ntwo\n");
    project.sandbox.turn_end("s");
    project.look();
    project.git("commit -qam agent");
    project.sandbox.milliseconds_pass(60_000);
    project.sandbox.write("a.txt", "one\nagent 1, rewritten by you\nagent 2\ntwo\n");
    project.look();
    let expected =
        [("one", ADA), ("agent 1, rewritten by you", "you"), ("agent 2", "s"), ("two", ADA)];
    project.expect(&expected);
    // An amendment by you, with a line of yours, makes nothing else yours.
    project.sandbox.write("a.txt", "one\nagent 1, rewritten by you\nagent 2\ntwo\namended\n");
    project.look();
    project.your_git("commit -qa --amend --no-edit");
    let mut amended = expected.to_vec();
    amended.push(("amended", "you"));
    project.expect(&amended);
    project.your_git("reset -q --soft HEAD~1");
    project.your_git("commit -qm squashed");
    project.expect(&amended);
}

#[test]
fn commits_that_no_git_command_was_seen_to_make_change_no_authors() {
    let mut project = Project::new("one\ntwo\n");
    project.sandbox.prompt("s", "add a line");
    project.sandbox.agent_writes("s", "a.txt", "one\nby the agent\ntwo\n");
    project.sandbox.turn_end("s");
    project.sandbox.milliseconds_pass(60_000);
    project.sandbox.write("a.txt", "one\nby the agent\ntwo\nmine\n");
    let expected = [("one", ADA), ("by the agent", "s"), ("two", ADA), ("mine", "you")];
    // As a library writes a commit: objects, then the reference. No hook, no index, no `git commit`.
    let root = project.sandbox.root();
    let git = |line: &str| git_as(&root, "carol", None, line);
    let blob = git("hash-object -w a.txt");
    std::fs::write(root.join(".git/tree"), format!("100644 blob {blob}\ta.txt\n")).unwrap();
    let tree = std::process::Command::new("git")
        .args(["mktree"])
        .current_dir(&root)
        .stdin(std::fs::File::open(root.join(".git/tree")).unwrap())
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    let commit = git(&format!("commit-tree {} -p HEAD -m library", tree.trim()));
    git(&format!("update-ref refs/heads/main {commit}"));
    project.expect(&expected);
}

#[test]
fn your_commit_in_another_repository_is_not_the_agents() {
    let mut project = Project::new("one\n");
    let inner = project.sandbox.at("inner");
    project.sandbox.write("inner/a.txt", "inside\n");
    git_as(&inner, "x", None, "init");
    git_as(&inner, "x", None, "add -A");
    git_as(&inner, "dora", Some(LONG_AGO), "commit -qm inner");
    project.sandbox.write("inner/a.txt", "inside\nmine, before the command\n");
    project.sandbox.prompt("s", "run the tests");
    project.sandbox.milliseconds_pass(60_000);
    project.sandbox.agent_runs("s", "npm test", |_| {
        git_as(&inner, "you", None, "commit -qam mine");
    });
    let expected = [("inside", "commit of dora"), ("mine, before the command", "commit of you")];
    project.expect_in("inner/a.txt", &expected);
    // What you write there between the commands is yours, whenever it is committed.
    project.sandbox.milliseconds_pass(60_000);
    project.sandbox.write("inner/a.txt", "inside\nmine, before the command\nmine, between\n");
    project.sandbox.milliseconds_pass(60_000);
    project.sandbox.agent_runs("s", "npm test", |_| {
        git_as(&inner, "you", None, "commit -qam mine");
    });
    let expected = [expected[0], expected[1], ("mine, between", "you")];
    project.expect_in("inner/a.txt", &expected);
}

#[test]
fn a_line_without_words_has_the_commit_that_its_file_was_in() {
    let mut project = Project::new("one {\n}\n");
    project.sandbox.prompt("s", "rewrite");
    project.sandbox.agent_writes("s", "a.txt", "two {\n}\n");
    project.expect(&[("two {", "s"), ("}", ADA)]);
}
