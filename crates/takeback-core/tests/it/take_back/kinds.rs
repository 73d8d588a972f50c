//! Every kind of file: binary, renamed, made executable, a folder in place of a file, links, names
//! that are not UTF-8.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};

use super::*;

type Play = fn(&mut Sandbox);

/// What is there first, what the agent's one command does, what the person does then.
struct Case {
    name: &'static str,
    first: Play,
    agent: fn(&Sandbox),
    since: Play,
    /// What a revert of the turn reports.
    reverted: &'static [&'static str],
    /// Whether all is as at the point after it.
    is_whole: bool,
}

fn nothing(_: &mut Sandbox) {}

fn odd(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.root().join(OsStr::from_bytes(b"caf\xe9"))
}

const CASES: [Case; 17] = [
    Case {
        name: "binary",
        first: |s| s.write("a.bin", b"\0one\xff"),
        agent: |s| s.write("a.bin", b"\0two\xfe"),
        since: nothing,
        reverted: &["success", "restored a.bin"],
        is_whole: true,
    },
    Case {
        name: "binary, and changed since",
        first: |s| s.write("a.bin", b"\0one\xff"),
        agent: |s| s.write("a.bin", b"\0two\xfe"),
        since: |s| s.write("a.bin", b"\0three"),
        reverted: &["not all", "conflict a.bin: binary"],
        is_whole: false,
    },
    Case {
        name: "renamed",
        first: |s| s.write("old.txt", "the same text\n"),
        agent: |s| fs::rename(s.at("old.txt"), s.at("new.txt")).unwrap(),
        since: nothing,
        reverted: &["success", "restored old.txt", "deleted new.txt"],
        is_whole: true,
    },
    Case {
        name: "renamed, and the new one edited since",
        first: |s| s.write("old.txt", "the same text\n"),
        agent: |s| fs::rename(s.at("old.txt"), s.at("new.txt")).unwrap(),
        since: |s| s.write("new.txt", "the same text\nmine\n"),
        reverted: &[
            "not all",
            "restored old.txt",
            "conflict new.txt: it was old.txt, which is restored, and it was changed since",
        ],
        is_whole: false,
    },
    Case {
        name: "only the mode",
        first: |s| s.write("run.sh", "echo\n"),
        agent: |s| s.set_mode("run.sh", 0o755),
        since: nothing,
        reverted: &["success", "restored run.sh"],
        is_whole: true,
    },
    Case {
        name: "only the mode, and the text since",
        first: |s| s.write("run.sh", "echo\n"),
        agent: |s| s.set_mode("run.sh", 0o755),
        since: |s| s.write("run.sh", "echo mine\n"),
        reverted: &["success", "merged run.sh"],
        is_whole: false,
    },
    Case {
        name: "a folder's mode",
        first: |s| s.write("sub/a.txt", "one\n"),
        agent: |s| s.set_mode("sub", 0o700),
        since: nothing,
        reverted: &["success", "restored sub"],
        is_whole: true,
    },
    Case {
        name: "a file that became a folder",
        first: |s| s.write("thing", "a file\n"),
        agent: |s| {
            s.remove("thing");
            s.write("thing/inside.txt", "in a folder\n");
        },
        since: nothing,
        reverted: &["success", "restored thing", "deleted thing/inside.txt"],
        is_whole: true,
    },
    Case {
        name: "a file that became a folder, with a file of the person's in it",
        first: |s| s.write("thing", "a file\n"),
        agent: |s| {
            s.remove("thing");
            s.write("thing/inside.txt", "in a folder\n");
        },
        since: |s| s.write("thing/mine.txt", "mine\n"),
        reverted: &[
            "not all",
            "deleted thing/inside.txt",
            "conflict thing: the folder in its place is not empty",
        ],
        is_whole: false,
    },
    Case {
        name: "a folder that became a file",
        first: |s| s.write("thing/deep/inside.txt", "in a folder\n"),
        agent: |s| {
            s.remove("thing");
            s.write("thing", "a file\n");
        },
        since: nothing,
        reverted: &[
            "success",
            "restored thing",
            "restored thing/deep",
            "restored thing/deep/inside.txt",
        ],
        is_whole: true,
    },
    Case {
        name: "made and deleted",
        first: |s| s.write("gone/a.txt", "one\n"),
        agent: |s| {
            s.remove("gone");
            s.write("made/b.txt", "two\n");
        },
        since: nothing,
        reverted: &[
            "success",
            "restored gone",
            "restored gone/a.txt",
            "deleted made",
            "deleted made/b.txt",
        ],
        is_whole: true,
    },
    Case {
        name: "a link",
        first: |s| {
            s.write("one", "1\n");
            symlink("one", s.at("link")).unwrap();
        },
        agent: |s| {
            s.remove("link");
            symlink("nowhere", s.at("link")).unwrap();
        },
        since: nothing,
        reverted: &["success", "restored link"],
        is_whole: true,
    },
    Case {
        name: "a file that became a link, and another link since",
        first: |s| s.write("thing", "a file\n"),
        agent: |s| {
            s.remove("thing");
            symlink("one", s.at("thing")).unwrap();
        },
        since: |s| {
            s.remove("thing");
            symlink("two", s.at("thing")).unwrap();
        },
        reverted: &["not all", "conflict thing: it was changed since"],
        is_whole: false,
    },
    Case {
        name: "a name that is not UTF-8",
        first: |s| fs::write(odd(s), "one\n").unwrap(),
        agent: |s| fs::write(odd(s), "two\n").unwrap(),
        since: nothing,
        reverted: &["success", "restored caf\u{fffd}"],
        is_whole: true,
    },
    Case {
        name: "an empty folder",
        first: |s| fs::create_dir(s.at("empty")).unwrap(),
        agent: |s| {
            s.remove("empty");
            fs::create_dir(s.at("other")).unwrap();
        },
        since: nothing,
        reverted: &["success", "restored empty", "deleted other"],
        is_whole: true,
    },
    Case {
        name: "other line ends, and no end at the end",
        first: |s| s.write("a.txt", "1\r\n2\r\n3\r\n4\r\n5"),
        agent: |s| s.write("a.txt", "one\r\n2\r\n3\r\n4\r\n5"),
        since: |s| s.write("a.txt", "one\r\n2\r\n3\r\n4\r\nfive"),
        reverted: &["success", "merged a.txt"],
        is_whole: false,
    },
    Case {
        name: "deleted since",
        first: |s| s.write("a.txt", "one\n"),
        agent: |s| s.write("a.txt", "two\n"),
        since: |s| s.remove("a.txt"),
        reverted: &["not all", "conflict a.txt: it was deleted since"],
        is_whole: false,
    },
];

impl Case {
    fn play(&self) -> (Sandbox, PointId, TreeOf) {
        let mut sandbox = Sandbox::in_memory();
        sandbox.write("always.txt", "here\n");
        (self.first)(&mut sandbox);
        let point = sandbox.prompt("s", "go");
        let at_point = sandbox.tree();
        sandbox.agent_runs("s", "./run", self.agent);
        sandbox.turn_end("s");
        (self.since)(&mut sandbox);
        takeback_core::look_around(&mut sandbox.workspace).unwrap();
        (sandbox, point, at_point)
    }
}

#[test]
fn a_turn_its_call_and_its_range_are_taken_back_and_undone() {
    for case in CASES {
        let (mut sandbox, point, at_point) = case.play();
        for request in [
            turn(&sandbox, point),
            call(&sandbox, "s", "call-1").unwrap(),
            range(&sandbox, point, None, None),
        ] {
            let (reported, tree) = there_and_back(&mut sandbox, &request);
            assert_eq!(reported, case.reverted, "{}", case.name);
            assert_eq!(tree == at_point, case.is_whole, "{}", case.name);
        }
    }
}

#[test]
fn a_restore_brings_everything_back_whoever_changed_it_and_is_undone() {
    for case in CASES {
        let (mut sandbox, point, at_point) = case.play();
        let (reported, tree) = there_and_back(&mut sandbox, &restore(point, &[]));
        assert_eq!(reported[0], "success", "{}: {reported:?}", case.name);
        assert_eq!(tree, at_point, "{}", case.name);
    }
}

#[test]
fn every_policy_is_undone_to_the_byte() {
    let policies = [ConflictPolicy::File, ConflictPolicy::Take, ConflictPolicy::Markers];
    for case in CASES {
        for conflicts in policies {
            let (mut sandbox, point, at_point) = case.play();
            let request = RewindRequest { conflicts, ..turn(&sandbox, point) };
            let (reported, tree) = there_and_back(&mut sandbox, &request);
            let name = format!("{} with {conflicts:?}: {reported:?}", case.name);
            if case.is_whole {
                assert!(reported == case.reverted && tree == at_point, "{name}");
            }
            if conflicts == ConflictPolicy::Take && !case.name.contains("in it") {
                assert_eq!(reported[0], "success", "{name}");
            }
        }
    }
}

#[test]
fn hard_links_are_one_file_again() {
    for is_restore in [false, true] {
        let mut sandbox = Sandbox::new();
        sandbox.write("one", "1\n");
        fs::hard_link(sandbox.at("one"), sandbox.at("two")).unwrap();
        let point = sandbox.prompt("s", "go");
        sandbox.agent_runs("s", "sed -i", |sandbox| {
            sandbox.remove("two");
            sandbox.write("two", "2\n");
        });
        sandbox.turn_end("s");
        let request = if is_restore { restore(point, &["two"]) } else { turn(&sandbox, point) };
        let receipt = go(&mut sandbox, &request);
        assert_eq!(report(&receipt), ["success", "restored two"]);
        let inode = |name: &str| fs::metadata(sandbox.at(name)).unwrap().ino();
        assert_eq!(inode("one"), inode("two"));
        undo(&mut sandbox, receipt.rewind.unwrap());
        assert_eq!((sandbox.read("one").as_str(), sandbox.read("two").as_str()), ("1\n", "2\n"));
    }
}
