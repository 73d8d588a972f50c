//! What a preview promises and a receipt reports.

use std::sync::Arc;

use takeback_core::history::{TakenBack, Tally, Viewpoint, cancelled, settle};
use takeback_core::rewind::ConflictPolicy;
use takeback_store::Seq;

use super::*;

#[test]
fn a_preview_is_the_plan_and_changes_nothing_on_disk() {
    let (mut sandbox, point) = begun("one\n");
    sandbox.agent_runs("s", "npm test", |sandbox| {
        sandbox.write("a.txt", "two\n");
        sandbox.write("made.txt", "made\n");
    });
    sandbox.turn_end("s");
    let before = sandbox.tree();
    let shown = preview(&mut sandbox.workspace, &request(point)).unwrap();
    assert_eq!(sandbox.tree(), before);
    assert!(!sandbox.exists(".takeback"));
    assert_eq!(sandbox.workspace.store.rewinds().unwrap(), []);

    let author = history(&sandbox, "made.txt")[0].author.clone();
    assert!(matches!(author, Author::Agent { .. }));
    let because = vec![Arc::new(Attribution { author, evidence: Evidence::Window })];
    let entry = |text: &str| Entry::File {
        digest: Digest::of(text.as_bytes()),
        size: text.len() as u64,
        mode: 0o644,
    };
    let seq_of = |name| history(&sandbox, name).pop().expect("it changed").seq;
    let steps = vec![
        Step {
            cancels: vec![seq_of("a.txt")],
            because: because.clone(),
            evidence: Some(Evidence::Window),
            ..Step::new(path("a.txt"), entry("two\n"), Verdict::Restore { to: entry("one\n") })
        },
        Step {
            cancels: vec![seq_of("made.txt")],
            because,
            evidence: Some(Evidence::Window),
            ..Step::new(path("made.txt"), entry("made\n"), Verdict::Delete)
        },
    ];
    let window = Window {
        session: SessionId::from("s"),
        call: CallId::from("call-1"),
        tool: "Bash".to_owned(),
        command: Some("npm test".to_owned()),
        paths: 2,
        first_paths: vec![path("a.txt"), path("made.txt")],
    };
    assert_eq!(shown.plan.steps, steps);
    assert_eq!((shown.kind, &shown.windows), (RewindKind::Rewind { point }, &vec![window]));

    let receipt = shown.receipt();
    assert_eq!(report(&receipt), ["success", "restored a.txt", "deleted made.txt"]);
    assert_eq!((receipt.point, receipt.safety_point, receipt.rewind), (Some(point), None, None));
    let done = rewind(&mut sandbox.workspace, &request(point), Some(&shown)).unwrap();
    let ids_apart = Receipt { rewind: None, safety_point: None, ..done };
    assert_eq!(ids_apart, receipt, "what was shown is what is done");
}

#[test]
fn an_outdated_preview_is_not_applied() {
    type Change = fn(&mut Sandbox);
    let cases: [(&str, Change); 3] = [
        ("a person saves", |sandbox| sandbox.write("a.txt", "mine\n")),
        ("a person deletes", |sandbox| sandbox.remove("a.txt")),
        ("an agent continues", |sandbox| sandbox.agent_writes("s", "b.txt", "more\n")),
    ];
    for (case, change) in cases {
        let (mut sandbox, point) = begun("one\n");
        sandbox.agent_writes("s", "a.txt", "two\n");
        sandbox.turn_end("s");
        let shown = preview(&mut sandbox.workspace, &request(point)).unwrap();
        change(&mut sandbox);
        let before = sandbox.tree();
        let refused = rewind(&mut sandbox.workspace, &request(point), Some(&shown));
        let Err(RewindError::Changed(now)) = refused else { panic!("{case}: {refused:?}") };
        assert_eq!(*now, preview(&mut sandbox.workspace, &request(point)).unwrap(), "{case}");
        assert_eq!(sandbox.tree(), before, "{case}");
        assert_eq!(sandbox.workspace.store.rewinds().unwrap(), [], "{case}");
        let agreed: Preview = *now;
        rewind(&mut sandbox.workspace, &request(point), Some(&agreed)).expect("the new one holds");
    }
}

#[test]
fn nothing_to_do_does_nothing() {
    let (mut sandbox, point) = begun("one\n");
    sandbox.turn_end("s");
    let head = sandbox.workspace.store.head().unwrap();
    let receipt = sandbox.rewind_to(point);
    assert_eq!(receipt, Receipt { success: true, point: Some(point), ..Receipt::default() });
    assert!(!receipt.changed_something());
    assert_eq!(sandbox.workspace.store.head().unwrap(), head);
}

#[test]
fn a_missing_point_is_an_error() {
    let (mut sandbox, _) = begun("one\n");
    let nowhere = sandbox.rewind(&request(PointId(77)));
    assert_eq!(nowhere.unwrap_err().to_string(), "there is no point 000000000000004d");
}

#[test]
fn a_rewind_during_a_turn_includes_unreported_changes() {
    let (mut sandbox, point) = begun("one\n");
    let before = sandbox.tree();
    sandbox.before_shell("s", "make");
    sandbox.write("a.txt", "two\n");
    sandbox.write("made.txt", "made\n");
    let take = RewindRequest { ambiguous: AmbiguousPolicy::Take, ..request(point) };
    let receipt = sandbox.rewind(&take).unwrap();
    assert_eq!(report(&receipt), ["success", "restored a.txt", "deleted made.txt"]);
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn a_receipt_in_json_has_every_documented_field() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let (mut sandbox, _) = begun(TEN);
    let odd = sandbox.root().join(OsStr::from_bytes(b"caf\xe9"));
    sandbox.write("restored.txt", "one\n");
    sandbox.write("conflict.txt", "one\n");
    sandbox.write("kept.txt", "one\n");
    let point = sandbox.prompt("s", "again");
    sandbox.agent_writes("s", "a.txt", ten(&[("2", "two")]));
    sandbox.agent_writes("s", "restored.txt", "two\n");
    sandbox.agent_writes("s", "conflict.txt", "two\n");
    sandbox.agent_writes("s", "made.txt", "made\n");
    sandbox.agent_runs("s", "x", |_| fs::write(&odd, "made\n").unwrap());
    fs::write(&odd, "made\nmine\n").unwrap();
    sandbox.write("kept.txt", "mine\n");
    sandbox.write("a.txt", ten(&[("2", "two"), ("9", "mine")]));
    sandbox.write("conflict.txt", "mine\n");
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    let json = serde_json::to_value(&receipt).unwrap();
    let id = |id: Option<String>| id.expect("it has one");
    assert_eq!(
        json,
        serde_json::json!({
            "success": false,
            "rewind": id(receipt.rewind.map(|id| id.to_string())),
            "point": point.to_string(),
            "safetyPoint": id(receipt.safety_point.map(|id| id.to_string())),
            "restoredFiles": ["restored.txt"],
            "deletedFiles": ["made.txt"],
            "mergedFiles": [{
                "filePath": "a.txt",
                "reason": receipt.merged_files[0].reason,
            }],
            "keptFiles": [{ "filePath": "kept.txt", "reason": "changed by you" }],
            "firstSeen": [],
            "conflicts": [
                {
                    "filePath": "caf\u{fffd}",
                    "filePathBase64": "Y2Fm6Q==",
                    "reason": "the agent made it, and it was changed since",
                },
                { "filePath": "conflict.txt", "reason": "both changed the same lines" },
            ],
            "conflictLines": [{
                "filePath": "conflict.txt",
                "lines": [{ "line": 1, "count": 1, "mine": "mine\n", "before": "one\n" }],
            }],
            "ambiguous": [],
            "notCaptured": [],
            "evidence": [
                { "filePath": "a.txt", "evidence": "named" },
                {
                    "filePath": "caf\u{fffd}",
                    "filePathBase64": "Y2Fm6Q==",
                    "evidence": "window",
                },
                { "filePath": "conflict.txt", "evidence": "named" },
                { "filePath": "made.txt", "evidence": "named" },
                { "filePath": "restored.txt", "evidence": "named" },
            ],
            "notes": [],
            "errors": [],
        })
    );
    let preview = preview(&mut sandbox.workspace, &request(point)).unwrap().receipt();
    let json = serde_json::to_value(&preview).unwrap();
    assert_eq!(
        (&json["safetyPoint"], &json["rewind"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
}

#[test]
fn a_hard_link_outside_that_keeps_the_changed_contents_is_mentioned() {
    let mut sandbox = Sandbox::new();
    for name in ["out.txt", "in.txt", "alone.txt", "made.txt"] {
        sandbox.write(name, "before\n");
    }
    fs::hard_link(sandbox.at("out.txt"), sandbox.outside().join("twin.txt")).unwrap();
    fs::hard_link(sandbox.at("in.txt"), sandbox.at("twin.txt")).unwrap();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "edit in place", |sandbox| {
        for name in ["out.txt", "in.txt", "alone.txt"] {
            let file = fs::OpenOptions::new().write(true).open(sandbox.at(name)).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, b"AFTER!\n", 0).unwrap();
        }
        fs::hard_link(sandbox.at("made.txt"), sandbox.outside().join("made.txt")).unwrap();
    });
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    let notes: Vec<String> = receipt
        .notes
        .iter()
        .map(|note| format!("{}: {}", note.path.display(), note.reason))
        .collect();
    assert_eq!(notes, ["out.txt: another hard link to it keeps the changed contents"]);
    assert_eq!(fs::read_to_string(sandbox.outside().join("twin.txt")).unwrap(), "AFTER!\n");
    assert_eq!(
        (sandbox.read("out.txt"), sandbox.read("twin.txt")),
        ("before\n".into(), "before\n".into())
    );
}

/// What of a turn is left in lines that the person changed too is not taken back, and a rewind that is
/// done again says so again.
#[test]
fn a_turn_with_a_conflict_counts_as_partly_taken_back() {
    let (mut sandbox, point) = begun(TEN);
    sandbox.agent_writes("s", "a.txt", ten(&[("2", "two"), ("8", "eight")]));
    sandbox.turn_end("s");
    sandbox.write("a.txt", ten(&[("2", "mine"), ("8", "eight")]));
    let taken_back = |sandbox: &Sandbox| {
        let store = &*sandbox.workspace.store;
        let mut changes = store.changes_after(Seq(0)).unwrap();
        settle(store, &mut changes).unwrap();
        let session = SessionId::from("s");
        let view = Viewpoint { session: Some(&session) };
        let rewinds = store.rewind_changes_after(Seq(0)).unwrap();
        Tally::of(&changes, &view, &cancelled(&rewinds), store).unwrap().taken_back
    };
    assert_eq!(taken_back(&sandbox), TakenBack::No);
    for _ in 0..2 {
        let receipt = sandbox.rewind_to(point);
        assert!(!receipt.success);
        assert_eq!(receipt.conflict_lines[0].lines[0].line, 2);
        assert_eq!(sandbox.read("a.txt"), ten(&[("2", "mine")]));
        assert_eq!(taken_back(&sandbox), TakenBack::Partly);
    }
    let mut all = request(point);
    all.conflicts = ConflictPolicy::Take;
    assert!(sandbox.rewind(&all).unwrap().success);
    assert_eq!(sandbox.read("a.txt"), ten(&[]));
    assert_eq!(taken_back(&sandbox), TakenBack::Yes);
}
