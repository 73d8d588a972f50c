//! The library: `Takeback::open` and its methods.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use takeback::core::Outcome;
use takeback::core::rewind::{Choice, ConflictPolicy};
use takeback::store::{Author, CallState, SessionId};
use takeback::{
    BisectQuery, RecordingGap, RestoreQuery, RevertQuery, RevertTarget, SettledConflict, Takeback,
    Tool, Turn,
};
use tempfile::TempDir;

#[path = "../../examples/library.rs"]
mod example;

#[test]
fn the_example_of_the_library_page_runs() {
    example::main().expect("the example runs");
}

/// The page has each function of the example, and no other code.
#[test]
fn the_library_page_shows_the_example_as_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = fs::read_to_string(folder.join("examples/library.rs")).unwrap();
    let page = fs::read_to_string(folder.join("../../docs/library.md")).unwrap();
    let blocks = page.split("```rust\n").skip(1);
    let shown: Vec<&str> =
        blocks.map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    for code in &shown {
        assert!(example.contains(code), "not in the example:\n{code}");
    }
    for function in example.split("\nfn ").skip(1) {
        let name = function.split('(').next().unwrap_or_default();
        let is_shown = shown.iter().any(|code| code.starts_with(&format!("fn {name}(")));
        assert!(is_shown, "{name} is not on the page");
    }
    for class in [
        "CheckpointManager",
        "FileCheckpointService",
        "FileCheckpointMiddleware",
        "PersistenceManager",
        "ExecutionRecovery",
    ] {
        assert!(page.contains(&format!("`{class}`")), "{class}");
    }
}

struct Project {
    folder: TempDir,
    takeback: Takeback,
}

fn project() -> Project {
    let folder = TempDir::new().expect("the test's own folder");
    fs::create_dir(folder.path().join("project")).expect("the test's own folder");
    fs::write(folder.path().join("project/a.txt"), "before\n").expect("the test's own folder");
    let takeback = open(&folder);
    Project { folder, takeback }
}

fn open(folder: &TempDir) -> Takeback {
    Takeback::open_with_home(folder.path().join("project"), folder.path().join("home"))
        .expect("the test's own folder")
}

impl Project {
    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        fs::write(self.folder.path().join("project").join(name), text)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join("project").join(name))
            .expect("the test's own folder")
    }

    fn state_of(&self, call: &str) -> Option<CallState> {
        self.takeback.with_workspace(|workspace| {
            let call = workspace
                .store
                .call(&SessionId::from("s"), &call.into())
                .expect("the store is read");
            call.map(|call| call.state)
        })
    }
}

#[test]
fn a_tools_error_comes_back_and_its_work_is_still_its_own() {
    let project = project();
    let turn = project.takeback.prompt("s", "break it").unwrap();
    let failed: Result<(), io::Error> = turn.call("c1", Tool::edit("a.txt"), || {
        project.write("a.txt", "half\n")?;
        Err(io::Error::other("no more tokens"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "no more tokens");
    let receipt = project.takeback.rewind(turn.point()).unwrap().apply().unwrap();
    assert!(receipt.success);
    assert_eq!(project.read("a.txt"), "before\n");
    project.takeback.undo().unwrap().apply().unwrap();
    assert_eq!(project.read("a.txt"), "half\n");
    project.takeback.redo().unwrap().apply().unwrap();
    assert_eq!(project.read("a.txt"), "before\n");
}

#[test]
fn a_tool_that_panics_leaves_no_open_call() {
    let project = project();
    let turn = project.takeback.prompt("s", "panic").unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        turn.call("c1", Tool::shell("boom"), || -> Result<(), ()> { panic!("in the tool") })
    }));
    assert!(panicked.is_err());
    assert_eq!(project.state_of("c1"), Some(CallState::Failed));
    // What the user writes now is theirs.
    project.write("mine.txt", "mine\n").unwrap();
    project.takeback.rewind(turn.point()).unwrap().apply().unwrap();
    assert_eq!(project.read("mine.txt"), "mine\n");
}

#[test]
fn calls_on_several_threads_overlap() {
    let project = project();
    let turn = project.takeback.prompt("s", "two at once").unwrap();
    let both_run = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for name in ["x.txt", "y.txt"] {
            let (turn, project, both_run) = (&turn, &project, &both_run);
            scope.spawn(move || {
                turn.call(name, Tool::edit(name), || {
                    // Neither call waits for the other.
                    both_run.wait();
                    project.write(name, "agent\n")
                })
            });
        }
    });
    turn.end();
    let authors = project.takeback.with_workspace(|workspace| {
        let changes = workspace.store.changes_after(takeback::store::Seq(0)).unwrap();
        let agents = changes.into_iter().filter_map(|change| match change.author {
            Author::Agent { call, .. } => Some((change.path.as_bytes().to_vec(), call.0)),
            _ => None,
        });
        agents.collect::<Vec<_>>()
    });
    let expected = ["x.txt", "y.txt"].map(|name| (name.as_bytes().to_vec(), name.to_owned()));
    assert_eq!(
        authors.into_iter().collect::<std::collections::BTreeSet<_>>(),
        std::collections::BTreeSet::from(expected)
    );
}

#[test]
fn unrecorded_contents_are_listed_and_the_tool_runs() {
    let project = project();
    let turn = project.takeback.prompt("s", "large").unwrap();
    // Larger than `editCaptureMaxBytes`, and not scanned yet.
    project.write("large.bin", &"x".repeat(2 << 20)).unwrap();
    turn.call("c1", Tool::edit("large.bin"), || project.write("large.bin", "small")).unwrap();
    let unrecorded = project.takeback.unrecorded();
    assert!(
        matches!(&*unrecorded, [RecordingGap::Contents { call, path, .. }]
            if call == "c1" && path.as_bytes() == b"large.bin"),
        "{unrecorded:?}"
    );
    assert!(project.takeback.unrecorded().is_empty(), "it is listed once");
}

#[test]
fn a_call_is_closed_by_how_it_ended() {
    let project = project();
    let turn = project.takeback.prompt("s", "ends").unwrap();
    for (call, outcome, expected) in [
        ("done", Outcome::Done, Some(CallState::Done)),
        ("background", Outcome::Background, Some(CallState::Background)),
        ("refused", Outcome::Rejected, Some(CallState::Rejected)),
    ] {
        turn.begin(call, Tool::shell("true")).end(outcome);
        assert_eq!(project.state_of(call), expected, "{call}");
    }
    let input = serde_json::json!({ "file_path": "a.txt" });
    turn.call("read", Tool::named("Read", &input), || Ok::<(), ()>(())).unwrap();
    assert_eq!(project.state_of("read"), None, "a tool that only reads is not recorded");
}

#[test]
fn the_library_opens_a_folder_as_the_program_does() {
    let project = project();
    let point = project.takeback.checkpoint(Some("start")).unwrap();
    fs::create_dir(project.folder.path().join("project/src")).unwrap();
    let home = project.folder.path().join("home");
    let below = Takeback::open_with_home(project.folder.path().join("project/src"), &home).unwrap();
    assert_eq!(below.root(), project.takeback.root(), "the protected folder above");
    assert_eq!(below.point("start").unwrap(), point);
    let missing = Takeback::open_with_home("/nonexistent", &home).unwrap_err().to_string();
    assert!(missing.contains("/nonexistent") && missing.contains("Name a folder"), "{missing}");
    let unknown = below.point("nothing").unwrap_err().to_string();
    assert!(unknown.contains("nothing"), "{unknown}");
    fs::write(home.join("settings.json"), r#"{"enableFileCheckpointing": false}"#).unwrap();
    let off = Takeback::open_with_home(below.root(), &home).unwrap_err().to_string();
    assert!(off.starts_with("Checkpoint feature not enabled"), "{off}");
}

#[test]
fn a_session_is_named_and_ended() {
    let project = project();
    project.takeback.start_session("s", Some("my-agent"), None).unwrap();
    project.takeback.prompt("s", "one").unwrap();
    project.takeback.end_session("s").unwrap();
    let session = project.takeback.with_workspace(|workspace| {
        workspace.store.session(&SessionId::from("s")).unwrap().unwrap()
    });
    assert_eq!(session.agent.as_deref(), Some("my-agent"));
    assert!(session.ended_at.is_some());
}

#[test]
fn a_question_about_nothing_says_what_is_wrong() {
    let project = project();
    let turn = project.takeback.prompt("s", "go").unwrap();
    let of = |error: takeback::QuestionError| error.to_string();
    let takeback = &project.takeback;
    for (told, begins) in [
        (of(takeback.blame("none").unwrap_err()), "none was never recorded. "),
        (of(takeback.why("a.txt", 0).unwrap_err()), "a.txt has 1 line, and no line 0"),
        (of(takeback.why("a.txt", 2).unwrap_err()), "a.txt has 1 line, and no line 2"),
        (of(takeback.history("none", 1).unwrap_err()), "none was never recorded. "),
        (of(takeback.cat(turn.point(), ".").unwrap_err()), ". is not the path of a file"),
        (of(takeback.cat(turn.point(), "none").unwrap_err()), "none was never recorded. "),
    ] {
        assert!(told.starts_with(begins), "{told}");
    }
    assert_eq!(takeback.cat(turn.point(), "a.txt").unwrap(), b"before\n");
    assert_eq!(takeback.show(turn.point()).unwrap().point.description, "go");
}

#[test]
fn bisect_finds_the_call_that_broke_a_command() {
    let project = project();
    let takeback = &project.takeback;
    // Beside it, `target` is build output.
    project.write("Cargo.toml", "").unwrap();
    let before = takeback.checkpoint(Some("start")).unwrap();
    let mut points = Vec::new();
    for text in ["one\n", "two\n", "three\n"] {
        let turn = takeback.prompt("s", text.trim_end()).unwrap();
        turn.call(&format!("call-{text}"), Tool::edit("a.txt"), || project.write("a.txt", text))
            .unwrap();
        points.push(turn.point());
    }
    let query = BisectQuery::of(["sh", "-c", "! grep -qE 'two|three' a.txt"]);
    let found = takeback.bisect(&query).unwrap();
    assert_eq!(found.turn.as_ref().map(|point| point.id), Some(points[1]));
    assert_eq!(found.call.as_ref().map(|call| call.id.0.as_str()), Some("call-two\n"));
    assert_eq!(
        found.good.as_ref().map(|point| point.id),
        Some(points[1]),
        "its files are those before"
    );
    assert_eq!((found.steps.len(), found.skipped), (1, 0));
    let files: Vec<&[u8]> = found.newest().files().iter().map(|path| path.as_bytes()).collect();
    assert_eq!(files, [b"a.txt"]);
    assert_eq!(project.read("a.txt"), "three\n", "the workspace is not touched");

    // Between two points, with a file that is not recorded.
    fs::create_dir(project.folder.path().join("project/target")).unwrap();
    let script = "test $(grep -c -f target/words a.txt) -eq 0";
    project.write("target/words", "three\n").unwrap();
    let query = BisectQuery {
        good: Some(before),
        with: vec!["target".into()],
        ..BisectQuery::of(["sh", "-c", script])
    };
    let found = takeback.bisect(&query).unwrap();
    assert_eq!(found.turn.as_ref().map(|point| point.description.as_str()), Some("three"));
    let query = BisectQuery { bad: Some(points[1]), ..query };
    let error = takeback.bisect(&query).unwrap_err().to_string();
    assert!(error.contains("there is nothing to find"), "{error}");
    let error = takeback.bisect(&BisectQuery::of([""; 0])).unwrap_err().to_string();
    assert!(error.starts_with("the command is empty"), "{error}");
}

/// `a.txt` was changed in two turns and by the user: its first and last line, and then the last again.
fn conflicting(project: &Project) -> Turn {
    project.write("a.txt", "1\n2\n3\n4\n5\n").expect("it is recorded");
    let turn = project.takeback.prompt("s", "ends").expect("it is recorded");
    let edit = || project.write("a.txt", "first\n2\n3\n4\nlast\n");
    turn.call("c1", Tool::edit("a.txt"), edit).expect("it is recorded");
    project.takeback.prompt("s", "later").expect("it is recorded");
    project.write("a.txt", "first\n2\n3\n4\nlast, by me\n").expect("it is recorded");
    turn
}

#[test]
fn a_reverted_turn_leaves_conflicts_that_can_be_settled_one_by_one() {
    let project = project();
    let turn = conflicting(&project);
    let query = RevertQuery::new(RevertTarget::Turn(turn.point()));
    let plan = project.takeback.revert(&query).unwrap();
    assert_eq!(plan.preview().receipt().conflict_lines[0].lines[0].line, 5);
    let receipt = plan.apply().unwrap();
    assert_eq!(project.read("a.txt"), "1\n2\n3\n4\nlast, by me\n");
    let [open] = <[_; 1]>::try_from(project.takeback.conflicts().unwrap()).unwrap();
    assert_eq!(open.operation, receipt.rewind.unwrap());
    let text = Choice::Text(b"last of all\n".to_vec());
    let settled = SettledConflict { conflict: open, choices: vec![Some(text)] };
    project.takeback.resolve(&[settled]).unwrap().apply().unwrap();
    assert_eq!(project.read("a.txt"), "1\n2\n3\n4\nlast of all\n");
    assert_eq!(project.takeback.conflicts().unwrap(), []);
    assert!(project.takeback.resolve(&[]).is_err());
}

#[test]
fn a_call_a_range_and_an_operation_are_taken_back() {
    let project = project();
    let turn = conflicting(&project);
    let call = RevertTarget::Call { session: SessionId::from("s"), call: "c1".into() };
    let query = RevertQuery { conflicts: ConflictPolicy::Take, ..RevertQuery::new(call) };
    let receipt = project.takeback.revert(&query).unwrap().apply().unwrap();
    assert_eq!(project.read("a.txt"), "1\n2\n3\n4\n5\n");
    let undo = project.takeback.undo_operation(receipt.rewind.unwrap()).unwrap();
    undo.apply().unwrap();
    assert_eq!(project.read("a.txt"), "first\n2\n3\n4\nlast, by me\n");
    let range = RevertTarget::Range { from: turn.point(), to: None, scope: None };
    let query = RevertQuery { paths: vec!["b*".to_owned()], ..RevertQuery::new(range) };
    assert!(project.takeback.revert(&query).unwrap().preview().plan.does_nothing());
    let unknown = RevertTarget::Call { session: SessionId::from("s"), call: "c9".into() };
    let error = project.takeback.revert(&RevertQuery::new(unknown)).unwrap_err();
    assert_eq!(error.to_string(), "there is no call c9 in s");
}

#[test]
fn paths_come_back_whoever_changed_them() {
    let project = project();
    let point = project.takeback.checkpoint(None).unwrap();
    project.write("a.txt", "by me\n").unwrap();
    project.write("b.txt", "by me\n").unwrap();
    let query = RestoreQuery { from: point, paths: vec!["a.*".to_owned()] };
    assert!(project.takeback.restore(&query).unwrap().apply().unwrap().success);
    assert_eq!(
        (project.read("a.txt"), project.read("b.txt")),
        ("before\n".into(), "by me\n".into())
    );
}
