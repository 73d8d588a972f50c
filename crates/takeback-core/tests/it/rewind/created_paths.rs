//! Files, folders and links that the agent created, renamed or replaced.

use super::*;

#[test]
fn new_files_are_deleted_unless_changed_since() {
    let mut sandbox = Sandbox::in_memory();
    let point = sandbox.prompt("s", "go");
    for name in ["made", "changed", "executable"] {
        sandbox.agent_writes("s", name, "made\n");
    }
    sandbox.turn_end("s");
    sandbox.write("changed", "made\nmine\n");
    sandbox.set_mode("executable", 0o755);
    assert_eq!(
        report(&sandbox.rewind_to(point)),
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
fn new_folders_are_deleted_only_if_empty() {
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
    assert_eq!(report(&shown), report(&receipt));
    assert_eq!(
        report(&receipt),
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
fn replaced_files_folders_and_links_are_restored() {
    type Setup = fn(&Sandbox);
    let kinds: [(&str, Setup); 4] = [
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

/// Checks modes, because the test may run as root.
#[test]
fn folders_are_unlocked_only_while_files_in_them_change() {
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
            UnlockedFolder { path: path("locked"), mode: 0o550 },
            UnlockedFolder { path: path("opened"), mode: 0o500 }
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
        report(&receipt),
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
fn an_unlistable_folder_stops_nothing_else() {
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
        report(&receipt),
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
