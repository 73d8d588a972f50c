//! Contents: encodings, visibility, damage.

use std::io;

use super::samples::{change, human, noise, point};
use super::{commit, good, put};
use crate::blob::{CHUNKED_ABOVE, Digest, Encoding, PackedBlob};
use crate::change::Change;
use crate::entry::Entry;
use crate::id::PointId;
use crate::store::{Head, Store, StoreError, Write};

pub(super) fn contents_of_every_encoding_read_back(store: &mut dyn Store, other: &mut dyn Store) {
    let large = CHUNKED_ABOVE as usize + 1;
    let all = [
        (Encoding::Raw, Vec::new()),
        (Encoding::Raw, noise(1, 3000)),
        (Encoding::Zstd, b"fn main() {}\n".repeat(300)),
        (Encoding::Chunks, noise(2, large + (3 << 20))),
        (Encoding::Chunks, b"all the same ".repeat(large / 13 + 1)),
    ];
    let mut kept = Vec::new();
    for (encoding, contents) in all {
        let digest = put(store, &contents);
        assert_eq!(good(store.read_packed(&digest)).encoding, encoding);
        kept.push((digest, contents));
    }
    // Enough to overflow any buffer that the store fills before it writes.
    for number in 10..3000 {
        let contents = noise(number, 700);
        kept.push((put(store, &contents), contents));
    }
    let read_back = |store: &dyn Store| {
        for (digest, contents) in &kept {
            assert!(good(store.has(digest)) && good(store.is_complete(digest)));
            assert_eq!(good(store.contents(digest)), *contents);
            assert_eq!(good(store.read_packed(digest)).size, contents.len() as u64);
        }
    };
    read_back(store);
    commit(store, &[]);
    read_back(store);
    read_back(other);
    assert_eq!(good(store.check()), Vec::<String>::new());
}

pub(super) fn contents_are_seen_by_others_once_committed(
    store: &mut dyn Store,
    other: &mut dyn Store,
) {
    let digest = put(store, b"ours");
    assert!(good(store.has(&digest)));
    assert!(!good(other.has(&digest)));
    assert!(matches!(other.contents(&digest), Err(StoreError::MissingBlob { .. })));

    // A commit through another handle includes only what was put through that handle. Both may
    // store the same contents.
    let theirs = put(other, b"theirs");
    assert_eq!(put(other, b"ours"), digest);
    commit(other, &[]);
    assert!(!good(store.has(&Digest::of(b"never put"))));
    assert_eq!(good(store.contents(&theirs)), b"theirs");
    commit(store, &[]);
    for store in [&*store, other] {
        assert_eq!(good(store.contents(&digest)), b"ours");
    }
    assert_eq!(put(store, b"theirs"), theirs);
    commit(store, &[]);
    assert_eq!(good(store.check()), Vec::<String>::new());
}

pub(super) fn contents_outlive_a_failed_commit(store: &mut dyn Store, other: &mut dyn Store) {
    let digest = put(store, b"kept");
    let head = good(store.head());
    let refused = store.commit(head, &[human(5, "a")]);
    assert!(matches!(refused, Err(StoreError::Gap { .. })), "{refused:?}");
    let head = commit(other, &[]);
    let refused = store.commit(Head::default(), &[]);
    assert!(refused.is_err_and(|error| matches!(error, StoreError::Moved)));
    assert!(good(store.has(&digest)));
    assert!(!good(other.has(&digest)));
    let after = Entry::File { digest, size: 4, mode: 0o644 };
    good(store.commit(head, &[Write::Change(Change { after, ..change(1, "a") })]));
    assert_eq!(good(other.contents(&digest)), b"kept");
    assert_eq!(good(other.check()), Vec::<String>::new());
}

pub(super) fn missing_and_damaged_contents_are_different_errors(
    store: &mut dyn Store,
    _other: &mut dyn Store,
) {
    let digest = Digest::of(b"never put");
    for error in [
        store.read_packed(&digest).map(drop),
        store.contents(&digest).map(drop),
        store.read(&digest, &mut |_| Ok(())),
    ] {
        let Err(StoreError::MissingBlob { digest: missing }) = error else {
            panic!("not missing: {error:?}");
        };
        assert_eq!(missing, digest);
    }

    assert!(!good(store.is_complete(&digest)));

    let mut flipped = PackedBlob::new(b"text ".repeat(100));
    let renamed = PackedBlob { digest: Digest::of(b"another"), ..flipped.clone() };
    flipped.bytes[20] ^= 1;
    let nested = PackedBlob {
        digest: Digest::of(b"nested"),
        size: 1000,
        encoding: Encoding::Chunks,
        bytes: [renamed.digest.0, renamed.digest.0].concat(),
    };
    let empty = PackedBlob { digest: Digest::of(b"none"), bytes: Vec::new(), ..nested };
    for damaged in [&flipped, &renamed, &nested, &empty] {
        good(store.put(damaged.clone()));
    }
    let lacking = PackedBlob {
        digest: Digest::of(b"lacking"),
        size: 1000,
        encoding: Encoding::Chunks,
        bytes: digest.0.to_vec(),
    };
    good(store.put(lacking.clone()));
    for damaged in [flipped, renamed, nested, empty] {
        let read = store.contents(&damaged.digest);
        let Err(StoreError::DamagedBlob { digest }) = read else {
            panic!("not damaged: {read:?}");
        };
        assert_eq!(digest, damaged.digest);
        assert_eq!(good(store.read_packed(&damaged.digest)), damaged);
    }
    assert!(!good(store.is_complete(&lacking.digest)), "a part of it is missing");
    let read = store.contents(&lacking.digest);
    assert!(matches!(read, Err(StoreError::MissingBlob { digest: part }) if part == digest));

    let digest = put(store, b"fine");
    let refused = store.read(&digest, &mut |_| Err(io::Error::other("full")));
    assert!(matches!(refused, Err(StoreError::Sink { digest: of, .. }) if of == digest));
}

pub(super) fn a_check_finds_what_is_wrong(store: &mut dyn Store, other: &mut dyn Store) {
    let kept = put(store, b"kept");
    let gone = Digest::of(b"gone");
    let file = |digest, size| Entry::File { digest, size, mode: 0o644 };
    let mut damaged = PackedBlob::new(noise(1, 100));
    damaged.bytes[0] ^= 1;
    good(store.put(damaged.clone()));
    let change = Change { before: file(gone, 4), after: file(kept, 4), ..change(1, "a") };
    commit(store, &[Write::Change(change), Write::Point(point(1, 2)), Write::Point(point(2, 1))]);
    let found = good(other.check());
    assert_eq!(found.len(), 3, "{found:#?}");
    for word in [gone.to_string(), damaged.digest.to_string(), PointId(1).to_string()] {
        assert!(found.iter().any(|line| line.contains(&word)), "{word} in {found:#?}");
    }
}
