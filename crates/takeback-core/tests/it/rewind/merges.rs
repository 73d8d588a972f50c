//! Files that both the agent and others changed.

use super::*;

#[test]
fn later_work_next_to_the_agents_is_merged() {
    let (mut sandbox, point) = begun(TEN);
    sandbox.agent_writes("s", "a.txt", ten(&[("2", "two")]));
    sandbox.turn_end("s");
    sandbox.write("a.txt", ten(&[("2", "two"), ("9", "mine")]));
    let receipt = sandbox.rewind_to(point);
    assert_eq!(report(&receipt), ["success", "merged a.txt"]);
    assert_eq!(sandbox.read("a.txt"), ten(&[("9", "mine")]));
}

#[test]
fn every_run_of_the_agents_changes_is_taken_out() {
    let (mut sandbox, point) = begun(TEN);
    sandbox.agent_writes("s", "a.txt", ten(&[("1", "one")]));
    sandbox.write("a.txt", ten(&[("1", "one"), ("4", "mine")]));
    sandbox.agent_writes("s", "a.txt", ten(&[("1", "one"), ("4", "mine"), ("7", "seven")]));
    sandbox.turn_end("s");
    sandbox.write("a.txt", ten(&[("1", "one"), ("4", "mine"), ("7", "seven"), ("10", "mine too")]));
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "merged a.txt"]);
    assert_eq!(sandbox.read("a.txt"), ten(&[("4", "mine"), ("10", "mine too")]));
}

#[test]
fn earlier_work_next_to_the_agents_is_kept() {
    let (mut sandbox, point) = begun(TEN);
    sandbox.write("a.txt", ten(&[("9", "mine")]));
    sandbox.agent_writes("s", "a.txt", ten(&[("2", "two"), ("9", "mine")]));
    sandbox.turn_end("s");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("a.txt"), ten(&[("9", "mine")]));
}

#[test]
fn work_over_the_agents_is_a_conflict() {
    let large = |lines: [&str; 2]| {
        let mut text = lines[0].to_owned() + "\n";
        text.push_str(&"x\n".repeat(4 << 20));
        text + lines[1] + "\n"
    };
    for (name, before, agents, mine, reason) in [
        (
            "same line",
            TEN.to_owned(),
            ten(&[("2", "two")]),
            ten(&[("2", "mine")]),
            "both changed the same lines",
        ),
        ("binary", "\0one".to_owned(), "\0two".to_owned(), "\0two, mine".to_owned(), "binary"),
        ("large", large(["1", "1"]), large(["2", "1"]), large(["2", "mine"]), "over 8 MiB"),
    ] {
        let (mut sandbox, point) = begun(before);
        sandbox.agent_writes("s", "a.txt", agents);
        sandbox.turn_end("s");
        sandbox.write("a.txt", &mine);
        let receipt = sandbox.rewind_to(point);
        assert_eq!(report(&receipt), ["not all", &format!("conflict a.txt: {reason}")], "{name}");
        assert!(sandbox.read("a.txt") == mine, "{name}: it stays as it was");
    }
}

#[test]
fn mode_and_contents_are_merged_separately() {
    type Change = fn(&Sandbox);
    let content: Change = |sandbox| sandbox.write("a.txt", "two\n");
    let executable: Change = |sandbox| sandbox.set_mode("a.txt", 0o755);
    let private: Change = |sandbox| sandbox.set_mode("a.txt", 0o600);
    let neither: Change = |_| {};
    for (agents, mine, said_so, text, mode) in [
        (executable, content, vec!["success", "merged a.txt"], "two\n", 0o644),
        (content, executable, vec!["success", "merged a.txt"], "one\n", 0o755),
        (
            executable,
            private,
            vec!["not all", "conflict a.txt: its mode was changed since"],
            "one\n",
            0o600,
        ),
        (executable, neither, vec!["success", "restored a.txt"], "one\n", 0o644),
    ] {
        let (mut sandbox, point) = begun("one\n");
        sandbox.agent_runs("s", "x", agents);
        sandbox.turn_end("s");
        mine(&sandbox);
        let receipt = sandbox.rewind_to(point);
        assert_eq!(report(&receipt), said_so);
        let contents = Digest::of(text.as_bytes());
        let present = Entry::File { digest: contents, size: text.len() as u64, mode };
        assert_eq!(entry_at(&mut sandbox, "a.txt"), present);
    }
}

#[test]
fn a_folders_mode_is_restored_around_new_files_of_others() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("lib/a.txt", "a\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "chmod 700 lib", |sandbox| sandbox.set_mode("lib", 0o700));
    sandbox.turn_end("s");
    sandbox.write("lib/mine.txt", "mine\n");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored lib"]);
    assert_eq!(entry_at(&mut sandbox, "lib"), Entry::Dir { mode: 0o755 });
    assert!(sandbox.exists("lib/mine.txt"));
}

#[test]
fn a_path_deleted_or_replaced_since_is_a_conflict() {
    type Change = fn(&Sandbox);
    let cases: [(&str, Change, Change, &str); 4] = [
        (
            "edited, then deleted",
            |s| s.write("a.txt", "two\n"),
            |s| s.remove("a.txt"),
            "it was deleted since",
        ),
        (
            "deleted, then written anew",
            |s| s.remove("a.txt"),
            |s| s.write("a.txt", "mine\n"),
            "something else was put in its place since",
        ),
        (
            "edited, then a link",
            |s| s.write("a.txt", "two\n"),
            |s| {
                s.remove("a.txt");
                symlink("elsewhere", s.at("a.txt")).unwrap();
            },
            "it was changed since",
        ),
        (
            "made a link, then another",
            |s| {
                s.remove("a.txt");
                symlink("one", s.at("a.txt")).unwrap();
            },
            |s| {
                s.remove("a.txt");
                symlink("two", s.at("a.txt")).unwrap();
            },
            "it was changed since",
        ),
    ];
    for (case, agents, mine, reason) in cases {
        let (mut sandbox, point) = begun("one\n");
        sandbox.agent_runs("s", "x", agents);
        sandbox.turn_end("s");
        mine(&sandbox);
        let before = sandbox.tree();
        let receipt = sandbox.rewind_to(point);
        assert_eq!(report(&receipt), ["not all", &format!("conflict a.txt: {reason}")], "{case}");
        assert_eq!(sandbox.tree(), before, "{case}");
    }
}

#[test]
fn a_path_already_reverted_needs_nothing() {
    let (mut sandbox, point) = begun("one\n");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.turn_end("s");
    sandbox.write("a.txt", "one\n");
    let receipt = sandbox.rewind_to(point);
    assert_eq!(report(&receipt), ["success"]);
    assert_eq!(sandbox.read("a.txt"), "one\n");
}
