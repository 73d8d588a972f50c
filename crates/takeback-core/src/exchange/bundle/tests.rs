//! Malicious bundles: each is refused with its own error.

mod refusals;

use std::io::{Seek as _, Write as _};

use takeback_store::Encoding;
use takeback_store::{
    Author, CallId, Evidence, GitState, NotCapturedReason, PointBasis, PointId, PointKind,
    RewindId, Seq, SessionId, TurnId,
};

use super::*;

/// The contents of a bundle before it is written.
struct Draft {
    piece: Piece,
    blobs: Vec<PackedBlob>,
}

fn path(text: &str) -> WorkPath {
    WorkPath::new(text).unwrap()
}

fn file(text: &str) -> Entry {
    Entry::File { digest: Digest::of(text.as_bytes()), size: text.len() as u64, mode: 0o644 }
}

fn link(target: &str) -> Entry {
    Entry::Symlink { target: target.as_bytes().to_vec() }
}

fn change(seq: u64, at: &str, before: Entry, after: Entry) -> Change {
    Change {
        seq: Seq(seq),
        path: path(at),
        before,
        after,
        author: Author::Human,
        evidence: Evidence::Named,
        time: Timestamp(2),
        changed_at: None,
        correction: None,
        cancels: Vec::new(),
    }
}

fn point(id: u64, seq: u64) -> Point {
    Point {
        id: PointId(id),
        seq: Seq(seq),
        session: Some(SessionId::from("s")),
        kind: PointKind::Prompt,
        description: "do it".to_owned(),
        label: Some("name".to_owned()),
        pinned: true,
        created_at: Timestamp(1),
        message_ids: vec!["m".to_owned(), "n".to_owned()],
        git: Some(GitState { head: Some("abc".to_owned()), branch: None }),
        basis: PointBasis::Scan,
    }
}

/// One of everything.
fn draft() -> Draft {
    let session = |id: &str, parent: Option<&str>| Session {
        id: SessionId::from(id),
        agent: Some("agent".to_owned()),
        parent: parent.map(SessionId::from),
        owner: None,
        started_at: Timestamp(1),
        ended_at: Some(Timestamp(9)),
        archived_at: None,
        open_turn: None,
        model: Some("m".to_owned()),
    };
    let turn = Turn {
        id: TurnId(7),
        session: SessionId::from("s"),
        message: Some("m".to_owned()),
        prompt: "do it\nnow".to_owned(),
        opened_at: Timestamp(1),
        closed_at: None,
        model: None,
    };
    let agent = Author::Agent {
        session: SessionId::from("s"),
        turn: TurnId(7),
        call: CallId::from("c"),
        tool: "Edit".to_owned(),
    };
    let ambiguous =
        Author::Ambiguous { sessions: vec![SessionId::from("s"), SessionId::from("t")] };
    let rewind = Author::Rewind { id: RewindId(3) };
    let not_captured = Entry::NotCaptured { reason: NotCapturedReason::TooLarge };
    let by = |author: Author, change: Change| Change { author, ..change };
    let changes = vec![
        by(agent, change(1, "a", file("one"), file("two"))),
        Change { cancels: vec![Seq(1)], ..by(rewind, change(2, "a", file("two"), file("one"))) },
        by(ambiguous, change(3, "d/new", Entry::Absent, file("two"))),
        by(Author::Deleted, change(4, "l", link("a"), Entry::Absent)),
        Change {
            evidence: Evidence::Window,
            ..by(Author::Import, change(5, "u", Entry::Unknown, not_captured.clone()))
        },
        change(6, "d/new", file("two"), not_captured),
    ];
    Draft {
        piece: Piece {
            sessions: vec![session("s", None), session("t", Some("s"))],
            turns: vec![turn],
            base: vec![
                (path("a"), file("one")),
                (path("d"), Entry::Dir { mode: 0o755 }),
                (path("l"), link("a")),
                (path("u"), Entry::Unknown),
            ],
            changes,
            points: vec![point(1, 0), point(2, 3), point(3, 6)],
        },
        blobs: vec![PackedBlob::new(b"one".to_vec()), PackedBlob::new(b"two".to_vec())],
    }
}

fn written(draft: &Draft) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = BundleWriter::new(&mut bytes).unwrap();
    writer.piece(&draft.piece).unwrap();
    draft.blobs.iter().for_each(|blob| writer.blob(blob).unwrap());
    writer.finish().unwrap();
    bytes
}

fn read_with(bytes: &[u8], limits: &BundleLimits) -> Result<BundleFile, BundleError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    BundleFile::read(file, limits)
}

fn read(bytes: &[u8]) -> Result<BundleFile, BundleError> {
    read_with(bytes, &BundleLimits::default())
}

/// Replaces the checksum with the right one for changed bytes.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 32);
    let checksum = Digest::of(&bytes);
    bytes.extend_from_slice(&checksum.0);
    bytes
}

#[test]
fn one_of_everything_reads_back_as_it_was() {
    let draft = draft();
    let bundle = read(&written(&draft)).unwrap();
    assert_eq!(bundle.piece, draft.piece);
    let mut blobs = Vec::new();
    bundle
        .each_blob::<BundleError>(
            |_| Ok(true),
            |blob| {
                blobs.push(blob);
                Ok(())
            },
        )
        .unwrap();
    assert_eq!(blobs, draft.blobs);
}

/// A change to a valid bundle.
type Mutation = fn(&mut Draft);

/// Each mutation makes a valid bundle one that is refused with this message.
#[track_caller]
fn assert_refused(good: fn() -> Draft, table: &[(Mutation, &str)]) {
    read(&written(&good())).unwrap();
    for (at, (harm, expected)) in table.iter().enumerate() {
        let mut draft = good();
        harm(&mut draft);
        let error = read(&written(&draft)).unwrap_err().to_string();
        assert!(error.contains(expected), "{at}: {error}");
    }
}

fn add(draft: &mut Draft, at: &str, entry: Entry) {
    draft.piece.base.push((path(at), entry));
}

fn of_size(text: &str, size: u64) -> Entry {
    Entry::File { digest: Digest::of(text.as_bytes()), size, mode: 0o644 }
}

/// Contents of two parts, as a bundle has them.
fn parted() -> Draft {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    });
    let contents: Vec<u8> = noise.take(6 << 20).collect();
    let mut blobs = Vec::new();
    PackedBlob::stream(&mut contents.as_slice(), &mut |blob| blobs.push(blob)).unwrap();
    let whole = blobs.last().unwrap();
    assert_eq!(whole.encoding, Encoding::Chunks);
    let entry = Entry::File { digest: whole.digest, size: whole.size, mode: 0o644 };
    let mut draft = draft();
    draft.piece.base.push((path("large"), entry));
    draft.blobs.extend(blobs);
    draft
}

#[test]
fn wrong_parts_are_refused() {
    assert_refused(
        parted,
        &[
            (|d| drop(d.blobs.remove(2)), "lack a part"),
            (|d| d.blobs.rotate_right(1), "lack a part"),
            (|d| d.blobs.last_mut().unwrap().bytes.rotate_left(32), "do not match their digest"),
            (|d| d.blobs.last_mut().unwrap().bytes.push(0), "do not match their digest"),
            (|d| d.blobs.last_mut().unwrap().bytes.clear(), "do not match their digest"),
            (
                // Says a byte more than there is, everywhere.
                |d| {
                    let whole = d.blobs.last_mut().unwrap();
                    whole.size += 1;
                    d.piece.base.last_mut().unwrap().1 =
                        Entry::File { digest: whole.digest, size: whole.size, mode: 0o644 };
                },
                "do not match their digest",
            ),
            (
                |d| {
                    let whole = d.blobs.last_mut().unwrap();
                    whole.bytes = whole.bytes.repeat(1000);
                },
                "do not match their digest",
            ),
            (
                // Made of itself.
                |d| {
                    let whole = d.blobs.last_mut().unwrap();
                    whole.bytes = whole.digest.0.to_vec();
                },
                "lack a part",
            ),
            (|d| d.blobs[2].bytes[9] ^= 1, "do not match their digest"),
            (|d| drop(d.piece.base.pop()), "nothing in it needs its contents"),
            (|d| drop(d.blobs.pop()), "the contents of large are missing"),
        ],
    );
}

#[test]
fn decompression_bombs_are_refused() {
    let zeros = vec![0; 4 << 20];
    let packed = PackedBlob::new(zeros.clone());
    assert!(packed.bytes.len() < 1000);
    let bomb = |size: u64| {
        let mut draft = draft();
        let blob = PackedBlob { size, ..packed.clone() };
        draft
            .piece
            .base
            .push((path("bomb"), Entry::File { digest: blob.digest, size, mode: 0o644 }));
        draft.blobs.push(blob);
        written(&draft)
    };
    read(&bomb(zeros.len() as u64)).unwrap();
    let limits = BundleLimits { contents: 4 << 20, ..BundleLimits::default() };
    let over = read_with(&bomb(zeros.len() as u64), &limits).unwrap_err();
    assert_eq!(over.to_string(), "its contents are larger than 4194304 bytes");
    // Larger than declared, smaller than declared, and absurdly large.
    for (size, expected) in [
        (1000, "do not match their digest"),
        ((4 << 20) - 1, "do not match their digest"),
        ((4 << 20) + 1, "do not match their digest"),
        (u64::MAX >> 1, "its contents are larger than 4294967296 bytes"),
        (u64::MAX, "its contents are larger than 4294967296 bytes"),
    ] {
        let error = read(&bomb(size)).unwrap_err().to_string();
        assert!(error.contains(expected), "{size}: {error}");
    }
    // A small file of parts that says it is a terabyte of the same zeros.
    let mut draft = draft();
    let parts = 1 << 18;
    let whole = PackedBlob {
        digest: Digest([1; 32]),
        size: parts * zeros.len() as u64,
        encoding: Encoding::Chunks,
        bytes: packed.digest.0.repeat(usize::try_from(parts).unwrap()),
    };
    let entry = Entry::File { digest: whole.digest, size: whole.size, mode: 0o644 };
    draft.piece.base.push((path("terabyte"), entry));
    draft.blobs.extend([packed, whole]);
    let error = read(&written(&draft)).unwrap_err().to_string();
    assert_eq!(error, "its contents are larger than 4294967296 bytes");
}

/// A part is read each time it is named, so its length counts, not its contents.
#[test]
fn padded_contents_are_refused() {
    // A frame of one byte and a skippable frame.
    let padded = |filler: usize| {
        let mut bytes = vec![0x28, 0xB5, 0x2F, 0xFD, 0x20, 1, 9, 0, 0, b'a'];
        bytes.extend_from_slice(&0x184D_2A50_u32.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(filler).unwrap().to_le_bytes());
        bytes.resize(bytes.len() + filler, 0);
        PackedBlob { digest: Digest::of(b"a"), size: 1, encoding: Encoding::Zstd, bytes }
    };
    let told = |part: PackedBlob| {
        assert_eq!(part.unpack(), Some(b"a".to_vec()));
        let whole = "a".repeat(100);
        let mut draft = draft();
        draft.piece.base.push((path("bomb"), file(&whole)));
        let parts = part.digest.0.repeat(100);
        let digest = Digest::of(whole.as_bytes());
        draft.blobs.push(part);
        draft.blobs.push(PackedBlob {
            digest,
            size: 100,
            encoding: Encoding::Chunks,
            bytes: parts,
        });
        read(&written(&draft)).map(drop).map_err(|error| error.to_string())
    };
    // 18 bytes are not filler; 1025 are allowed.
    assert_eq!(told(padded(1007)), Ok(()));
    let a = Digest::of(b"a");
    let longer = format!("its contents {a} are packed into more bytes than they need");
    assert_eq!(told(padded(1008)), Err(longer.clone()));
    assert_eq!(told(padded(15 << 20)), Err(longer));
}

#[test]
fn too_large_a_record_is_not_written() {
    let mut draft = draft();
    draft.piece.turns[0].prompt = "x".repeat(RECORD_MAX);
    let mut bytes = Vec::new();
    let mut writer = BundleWriter::new(&mut bytes).unwrap();
    let error = writer.piece(&draft.piece).unwrap_err().to_string();
    assert_eq!(error, "a record of 16777249 bytes is too large for a bundle");
}

#[test]
fn a_file_that_changes_after_it_was_checked_is_noticed() {
    use std::os::unix::fs::FileExt as _;
    let bytes = written(&draft());
    let bundle = read(&bytes).unwrap();
    let end = bytes.len() - RECORD_HEAD - END_BODY;
    bundle.file.write_all_at(b"X", end as u64 - 1).unwrap();
    let done = bundle.each_blob::<BundleError>(|_| Ok(true), |_| Ok(()));
    assert!(matches!(done, Err(BundleError::Changed)), "{done:?}");
}

#[test]
fn the_bytes_are_those_of_the_documented_format() {
    let piece = Piece { points: vec![Point { session: None, ..point(1, 0) }], ..Piece::default() };
    let bytes = written(&Draft { piece, blobs: Vec::new() });
    let expected: Vec<u8> = [
        b"takeback bundle\n".as_slice(),
        &[1, 0, 0, 0],
        &[5, 69, 0, 0, 0],
        &[1, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0],
        b"\x05\0\0\0do it",
        b"\x01\x04\0\0\0name",
        &[1],
        &[1, 0, 0, 0, 0, 0, 0, 0],
        b"\x02\0\0\0\x01\0\0\0m\x01\0\0\0n",
        b"\x01\x01\x03\0\0\0abc\0",
        &[255, 88, 0, 0, 0],
        &[0; 32],
        &[1, 0, 0, 0, 0, 0, 0, 0],
        &[0; 16],
    ]
    .concat();
    assert_eq!(bytes[..bytes.len() - 32], expected);
    let mut bytes = Vec::new();
    records::put_change(&mut bytes, &draft().piece.changes[1]);
    let entry = |text: &str| {
        [&[1][..], &Digest::of(text.as_bytes()).0, &[3, 0, 0, 0, 0, 0, 0, 0, 0xa4, 1, 0, 0]]
            .concat()
    };
    let expected = [
        b"\x01\0\0\0a".as_slice(),
        &entry("two"),
        &entry("one"),
        &[3, 3, 0, 0, 0, 0, 0, 0, 0],
        &[0],
        &[2, 0, 0, 0, 0, 0, 0, 0],
        &[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    assert_eq!(bytes, expected);
}
