//! Hard links: names of one file.

use std::fs;

use takeback_testkit::Sandbox;

use super::{Row, replace, row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("two names of one file, both gone", two, |s| {
            s.remove("a");
            s.remove("sub/b");
        }),
        row("two names of one file, written through", two, |s| s.write("a", "through\n")),
        row("two names of one file, mode changed", two, |s| s.set_mode("a", 0o600)),
        row("two names of one file, one broken off", two, |s| replace(&s.at("a"), "broken off\n")),
        row("two names of one file, the other broken off", two, |s| {
            replace(&s.at("sub/b"), "broken off\n");
        }),
        row("two names of one file, one gone", two, |s| s.remove("a")),
        row("two names of one file, both broken off", two, |s| {
            replace(&s.at("a"), "one\n");
            replace(&s.at("sub/b"), "other\n");
        }),
        row("two names of one file, one a folder now", two, |s| {
            s.remove("a");
            s.write("a/in", "in\n");
        }),
        row(
            "three names of one file, each otherwise",
            |s| {
                two(s);
                fs::hard_link(s.at("a"), s.at("c")).unwrap();
            },
            |s| {
                s.remove("a");
                replace(&s.at("c"), "broken off\n");
            },
        ),
        row(
            "two files of the same bytes",
            |s| {
                s.write("a", "same\n");
                s.write("b", "same\n");
            },
            |s| {
                s.remove("a");
                s.write("b", "changed\n");
            },
        ),
        Row {
            clean_up: |s| {
                let outside = fs::read_to_string(s.outside().join("outside")).unwrap();
                assert_eq!(outside, "shared\n", "not what the agent wrote to another name");
            },
            ..row("a second name outside, broken off", outside, |s| {
                replace(&s.at("a"), "broken off\n");
            })
        },
        Row {
            clean_up: |s| {
                let outside = fs::read_to_string(s.outside().join("outside")).unwrap();
                assert_eq!(outside, "through\n", "what the agent wrote outside is not Takeback's");
            },
            remarks: &["note a: another hard link to it keeps the changed contents"],
            // Undone, the bytes are the agent's again, in a file of its own.
            ..row("a second name outside, written through", outside, |s| s.write("a", "through\n"))
        },
    ]
}

fn two(s: &Sandbox) {
    s.write("a", "shared\n");
    s.write("sub/same", "same\n");
    fs::hard_link(s.at("a"), s.at("sub/b")).unwrap();
}

fn outside(s: &Sandbox) {
    fs::write(s.outside().join("outside"), "shared\n").unwrap();
    fs::hard_link(s.outside().join("outside"), s.at("a")).unwrap();
}

#[test]
fn names_that_were_two_files_stay_two() {
    use std::os::unix::fs::MetadataExt as _;
    let mut sandbox = Sandbox::new();
    two(&sandbox);
    sandbox.prompt("s", "they are one file");
    sandbox.turn_end("s");
    // The same bytes, so the log has no change.
    replace(&sandbox.at("a"), "shared\n");
    let point = sandbox.prompt("s", "they are two");
    sandbox.agent_runs("s", "rm a", |sandbox| sandbox.remove("a"));
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(point).success);
    assert_eq!(sandbox.read("a"), "shared\n");
    let inode = |name: &str| fs::metadata(sandbox.at(name)).unwrap().ino();
    assert_ne!(inode("a"), inode("sub/b"));
}
