//! What gets into the log: bytes before they are overwritten, everything a command does, and names
//! of every kind.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use takeback_core::history::file_checkpoints;
use takeback_core::middleware::{Middleware, ToolCall, Unrecorded};
use takeback_core::record::describe;
use takeback_core::rewind::{RewindRequest, Target, Verdict, preview};
use takeback_core::worktree::Root;
use takeback_core::worktree::fingerprint::{RacySince, stat};
use takeback_core::worktree::scan::ScanStats;
use takeback_core::{AgentEvent, Outcome, Recorded, Tools, Touches, checkpoint, look_around};
use takeback_store::{
    CallId, Digest, Entry, GitState, Lack, Point, PointKind, Seq, SessionId, Vouched, WorkPath,
};
use takeback_testkit::{Sandbox, path};

use crate::shown::{assert_consistent, history, log, said, who};

/// Long enough for file times to be told apart: from here on fingerprints are trusted.
pub(crate) fn settle() {
    std::thread::sleep(Duration::from_millis(30));
}

fn file(bytes: impl AsRef<[u8]>, mode: u32) -> Entry {
    let bytes = bytes.as_ref();
    Entry::File { digest: Digest::of(bytes), size: bytes.len() as u64, mode }
}

/// The changes of a path as what stood before and after, without its first sight.
fn steps(sandbox: &Sandbox, of: &str) -> Vec<(Entry, Entry)> {
    let changes = history(sandbox, of).into_iter().filter(|c| c.before != Entry::Unknown);
    changes.map(|change| (change.before, change.after)).collect()
}

// --- before an edit -----------------------------------------------------------------------------

#[test]
fn the_bytes_are_kept_before_the_tool_is_let_go() {
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
fn a_file_that_was_not_there_is_recorded_as_absent_and_goes_again() {
    let mut sandbox = Sandbox::new();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "made.txt", "made\n");
    sandbox.agent_writes("s", "kept.txt", "made\n");
    assert_eq!(steps(&sandbox, "made.txt"), [(Entry::Absent, file("made\n", 0o644))]);
    sandbox.turn_end("s");
    sandbox.write("kept.txt", "made\nand mine\n");
    let receipt = sandbox.rewind_to(point);
    assert_eq!(
        said(&receipt),
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
fn a_file_that_nobody_had_looked_for_is_looked_for_before_the_edit() {
    let mut sandbox = Sandbox::new();
    sandbox.agent_writes("s", "made.txt", "made\n");
    let all: Vec<_> =
        history(&sandbox, "made.txt").into_iter().map(|c| (c.before, c.after)).collect();
    assert_eq!(all, [(Entry::Unknown, Entry::Absent), (Entry::Absent, file("made\n", 0o644))]);
    let point = sandbox.workspace.store.points().unwrap()[0].id;
    assert_eq!(said(&sandbox.rewind_to(point)), ["success", "deleted made.txt"]);
}

#[test]
fn binary_contents_come_back_byte_for_byte() {
    let mut sandbox = Sandbox::new();
    let every_byte: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    // Larger than what is kept in one piece, and nowhere the same.
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
fn a_large_file_that_a_scan_has_kept_is_not_copied_again_and_comes_back() {
    let mut sandbox = Sandbox::new();
    sandbox.write("large", vec![1; LARGE]);
    settle();
    let point = sandbox.prompt("s", "go");
    // The second edit finds what the first left: kept after the call, and by no scan.
    for round in [2, 3] {
        let call = sandbox.before_edit("s", &["large"]);
        sandbox.write("large", vec![round; LARGE]);
        assert_eq!(sandbox.after("s", &call).not_captured, []);
    }
    assert_eq!(who(&sandbox, "large"), ["s call-1 Edit named", "s call-2 Edit named"]);
    assert_eq!(said(&sandbox.rewind_to(point)), ["success", "restored large"]);
    assert_eq!(fs::read(sandbox.at("large")).unwrap(), vec![1; LARGE]);
}

#[test]
fn a_large_file_just_written_is_told_from_a_changed_one_by_its_bytes() {
    let mut sandbox = Sandbox::new();
    sandbox.write("large", vec![1; LARGE]);
    sandbox.prompt("s", "go");
    sandbox.before_edit("s", &["large"]);
    assert_eq!(steps(&sandbox, "large"), [], "the prompt's scan has it");
}

#[test]
fn a_large_file_changed_since_the_last_scan_is_not_captured_and_says_so() {
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
        let lack = Entry::NotCaptured { lack: Lack::TooLarge };
        assert_eq!(
            steps(&sandbox, "large"),
            [(file(vec![1; size], 0o644), lack.clone()), (lack, file(vec![3; size], 0o644))]
        );
        let request = RewindRequest::new(Target::Point(point));
        let shown = preview(&mut sandbox.workspace, &request).unwrap();
        let reason = Lack::TooLarge.reason().to_owned();
        assert_eq!(shown.plan.steps[0].verdict, Verdict::NotCaptured { reason });
        let receipt = sandbox.rewind_to(point);
        assert_eq!(
            said(&receipt),
            ["not all", "not captured large: too large to be copied, or over the budget"]
        );
        assert_eq!(fs::read(sandbox.at("large")).unwrap(), vec![3; size]);
    }
}

#[test]
fn what_an_event_could_not_keep_is_in_its_answer() {
    let mut sandbox = Sandbox::new();
    sandbox.workspace.limits.edit_capture_max = 4;
    sandbox.prompt("s", "go");
    sandbox.write("large", "12345");
    let unrecorded = around(&mut sandbox, "write_file", "large", |_| {});
    let lacks: Vec<String> = unrecorded.iter().map(|u| format!("{u:?}")).collect();
    assert_eq!(lacks, [r#"Bytes { call: "c", path: "large", lack: TooLarge }"#]);
}

// --- the middleware -----------------------------------------------------------------------------

/// Runs one call of a tool through the middleware; what it could not record.
fn around(
    sandbox: &mut Sandbox,
    tool: &str,
    of: &str,
    does: impl FnOnce(&Path),
) -> Vec<Unrecorded> {
    let mut unrecorded = Vec::new();
    let at = sandbox.at(of);
    let input = json!({ "file_path": at });
    let mut middleware = Middleware {
        workspace: &mut sandbox.workspace,
        session: SessionId::from("s"),
        tools: Tools::default(),
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
fn the_middleware_records_what_stands_in_the_way_of_any_tool() {
    for (tool, author) in
        [("write_file", "s c write_file named"), ("mystery", "s c mystery window")]
    {
        let mut sandbox = Sandbox::new();
        sandbox.write("a.txt", "before\n");
        let point = sandbox.prompt("s", "go");
        let unrecorded =
            around(&mut sandbox, tool, "a.txt", |at| fs::write(at, "after\n").unwrap());
        assert!(unrecorded.is_empty(), "{unrecorded:?}");
        assert_eq!(who(&sandbox, "a.txt"), [author]);
        sandbox.rewind_to(point);
        assert_eq!(sandbox.read("a.txt"), "before\n");
    }
}

#[test]
fn a_store_that_fails_does_not_fail_the_tool_and_is_not_silent() {
    let mut sandbox = Sandbox::new();
    sandbox.prompt("s", "go");
    let lock = sandbox.workspace.store_dir.join("lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let unrecorded =
        around(&mut sandbox, "write_file", "a.txt", |at| fs::write(at, "after\n").unwrap());
    assert_eq!(sandbox.read("a.txt"), "after\n");
    let events = unrecorded.iter().map(|what| matches!(what, Unrecorded::Event { .. }));
    assert_eq!(events.collect::<Vec<_>>(), [true, true], "{unrecorded:?}");
}

// --- whole trees --------------------------------------------------------------------------------

#[test]
fn whatever_a_command_does_is_found_and_taken_back() {
    type Does = fn(&Sandbox);
    let commands: [(&str, Does); 12] = [
        ("rm -rf lib", |s| s.remove("lib")),
        ("mv lib moved", |s| fs::rename(s.at("lib"), s.at("moved")).unwrap()),
        ("mv a.txt lib/", |s| fs::rename(s.at("a.txt"), s.at("lib/a.txt")).unwrap()),
        ("sed -i s/a/b/ a.txt", |s| s.write("a.txt", "bbb\n")),
        ("chmod +x a.txt", |s| s.set_mode("a.txt", 0o755)),
        ("chmod 700 lib", |s| s.set_mode("lib", 0o700)),
        ("ln -sf lib/b.txt link", |s| {
            s.remove("link");
            symlink("lib/b.txt", s.at("link")).unwrap();
        }),
        ("ln -s nowhere new", |s| symlink("nowhere", s.at("new")).unwrap()),
        ("mkdir -p empty/inner", |s| fs::create_dir_all(s.at("empty/inner")).unwrap()),
        ("rmdir hollow", |s| fs::remove_dir(s.at("hollow")).unwrap()),
        ("rm -rf ./*", |s| {
            ["a.txt", "lib", "link", "hollow"].into_iter().for_each(|p| s.remove(p));
        }),
        ("make", |s| s.write("out/deep/made.o", "made\n")),
    ];
    for (command, does) in commands {
        let mut sandbox = Sandbox::new();
        sandbox.write("a.txt", "aaa\n");
        sandbox.write("lib/b.txt", "b\n");
        sandbox.write("lib/deep/c.txt", "c\n");
        fs::create_dir(sandbox.at("hollow")).unwrap();
        symlink("a.txt", sandbox.at("link")).unwrap();
        let before = sandbox.tree();
        let point = sandbox.prompt("s", "go");
        sandbox.agent_runs("s", command, does);
        sandbox.turn_end("s");
        assert_consistent(&sandbox);
        let after = sandbox.tree();
        assert_ne!(after, before, "{command}");
        let receipt = sandbox.rewind_to(point);
        assert!(receipt.success, "{command}: {receipt:?}");
        assert_eq!(sandbox.tree(), before, "{command}");
        assert!(sandbox.undo().success);
        assert_eq!(sandbox.tree(), after, "{command}, undone");
    }
}

#[test]
fn a_change_says_what_stood_before_and_after() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "a\n");
    sandbox.write("lib/b.txt", "b\n");
    symlink("a.txt", sandbox.at("link")).unwrap();
    sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "a bit of everything", |sandbox| {
        sandbox.set_mode("a.txt", 0o600);
        sandbox.remove("lib");
        fs::remove_file(sandbox.at("link")).unwrap();
        symlink("elsewhere", sandbox.at("link")).unwrap();
        fs::create_dir(sandbox.at("new")).unwrap();
        sandbox.set_mode("new", 0o750);
    });
    let link = |target: &str| Entry::Symlink { target: target.into() };
    let steps = |of| steps(&sandbox, of);
    assert_eq!(steps("a.txt"), [(file("a\n", 0o644), file("a\n", 0o600))]);
    assert_eq!(steps("lib"), [(Entry::Dir { mode: 0o755 }, Entry::Absent)]);
    assert_eq!(steps("lib/b.txt"), [(file("b\n", 0o644), Entry::Absent)]);
    assert_eq!(steps("link"), [(link("a.txt"), link("elsewhere"))]);
    assert_eq!(steps("new"), [(Entry::Absent, Entry::Dir { mode: 0o750 })]);
}

#[test]
fn a_scan_that_finds_nothing_reads_no_file_and_writes_nothing() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "a\n");
    sandbox.write("lib/b.txt", "b\n");
    settle();
    sandbox.prompt("s", "go");
    let head = sandbox.workspace.store.head().unwrap();
    let surveyed = look_around(&mut sandbox.workspace).unwrap();
    assert_eq!((surveyed.recorded.stats.files, surveyed.recorded.stats.read), (2, 0));
    assert_eq!(sandbox.workspace.store.head().unwrap(), head);
}

// --- telling that a file has changed ------------------------------------------------------------

#[test]
fn a_file_written_again_within_one_tick_of_the_clock_is_found() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "000\n");
    look_around(&mut sandbox.workspace).unwrap();
    for round in 1..200 {
        sandbox.write("a.txt", format!("{round:03}\n"));
        let found = look_around(&mut sandbox.workspace).unwrap().recorded.changes;
        assert_eq!(found, 1, "round {round}");
    }
}

#[test]
fn a_fingerprint_is_trusted_once_the_clock_has_moved_on() {
    let sandbox = Sandbox::in_memory();
    let root = Root::open(&fs::canonicalize(sandbox.root()).unwrap()).unwrap();
    let scan_began = RacySince::now();
    sandbox.write("a.txt", "a\n");
    let seen = stat(&root, b"a.txt").unwrap().expect("it is there").fingerprint;
    assert_eq!(scan_began.trust(seen), None);
    settle();
    assert_eq!(RacySince::now().trust(seen), Some(seen));
}

#[test]
fn a_file_that_cannot_be_told_from_one_just_written_is_read_every_time() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("lib/a.txt", "a\n");
    sandbox.write("lib/b.txt", "b\n");
    let file = File::options().write(true).open(sandbox.at("lib/a.txt")).unwrap();
    let tomorrow =
        fs::metadata(sandbox.root()).unwrap().modified().unwrap() + Duration::from_secs(86_400);
    file.set_times(FileTimes::new().set_modified(tomorrow)).unwrap();
    settle();
    look_around(&mut sandbox.workspace).unwrap();
    for _ in 0..2 {
        let stats = look_around(&mut sandbox.workspace).unwrap().recorded.stats;
        assert_eq!((stats.files, stats.read), (2, 1));
    }
}

#[test]
fn a_name_that_comes_or_goes_within_one_tick_of_the_clock_is_found() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("lib/a.txt", "a\n");
    look_around(&mut sandbox.workspace).unwrap();
    for round in 1..100 {
        sandbox.write("lib/b.txt", "b\n");
        let came = look_around(&mut sandbox.workspace).unwrap().recorded.changes;
        sandbox.remove("lib/b.txt");
        let went = look_around(&mut sandbox.workspace).unwrap().recorded.changes;
        assert_eq!((came, went), (1, 1), "round {round}");
    }
}

#[test]
fn whatever_changes_deep_in_a_tree_that_has_settled_is_found() {
    type Does = fn(&Sandbox);
    let changes: [(&str, Does, &[&str]); 9] = [
        ("written in place", |s| s.write("a/b/c.txt", "C\n"), &["a/b/c.txt"]),
        ("a new file", |s| s.write("a/b/new", ""), &["a/b/new"]),
        ("a file gone", |s| s.remove("a/b/c.txt"), &["a/b/c.txt"]),
        ("a new folder", |s| fs::create_dir(s.at("a/b/e")).unwrap(), &["a/b/e"]),
        ("a folder gone", |s| s.remove("a/b/d"), &["a/b/d", "a/b/d/d.txt"]),
        ("a file's mode", |s| s.set_mode("a/b/c.txt", 0o600), &["a/b/c.txt"]),
        ("a folder's mode", |s| s.set_mode("a/b", 0o700), &["a/b"]),
        ("another link", |s| replace_link(s, "a/b/link", "elsewhere"), &["a/b/link"]),
        (
            "renamed over",
            |s| fs::rename(s.at("a/b/d/d.txt"), s.at("a/b/c.txt")).unwrap(),
            &["a/b/c.txt", "a/b/d/d.txt"],
        ),
    ];
    for (change, does, paths) in changes {
        let mut sandbox = Sandbox::in_memory();
        sandbox.write("a/b/c.txt", "c\n");
        sandbox.write("a/b/d/d.txt", "d\n");
        symlink("c.txt", sandbox.at("a/b/link")).unwrap();
        settle();
        look_around(&mut sandbox.workspace).unwrap();
        look_around(&mut sandbox.workspace).unwrap();
        let known = log(&sandbox).len();
        does(&sandbox);
        look_around(&mut sandbox.workspace).unwrap();
        let found: Vec<WorkPath> = log(&sandbox).into_iter().skip(known).map(|c| c.path).collect();
        assert_eq!(found, paths.iter().map(|of| path(of)).collect::<Vec<_>>(), "{change}");
        settle();
        assert_eq!(look_around(&mut sandbox.workspace).unwrap().recorded.changes, 0, "{change}");
    }
}

fn replace_link(sandbox: &Sandbox, link: &str, target: &str) {
    fs::remove_file(sandbox.at(link)).unwrap();
    symlink(target, sandbox.at(link)).unwrap();
}

#[test]
fn a_file_whose_time_was_set_back_is_found() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    settle();
    sandbox.prompt("s", "go");
    let modified = fs::metadata(sandbox.at("a.txt")).unwrap().modified().unwrap();
    sandbox.agent_runs("s", "cp -p", |sandbox| {
        sandbox.write("a.txt", "two\n");
        let file = File::options().write(true).open(sandbox.at("a.txt")).unwrap();
        file.set_times(FileTimes::new().set_modified(modified)).unwrap();
    });
    assert_eq!(fs::metadata(sandbox.at("a.txt")).unwrap().modified().unwrap(), modified);
    assert_eq!(steps(&sandbox, "a.txt"), [(file("one\n", 0o644), file("two\n", 0o644))]);
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
        touches: Touches::Paths(paths.iter().map(|path| path.to_path_buf()).collect()),
    });
    call
}

#[test]
fn an_edit_through_a_link_is_recorded_where_it_lands() {
    let mut sandbox = Sandbox::new();
    sandbox.write("real/a.txt", "before\n");
    symlink("real/a.txt", sandbox.at("link.txt")).unwrap();
    symlink("real", sandbox.at("linked")).unwrap();
    symlink("real/made.txt", sandbox.at("dangling")).unwrap();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "link.txt", "first\n");
    sandbox.agent_writes("s", "linked/a.txt", "second\n");
    sandbox.agent_writes("s", "dangling", "made\n");
    assert_eq!(who(&sandbox, "real/a.txt"), ["s call-1 Edit named", "s call-2 Edit named"]);
    assert_eq!(who(&sandbox, "real/made.txt"), ["s call-3 Edit named"]);
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
    assert_eq!(who(&sandbox, "elsewhere"), ["human", "s call-2 Edit named"]);
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

// --- points -------------------------------------------------------------------------------------

#[test]
fn a_prompts_point_is_the_tree_as_the_agent_found_it() {
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
fn an_event_is_answered_with_what_became_of_it() {
    let mut sandbox = Sandbox::new();
    sandbox.write("lib/a.txt", "one\n");
    let prompt = AgentEvent::Prompt {
        session: SessionId::from("s"),
        message: Some("uuid".to_owned()),
        text: "go".to_owned(),
    };
    let answer = sandbox.tell(&prompt);
    let point = sandbox.workspace.store.points().unwrap().pop().expect("a point was made");
    let expected = Recorded {
        seq: Seq(2),
        point: Some(point.id),
        changes: 2,
        not_captured: Vec::new(),
        spooled: false,
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
        vouched: Vouched::Scan,
    };
    assert_eq!(point, expected);
}

#[test]
fn a_point_knows_where_the_repository_stood() {
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
fn a_sessions_file_checkpoints_tell_what_stood_before_each_message() {
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
    let told: Vec<_> = listed
        .iter()
        .map(|c| (c.message.as_deref(), c.path.display(), c.original.clone()))
        .collect();
    assert_eq!(
        told,
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
fn no_agent_can_hide_behind_an_import() {
    let mut sandbox = Sandbox::new();
    let point = sandbox.prompt("imported-0123abcd-s", "hide");
    sandbox.agent_writes("imported-0123abcd-s", "made.txt", "made\n");
    sandbox.turn_end("imported-0123abcd-s");
    assert_eq!(who(&sandbox, "made.txt"), ["agent-imported-0123abcd-s call-1 Edit named"]);
    assert!(sandbox.rewind_to(point).success && !sandbox.exists("made.txt"));
}
