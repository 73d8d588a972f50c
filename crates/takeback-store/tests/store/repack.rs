//! Raw contents are compressed in the background, and nothing is lost.

use std::path::Path;

use takeback_store::Encoding;
use takeback_store::disk::{CrashPoint, stopped};
use takeback_store::{
    Blobs as _, CompactEffort, Digest, Entry, Log as _, PackedBlob, RepackStats, SqliteStore,
    Upkeep as _, Write,
};

use crate::sample;

const ALL: u64 = u64::MAX;

/// Stored raw, as a hook does while an agent waits.
fn raw(contents: Vec<u8>) -> PackedBlob {
    let (digest, size) = (Digest::of(&contents), contents.len() as u64);
    PackedBlob { digest, size, encoding: Encoding::Raw, bytes: contents }
}

fn text(number: u64) -> Vec<u8> {
    format!("line {number} of some text that can be said in fewer words\n").repeat(4000).into()
}

/// Commits a change of one file with these contents, numbered like the log.
pub(crate) fn keep(store: &mut SqliteStore, blob: PackedBlob) -> Digest {
    let head = store.head().unwrap();
    let seq = head.seq.next();
    let digest = blob.digest;
    let after = Entry::File { digest, size: blob.size, mode: 0o644 };
    let change = sample::change(seq, &format!("file-{seq}"), after);
    store.put(blob).unwrap();
    store.commit(head, &[Write::Change(change)]).unwrap();
    digest
}

/// Repacks until there is nothing left; returns the bytes gained.
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
fn raw_contents_are_compressed() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let reader = SqliteStore::open(dir.path()).unwrap();
    let texts: Vec<Digest> = (0..4).map(|n| keep(&mut store, raw(text(n)))).collect();
    // Words in random order, which a higher level compresses better.
    let words = |seed: u64| -> Vec<u8> {
        let noise = sample::noise(seed, 30_000);
        noise
            .iter()
            .flat_map(|b| ["alpha ", "beta ", "gamma ", "delta\n"][*b as usize % 4].bytes())
            .collect()
    };
    let hasty = PackedBlob::new(words(7));
    assert_eq!(hasty.encoding, Encoding::Zstd);
    keep(&mut store, hasty.clone());
    let noise = keep(&mut store, raw(sample::noise(1, 50_000)));
    let before: u64 = packs(dir.path()).iter().sum();
    assert_eq!(reader.contents(&texts[0]).unwrap(), text(0));

    let gained = repack(&mut store);
    let after: u64 = packs(dir.path()).iter().sum();
    assert!(gained > 800_000 && before - after == gained, "{before} to {after}, {gained}");
    for store in [&store, &reader] {
        for (number, digest) in (0..).zip(&texts) {
            assert_eq!(store.read_packed(digest).unwrap().encoding, Encoding::Zstd);
            assert_eq!(store.contents(digest).unwrap(), text(number));
        }
        assert!(store.read_packed(&hasty.digest).unwrap().bytes.len() < hasty.bytes.len());
        assert_eq!(store.contents(&hasty.digest).unwrap(), words(7));
        assert_eq!(store.read_packed(&noise).unwrap().encoding, Encoding::Raw);
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
    let log = std::fs::metadata(dir.path().join("timeline.db-wal")).unwrap();
    assert_eq!(log.len(), 0, "nothing is left on its way");
    assert_eq!(repack(&mut store), 0, "nothing is left to gain");
}

#[test]
fn incompressible_segments_are_examined_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let segment = dir.path().join("packs/00000001.pack");
    keep(&mut store, raw(sample::noise(1, 300_000)));
    let noted = || std::fs::read_to_string(dir.path().join("repacked")).unwrap();
    assert_eq!(store.repack(ALL).unwrap(), RepackStats::default());
    assert_eq!(noted(), "00000001 300053\n");
    // Examining it again would find the damage and write the file again.
    let modified = || std::fs::metadata(dir.path().join("repacked")).unwrap().modified().unwrap();
    let before = modified();
    drop(store);
    let mut store = SqliteStore::open(dir.path()).unwrap();
    store.repack(ALL).unwrap();
    assert_eq!(modified(), before, "another process knows it, too");
    keep(&mut store, raw(b"a little more ".repeat(1000)));
    assert_eq!(store.repack(ALL).unwrap(), RepackStats::default(), "it has hardly grown");
    for number in 0..3 {
        keep(&mut store, raw(text(number)));
    }
    assert!(store.repack(ALL).unwrap().gained > 500_000, "only the appended records are new");
    assert!(!segment.exists() && noted().starts_with("00000002 3"), "{}", noted());
    // The file only lists what may be skipped, so any contents are harmless.
    std::fs::write(dir.path().join("repacked"), b"nonsense\n1 x\n\xff\n").unwrap();
    assert_eq!(store.repack(ALL).unwrap(), RepackStats::default());
    assert!(noted().starts_with("00000002 3"), "{}", noted());
}

/// Several handles that record at once, each with a segment of its own.
fn segments_of(dir: &Path, contents: &dyn Fn(u64) -> Vec<u8>) -> Vec<Digest> {
    let mut writers: Vec<SqliteStore> = (0..7).map(|_| SqliteStore::open(dir).unwrap()).collect();
    for (number, writer) in (0..).zip(&mut writers) {
        writer.put(raw(sample::noise(100 + number, 5000))).unwrap();
    }
    let kept = (0..).zip(&mut writers);
    kept.map(|(number, writer)| keep(writer, raw(contents(number)))).collect()
}

#[test]
fn one_call_handles_one_segment_or_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let large = |number| text(number).repeat(2);
    let texts = segments_of(dir.path(), &large);
    let compressed = |store: &SqliteStore| {
        texts.iter().filter(|d| store.read_packed(d).unwrap().encoding == Encoding::Zstd).count()
    };
    let mut counts = Vec::new();
    while store.repack(1).unwrap().more {
        counts.push(compressed(&store));
    }
    assert_eq!(counts, [1, 2, 3, 4, 5, 6]);
    assert_eq!(compressed(&store), 7);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn small_segments_become_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let reader = SqliteStore::open(dir.path()).unwrap();
    let digests = segments_of(dir.path(), &|number| sample::noise(200 + number, 10_000));
    assert_eq!(packs(dir.path()).len(), 7);
    assert_eq!(reader.contents(&digests[0]).unwrap(), sample::noise(200, 10_000));
    repack(&mut store);
    assert_eq!(packs(dir.path()).len(), 1);
    for (number, digest) in (0..).zip(&digests) {
        for store in [&store, &reader] {
            assert_eq!(store.contents(digest).unwrap(), sample::noise(200 + number, 10_000));
        }
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_segment_with_damaged_contents_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let whole = keep(&mut store, raw(text(1)));
    keep(&mut store, raw(text(2)));
    let segment = dir.path().join("packs/00000001.pack");
    let mut contents = std::fs::read(&segment).unwrap();
    let last = contents.len() - 1000;
    contents[last] ^= 1;
    std::fs::write(&segment, &contents).unwrap();
    for _ in 0..2 {
        assert_eq!(store.repack(ALL).unwrap(), RepackStats::default());
        assert_eq!(std::fs::read(&segment).unwrap(), contents);
        let all: u64 = packs(dir.path()).iter().sum();
        assert_eq!(all, contents.len() as u64, "the useless copy is gone");
    }
    assert_eq!(store.contents(&whole).unwrap(), text(1));
    assert_eq!(store.check().unwrap().len(), 1);
}

#[test]
fn an_interrupted_repack_loses_nothing() {
    let mut reached = Vec::new();
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::create(dir.path()).unwrap();
        let digests: Vec<Digest> = (0..3).map(|n| keep(&mut store, raw(text(n)))).collect();
        let point = stopped(n, || assert!(repack(&mut store) > 0));
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
        match point {
            None => break,
            Some(point) => reached.push(point),
        }
    }
    use CrashPoint::{
        Append, Commit, Committed, MakeStoreFile, RemoveStoreFile, Replace, Sync, WriteBeside,
    };
    assert_eq!(
        reached,
        [
            MakeStoreFile,
            Sync,
            Append,
            Sync,
            Commit,
            Committed,
            RemoveStoreFile,
            WriteBeside,
            Replace
        ]
    );
}

/// A writer, a collector and a repacker at the same time: everything stored can be read.
#[test]
fn repacking_does_not_disturb_other_handles() {
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
                        store.compact(CompactEffort::ShortOfSpace).unwrap();
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
        assert_eq!(store.contents(digest).unwrap(), text(number));
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
