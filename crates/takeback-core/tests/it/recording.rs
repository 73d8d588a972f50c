//! What is recorded: bytes before they are overwritten, everything a command does, and names of every
//! kind.

mod points;
mod scans;

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use takeback_core::history::file_checkpoints;
use takeback_core::middleware::{Middleware, RecordingFailure, ToolCall};
use takeback_core::record::describe;
use takeback_core::rewind::{RewindRequest, Target, Verdict, preview};
use takeback_core::worktree::{RacySince, Root, ScanStats, stat};
use takeback_core::{
    AgentEvent, CallTargets, Outcome, RecordOutcome, Tools, checkpoint, look_around,
};
use takeback_store::{
    CallId, Digest, Entry, GitState, NotCapturedReason, Point, PointBasis, PointKind, Seq,
    SessionId, WorkPath,
};
use takeback_testkit::{Sandbox, path};

use crate::text::{assert_consistent, authors, history, log, report};

/// Waits until file times differ: from here on fingerprints are trusted.
pub(crate) fn settle() {
    std::thread::sleep(Duration::from_millis(30));
}

fn file(bytes: impl AsRef<[u8]>, mode: u32) -> Entry {
    let bytes = bytes.as_ref();
    Entry::File { digest: Digest::of(bytes), size: bytes.len() as u64, mode }
}

/// The entries before and after each change of a path, without its first sighting.
fn steps(sandbox: &Sandbox, of: &str) -> Vec<(Entry, Entry)> {
    let changes = history(sandbox, of).into_iter().filter(|c| c.before != Entry::Unknown);
    changes.map(|change| (change.before, change.after)).collect()
}

// --- before an edit -----------------------------------------------------------------------------

#[test]
fn the_bytes_are_stored_before_the_tool_runs() {
    let mut sandbox = Sandbox::new();
    sandbox.prompt("s", "go");
    let bytes = b"never seen by a scan\0\xff\r\n";
    sandbox.write("a.bin", bytes);
    sandbox.before_edit("s", &["a.bin"]);
    let other = sandbox.another_process();
    let kept = other.store.latest_of(&[path("a.bin")]).unwrap().pop().flatten();
    assert_eq!(kept.map(|change| change.after), Some(file(bytes, 0o644)));
    assert_eq!(other.store.contents(&Digest::of(bytes)).unwrap(), bytes);
}

#[test]
fn a_new_file_is_recorded_as_absent_before_and_deleted_again() {
    let mut sandbox = Sandbox::new();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "made.txt", "made\n");
    sandbox.agent_writes("s", "kept.txt", "made\n");
    assert_eq!(steps(&sandbox, "made.txt"), [(Entry::Absent, file("made\n", 0o644))]);
    sandbox.turn_end("s");
    sandbox.write("kept.txt", "made\nand mine\n");
    let receipt = sandbox.rewind_to(point);
    assert_eq!(
        report(&receipt),
        [
            "not all",
            "deleted made.txt",
            "conflict kept.txt: the agent made it, and it was changed since"
        ]
    );
    assert!(!sandbox.exists("made.txt"));
    assert_eq!(sandbox.read("kept.txt"), "made\nand mine\n");
}

#[test]
fn an_unknown_path_is_looked_at_before_the_edit() {
    let mut sandbox = Sandbox::new();
    sandbox.agent_writes("s", "made.txt", "made\n");
    let all: Vec<_> =
        history(&sandbox, "made.txt").into_iter().map(|c| (c.before, c.after)).collect();
    assert_eq!(all, [(Entry::Unknown, Entry::Absent), (Entry::Absent, file("made\n", 0o644))]);
    let point = sandbox.workspace.store.points().unwrap()[0].id;
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "deleted made.txt"]);
}

#[test]
fn binary_contents_come_back_byte_for_byte() {
    let mut sandbox = Sandbox::new();
    let every_byte: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    // Larger than one chunk, and without repetition.
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(5 << 20)
    .collect();
    for contents in [&every_byte[..], &noise, b"", b"\0", b"caf\xe9\r\nno newline at the end"] {
        sandbox.write("a.bin", contents);
        let point = sandbox.prompt("s", "go");
        sandbox.agent_writes("s", "a.bin", b"\0other\0");
        assert!(sandbox.rewind_to(point).success);
        assert_eq!(fs::read(sandbox.at("a.bin")).unwrap(), contents);
    }
}

// --- large files --------------------------------------------------------------------------------

const LARGE: usize = (1 << 20) + 1;

#[test]
fn a_large_file_stored_by_a_scan_is_restored() {
    let mut sandbox = Sandbox::new();
    sandbox.write("large", vec![1; LARGE]);
    settle();
    let point = sandbox.prompt("s", "go");
    // The second edit finds the first one's file, which was stored after the call and not by a scan.
    for round in [2, 3] {
        let call = sandbox.before_edit("s", &["large"]);
        sandbox.write("large", vec![round; LARGE]);
        assert_eq!(sandbox.after("s", &call).not_captured, []);
    }
    assert_eq!(authors(&sandbox, "large"), ["s call-1 Edit named", "s call-2 Edit named"]);
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored large"]);
    assert_eq!(fs::read(sandbox.at("large")).unwrap(), vec![1; LARGE]);
}

#[test]
fn a_large_file_just_written_is_compared_by_its_bytes() {
    let mut sandbox = Sandbox::new();
    sandbox.write("large", vec![1; LARGE]);
    sandbox.prompt("s", "go");
    sandbox.before_edit("s", &["large"]);
    assert_eq!(steps(&sandbox, "large"), [], "the prompt's scan has it");
}

#[test]
fn a_large_file_changed_since_the_last_scan_is_not_captured() {
    for size in [LARGE, LARGE - 1] {
        let mut sandbox = Sandbox::new();
        sandbox.write("large", vec![1; size]);
        settle();
        let point = sandbox.prompt("s", "go");
        sandbox.write("large", vec![2; size]);
        let call = sandbox.before_edit("s", &["large"]);
        sandbox.write("large", vec![3; size]);
        sandbox.after("s", &call);
        if size < LARGE {
            let both = [(file(vec![1; size], 0o644), file(vec![2; size], 0o644))];
            assert_eq!(steps(&sandbox, "large")[..1], both, "at the limit it is copied");
            continue;
        }
        let not_captured = Entry::NotCaptured { reason: NotCapturedReason::TooLarge };
        assert_eq!(
            steps(&sandbox, "large"),
            [
                (file(vec![1; size], 0o644), not_captured.clone()),
                (not_captured, file(vec![3; size], 0o644))
            ]
        );
        let request = RewindRequest::new(Target::Point(point));
        let shown = preview(&mut sandbox.workspace, &request).unwrap();
        let reason = NotCapturedReason::TooLarge.describe().to_owned();
        assert_eq!(shown.plan.steps[0].verdict, Verdict::NotCaptured { reason });
        let receipt = sandbox.rewind_to(point);
        assert_eq!(
            report(&receipt),
            ["not all", "not captured large: too large to be copied, or over the budget"]
        );
        assert_eq!(fs::read(sandbox.at("large")).unwrap(), vec![3; size]);
    }
}

#[test]
fn an_events_answer_lists_uncaptured_paths() {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.limits.edit_capture_max = 4;
    sandbox.prompt("s", "go");
    sandbox.write("large", "12345");
    let unrecorded = around(&mut sandbox, "write_file", "large", |_| {});
    let lacks: Vec<String> = unrecorded.iter().map(|u| format!("{u:?}")).collect();
    assert_eq!(lacks, [r#"Bytes { call: "c", path: "large", reason: TooLarge }"#]);
}

// --- the middleware -----------------------------------------------------------------------------

/// Runs one call of a tool through the middleware; what it could not record.
fn around(
    sandbox: &mut Sandbox,
    tool: &str,
    of: &str,
    does: impl FnOnce(&Path),
) -> Vec<RecordingFailure> {
    let mut unrecorded = Vec::new();
    let at = sandbox.at(of);
    let input = json!({ "file_path": at });
    let mut middleware = Middleware {
        workspace: &mut sandbox.workspace,
        session: SessionId::from("s"),
        tools: Tools::new(&["write_file"], &["bash"], &["read_file"]),
        on_unrecorded: Box::new(|what| unrecorded.push(what)),
    };
    let answer = middleware.around(ToolCall { id: "c", tool, input: &input }, |call| {
        does(&at);
        format!("{} is done", call.tool)
    });
    drop(middleware);
    assert_eq!(answer, format!("{tool} is done"), "the tool's own answer comes through");
    unrecorded
}

#[test]
fn the_middleware_records_known_and_unknown_tools() {
    for (tool, author) in
        [("write_file", "s c write_file named"), ("mystery", "s c mystery window")]
    {
        let mut sandbox = Sandbox::new();
        sandbox.write("a.txt", "before\n");
        let point = sandbox.prompt("s", "go");
        let unrecorded =
            around(&mut sandbox, tool, "a.txt", |at| fs::write(at, "after\n").unwrap());
        assert!(unrecorded.is_empty(), "{unrecorded:?}");
        assert_eq!(authors(&sandbox, "a.txt"), [author]);
        sandbox.rewind_to(point);
        assert_eq!(sandbox.read("a.txt"), "before\n");
    }
}

#[test]
fn a_failing_store_is_reported_and_does_not_stop_the_tool() {
    let mut sandbox = Sandbox::new();
    sandbox.prompt("s", "go");
    let lock = sandbox.workspace.store_dir.join("lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let unrecorded =
        around(&mut sandbox, "write_file", "a.txt", |at| fs::write(at, "after\n").unwrap());
    assert_eq!(sandbox.read("a.txt"), "after\n");
    let events = unrecorded.iter().map(|what| matches!(what, RecordingFailure::Event { .. }));
    assert_eq!(events.collect::<Vec<_>>(), [true, true], "{unrecorded:?}");
}

// --- names and places ---------------------------------------------------------------------------

#[test]
fn names_of_every_kind_are_recorded_and_come_back() {
    let names: [&[u8]; 7] = [
        b"new\nline",
        b"-rf",
        b"caf\xe9",
        b"\xff\xfe",
        b" ",
        b"a\\b",
        "h\u{fc}\u{1f600}".as_bytes(),
    ];
    for edit in [true, false] {
        let mut sandbox = Sandbox::new();
        for name in names {
            fs::write(sandbox.root().join(OsStr::from_bytes(name)), "before\n").unwrap();
        }
        let before = sandbox.tree();
        let point = sandbox.prompt("s", "go");
        for name in names {
            let at = sandbox.root().join(OsStr::from_bytes(name));
            let made = sandbox.root().join(OsStr::from_bytes(&[name, b".new"].concat()));
            let call = if edit {
                edit_of(&mut sandbox, &[&at, &made])
            } else {
                sandbox.before_shell("s", "x")
            };
            fs::write(&at, "after\n").unwrap();
            fs::write(&made, "made\n").unwrap();
            sandbox.after("s", &call);
        }
        let touched: Vec<WorkPath> =
            names.iter().map(|name| WorkPath::new(*name).unwrap()).collect();
        let latest = sandbox.workspace.store.latest_of(&touched).unwrap();
        for change in latest {
            assert_eq!(change.map(|change| change.after), Some(file("after\n", 0o644)));
        }
        sandbox.turn_end("s");
        assert!(sandbox.rewind_to(point).success);
        assert_eq!(sandbox.tree(), before);
    }
}

fn edit_of(sandbox: &mut Sandbox, paths: &[&Path]) -> String {
    let call = format!("edit of {paths:?}");
    sandbox.tell(&AgentEvent::BeforeTool {
        session: SessionId::from("s"),
        call: CallId::from(call.as_str()),
        tool: "Edit".to_owned(),
        touches: CallTargets::Paths(paths.iter().map(|path| path.to_path_buf()).collect()),
    });
    call
}

#[test]
fn an_edit_through_a_link_is_recorded_at_its_target() {
    let mut sandbox = Sandbox::new();
    sandbox.write("real/a.txt", "before\n");
    symlink("real/a.txt", sandbox.at("link.txt")).unwrap();
    symlink("real", sandbox.at("linked")).unwrap();
    symlink("real/made.txt", sandbox.at("dangling")).unwrap();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "link.txt", "first\n");
    sandbox.agent_writes("s", "linked/a.txt", "second\n");
    sandbox.agent_writes("s", "dangling", "made\n");
    assert_eq!(authors(&sandbox, "real/a.txt"), ["s call-1 Edit named", "s call-2 Edit named"]);
    assert_eq!(authors(&sandbox, "real/made.txt"), ["s call-3 Edit named"]);
    for name in ["link.txt", "linked", "linked/a.txt", "dangling"] {
        assert_eq!(steps(&sandbox, name), [], "{name}");
    }
    sandbox.rewind_to(point);
    assert_eq!(sandbox.read("real/a.txt"), "before\n");
    assert!(!sandbox.exists("real/made.txt"));
    assert!(sandbox.exists("dangling"));
}

#[test]
fn an_edit_outside_is_recorded_by_its_absolute_path() {
    let mut sandbox = Sandbox::new();
    let outside = fs::canonicalize(sandbox.outside()).unwrap().join("outside.txt");
    fs::write(&outside, "before\n").unwrap();
    symlink(&outside, sandbox.at("way-out")).unwrap();
    sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "way-out", "after\n");
    let changes = history(&sandbox, outside.to_str().unwrap());
    let seen: Vec<_> =
        changes.iter().map(|change| (change.before.clone(), change.after.clone())).collect();
    assert_eq!(
        seen,
        [
            (Entry::Unknown, file("before\n", 0o644)),
            (file("before\n", 0o644), file("after\n", 0o644))
        ]
    );
    sandbox.write("elsewhere", "x");
    sandbox.agent_writes("s", "../work/./elsewhere", "inside after all\n");
    assert_eq!(authors(&sandbox, "elsewhere"), ["human", "s call-2 Edit named"]);
}

#[test]
fn version_controls_own_files_and_the_store_are_never_recorded() {
    let mut sandbox = Sandbox::new();
    for name in [".git/HEAD", ".jj/store", "dep/.git/HEAD", "dep/.hg/dirstate", "dep/.svn/entries"]
    {
        sandbox.write(name, "before\n");
    }
    sandbox.write(".takeback/stage-0000000000000001/new-0", "a stage\n");
    sandbox.prompt("s", "go");
    let store = sandbox.workspace.store_dir.join("timeline.db");
    assert!(store.exists());
    sandbox.before_edit(
        "s",
        &[
            ".git/HEAD",
            ".git/new",
            "dep/.git/HEAD",
            ".jj/store",
            "dep/.hg/dirstate",
            store.to_str().unwrap(),
        ],
    );
    sandbox.write(".git/HEAD", "after\n");
    sandbox.turn_end("s");
    let paths: Vec<WorkPath> = log(&sandbox).into_iter().map(|change| change.path).collect();
    assert_eq!(paths, [path("dep")]);
}
