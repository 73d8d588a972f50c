//! The index is only a cache: if it is lost, damaged, stale or ahead of the log, the result is the same.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use takeback_core::look_around;
use takeback_core::worktree::{Folder, Index};
use takeback_store::{Entry, Seq};
use takeback_testkit::Sandbox;

use crate::recording::settle;
use crate::text::{assert_consistent, authors, history, report};

type Damage = fn(&Sandbox, &Path);

fn old_index(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.outside().join("old-index")
}

const DAMAGES: [(&str, Damage); 9] = [
    ("whole", |_, _| {}),
    ("lost", |_, index| fs::remove_file(index).unwrap()),
    ("empty", |_, index| fs::write(index, "").unwrap()),
    ("cut short", |_, index| {
        let bytes = fs::read(index).unwrap();
        fs::write(index, &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("with one bit turned", |_, index| {
        let mut bytes = fs::read(index).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(index, bytes).unwrap();
    }),
    ("with its end cut off", |_, index| {
        let bytes = fs::read(index).unwrap();
        fs::write(index, &bytes[..bytes.len() - 5]).unwrap();
    }),
    ("with something behind its end", |_, index| {
        let mut bytes = fs::read(index).unwrap();
        bytes.extend_from_slice(b"after a crash");
        fs::write(index, bytes).unwrap();
    }),
    ("stale", |sandbox, index| {
        fs::copy(old_index(sandbox), index).unwrap();
    }),
    ("from the future", |_, index| {
        let folder = Folder { listed: true, ..Folder::default() };
        let mut future = Index::stamped(Seq(1 << 40));
        future.set_folder(Vec::new(), folder.into());
        future.save(index).unwrap();
    }),
];

#[test]
fn any_state_of_the_index_gives_the_same_result() {
    for (state, damage) in DAMAGES {
        let mut sandbox = Sandbox::new();
        sandbox.write("a.txt", "one\n");
        sandbox.write("b.txt", "one\n");
        sandbox.write("lib/c.txt", "one\n");
        sandbox.write("lib/deep/d.txt", "one\n");
        settle();
        look_around(&mut sandbox.workspace).unwrap();
        fs::copy(sandbox.workspace.index_file(), old_index(&sandbox)).unwrap();
        let before = sandbox.tree();
        let index = sandbox.workspace.index_file();
        let point = sandbox.prompt("s", "go");

        damage(&sandbox, &index);
        sandbox.agent_writes("s", "a.txt", "two\n");
        sandbox.agent_writes("s", "new/made.txt", "made\n");
        let shell = sandbox.before_shell("s", "rm -r lib; sed -i b.txt");
        damage(&sandbox, &index);
        sandbox.remove("lib");
        sandbox.write("b.txt", "two\n");
        sandbox.after("s", &shell);
        damage(&sandbox, &index);
        sandbox.write("a.txt", "mine\n");
        sandbox.turn_end("s");
        damage(&sandbox, &index);

        assert_consistent(&sandbox);
        assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Edit named", "human"], "{state}");
        assert_eq!(authors(&sandbox, "b.txt"), ["s call-3 Bash window"], "{state}");
        assert_eq!(authors(&sandbox, "lib/deep/d.txt"), ["s call-3 Bash window"], "{state}");
        sandbox.write("a.txt", "two\n");
        let receipt = sandbox.rewind_to(point);
        assert_eq!(
            report(&receipt),
            [
                "success",
                "restored a.txt",
                "restored b.txt",
                "restored lib",
                "restored lib/c.txt",
                "restored lib/deep",
                "restored lib/deep/d.txt",
                "deleted new",
                "deleted new/made.txt"
            ],
            "{state}"
        );
        assert_eq!(sandbox.tree(), before, "{state}");
    }
}

#[test]
fn new_files_are_not_deleted_when_the_index_was_lost() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "a\n");
    let point = sandbox.prompt("s", "go");
    let shell = sandbox.before_shell("s", "make");
    sandbox.write("made.txt", "made\n");
    fs::remove_file(sandbox.workspace.index_file()).unwrap();
    sandbox.after("s", &shell);
    sandbox.turn_end("s");
    assert_eq!(history(&sandbox, "made.txt")[0].before, Entry::Unknown);
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        [
            "not all",
            "not captured made.txt: it was not covered before, so what was there is not known"
        ]
    );
    assert!(sandbox.exists("made.txt"));
}

#[test]
fn a_folder_that_changed_within_a_tick_of_the_scan_is_listed_again() {
    let mut sandbox = Sandbox::new();
    let trusted = |sandbox: &mut Sandbox| {
        look_around(&mut sandbox.workspace).unwrap();
        loaded(sandbox).folder(b"d").expect("it was scanned").fingerprint.is_some()
    };
    // On a busy machine a scan may begin later than a tick after the change.
    let untrusted = (0..100).any(|number| {
        sandbox.write(&format!("d/{number}.txt"), "a\n");
        !trusted(&mut sandbox)
    });
    assert!(untrusted, "another name could come within the same tick");
    settle();
    assert!(trusted(&mut sandbox));
}

#[test]
fn a_folders_mode_change_is_found_next_to_a_changed_file() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a/f", "old");
    sandbox.write("f", "old");
    settle();
    look_around(&mut sandbox.workspace).unwrap();
    sandbox.set_mode("a", 0o700);
    sandbox.write("f", "new");
    let seen = look_around(&mut sandbox.workspace).unwrap().recorded;
    assert_eq!(seen.changes, 2);
}

fn loaded(sandbox: &Sandbox) -> Index {
    Index::load(&sandbox.workspace.index_file(), &*sandbox.workspace.store).unwrap()
}

fn all(index: &Index) -> BTreeMap<Vec<u8>, Folder> {
    index.folders().map(|(path, folder)| (path.to_vec(), (*folder).clone())).collect()
}

#[test]
fn scan_results_are_appended_and_read_back() {
    let mut sandbox = Sandbox::new();
    for folder in 0..200 {
        sandbox.write(&format!("d{folder}/a"), "a\n");
        sandbox.write(&format!("d{folder}/b"), "b\n");
    }
    // Of a folder with more than 64 names, only the changed names are appended.
    for name in 0..200 {
        sandbox.write(&format!("large/{name}"), "a\n");
    }
    for name in 0..62 {
        sandbox.write(&format!("grows/{name}"), "a\n");
        sandbox.write(&format!("emptied/{name}"), "a\n");
    }
    for name in 0..66 {
        sandbox.write(&format!("shrinks/{name}"), "a\n");
    }
    settle();
    look_around(&mut sandbox.workspace).unwrap();
    let file = || fs::metadata(sandbox.workspace.index_file()).unwrap();
    let (first, inode) = (file().len(), file().ino());
    for round in 0..5 {
        sandbox.write("d7/a", format!("round {round}\n"));
        sandbox.write(&format!("d8/new{round}"), "new\n");
        sandbox.remove(&format!("d{}", 20 + round));
        fs::rename(
            sandbox.at(&format!("d{}", 40 + round)),
            sandbox.at(&format!("d{}x", 31 * round)),
        )
        .unwrap();
        sandbox.write(&format!("large/{}", 7 * round), format!("round {round}\n"));
        sandbox.remove(&format!("large/{}", 100 + round));
        sandbox.write(&format!("grows/new{round}"), "new\n");
        sandbox.remove(&format!("shrinks/{round}"));
        match round {
            1 => sandbox.remove("emptied"),
            3 => (0..70).for_each(|name| sandbox.write(&format!("emptied/{name}"), "again\n")),
            _ => {}
        }
        settle();
        look_around(&mut sandbox.workspace).unwrap();
    }
    let file = || fs::metadata(sandbox.workspace.index_file()).unwrap();
    assert_eq!(file().ino(), inode, "it was rewritten");
    assert!((1..140_000).contains(&(file().len() - first)), "{} bytes", file().len() - first);
    let index = loaded(&sandbox);
    let appended = all(&index);
    for (path, folder) in &appended {
        assert_eq!(index.folder(path).as_deref(), Some(folder), "found by its path");
    }
    fs::remove_file(sandbox.workspace.index_file()).unwrap();
    look_around(&mut sandbox.workspace).unwrap();
    assert_eq!(appended, all(&loaded(&sandbox)));
}

#[test]
fn of_two_concurrent_saves_of_the_index_the_first_wins() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a", "a\n");
    sandbox.write("d/b", "b\n");
    settle();
    look_around(&mut sandbox.workspace).unwrap();
    let file = sandbox.workspace.index_file();
    let (mut one, mut other) = (loaded(&sandbox), loaded(&sandbox));
    one.folder_mut(b"d").listed = false;
    other.folder_mut(b"").listed = false;
    one.save(&file).unwrap();
    other.save(&file).unwrap();
    assert_eq!(all(&loaded(&sandbox)), all(&one));
    other.folder_mut(b"d").repository = true;
    other.save(&file).unwrap();
    assert_eq!(all(&loaded(&sandbox)), all(&other), "the next save rewrites the whole file");
}

#[test]
fn an_open_handle_uses_the_scans_of_others() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a", "a\n");
    settle();
    look_around(&mut sandbox.workspace).unwrap();
    sandbox.write("d/b", "b\n");
    settle();
    let seen = look_around(&mut sandbox.another_process()).unwrap().recorded;
    assert_eq!((seen.changes, seen.stats.read), (2, 1));
    let seen = look_around(&mut sandbox.workspace).unwrap().recorded;
    assert_eq!((seen.changes, seen.stats.read), (0, 0), "nothing is read twice");
    fs::remove_file(sandbox.workspace.index_file()).unwrap();
    let seen = look_around(&mut sandbox.workspace).unwrap().recorded;
    assert_eq!((seen.changes, seen.stats.read), (0, 2), "without an index everything is read");
}
