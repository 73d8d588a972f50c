//! A damaged bundle is refused; one with a corrected checksum is refused or harmless.

use std::fs;

use takeback_core::exchange::{
    BundleError, BundleFile, BundleLimits, FileError, IgnoredPaths, ImportMode, Overwrite,
    Selection, import, write_file,
};
use takeback_core::rewind::Exactness;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_core::{checkpoint, look_around};
use takeback_store::Digest;
use takeback_testkit::Sandbox;

use crate::exchange::{exported, file_of};
use crate::text::assert_consistent;

/// A small bundle.
fn small() -> Vec<u8> {
    use std::io::Read as _;
    let mut there = Sandbox::in_memory();
    there.write("a.txt", "one\n");
    there.write("d/b", "b\n");
    std::os::unix::fs::symlink("a.txt", there.at("link")).unwrap();
    there.prompt("s", "go");
    there.agent_writes("s", "a.txt", "two\n");
    there.agent_runs("s", "rm", |there| {
        there.remove("link");
        there.write("link/now a folder", "x\n");
    });
    there.turn_end("s");
    checkpoint(&mut there.workspace, Some("done")).unwrap();
    let (mut file, _) = exported(&mut there, Selection::Everything, IgnoredPaths::LeaveOut);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8]) -> Result<BundleFile, BundleError> {
    BundleFile::read(file_of(bytes), &BundleLimits::default())
}

/// How many of `all` cases to run: a sample, or `TAKEBACK_TEST_RUNS`.
fn runs(all: usize) -> usize {
    let runs = std::env::var("TAKEBACK_TEST_RUNS");
    runs.map_or(400, |runs| runs.parse().expect("TAKEBACK_TEST_RUNS is a number")).min(all)
}

#[test]
fn every_truncation_and_every_flipped_byte_is_refused() {
    let good = small();
    read(&good).unwrap();
    for length in 0..good.len() {
        let refused = read(&good[..length]).unwrap_err();
        assert!(matches!(refused, BundleError::Cut | BundleError::Damaged), "{length}: {refused}");
    }
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(read(&bytes).is_err(), "byte {at}");
    }
}

#[test]
fn a_changed_bundle_with_a_valid_checksum_is_refused_or_harmless() {
    let good = small();
    let mut here = Sandbox::in_memory();
    here.write("a.txt", "mine\n");
    look_around(&mut here.workspace).unwrap();
    let outside = fs::read_dir(here.outside()).unwrap().count();
    let before = here.tree();
    let (mut refused, mut taken) = (0, 0);
    let many = runs(good.len() * 255);
    for run in 0..many {
        // Spread over the file and over all values, and the same in every run.
        let at = run * 7919 % (good.len() - 32);
        let flip = u8::try_from(run / good.len() * 31 % 255 + 1).unwrap();
        let mut bytes = good[..good.len() - 32].to_vec();
        bytes[at] ^= flip;
        let checksum = Digest::of(&bytes);
        bytes.extend_from_slice(&checksum.0);
        let head = here.workspace.store.head().unwrap();
        let Ok(bundle) = read(&bytes) else {
            refused += 1;
            assert_eq!(here.workspace.store.head().unwrap(), head);
            continue;
        };
        taken += 1;
        let imported = import(&mut here.workspace, &bundle, ImportMode::ForReal).unwrap();
        assert_eq!(here.tree(), before, "byte {at} with {flip}");
        assert_consistent(&here);
        assert_eq!(here.workspace.store.check().unwrap(), Vec::<String>::new());
        if taken % 20 == 0 {
            for point in imported.points {
                let mut request = RewindRequest::new(Target::Point(point.id));
                request.exactness = Exactness::Exact;
                here.rewind(&request).unwrap();
            }
            assert_eq!(fs::read_dir(here.outside()).unwrap().count(), outside);
            while here.rewind(&RewindRequest::new(Target::Undo)).is_ok() {}
            assert_eq!(here.tree(), before);
        }
    }
    assert!(refused > 20 && taken > 20, "{refused} refused, {taken} taken");
}

#[test]
fn a_bundle_is_written_atomically_and_privately() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle");
    let names = || -> Vec<_> {
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let write = |overwrite, text: &str| {
        write_file::<_, FileError>(&path, overwrite, |sink| {
            sink.write_all(text.as_bytes()).unwrap();
            Ok(())
        })
    };
    write(Overwrite::No, "one").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let taken = write(Overwrite::No, "two").unwrap_err();
    assert!(matches!(taken, FileError::Taken { .. }), "{taken}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    write(Overwrite::Yes, "two").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    let failed = write_file::<(), FileError>(&path, Overwrite::Yes, |sink| {
        sink.write_all(b"half").unwrap();
        Err(FileError::Taken { path: path.clone() })
    });
    assert!(failed.is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    assert_eq!(names(), ["bundle"]);
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    for overwrite in [Overwrite::No, Overwrite::Yes] {
        let refused = write(overwrite, "three").unwrap_err();
        assert!(matches!(refused, FileError::NotAFile { .. }), "{refused}");
    }
    assert_eq!(names(), ["bundle"]);
}
