//! When an agent's own restore is not run.

use super::*;

#[track_caller]
fn not_run(
    sandbox: &mut Sandbox,
    request: &RewindRequest,
    names: &[&str],
    why: &NativeSkip,
) -> Receipt {
    let (receipt, helped) = helped(sandbox, request, names, &|_| panic!("it is not to be run"));
    assert_eq!(helped, NativeOutcome::Skipped(why.clone()));
    receipt
}

#[test]
fn where_it_could_do_harm_it_is_not_run() {
    let mut sandbox = Sandbox::new();
    let outside = sandbox.outside().join("theirs.txt");
    fs::write(&outside, "theirs\n").unwrap();
    sandbox.write("sub/b.txt", "b\n");
    let point = one_edit(&mut sandbox);
    fs::hard_link(sandbox.at("sub/b.txt"), sandbox.at("twin.txt")).unwrap();
    symlink(&outside, sandbox.at("link.txt")).unwrap();
    sandbox.write("special.sh", "#!/bin/sh\n");
    sandbox.set_mode("special.sh", 0o4755);
    symlink(sandbox.outside(), sandbox.at("way-out")).unwrap();
    let frozen = sandbox.freeze();
    let outside = outside.to_str().unwrap();
    for (name, why) in [
        (outside, NativeSkip::Outside as fn(WorkPath) -> NativeSkip),
        (".takeback/settings.json", NativeSkip::OffLimits),
        (".git/config", NativeSkip::OffLimits),
        ("link.txt", NativeSkip::Link),
        ("sub", NativeSkip::Folder),
        ("special.sh", NativeSkip::SpecialBits),
    ] {
        let mut sandbox = frozen.thaw();
        let receipt = not_run(&mut sandbox, &to(point), &["a.txt", name], &why(path(name)));
        assert_eq!(said(&receipt), ["success", "restored a.txt"], "{name}");
        assert_eq!(sandbox.read("a.txt"), "one\n");
    }
    let mut sandbox = frozen.thaw();
    let why = NativeSkip::Link(path("way-out"));
    not_run(&mut sandbox, &to(point), &["way-out/theirs.txt"], &why);

    let mut sandbox = frozen.thaw();
    sandbox.remove("twin.txt");
    fs::hard_link(sandbox.at("sub/b.txt"), sandbox.at("twin.txt")).unwrap();
    let why = NativeSkip::OtherNames(path("twin.txt"));
    not_run(&mut sandbox, &to(point), &["twin.txt"], &why);
    assert_eq!(why.to_string(), "twin.txt has other names, which would change with it");
}

/// As it is written and as it is with links followed; what is neither is refused all the same.
#[test]
fn the_paths_that_it_names() {
    let sandbox = Sandbox::new();
    sandbox.write("real/a.txt", "a\n");
    symlink("real", sandbox.at("way")).unwrap();
    let outside = sandbox.outside().join("theirs.txt");
    let store = sandbox.workspace.store_dir.clone();
    let meant = |path: &Path| NativeRestore::meant(&sandbox.workspace, &[path.to_owned()]);
    assert_eq!(meant(&sandbox.at("real/a.txt")), [path("real/a.txt")]);
    assert_eq!(meant(Path::new("real/a.txt")), [path("real/a.txt")]);
    assert_eq!(meant(&sandbox.at("way/a.txt")), [path("real/a.txt"), path("way/a.txt")]);
    assert_eq!(meant(&sandbox.at("real/../real/a.txt")), [path("real/a.txt")]);
    for refused in [outside, store.join("lock"), sandbox.root()] {
        assert_eq!(meant(&refused), [path(refused.to_str().unwrap())]);
    }
    assert_eq!(meant(&sandbox.at(".git/config")), [path(".git/config")]);
    assert_eq!(meant(Path::new("")).len(), 1);
}

#[test]
fn where_nothing_is_to_be_done_or_only_a_part_it_is_not_run() {
    let mut sandbox = Sandbox::new();
    let point = one_edit(&mut sandbox);
    sandbox.agent_writes("s", "b.txt", "b\n");
    let mut part = to(point);
    part.paths = vec!["b.txt".to_owned()];
    let receipt = not_run(&mut sandbox, &part, &["a.txt"], &NativeSkip::SomePaths);
    assert_eq!(said(&receipt), ["success", "deleted b.txt"]);
    sandbox.rewind_to(point);
    let receipt = not_run(&mut sandbox, &to(point), &["a.txt"], &NativeSkip::NothingToDo);
    assert_eq!(said(&receipt), ["success"]);
}

#[test]
fn what_could_not_be_kept_is_not_put_at_risk() {
    let mut sandbox = Sandbox::new();
    let point = one_edit(&mut sandbox);
    let status = std::process::Command::new("mkfifo").arg(sandbox.at("pipe")).status().unwrap();
    assert!(status.success());
    not_run(&mut sandbox, &to(point), &["a.txt", "pipe"], &NativeSkip::NotKept(path("pipe")));
}

/// The helper's own paths do not change what was shown.
#[test]
fn what_was_shown_is_what_is_done() {
    let mut sandbox = Sandbox::new();
    sandbox.write("mine.txt", "mine\n");
    let point = one_edit(&mut sandbox);
    let shown = preview(&mut sandbox.workspace, &to(point)).unwrap();
    sandbox.write("mine.txt", "mine, later\n");
    let root = sandbox.root();
    let mut run = || {
        write(&root, "mine.txt", "mine\n");
        Ok(())
    };
    let mut helper = NativeRestore { paths: vec![path("mine.txt")], run: &mut run };
    let done = rewind_with(&mut sandbox.workspace, &to(point), Some(&shown), &mut helper).unwrap();
    assert_eq!(said(&done.0), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("mine.txt"), "mine, later\n");
    assert_consistent(&sandbox);
}
