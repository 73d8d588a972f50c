//! What a rewind does with each path, rule by rule, and what it says about it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::rc::Rc;

use takeback_core::rewind::journal::{Exactness, Preview, Window};
use takeback_core::rewind::plan::Unlocked;
use takeback_core::rewind::{
    AmbiguousPolicy, Receipt, RewindError, RewindRequest, Step, Target, Verdict, Whose, preview,
    rewind,
};
use takeback_core::{AgentEvent, checkpoint};
use takeback_store::disk::{self, CrashPoint};
use takeback_store::{
    Attribution, Author, CallId, Digest, Entry, Evidence, PointId, RewindKind, SessionId,
};
use takeback_testkit::{Sandbox, path};

use crate::shown::{history, said};

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

/// [`TEN`] with some lines replaced.
fn ten(replaced: &[(&str, &str)]) -> String {
    let line = |line: &str| {
        replaced.iter().find(|(from, _)| *from == line).map_or(line.to_owned(), |r| r.1.to_owned())
    };
    TEN.lines().map(|l| line(l) + "\n").collect()
}

fn request(point: PointId) -> RewindRequest {
    RewindRequest::new(Target::Point(point))
}

/// A workspace with `a.txt`, and the point before the agent of session `s` begins.
fn begun(text: impl AsRef<[u8]>) -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", text);
    let point = sandbox.prompt("s", "go");
    (sandbox, point)
}

// --- one author ---------------------------------------------------------------------------------

#[test]
fn what_only_the_agent_changed_becomes_what_it_was() {
    let (mut sandbox, _) = begun("one\n");
    sandbox.write("gone.txt", "still here\n");
    sandbox.write("mode.txt", "same\n");
    let point = sandbox.prompt("s", "again");
    let before = sandbox.tree();
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.agent_writes("s", "a.txt", "three\n");
    sandbox.agent_runs("s", "rm gone.txt; chmod +x mode.txt", |sandbox| {
        sandbox.remove("gone.txt");
        sandbox.set_mode("mode.txt", 0o755);
    });
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    assert_eq!(
        said(&receipt),
        ["success", "restored a.txt", "restored gone.txt", "restored mode.txt"]
    );
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn what_only_others_changed_stays() {
    let (mut sandbox, _) = begun("one\n");
    sandbox.write("b.txt", "one\n");
    sandbox.write("c.txt", "one\n");
    let point = sandbox.prompt("s", "again");
    sandbox.write("a.txt", "mine\n");
    sandbox.prompt("t", "go");
    sandbox.agent_writes("t", "b.txt", "the other session's\n");
    sandbox.agent_writes("t", "c.txt", "the other session's\n");
    sandbox.turn_end("t");
    sandbox.write("c.txt", "and mine\n");
    sandbox.write("d.txt", "made by me\n");
    sandbox.turn_end("s");
    let receipt = sandbox.rewind_to(point);
    assert_eq!(
        said(&receipt),
        [
            "success",
            "kept a.txt: changed by you",
            "kept b.txt: changed by session t",
            "kept c.txt: changed by you and by session t",
            "kept d.txt: changed by you"
        ]
    );
    assert!(!receipt.changed_something());
    assert_eq!(sandbox.read("a.txt"), "mine\n");
    assert_eq!(sandbox.read("b.txt"), "the other session's\n");
    assert_eq!(sandbox.read("c.txt"), "and mine\n");
}

// --- two authors --------------------------------------------------------------------------------

#[test]
fn work_beside_the_agents_is_kept_by_a_merge() {
    let (mut sandbox, point) = begun(TEN);
    sandbox.agent_writes("s", "a.txt", ten(&[("2", "two")]));
    sandbox.turn_end("s");
    sandbox.write("a.txt", ten(&[("2", "two"), ("9", "mine")]));
    let receipt = sandbox.rewind_to(point);
    assert_eq!(said(&receipt), ["success", "merged a.txt"]);
    assert_eq!(sandbox.read("a.txt"), ten(&[("9", "mine")]));
}

#[test]
fn every_run_of_the_agents_changes_is_taken_out_from_between_others() {
    let (mut sandbox, point) = begun(TEN);
    sandbox.agent_writes("s", "a.txt", ten(&[("1", "one")]));
    sandbox.write("a.txt", ten(&[("1", "one"), ("4", "mine")]));
    sandbox.agent_writes("s", "a.txt", ten(&[("1", "one"), ("4", "mine"), ("7", "seven")]));
    sandbox.turn_end("s");
    sandbox.write("a.txt", ten(&[("1", "one"), ("4", "mine"), ("7", "seven"), ("10", "mine too")]));
    assert_eq!(said(&sandbox.rewind_to(point)), ["success", "merged a.txt"]);
    assert_eq!(sandbox.read("a.txt"), ten(&[("4", "mine"), ("10", "mine too")]));
}

#[test]
fn work_from_before_the_agents_is_kept_by_a_merge() {
    let (mut sandbox, point) = begun(TEN);
    sandbox.write("a.txt", ten(&[("9", "mine")]));
    sandbox.agent_writes("s", "a.txt", ten(&[("2", "two"), ("9", "mine")]));
    sandbox.turn_end("s");
    assert_eq!(said(&sandbox.rewind_to(point)), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("a.txt"), ten(&[("9", "mine")]));
}

#[test]
fn work_over_the_agents_is_a_conflict_and_stays() {
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
        assert_eq!(said(&receipt), ["not all", &format!("conflict a.txt: {reason}")], "{name}");
        assert!(sandbox.read("a.txt") == mine, "{name}: it stays as it was");
    }
}

#[test]
fn mode_and_content_are_merged_each_for_itself() {
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
        assert_eq!(said(&receipt), said_so);
        let contents = Digest::of(text.as_bytes());
        let present = Entry::File { digest: contents, size: text.len() as u64, mode };
        assert_eq!(entry_at(&mut sandbox, "a.txt"), present);
    }
}

#[test]
fn a_folders_mode_comes_back_beside_what_others_put_in_it() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("lib/a.txt", "a\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "chmod 700 lib", |sandbox| sandbox.set_mode("lib", 0o700));
    sandbox.turn_end("s");
    sandbox.write("lib/mine.txt", "mine\n");
    assert_eq!(said(&sandbox.rewind_to(point)), ["success", "restored lib"]);
    assert_eq!(entry_at(&mut sandbox, "lib"), Entry::Dir { mode: 0o755 });
    assert!(sandbox.exists("lib/mine.txt"));
}

#[test]
fn what_was_deleted_or_replaced_since_is_a_conflict() {
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
        assert_eq!(said(&receipt), ["not all", &format!("conflict a.txt: {reason}")], "{case}");
        assert_eq!(sandbox.tree(), before, "{case}");
    }
}

#[test]
fn what_a_person_put_back_already_needs_nothing() {
    let (mut sandbox, point) = begun("one\n");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.turn_end("s");
    sandbox.write("a.txt", "one\n");
    let receipt = sandbox.rewind_to(point);
    assert_eq!(said(&receipt), ["success"]);
    assert_eq!(sandbox.read("a.txt"), "one\n");
}

// --- what the agent made ------------------------------------------------------------------------

#[test]
fn what_the_agent_made_goes_unless_it_was_changed_since() {
    let mut sandbox = Sandbox::in_memory();
    let point = sandbox.prompt("s", "go");
    for name in ["made", "changed", "executable"] {
        sandbox.agent_writes("s", name, "made\n");
    }
    sandbox.turn_end("s");
    sandbox.write("changed", "made\nmine\n");
    sandbox.set_mode("executable", 0o755);
    assert_eq!(
        said(&sandbox.rewind_to(point)),
        [
            "not all",
            "deleted made",
            "conflict changed: the agent made it, and it was changed since",
            "conflict executable: the agent made it, and it was changed since",
        ]
    );
    assert_eq!(sandbox.read("changed"), "made\nmine\n");
    assert!(sandbox.exists("executable"));
}

#[test]
fn folders_the_agent_made_go_only_if_empty() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write(".gitignore", "*.log\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "empty/deep/a.txt", "a\n");
    sandbox.agent_writes("s", "mine/deep/a.txt", "a\n");
    sandbox.agent_writes("s", "changed/deep/a.txt", "a\n");
    sandbox.turn_end("s");
    sandbox.write("mine/b.txt", "mine\n");
    sandbox.write("changed/deep/a.txt", "mine\n");
    let shown = preview(&mut sandbox.workspace, &request(point)).unwrap().receipt();
    let receipt = sandbox.rewind_to(point);
    assert_eq!(said(&shown), said(&receipt));
    assert_eq!(
        said(&receipt),
        [
            "not all",
            "deleted empty",
            "deleted empty/deep",
            "deleted empty/deep/a.txt",
            "deleted mine/deep",
            "deleted mine/deep/a.txt",
            "kept changed: something else is in it",
            "kept changed/deep: something else is in it",
            "kept mine: something else is in it",
            "conflict changed/deep/a.txt: the agent made it, and it was changed since",
        ]
    );
    assert!(!sandbox.exists("empty"));
    assert_eq!(sandbox.read("mine/b.txt"), "mine\n");
    assert_eq!(sandbox.read("changed/deep/a.txt"), "mine\n");
}

#[test]
fn a_rename_by_the_agent_is_taken_back_whole() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("old/a.txt", "a\n");
    sandbox.write("old/b.txt", "b\n");
    let before = sandbox.tree();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "mv old new", |s| fs::rename(s.at("old"), s.at("new")).unwrap());
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(point).success);
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn files_folders_and_links_take_each_others_places_and_give_them_back() {
    type Make = fn(&Sandbox);
    let kinds: [(&str, Make); 4] = [
        ("file", |s| s.write("x", "a file\n")),
        ("folder", |s| {
            s.write("x/a.txt", "in the folder\n");
            s.write("x/deep/b.txt", "deep in the folder\n");
        }),
        ("link to a folder", |s| symlink("elsewhere", s.at("x")).unwrap()),
        ("dangling link", |s| symlink("nowhere", s.at("x")).unwrap()),
    ];
    for (from, make_before) in kinds {
        for (to, make_after) in kinds.into_iter().filter(|(to, _)| *to != from) {
            let mut sandbox = Sandbox::in_memory();
            sandbox.write("elsewhere/a.txt", "must not be touched\n");
            make_before(&sandbox);
            let before = sandbox.tree();
            let point = sandbox.prompt("s", "go");
            sandbox.agent_runs("s", "replace x", |sandbox| {
                let meta = fs::symlink_metadata(sandbox.at("x")).unwrap();
                if meta.is_dir() {
                    sandbox.remove("x");
                } else {
                    fs::remove_file(sandbox.at("x")).unwrap();
                }
                make_after(sandbox);
            });
            sandbox.turn_end("s");
            let after = sandbox.tree();
            let receipt = sandbox.rewind_to(point);
            assert!(receipt.success, "{from} -> {to}: {receipt:?}");
            assert_eq!(sandbox.tree(), before, "{from} -> {to}, taken back");
            let receipt = sandbox.undo();
            assert!(receipt.success, "{from} -> {to}, undo: {receipt:?}");
            assert_eq!(sandbox.tree(), after, "{from} -> {to}, undone");
        }
    }
}

/// Looks at modes, since whoever runs this may be allowed everything.
#[test]
fn folders_are_unlocked_as_long_as_something_is_done_in_them() {
    let mut sandbox = Sandbox::new();
    for folder in ["locked", "opened", "alone"] {
        sandbox.write(&format!("{folder}/a.txt"), "one\n");
    }
    sandbox.set_mode("alone", 0o555);
    sandbox.set_mode("locked", 0o2550);
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "x", |sandbox| {
        for folder in ["locked", "opened"] {
            sandbox.set_mode(folder, 0o755);
            sandbox.write(&format!("{folder}/a.txt"), "two\n");
        }
        sandbox.set_mode("alone/a.txt", 0o600);
        sandbox.set_mode("locked", 0o2550);
        sandbox.set_mode("opened", 0o500);
    });
    sandbox.turn_end("s");
    let shown = preview(&mut sandbox.workspace, &request(point)).unwrap();
    assert_eq!(
        shown.plan.unlocked,
        [
            Unlocked { path: path("locked"), mode: 0o550 },
            Unlocked { path: path("opened"), mode: 0o500 }
        ]
    );
    let folders = ["alone", "locked", "opened"].map(|folder| sandbox.at(folder));
    let modes = move || {
        folders.clone().map(|folder| fs::metadata(folder).unwrap().permissions().mode() & 0o7777)
    };
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (noted, modes_then) = (Rc::clone(&seen), modes.clone());
    disk::watch(Some(Box::new(move |point| {
        if point == CrashPoint::Exchange {
            noted.borrow_mut().push(modes_then());
        }
    })));
    let receipt = sandbox.rewind_to(point);
    disk::watch(None);
    assert_eq!(
        said(&receipt),
        [
            "success",
            "restored alone/a.txt",
            "restored locked/a.txt",
            "restored opened",
            "restored opened/a.txt"
        ]
    );
    assert_eq!(seen.take(), [[0o555, 0o2750, 0o700], [0o555, 0o2750, 0o700]]);
    assert_eq!(modes(), [0o555, 0o2550, 0o755]);
    sandbox.set_mode("alone", 0o755);
    sandbox.set_mode("locked", 0o755);
}

#[test]
fn a_folder_whose_names_cannot_be_read_stops_nothing_else() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", TEN);
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", ten(&[("2", "two")]));
    sandbox.agent_writes("s", "made/b.txt", "made\n");
    sandbox.turn_end("s");
    // Something to record, so that there is a moment between the look and the reading of names.
    sandbox.write("a.txt", ten(&[("2", "two"), ("9", "mine")]));
    let folder = sandbox.at("made");
    disk::watch(Some(Box::new(move |point| {
        if point == CrashPoint::Committed && folder.is_dir() {
            fs::remove_dir_all(&folder).unwrap();
            fs::write(&folder, "a file\n").unwrap();
        }
    })));
    let receipt = sandbox.rewind_to(point);
    disk::watch(None);
    assert_eq!(
        said(&receipt),
        [
            "not all",
            "deleted made/b.txt",
            "merged a.txt",
            "not captured made: what is in it could not be read"
        ]
    );
    assert_eq!(sandbox.read("a.txt"), ten(&[("9", "mine")]));
    assert_eq!(sandbox.read("made"), "a file\n");
}

// --- not certain, not kept, not known -----------------------------------------------------------

/// `a.txt` changed, `gone.txt` deleted and `made.txt` made while it is not certain by whom.
fn uncertain() -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "one\n");
    sandbox.write("gone.txt", "gone\n");
    let point = sandbox.prompt("s", "go");
    sandbox.before_shell("s", "make");
    sandbox.write("a.txt", "two\n");
    sandbox.remove("gone.txt");
    sandbox.write("made.txt", "made\n");
    sandbox.prompt("s", "stop");
    sandbox.turn_end("s");
    (sandbox, point)
}

#[test]
fn of_what_is_not_certain_only_the_missing_comes_back() {
    let (mut sandbox, point) = uncertain();
    let reason = "it is not certain who wrote it; --ambiguous take takes it back";
    assert_eq!(
        said(&sandbox.rewind_to(point)),
        [
            "not all".to_owned(),
            "restored gone.txt".to_owned(),
            format!("ambiguous a.txt: {reason}"),
            format!("ambiguous made.txt: {reason}")
        ]
    );
    assert_eq!(sandbox.read("a.txt"), "two\n");
    assert_eq!(sandbox.read("gone.txt"), "gone\n");
    assert_eq!(sandbox.read("made.txt"), "made\n");
}

#[test]
fn what_is_not_certain_is_taken_back_if_asked() {
    let (mut sandbox, point) = uncertain();
    let take = RewindRequest { ambiguous: AmbiguousPolicy::Take, ..request(point) };
    let receipt = sandbox.rewind(&take).unwrap();
    assert_eq!(
        said(&receipt),
        ["success", "restored a.txt", "restored gone.txt", "deleted made.txt"]
    );
    assert_eq!(sandbox.read("a.txt"), "one\n");
}

/// Of what two sessions may have written, the one alone takes back nothing; both together all.
#[test]
fn what_no_other_session_may_have_written_is_taken_back_as_their_own() {
    for (chosen, text) in [(&["s"][..], "both\n"), (&["s", "t"], "one\n")] {
        let mut sandbox = Sandbox::in_memory();
        sandbox.write("a.txt", "one\n");
        let point = sandbox.prompt("s", "go");
        sandbox.prompt("t", "go");
        let calls =
            [("s", sandbox.before_shell("s", "make")), ("t", sandbox.before_shell("t", "make"))];
        sandbox.write("a.txt", "both\n");
        for (session, call) in calls {
            sandbox.after(session, &call);
            sandbox.turn_end(session);
        }
        let whose = Whose::Sessions(chosen.iter().copied().map(SessionId::from).collect());
        let own = RewindRequest {
            ambiguous: AmbiguousPolicy::TakeOwn,
            whose: Some(whose),
            ..request(point)
        };
        let receipt = sandbox.rewind(&own).unwrap();
        assert_eq!(receipt.ambiguous.len(), 2 - chosen.len(), "{receipt:?}");
        assert_eq!(sandbox.read("a.txt"), text, "{chosen:?}");
    }
}

#[test]
fn what_was_not_kept_is_listed_and_left() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.workspace.limits.edit_capture_max = 4;
    let point = sandbox.prompt("s", "go");
    sandbox.write("large.txt", "changed since the scan\n");
    sandbox.write("a.txt", "a");
    sandbox.agent_writes("s", "large.txt", "after\n");
    sandbox.agent_writes("s", "a.txt", "b");
    sandbox.turn_end("s");
    assert_eq!(
        said(&sandbox.rewind_to(point)),
        [
            "not all",
            "restored a.txt",
            "not captured large.txt: too large to be copied, or over the budget"
        ]
    );
    assert_eq!(sandbox.read("large.txt"), "after\n");
}

#[test]
fn what_stands_there_and_cannot_be_kept_goes_only_on_the_users_word() {
    let (mut sandbox, point) = begun("one\n");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.turn_end("s");
    sandbox.remove("a.txt");
    let made = std::process::Command::new("mkfifo").arg(sandbox.at("a.txt")).status().unwrap();
    assert!(made.success());
    assert_eq!(
        said(&sandbox.rewind_to(point)),
        ["not all", "conflict a.txt: it was changed since"]
    );
    let exact = RewindRequest { exactness: Exactness::Exact, ..request(point) };
    let receipt = sandbox.rewind(&exact).unwrap();
    let reason =
        "what stands there now could not be kept (not a regular file); --discard PATH gives it up";
    assert_eq!(said(&receipt), ["not all", &format!("not captured a.txt: {reason}")]);
    let other = BTreeSet::from([path("other.txt")]);
    let receipt = sandbox.rewind(&RewindRequest { discard: other, ..exact.clone() }).unwrap();
    assert!(!receipt.changed_something(), "another path was given up");
    let discard = BTreeSet::from([path("a.txt")]);
    let receipt = sandbox.rewind(&RewindRequest { discard, ..exact }).unwrap();
    assert_eq!(said(&receipt), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("a.txt"), "one\n");
}

// --- exactly ------------------------------------------------------------------------------------

#[test]
fn exactly_means_everything_as_it_was_whoever_changed_it() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "one\n");
    sandbox.write("b.txt", "one\n");
    sandbox.write("c.txt", "one\n");
    fs::create_dir(sandbox.at("empty")).unwrap();
    let before = sandbox.tree();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.write("a.txt", "mine\n");
    sandbox.turn_end("s");
    sandbox.write("b.txt", "mine, and no scan has seen it\n");
    sandbox.remove("c.txt");
    sandbox.remove("empty");
    sandbox.write("new/mine.txt", "mine\n");
    let after = sandbox.tree();
    let exact = RewindRequest { exactness: Exactness::Exact, ..request(point) };
    let receipt = sandbox.rewind(&exact).unwrap();
    assert_eq!(
        said(&receipt),
        [
            "success",
            "restored a.txt",
            "restored b.txt",
            "restored c.txt",
            "restored empty",
            "deleted new",
            "deleted new/mine.txt"
        ]
    );
    assert_eq!(sandbox.tree(), before);
    sandbox.undo();
    assert_eq!(sandbox.tree(), after, "and all of it can be had back");
}

#[test]
fn exactly_does_not_touch_what_was_never_covered() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write(".takebackignore", "out/\n");
    sandbox.write("out/a.txt", "a\n");
    let point = sandbox.prompt("s", "go");
    sandbox.write(".takebackignore", "");
    sandbox.turn_end("s");
    let exact = RewindRequest { exactness: Exactness::Exact, ..request(point) };
    let receipt = sandbox.rewind(&exact).unwrap();
    let reason = "it was not covered before, so what stood there is not known";
    assert_eq!(
        said(&receipt),
        [
            "not all".to_owned(),
            "restored .takebackignore".to_owned(),
            format!("not captured out: {reason}"),
            format!("not captured out/a.txt: {reason}")
        ]
    );
    assert_eq!(sandbox.read("out/a.txt"), "a\n");
}

// --- which paths, and whose ---------------------------------------------------------------------

#[test]
fn only_the_paths_asked_for_are_taken_back() {
    let all = ["a.txt", "lib/b.txt", "lib/c.rs", "lib/deep/d.rs", "src/e.rs"];
    for (patterns, taken) in [
        (vec!["a.txt"], vec!["a.txt"]),
        (vec!["./a.txt", "src"], vec!["a.txt", "src/e.rs"]),
        (vec!["lib"], vec!["lib/b.txt", "lib/c.rs", "lib/deep/d.rs"]),
        (vec!["lib/"], vec!["lib/b.txt", "lib/c.rs", "lib/deep/d.rs"]),
        (vec!["**/*.rs"], vec!["lib/c.rs", "lib/deep/d.rs", "src/e.rs"]),
        (vec!["lib/*.rs"], vec!["lib/c.rs"]),
        (vec!["*.rs"], vec![]),
        (vec!["li"], vec![]),
    ] {
        let mut sandbox = Sandbox::in_memory();
        for name in all {
            sandbox.write(name, "one\n");
        }
        let point = sandbox.prompt("s", "go");
        for name in all {
            sandbox.agent_writes("s", name, "two\n");
        }
        sandbox.turn_end("s");
        let paths = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let receipt = sandbox.rewind(&RewindRequest { paths, ..request(point) }).unwrap();
        assert_eq!(
            receipt.restored_files,
            taken.iter().map(|taken| path(taken)).collect::<Vec<_>>()
        );
        for name in all {
            let expected = if taken.contains(&name) { "one\n" } else { "two\n" };
            assert_eq!(sandbox.read(name), expected, "{name} with {patterns:?}");
        }
    }
    let (mut sandbox, point) = begun("one\n");
    let bad = RewindRequest { paths: vec!["a[".to_owned()], ..request(point) };
    assert!(matches!(sandbox.rewind(&bad), Err(RewindError::Pattern { .. })));
}

/// Three sessions at work: `s`, `child` that continues it, and `other`.
fn three_sessions() -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::in_memory();
    for name in ["s", "child", "grandchild", "other"] {
        sandbox.write(name, "one\n");
    }
    let point = sandbox.prompt("s", "go");
    for (session, parent) in [("child", "s"), ("grandchild", "child")] {
        sandbox.tell(&AgentEvent::SessionStart {
            session: SessionId::from(session),
            agent: None,
            parent: Some(SessionId::from(parent)),
            owner: None,
        });
    }
    for session in ["s", "child", "grandchild", "other"] {
        sandbox.agent_writes(session, session, "two\n");
        sandbox.turn_end(session);
    }
    (sandbox, point)
}

#[test]
fn a_point_takes_back_its_session_and_those_that_continue_it() {
    let (mut sandbox, point) = three_sessions();
    assert_eq!(
        said(&sandbox.rewind_to(point)),
        [
            "success",
            "restored child",
            "restored grandchild",
            "restored s",
            "kept other: changed by session other"
        ]
    );
}

#[test]
fn whose_changes_are_taken_back_can_be_chosen() {
    let sessions =
        |names: &[&str]| Whose::Sessions(names.iter().map(|name| SessionId::from(*name)).collect());
    for (whose, taken) in [
        (Whose::AllAgents, &["child", "grandchild", "other", "s"][..]),
        (sessions(&["other"]), &["other"]),
        (sessions(&["other", "child"]), &["child", "other"]),
        (sessions(&["nobody"]), &[]),
    ] {
        let (mut sandbox, point) = three_sessions();
        let receipt = sandbox
            .rewind(&RewindRequest { whose: Some(whose.clone()), ..request(point) })
            .unwrap();
        let taken: Vec<_> = taken.iter().map(|taken| path(taken)).collect();
        assert_eq!(receipt.restored_files, taken, "{whose:?}");
        assert!(receipt.success);
    }
}

#[test]
fn a_point_made_by_hand_stands_for_all_agents() {
    let mut sandbox = Sandbox::in_memory();
    for name in ["a", "b", "mine"] {
        sandbox.write(name, "one\n");
    }
    let point = checkpoint(&mut sandbox.workspace, Some("good")).unwrap().point.unwrap();
    for session in ["a", "b"] {
        sandbox.prompt(session, "go");
        sandbox.agent_writes(session, session, "two\n");
    }
    sandbox.write("mine", "mine\n");
    for session in ["a", "b"] {
        sandbox.turn_end(session);
    }
    assert_eq!(
        said(&sandbox.rewind_to(point)),
        ["success", "restored a", "restored b", "kept mine: changed by you"]
    );
}

#[test]
fn a_later_point_leaves_what_came_before_it() {
    let (mut sandbox, _) = begun("one\n");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.agent_writes("s", "b.txt", "b\n");
    let second = sandbox.prompt("s", "more");
    sandbox.agent_writes("s", "a.txt", "three\n");
    sandbox.turn_end("s");
    assert_eq!(said(&sandbox.rewind_to(second)), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("a.txt"), "two\n");
    assert_eq!(sandbox.read("b.txt"), "b\n");
}

// --- before and after ---------------------------------------------------------------------------

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
    let because = vec![Attribution { author, evidence: Evidence::Window }];
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
    };
    assert_eq!(shown.plan.steps, steps);
    assert_eq!((shown.kind, &shown.windows), (RewindKind::Rewind { point }, &vec![window]));

    let receipt = shown.receipt();
    assert_eq!(said(&receipt), ["success", "restored a.txt", "deleted made.txt"]);
    assert_eq!((receipt.point, receipt.safety_point, receipt.rewind), (Some(point), None, None));
    let done = rewind(&mut sandbox.workspace, &request(point), Some(&shown)).unwrap();
    let ids_apart = Receipt { rewind: None, safety_point: None, ..done };
    assert_eq!(ids_apart, receipt, "what was shown is what is done");
}

#[test]
fn a_preview_that_no_longer_holds_is_not_carried_out() {
    type Meanwhile = fn(&mut Sandbox);
    let cases: [(&str, Meanwhile); 3] = [
        ("a person saves", |sandbox| sandbox.write("a.txt", "mine\n")),
        ("a person deletes", |sandbox| sandbox.remove("a.txt")),
        ("an agent goes on", |sandbox| sandbox.agent_writes("s", "b.txt", "more\n")),
    ];
    for (case, meanwhile) in cases {
        let (mut sandbox, point) = begun("one\n");
        sandbox.agent_writes("s", "a.txt", "two\n");
        sandbox.turn_end("s");
        let shown = preview(&mut sandbox.workspace, &request(point)).unwrap();
        meanwhile(&mut sandbox);
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
fn a_point_that_is_not_there_is_an_error() {
    let (mut sandbox, _) = begun("one\n");
    let nowhere = sandbox.rewind(&request(PointId(77)));
    assert_eq!(nowhere.unwrap_err().to_string(), "there is no point 000000000000004d");
}

#[test]
fn a_rewind_in_the_middle_of_a_turn_sees_what_no_event_told() {
    let (mut sandbox, point) = begun("one\n");
    let before = sandbox.tree();
    sandbox.before_shell("s", "make");
    sandbox.write("a.txt", "two\n");
    sandbox.write("made.txt", "made\n");
    let take = RewindRequest { ambiguous: AmbiguousPolicy::Take, ..request(point) };
    let receipt = sandbox.rewind(&take).unwrap();
    assert_eq!(said(&receipt), ["success", "restored a.txt", "deleted made.txt"]);
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn a_receipt_in_json_has_the_fields_others_rely_on() {
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

/// What stands at a path, as a scan sees it.
fn entry_at(sandbox: &mut Sandbox, of: &str) -> Entry {
    takeback_core::look_around(&mut sandbox.workspace).expect("the tree is scanned");
    history(sandbox, of).pop().expect("it is known").after
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
