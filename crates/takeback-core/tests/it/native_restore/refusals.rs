//! When an agent's own restore is not run.

use super::*;

#[track_caller]
fn assert_skipped(
    sandbox: &mut Sandbox,
    request: &RewindRequest,
    names: &[&str],
    why: &NativeSkip,
) -> Receipt {
    let (receipt, native) =
        rewind_with_restore(sandbox, request, names, &|_| panic!("it must not run"));
    assert_eq!(native, NativeOutcome::Skipped(why.clone()));
    receipt
}

#[test]
fn a_native_restore_that_could_do_harm_is_skipped() {
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
        let receipt = assert_skipped(&mut sandbox, &to(point), &["a.txt", name], &why(path(name)));
        assert_eq!(report(&receipt), ["success", "restored a.txt"], "{name}");
        assert_eq!(sandbox.read("a.txt"), "one\n");
    }
    let mut sandbox = frozen.thaw();
    let why = NativeSkip::Link(path("way-out"));
    assert_skipped(&mut sandbox, &to(point), &["way-out/theirs.txt"], &why);

    let mut sandbox = frozen.thaw();
    sandbox.remove("twin.txt");
    fs::hard_link(sandbox.at("sub/b.txt"), sandbox.at("twin.txt")).unwrap();
    let why = NativeSkip::OtherNames(path("twin.txt"));
    assert_skipped(&mut sandbox, &to(point), &["twin.txt"], &why);
    assert_eq!(why.to_string(), "twin.txt has other names, which would change with it");
}

/// A named path counts as written and with links followed; a path outside is refused.
#[test]
fn named_paths_are_resolved() {
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
fn a_native_restore_is_skipped_for_empty_and_partial_rewinds() {
    let mut sandbox = Sandbox::new();
    let point = one_edit(&mut sandbox);
    sandbox.agent_writes("s", "b.txt", "b\n");
    let mut part = to(point);
    part.paths = vec!["b.txt".to_owned()];
    let receipt = assert_skipped(&mut sandbox, &part, &["a.txt"], &NativeSkip::SomePaths);
    assert_eq!(report(&receipt), ["success", "deleted b.txt"]);
    sandbox.rewind_to(point);
    let receipt = assert_skipped(&mut sandbox, &to(point), &["a.txt"], &NativeSkip::NothingToDo);
    assert_eq!(report(&receipt), ["success"]);
}

#[test]
fn a_native_restore_is_skipped_if_a_path_cannot_be_saved() {
    let mut sandbox = Sandbox::new();
    let point = one_edit(&mut sandbox);
    let status = std::process::Command::new("mkfifo").arg(sandbox.at("pipe")).status().unwrap();
    assert!(status.success());
    assert_skipped(
        &mut sandbox,
        &to(point),
        &["a.txt", "pipe"],
        &NativeSkip::NotKept(path("pipe")),
    );
}

/// The restore's own paths are not part of the preview.
#[test]
fn the_preview_holds_with_a_native_restore() {
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
    let mut native = NativeRestore { paths: vec![path("mine.txt")], run: &mut run };
    let done = rewind_with(&mut sandbox.workspace, &to(point), Some(&shown), &mut native).unwrap();
    assert_eq!(report(&done.0), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("mine.txt"), "mine, later\n");
    assert_consistent(&sandbox);
}
