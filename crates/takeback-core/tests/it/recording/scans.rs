//! What a scan finds, and what it need not read.

use super::*;

#[test]
fn every_kind_of_command_is_found_and_taken_back() {
    type Command = fn(&Sandbox);
    let commands: [(&str, Command); 12] = [
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
    for (command, run) in commands {
        let mut sandbox = Sandbox::new();
        sandbox.write("a.txt", "aaa\n");
        sandbox.write("lib/b.txt", "b\n");
        sandbox.write("lib/deep/c.txt", "c\n");
        fs::create_dir(sandbox.at("hollow")).unwrap();
        symlink("a.txt", sandbox.at("link")).unwrap();
        let before = sandbox.tree();
        let point = sandbox.prompt("s", "go");
        sandbox.agent_runs("s", command, run);
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
fn a_change_has_the_entries_before_and_after() {
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
fn a_file_dated_in_the_future_is_read_every_time() {
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
fn a_name_added_or_removed_within_one_tick_of_the_clock_is_found() {
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
fn changes_deep_in_a_settled_tree_are_found() {
    type Change = fn(&Sandbox);
    let changes: [(&str, Change, &[&str]); 9] = [
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
    for (change, run, paths) in changes {
        let mut sandbox = Sandbox::in_memory();
        sandbox.write("a/b/c.txt", "c\n");
        sandbox.write("a/b/d/d.txt", "d\n");
        symlink("c.txt", sandbox.at("a/b/link")).unwrap();
        settle();
        look_around(&mut sandbox.workspace).unwrap();
        look_around(&mut sandbox.workspace).unwrap();
        let known = log(&sandbox).len();
        run(&sandbox);
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
