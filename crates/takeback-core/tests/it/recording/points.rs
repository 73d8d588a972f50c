//! Points, turns, labels and descriptions.

use super::*;

#[test]
fn a_prompts_point_includes_the_users_earlier_edits() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    sandbox.prompt("s", "first");
    sandbox.turn_end("s");
    sandbox.write("a.txt", "mine\n");
    let point = sandbox.prompt("s", "second");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.rewind_to(point);
    assert_eq!(sandbox.read("a.txt"), "mine\n");
}

#[test]
fn an_event_is_answered_with_its_outcome() {
    let mut sandbox = Sandbox::new();
    sandbox.write("lib/a.txt", "one\n");
    let prompt = AgentEvent::Prompt {
        session: SessionId::from("s"),
        message: Some("uuid".to_owned()),
        text: "go".to_owned(),
        model: None,
    };
    let answer = sandbox.tell(&prompt);
    let point = sandbox.workspace.store.points().unwrap().pop().expect("a point was made");
    let expected = RecordOutcome {
        seq: Seq(2),
        point: Some(point.id),
        changes: 2,
        not_captured: Vec::new(),
        late: false,
        unfinished: false,
        unreadable: Vec::new(),
        stats: ScanStats { files: 1, folders: 2, read: 1 },
    };
    assert_eq!(answer, expected);
    let expected = Point {
        id: point.id,
        seq: Seq(2),
        session: Some(SessionId::from("s")),
        kind: PointKind::Prompt,
        description: "go".to_owned(),
        label: None,
        pinned: false,
        created_at: point.created_at,
        message_ids: vec!["uuid".to_owned()],
        git: None,
        basis: PointBasis::Scan,
    };
    assert_eq!(point, expected);
}

#[test]
fn a_point_has_the_head_and_branch_of_the_repository() {
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let other = "89abcdef0123456789abcdef0123456789abcdef";
    let head = |text: &str| (".git/HEAD", text.to_owned());
    let on = |branch: &str, head: Option<&str>| {
        Some(GitState { head: head.map(str::to_owned), branch: Some(branch.to_owned()) })
    };
    for (files, expected) in [
        (vec![], None),
        (vec![head(commit)], Some(GitState { head: Some(commit.to_owned()), branch: None })),
        (vec![head("ref: refs/heads/main\n")], on("main", None)),
        (
            vec![head("ref: refs/heads/a/b\n"), (".git/refs/heads/a/b", format!("{commit}\n"))],
            on("a/b", Some(commit)),
        ),
        (
            vec![
                head("ref: refs/heads/main\n"),
                (
                    ".git/packed-refs",
                    format!("# pack-refs\n{other} refs/heads/x\n{commit} refs/heads/main\n"),
                ),
            ],
            on("main", Some(commit)),
        ),
        (
            vec![
                (".git", "gitdir: ../main/.git/worktrees/w\n".to_owned()),
                ("../main/.git/worktrees/w/HEAD", "ref: refs/heads/w\n".to_owned()),
                ("../main/.git/worktrees/w/commondir", "../..\n".to_owned()),
                ("../main/.git/refs/heads/w", format!("{commit}\n")),
            ],
            on("w", Some(commit)),
        ),
    ] {
        let mut sandbox = Sandbox::in_memory();
        for (name, text) in &files {
            sandbox.write(name, text);
        }
        sandbox.prompt("s", "go");
        let point = sandbox.workspace.store.points().unwrap().pop().expect("a point was made");
        assert_eq!(point.git, expected, "{files:?}");
    }
}

#[test]
fn a_turn_lasts_from_its_prompt_to_its_end_or_the_next_prompt() {
    let mut sandbox = Sandbox::in_memory();
    let turn = |sandbox: &Sandbox| {
        let session =
            sandbox.workspace.store.session(&SessionId::from("s")).unwrap().expect("known");
        session.open_turn
    };
    let closed = |sandbox: &Sandbox, turn| {
        sandbox.workspace.store.turn(turn).unwrap().expect("it is kept").closed_at.is_some()
    };
    sandbox.prompt("s", "first");
    let first = turn(&sandbox).expect("a turn is open");
    assert!(!closed(&sandbox, first));
    sandbox.prompt("s", "second");
    let second = turn(&sandbox).expect("a turn is open");
    assert_ne!(second, first);
    assert_eq!((closed(&sandbox, first), closed(&sandbox, second)), (true, false));
    sandbox.turn_end("s");
    assert_eq!(turn(&sandbox), None);
    assert!(closed(&sandbox, second));
    let kept = sandbox.workspace.store.turn(second).unwrap().expect("it is kept");
    assert_eq!((kept.prompt.as_str(), kept.message.as_deref()), ("second", Some("message second")));
}

#[test]
fn a_point_is_described_by_the_first_80_characters_of_its_prompt() {
    for (prompt, description) in [
        ("fix it", "fix it".to_owned()),
        ("  fix\nit\r\nnow\n", "fix it now".to_owned()),
        (&"\u{e4}".repeat(81), "\u{e4}".repeat(80)),
    ] {
        assert_eq!(describe(prompt), description);
    }
}

#[test]
fn a_label_names_one_point() {
    let mut sandbox = Sandbox::new();
    let first = checkpoint(&mut sandbox.workspace, Some("good")).unwrap().point.unwrap();
    let again = checkpoint(&mut sandbox.workspace, Some("good")).unwrap_err();
    assert_eq!(again.to_string(), format!("the label \"good\" is taken by point {first}"));
    checkpoint(&mut sandbox.workspace, None).unwrap();
    checkpoint(&mut sandbox.workspace, None).unwrap();
    assert_eq!(sandbox.workspace.store.points().unwrap().len(), 3);
}

#[test]
fn a_call_that_changed_nothing_leaves_no_change() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "a\n");
    sandbox.prompt("s", "go");
    let count = log(&sandbox).len();
    sandbox.agent_writes("s", "a.txt", "a\n");
    let call = sandbox.before_edit("s", &["never-made.txt"]);
    sandbox.after_as("s", &call, Outcome::Failed);
    sandbox.agent_runs("s", "true", |_| {});
    sandbox.turn_end("s");
    assert_eq!(log(&sandbox).len(), count);
}

#[test]
fn file_checkpoints_have_the_version_before_each_message() {
    let mut sandbox = Sandbox::new();
    let binary = [0, 159, 146, 150];
    sandbox.write("a.bin", binary);
    sandbox.prompt("s", "one");
    sandbox.agent_writes("s", "a.bin", "text now");
    sandbox.agent_writes("s", "a.bin", "and again");
    sandbox.agent_writes("s", "new.txt", "n");
    sandbox.agent_writes("other", "b.txt", "b");
    sandbox.prompt("s", "two");
    sandbox.agent_writes("s", "a.bin", "third");
    let store = &*sandbox.workspace.store;
    let listed = file_checkpoints(store, &SessionId::from("s")).unwrap();
    let copies: Vec<_> = listed
        .iter()
        .map(|c| (c.message.as_deref(), c.path.display(), c.original.clone()))
        .collect();
    assert_eq!(
        copies,
        [
            (Some("message one"), "a.bin".to_owned(), file(binary, 0o644)),
            (Some("message one"), "new.txt".to_owned(), Entry::Absent),
            (Some("message two"), "a.bin".to_owned(), file("and again", 0o644)),
        ]
    );
    let original = listed[0].original.digest().expect("a file");
    assert_eq!(store.contents(&original).unwrap(), binary);
}

#[test]
fn a_session_cannot_pass_for_an_import() {
    let mut sandbox = Sandbox::new();
    let point = sandbox.prompt("imported-0123abcd-s", "hide");
    sandbox.agent_writes("imported-0123abcd-s", "made.txt", "made\n");
    sandbox.turn_end("imported-0123abcd-s");
    assert_eq!(authors(&sandbox, "made.txt"), ["agent-imported-0123abcd-s call-1 Edit named"]);
    assert!(sandbox.rewind_to(point).success && !sandbox.exists("made.txt"));
}
