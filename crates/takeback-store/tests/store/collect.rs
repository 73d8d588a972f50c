//! Unused space is returned to the system, whatever else happens at the same time.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use takeback_store::disk::{self, CrashPoint, stopped};
use takeback_store::{
    Blobs as _, Change, CompactEffort, Digest, Entry, Log as _, PackedBlob, Seq, SqliteStore,
    Upkeep as _, Write,
};

use crate::repack::keep;
use crate::sample;

/// Commits changes of one file, each with a megabyte that does not compress, numbered like the log.
fn fill(store: &mut SqliteStore, count: u64) -> Vec<Digest> {
    let fill_one = |_| {
        let next = store.head().unwrap().seq.next();
        keep(store, PackedBlob::new(sample::noise(next.0, 1 << 20)))
    };
    (0..count).map(fill_one).collect()
}

fn drop_changes(store: &mut SqliteStore, seqs: impl IntoIterator<Item = u64>) {
    let drops: Vec<Write> = seqs.into_iter().map(|seq| Write::DropChange(Seq(seq))).collect();
    let head = store.head().unwrap();
    store.commit(head, &drops).unwrap();
}

fn collect(store: &mut SqliteStore) {
    let unreferenced = store.unreferenced().unwrap();
    store.drop_blobs(&unreferenced).unwrap();
    store.compact(CompactEffort::Worthwhile).unwrap();
}

fn bytes(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap());
    files
        .map(|file| {
            let metadata = file.metadata().unwrap();
            if metadata.is_dir() { bytes(&file.path()) } else { metadata.len() }
        })
        .sum()
}

fn segments(dir: &Path) -> Vec<String> {
    let files = std::fs::read_dir(dir.join("packs")).unwrap();
    let mut names: Vec<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn disk_space_is_returned() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let mut reader = SqliteStore::open(dir.path()).unwrap();
    let digests = fill(&mut store, 80);
    assert_eq!(segments(dir.path()), ["00000001.pack", "00000002.pack"]);
    let full = bytes(dir.path());
    // The other handle has both segments open.
    assert_eq!(reader.contents(&digests[0]).unwrap().len(), 1 << 20);
    assert_eq!(reader.contents(&digests[79]).unwrap().len(), 1 << 20);

    drop_changes(&mut store, 2..=79);
    collect(&mut store);
    assert!(bytes(dir.path()) < full / 20, "{} of {full}", bytes(dir.path()));
    for store in [&store, &reader] {
        for kept in [0, 79] {
            assert_eq!(store.contents(&digests[kept]).unwrap().len(), 1 << 20);
        }
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
    // No number is reused: an old handle must never read a new segment in place of an old one.
    assert_eq!(segments(dir.path()), ["00000003.pack"]);
    drop_changes(&mut store, 1..=80);
    collect(&mut store);
    assert_eq!(segments(dir.path()), ["00000004.pack"]);
    assert!(bytes(dir.path()) < 300_000, "{}", bytes(dir.path()));
    fill(&mut reader, 1);
    assert_eq!(segments(dir.path()), ["00000004.pack"]);
    assert_eq!(reader.check().unwrap(), Vec::<String>::new());
}

#[test]
fn the_database_shrinks_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let head = store.head().unwrap();
    let writes: Vec<Write> = (1..=20_000)
        .map(|seq| {
            let path = format!("some/rather/long/folder/name/file-{seq}");
            let change = sample::change(Seq(seq), &path, Entry::Absent);
            Write::Change(Change { before: Entry::Unknown, ..change })
        })
        .collect();
    store.commit(head, &writes).unwrap();
    let full = bytes(dir.path());
    drop_changes(&mut store, 2..=20_000);
    collect(&mut store);
    assert!(bytes(dir.path()) < full / 5, "{} of {full}", bytes(dir.path()));
    assert_eq!(store.latest().unwrap().len(), 1);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_segment_that_is_mostly_alive_or_being_written_to_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    fill(&mut store, 10);
    let full = bytes(&dir.path().join("packs"));
    drop_changes(&mut store, 1..=4);
    collect(&mut store);
    assert_eq!(bytes(&dir.path().join("packs")), full);

    drop_changes(&mut store, 5..=9);
    let mut writer = SqliteStore::open(dir.path()).unwrap();
    let late = PackedBlob::new(b"on its way".to_vec());
    let digest = late.digest;
    writer.put(late).unwrap();
    collect(&mut store);
    assert!(bytes(&dir.path().join("packs")) >= full, "another handle is appending to it");
    let after = Entry::File { digest, size: 10, mode: 0o644 };
    let head = writer.head().unwrap();
    let change = sample::change(head.seq.next(), "late", after);
    writer.commit(head, &[Write::Change(change)]).unwrap();
    collect(&mut store);
    assert!(bytes(&dir.path().join("packs")) < full / 5);
    assert_eq!(writer.contents(&digest).unwrap(), b"on its way");
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_segment_with_a_damaged_record_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    fill(&mut store, 4);
    drop_changes(&mut store, 2..=3);
    let segment = dir.path().join("packs/00000001.pack");
    let mut contents = std::fs::read(&segment).unwrap();
    contents[7] ^= 1;
    std::fs::write(&segment, &contents).unwrap();
    collect(&mut store);
    assert_eq!(std::fs::read(&segment).unwrap(), contents);
    assert_eq!(store.check().unwrap().len(), 1);
}

#[test]
fn an_interrupted_collection_loses_nothing() {
    let mut reached = Vec::new();
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::create(dir.path()).unwrap();
        let digests = fill(&mut store, 6);
        drop_changes(&mut store, 2..=5);
        let point = stopped(n, || collect(&mut store));
        drop(store);
        let mut store = SqliteStore::open(dir.path()).unwrap();
        for _ in 0..2 {
            assert_eq!(store.check().unwrap(), Vec::<String>::new(), "point {n}");
            for kept in [0, 5] {
                assert_eq!(store.contents(&digests[kept]).unwrap().len(), 1 << 20, "point {n}");
            }
            collect(&mut store);
        }
        assert!(bytes(dir.path()) < 3 << 20, "point {n}: {}", bytes(dir.path()));
        fill(&mut store, 1);
        match point {
            None => break,
            Some(point) => reached.push(point),
        }
    }
    use CrashPoint::{Append, Commit, Committed, MakeStoreFile, RemoveStoreFile, Sync};
    assert_eq!(
        reached,
        [
            Commit,
            Committed,
            MakeStoreFile,
            Sync,
            Append,
            Append,
            Sync,
            Commit,
            Committed,
            RemoveStoreFile
        ]
    );
}

#[test]
fn useless_copies_take_no_space() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    fill(&mut store, 6);
    drop_changes(&mut store, 2..=5);
    // Damage the second of the two remaining records, so that the first one has been copied when it
    // is found.
    let segment = dir.path().join("packs/00000001.pack");
    let mut contents = std::fs::read(&segment).unwrap();
    let last = contents.len() / 6 * 5;
    contents[last + 7] ^= 1;
    std::fs::write(&segment, &contents).unwrap();
    for _ in 0..2 {
        collect(&mut store);
        assert_eq!(bytes(&dir.path().join("packs")), contents.len() as u64);
    }
}

/// On a full disk nothing can be copied before something was removed.
#[test]
fn segments_without_live_records_are_removed_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    fill(&mut store, 70);
    assert_eq!(segments(dir.path()).len(), 2);
    drop_changes(&mut store, 2..=70);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&seen);
    disk::watch(Some(Box::new(move |point| noted.borrow_mut().push(point))));
    collect(&mut store);
    disk::watch(None);
    let at =
        |wanted| seen.borrow().iter().position(|point| *point == wanted).expect("it was passed");
    assert!(at(CrashPoint::RemoveStoreFile) < at(CrashPoint::Append), "{:?}", seen.borrow());
}

/// The state that a full disk leaves behind: dead records freed in place, nothing copied.
#[test]
fn a_segment_with_holes_is_collected_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let reader = SqliteStore::open(dir.path()).unwrap();
    let digests = fill(&mut store, 6);
    drop_changes(&mut store, 2..=5);
    let unreferenced = store.unreferenced().unwrap();
    store.drop_blobs(&unreferenced).unwrap();
    let segment = dir.path().join("packs/00000001.pack");
    let file = std::fs::OpenOptions::new().write(true).open(&segment).unwrap();
    let record = file.metadata().unwrap().len() / 6;
    disk::punch(&file, record, 4 * record).unwrap();
    for store in [&store, &reader] {
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
        for kept in [0, 5] {
            assert_eq!(store.contents(&digests[kept]).unwrap().len(), 1 << 20);
        }
    }
    store.compact(CompactEffort::Worthwhile).unwrap();
    assert_eq!(segments(dir.path()), ["00000002.pack"]);
    assert_eq!(reader.contents(&digests[5]).unwrap().len(), 1 << 20);
}
