//! What came in raw is compressed when there is time, and nothing is lost on the way.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use takeback_store::blob::Encoding;
use takeback_store::disk::{self, CrashPoint, Stopped};
use takeback_store::{
    Author, Change, Digest, Entry, Evidence, PackedBlob, Repacked, SqliteStore, Store as _,
    Timestamp, WorkPath, Write,
};

use crate::sample;

const ALL: u64 = u64::MAX;

/// Kept as they are, as a hook does that somebody waits for.
fn raw(contents: Vec<u8>) -> PackedBlob {
    let (digest, size) = (Digest::of(&contents), contents.len() as u64);
    PackedBlob { digest, size, encoding: Encoding::Raw, bytes: contents }
}

fn text(number: u64) -> Vec<u8> {
    format!("line {number} of some text that can be said in fewer words\n").repeat(4000).into()
}

fn keep(store: &mut SqliteStore, blob: PackedBlob) -> Digest {
    let head = store.head().unwrap();
    let seq = head.seq.next();
    let digest = blob.digest;
    let change = Change {
        seq,
        path: WorkPath::new(format!("file-{seq}")).unwrap(),
        before: Entry::Absent,
        after: Entry::File { digest, size: blob.size, mode: 0o644 },
        author: Author::Human,
        evidence: Evidence::Tool,
        time: Timestamp(1),
        cancels: Vec::new(),
    };
    store.put(blob).unwrap();
    store.commit(head, &[Write::Change(change)]).unwrap();
    digest
}

/// Until there is no more; what was gained.
fn repack(store: &mut SqliteStore) -> u64 {
    let mut gained = 0;
    loop {
        let done = store.repack(ALL).unwrap();
        gained += done.gained;
        if !done.more {
            return gained;
        }
    }
}

fn packs(dir: &Path) -> Vec<u64> {
    let files = std::fs::read_dir(dir.join("packs")).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).collect()
}

#[test]
fn what_shrinks_is_compressed_and_the_rest_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let mut reader = SqliteStore::open(dir.path()).unwrap();
    let texts: Vec<Digest> = (0..4).map(|n| keep(&mut store, raw(text(n)))).collect();
    let noise = keep(&mut store, raw(sample::noise(1, 50_000)));
    let short = keep(&mut store, raw(b"short ".repeat(10)));
    let before: u64 = packs(dir.path()).iter().sum();
    assert_eq!(reader.contents(&texts[0]).unwrap(), text(0));

    let gained = repack(&mut store);
    let after: u64 = packs(dir.path()).iter().sum();
    assert!(gained > 800_000 && before - after > 800_000, "{before} to {after}, {gained}");
    for store in [&mut store, &mut reader] {
        for (number, digest) in (0..).zip(&texts) {
            assert_eq!(store.packed(digest).unwrap().encoding, Encoding::Zstd);
            assert_eq!(store.contents(digest).unwrap(), text(number));
        }
        for digest in [&noise, &short] {
            assert_eq!(store.packed(digest).unwrap().encoding, Encoding::Raw);
        }
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn what_does_not_shrink_is_tried_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    keep(&mut store, raw(sample::noise(1, 50_000)));
    assert_eq!(store.repack(ALL).unwrap(), Repacked { gained: 0, more: true });
    let noted = std::fs::read(dir.path().join("repacked")).unwrap();
    assert_eq!(noted, b"00000001 50053\n");
    assert_eq!(store.repack(ALL).unwrap(), Repacked::default());
    drop(store);
    let mut store = SqliteStore::open(dir.path()).unwrap();
    assert_eq!(store.repack(ALL).unwrap(), Repacked::default(), "another process knows it too");
    keep(&mut store, raw(text(1)));
    assert!(store.repack(ALL).unwrap().gained > 200_000, "what came behind it is new");
    // Whatever stands in the file, it only says what may be passed over.
    std::fs::write(dir.path().join("repacked"), "nonsense\n1 x\n").unwrap();
    assert!(store.repack(ALL).unwrap().more);
}

#[test]
fn a_piece_is_as_large_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let texts: Vec<Digest> = (0..5).map(|n| keep(&mut store, raw(text(n)))).collect();
    let compressed = |store: &SqliteStore| {
        texts.iter().filter(|d| store.packed(d).unwrap().encoding == Encoding::Zstd).count()
    };
    let mut counts = Vec::new();
    while store.repack(1).unwrap().more {
        counts.push(compressed(&store));
    }
    assert_eq!(counts, [1, 2, 3, 4, 5]);
}

#[test]
fn small_segments_become_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    // Each appends to a segment of its own, since the others' are not committed yet.
    let mut writers: Vec<SqliteStore> =
        (0..7).map(|_| SqliteStore::open(dir.path()).unwrap()).collect();
    for (number, writer) in (0..).zip(&mut writers) {
        writer.put(raw(sample::noise(100 + number, 10_000))).unwrap();
    }
    let digests: Vec<Digest> = (0..)
        .zip(&mut writers)
        .map(|(number, writer)| keep(writer, raw(sample::noise(200 + number, 10_000))))
        .collect();
    assert_eq!(packs(dir.path()).len(), 7);
    repack(&mut store);
    assert_eq!(packs(dir.path()).len(), 1);
    for (number, digest) in (0..).zip(&digests) {
        for store in [&store, &writers[0]] {
            assert_eq!(store.contents(digest).unwrap(), sample::noise(200 + number, 10_000));
        }
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn damaged_contents_are_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let damaged = keep(&mut store, raw(text(1)));
    let whole = keep(&mut store, raw(text(2)));
    let segment = dir.path().join("packs/00000001.pack");
    let mut contents = std::fs::read(&segment).unwrap();
    contents[1000] ^= 1;
    std::fs::write(&segment, &contents).unwrap();
    assert!(store.repack(ALL).unwrap().gained > 0);
    assert_eq!(store.packed(&damaged).unwrap().encoding, Encoding::Raw);
    assert_eq!(store.packed(&whole).unwrap().encoding, Encoding::Zstd);
    assert_eq!(store.contents(&whole).unwrap(), text(2));
    assert_eq!(store.check().unwrap().len(), 1);
}

#[test]
fn a_repacking_that_is_cut_off_loses_nothing() {
    let mut reached = Vec::new();
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::create(dir.path()).unwrap();
        let digests: Vec<Digest> = (0..3).map(|n| keep(&mut store, raw(text(n)))).collect();
        disk::stop_at(Some(n));
        let ended = catch_unwind(AssertUnwindSafe(|| repack(&mut store)));
        disk::stop_at(None);
        drop(store);
        let mut store = SqliteStore::open(dir.path()).unwrap();
        for _ in 0..2 {
            assert_eq!(store.check().unwrap(), Vec::<String>::new(), "point {n}");
            for (number, digest) in (0..).zip(&digests) {
                assert_eq!(store.contents(digest).unwrap(), text(number), "point {n}");
            }
            repack(&mut store);
        }
        assert!(packs(dir.path()).iter().sum::<u64>() < 30_000, "point {n}");
        match ended.map_err(|panic| panic.downcast::<Stopped>().expect("nothing else failed")) {
            Ok(_) => break,
            Err(stopped) => reached.push(stopped.0),
        }
    }
    use CrashPoint::{
        Append, Commit, Committed, MakeStoreFile, RemoveStoreFile, Replace, Sync, WriteBeside,
    };
    let compressed = [Append, Sync, Commit, Committed, WriteBeside, Replace];
    let emptied = [MakeStoreFile, Sync, Append, Sync, Commit, Committed, RemoveStoreFile];
    assert_eq!(reached, [&compressed[..], &emptied].concat());
}

/// A writer, a collector and a repacker at work at once: whatever was kept can be read.
#[test]
fn repacking_disturbs_nobody() {
    const COUNT: u64 = 60;
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let digests: Vec<Digest> = std::thread::scope(|scope| {
        for compacts in [false, true] {
            let (done, dir) = (&done, dir.path());
            scope.spawn(move || {
                let mut store = SqliteStore::open(dir).unwrap();
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    store.repack(500_000).unwrap();
                    if compacts {
                        store.squeeze().unwrap();
                    }
                }
            });
        }
        let digests = (0..COUNT)
            .map(|number| {
                let digest = keep(&mut store, raw(text(number)));
                assert_eq!(store.contents(&digest).unwrap(), text(number));
                digest
            })
            .collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        digests
    });
    repack(&mut store);
    for (number, digest) in (0..).zip(&digests) {
        assert_eq!(store.packed(digest).unwrap().encoding, Encoding::Zstd, "{number}");
        assert_eq!(store.contents(digest).unwrap(), text(number));
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
