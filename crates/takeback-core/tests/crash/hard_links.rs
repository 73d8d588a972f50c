//! A rewind that restores hard links, stopped anywhere.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use takeback_store::PointId;
use takeback_store::disk::{self, CrashPoint};
use takeback_testkit::Sandbox;

use crate::{Abilities, after_a_crash, assert_nothing_left_behind, at_every_stop};

/// `broken` and `stays` were one file, and so were `one` and `two`, `gone` and `also-gone`.
fn begin() -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::new();
    for (first, second) in PAIRS {
        sandbox.write(first, first);
        fs::hard_link(sandbox.at(first), sandbox.at(second)).unwrap();
    }
    let point = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "sed -i …", |sandbox| {
        sandbox.remove("broken");
        sandbox.write("broken", "off\n");
        sandbox.write("one", "through\n");
        sandbox.remove("gone");
        sandbox.remove("also-gone");
    });
    sandbox.turn_end("s");
    (sandbox, point)
}

const PAIRS: [(&str, &str); 3] = [("stays", "broken"), ("one", "two"), ("gone", "also-gone")];

#[test]
fn a_save_to_the_other_name_is_kept() {
    let (mut sandbox, point) = begin();
    let (stage, stays) = (sandbox.at(".takeback"), sandbox.at("stays"));
    disk::watch(Some(Box::new(move |point| {
        // Everything is staged, and nothing is placed.
        if point == CrashPoint::Committed && stage.exists() {
            fs::write(&stays, "saved\n").unwrap();
        }
    })));
    let receipt = sandbox.rewind_to(point);
    disk::watch(None);
    assert!(receipt.success, "{receipt:?}");
    assert_eq!(sandbox.read("stays"), "saved\n");
    assert_eq!(sandbox.read("broken"), "stays");
    assert_nothing_left_behind(&sandbox);
}

#[test]
fn hard_links_are_one_file_again() {
    for abilities in [Abilities::All, Abilities::PlainRenames] {
        at_every_stop(|stop| {
            let (mut sandbox, point) = begin();
            let inode = |sandbox: &Sandbox, name| fs::metadata(sandbox.at(name)).unwrap().ino();
            let untouched = inode(&sandbox, "stays");
            abilities.limit(&sandbox);
            stop.run(|| {
                sandbox.rewind_to(point);
            });
            let promised = !sandbox.another_process().store.rewinds().unwrap().is_empty();
            let recovered = after_a_crash(&mut sandbox, abilities);
            assert!(recovered.finished.iter().all(|receipt| receipt.success), "{recovered:?}");
            assert_nothing_left_behind(&sandbox);
            assert_eq!(inode(&sandbox, "stays"), untouched);
            assert_eq!(sandbox.read("stays"), "stays");
            if promised {
                for (first, second) in PAIRS {
                    assert_eq!(sandbox.read(second), first);
                    assert_eq!(inode(&sandbox, second), inode(&sandbox, first), "{second}");
                }
            } else {
                assert_eq!(sandbox.read("broken"), "off\n");
                assert_eq!(inode(&sandbox, "one"), inode(&sandbox, "two"));
            }
        });
    }
}
