//! Bundles that somebody made to do harm: each is refused by its own word.

use std::io::{Seek as _, Write as _};

use takeback_store::blob::Encoding;
use takeback_store::{
    Author, CallId, Evidence, GitState, Lack, PointId, PointKind, RewindId, Seq, SessionId, TurnId,
    Vouched,
};

use super::*;

/// What a bundle is made of, before it is written.
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
        vouched: Vouched::Scan,
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
    };
    let turn = Turn {
        id: TurnId(7),
        session: SessionId::from("s"),
        message: Some("m".to_owned()),
        prompt: "do it\nnow".to_owned(),
        opened_at: Timestamp(1),
        closed_at: None,
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
    let lack = Entry::NotCaptured { lack: Lack::TooLarge };
    let by = |author: Author, change: Change| Change { author, ..change };
    let changes = vec![
        by(agent, change(1, "a", file("one"), file("two"))),
        Change { cancels: vec![Seq(1)], ..by(rewind, change(2, "a", file("two"), file("one"))) },
        by(ambiguous, change(3, "d/new", Entry::Absent, file("two"))),
        by(Author::Deleted, change(4, "l", link("a"), Entry::Absent)),
        Change {
            evidence: Evidence::Window,
            ..by(Author::Import, change(5, "u", Entry::Unknown, lack.clone()))
        },
        change(6, "d/new", file("two"), lack),
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

/// Puts the right checksum under wrong bytes.
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

/// What is done to a good bundle.
type Harm = fn(&mut Draft);

/// Each of these makes a good bundle one that is refused with these words.
#[track_caller]
fn assert_refused(good: fn() -> Draft, table: &[(Harm, &str)]) {
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

#[test]
fn places_where_nothing_may_be_brought_are_refused() {
    assert_refused(
        draft,
        &[
            (
                |d| add(d, "/etc/passwd", file("one")),
                "its path /etc/passwd lies outside the workspace",
            ),
            (
                |d| add(d, ".git/config", file("one")),
                "its path .git/config belongs to version control",
            ),
            (|d| add(d, "sub/.git", file("one")), "its path sub/.git belongs to version control"),
            (
                |d| add(d, ".takeback", link("/")),
                "its path .takeback belongs to version control or to",
            ),
            (
                |d| add(d, ".takeback/x", file("one")),
                "its path .takeback/x belongs to version control",
            ),
            (|d| add(d, "a", file("two")), "its path a stands twice in one tree"),
            (|d| add(d, "x", Entry::Absent), "its path x stands twice in one tree"),
            (|d| add(d, "a/b", file("one")), "its path a/b lies below a, which is no folder then"),
            (
                |d| add(d, "l/b/c", Entry::Dir { mode: 0 }),
                "its path l/b/c lies below l, which is no",
            ),
            (
                |d| {
                    d.piece.changes.truncate(3);
                    d.piece.changes.push(change(4, "d", Entry::Dir { mode: 0o755 }, link("/etc")));
                    d.piece.points[2].seq = Seq(4);
                },
                "its path d/new lies below d, which is no folder then",
            ),
            (|d| d.piece.base[2].1 = link(""), "its link l leads to no name"),
            (|d| d.piece.base[2].1 = link("a\0b"), "its link l leads to no name"),
            (|d| d.piece.base[2].1 = link(&"x".repeat(4096)), "its link l leads to no name"),
            (
                |d| add(d, "x/".repeat(20_000).trim_end_matches('/'), Entry::Unknown),
                "is not a plain path: it is too long",
            ),
        ],
    );
}

#[test]
fn changes_that_do_not_follow_one_another_are_refused() {
    const CANCELS: &str =
        "its change 2 of a takes back something else than an earlier change of it";
    assert_refused(
        draft,
        &[
            (
                |d| d.piece.changes.swap(0, 1),
                "its change 1 of a does not begin where the one before",
            ),
            (
                |d| d.piece.changes[2].before = file("one"),
                "its change 3 of d/new does not begin where",
            ),
            (|d| d.piece.base[0].1 = of_size("one", 4), "its change 1 of a does not begin where"),
            (|d| d.piece.changes.push(change(7, "a", file("one"), file("one"))), "changes nothing"),
            (|d| d.piece.changes[1].cancels = vec![Seq(3)], CANCELS),
            (|d| d.piece.changes[1].cancels = vec![Seq(0)], CANCELS),
            (|d| d.piece.changes[1].cancels = vec![Seq(2)], CANCELS),
            (|d| d.piece.changes[1].cancels = vec![Seq(u64::MAX)], CANCELS),
            (|d| d.piece.changes[1].author = Author::Human, CANCELS),
            (
                |d| d.piece.changes[1].time = Timestamp(i64::MIN),
                "its change 2 is at a time that no",
            ),
        ],
    );
}

#[test]
fn points_and_sessions_that_have_no_place_are_refused() {
    const BEHIND: &str =
        "its point 0000000000000003 lies behind its last change, or before an earl";
    assert_refused(
        draft,
        &[
            (|d| d.piece.sessions[1].id = SessionId::from("s"), "its session s stands there twice"),
            (
                |d| d.piece.sessions[0].parent = Some(SessionId::from("t")),
                "it names the session t, w",
            ),
            (|d| d.piece.sessions.truncate(1), "it names the session t, which it does not have"),
            (
                |d| d.piece.turns[0].session = SessionId::from("x"),
                "it names the session x, which it",
            ),
            (
                |d| d.piece.points[0].session = Some(SessionId::from("x")),
                "it names the session x, wh",
            ),
            (
                |d| d.piece.sessions[0].ended_at = Some(Timestamp(i64::MAX)),
                "the session s is at a ti",
            ),
            (
                |d| d.piece.turns.push(d.piece.turns[0].clone()),
                "its turn 0000000000000007 stands the",
            ),
            (
                |d| d.piece.turns[0].opened_at = TIME_END,
                "the turn 0000000000000007 is at a time that",
            ),
            (
                |d| {
                    let one = d.piece.sessions[0].clone();
                    let named = |at| Session { id: SessionId(format!("x{at}")), ..one.clone() };
                    d.piece.sessions.extend((0..10_000).map(named));
                },
                "it has more sessions than 10000",
            ),
            (
                |d| {
                    let last = d.piece.points[2].clone();
                    let next = |id| Point { id: PointId(id), ..last.clone() };
                    d.piece.points.extend((10..100_010).map(next));
                },
                "it has more points than 100000",
            ),
            (|d| d.piece.points.clear(), "it has no points"),
            (|d| d.piece.points[2].seq = Seq(7), BEHIND),
            (|d| d.piece.points[2].seq = Seq(u64::MAX), BEHIND),
            (|d| d.piece.points[2].seq = Seq(1), BEHIND),
            (
                |d| d.piece.points[1].id = PointId(1),
                "its point 0000000000000001 stands there twice",
            ),
            (
                |d| d.piece.points[1].created_at = Timestamp(-1),
                "its point 0000000000000002 is at a t",
            ),
            (
                |d| d.piece.points[1].label = Some("@~1".to_owned()),
                r#"its point 0000000000000002 has the label "@~1", which is none"#,
            ),
            (|d| d.piece.points[0].label = Some(" ".to_owned()), r#"has the label " ", which is"#),
            (
                |d| d.piece.points[0].label = Some("\u{1b}[2J".to_owned()),
                r#"has the label "\u{1b}[2J", which is none"#,
            ),
        ],
    );
}

#[test]
fn contents_that_are_not_what_is_needed_are_refused() {
    assert_refused(
        draft,
        &[
            (|d| d.blobs.truncate(1), "the contents of a are missing in it"),
            (
                |d| d.blobs.push(PackedBlob::new(b"three".to_vec())),
                "nothing in it needs its contents",
            ),
            (|d| d.blobs.push(d.blobs[0].clone()), "stand there twice"),
            (|d| d.blobs[0].bytes[0] ^= 1, "are not what they are called"),
            (|d| d.blobs[0].size = 4, "the contents of a have another size in it than it says"),
            (|d| add(d, "z", of_size("one", 4)), "the contents of z have another size in it than"),
        ],
    );
}

#[test]
fn paths_that_are_none_are_refused() {
    let table: &[(&[u8; 5], &str)] = &[
        (b"../zz", "an empty, `.` or `..` component"),
        (b"zz/..", "an empty, `.` or `..` component"),
        (b"z/./z", "an empty, `.` or `..` component"),
        (b"zz//z", "an empty, `.` or `..` component"),
        (b"zzzz/", "an empty, `.` or `..` component"),
        (b"//zzz", "an empty, `.` or `..` component"),
        (b"zz\0zz", "it holds a NUL byte"),
        (b"/zzzz", "lies outside the workspace"),
        (b".hg/z", "belongs to version control or to Takeback"),
    ];
    let mut draft = draft();
    draft.piece.base.push((path("zz/zz"), file("one")));
    let good = written(&draft);
    read(&good).unwrap();
    let at = good.windows(5).position(|bytes| bytes == b"zz/zz").unwrap();
    for (name, expected) in table {
        let mut bytes = good.clone();
        bytes[at..at + 5].copy_from_slice(&name[..]);
        let error = read(&sealed(bytes)).unwrap_err().to_string();
        assert!(error.contains(expected), "{name:?}: {error}");
    }
    let outside = BundleLimits { outside: Outside::Accept, ..BundleLimits::default() };
    draft.piece.base.pop();
    draft.piece.base.push((path("/a"), file("one")));
    draft.piece.base.push((path("/a/b"), file("one")));
    let error = read_with(&written(&draft), &outside).unwrap_err().to_string();
    assert_eq!(error, "its path /a/b lies below /a, which is no folder then");
}

/// What it is, which bytes become what, and what is said of it.
type Flipped = (&'static str, Vec<(usize, u8)>, &'static str);

#[test]
fn records_that_are_none_are_refused() {
    let good = written(&draft());
    let first = START as usize;
    let length = |at: usize| u32::from_le_bytes(good[at + 1..at + 5].try_into().unwrap()) as usize;
    let mut starts = vec![first];
    while starts.last().copied().unwrap() < good.len() - RECORD_HEAD - END_BODY {
        let at = starts.last().copied().unwrap();
        starts.push(at + RECORD_HEAD + length(at));
    }
    // As many records as the draft has, and the end.
    assert_eq!(starts.len(), 2 + 1 + 4 + 6 + 3 + 2 + 1);
    let last = starts[starts.len() - 2];
    let table: [Flipped; 20] = [
        ("a length beyond the file", vec![(first + 4, 0x7f)], "it is longer than the file"),
        (
            "the largest length",
            (1..5).map(|at| (first + at, 0xff)).collect(),
            "longer than the file",
        ),
        (
            "a length one too small",
            vec![(first + 1, good[first + 1] - 1)],
            "its fields make no sense",
        ),
        (
            "a length one too large",
            vec![(first + 1, good[first + 1] + 1)],
            "its fields make no sense",
        ),
        (
            "a last length too large",
            vec![(last + 1, good[last + 1] + 1)],
            "it is longer than the file",
        ),
        ("an unknown kind", vec![(first, 8)], "its kind is not known"),
        ("no kind", vec![(first, 0)], "its kind is not known"),
        ("an end in the middle", vec![(first, END)], "its kind is not known"),
        ("a state", vec![(first, Kind::State as u8)], "its kind is not known to this version"),
        ("a session as a turn", vec![(first, Kind::Turn as u8)], "its fields make no sense"),
        ("a session after a point", vec![(last, Kind::Session as u8)], "it comes too late"),
        ("a text longer than its record", vec![(first + RECORD_HEAD + 3, 1)], "make no sense"),
        ("a text that is none", vec![(first + RECORD_HEAD + 4, 0xff)], "its fields make no sense"),
        ("an option of 2", vec![(first + RECORD_HEAD + 5, 2)], "its fields make no sense"),
        ("an unknown encoding", vec![(last + RECORD_HEAD + 40, 9)], "its fields make no sense"),
        ("another count", vec![(good.len() - 32 - 8, 9)], "its last record counts other records"),
        ("version 2", vec![(16, 2)], "it has version 2; this Takeback knows versions up to 1"),
        ("version 0", vec![(16, 0)], "it is damaged"),
        ("another magic", vec![(0, b'T')], "it is not a Takeback bundle"),
        ("another end", vec![(good.len() - END_BODY - 5, 1)], "it is cut short"),
    ];
    for (what, harms, expected) in table {
        let mut bytes = good.clone();
        harms.into_iter().for_each(|(at, byte)| bytes[at] = byte);
        let error = read(&sealed(bytes)).unwrap_err().to_string();
        assert!(error.contains(expected), "{what}: {error}");
    }
}

#[test]
fn whatever_is_flipped_or_cut_is_refused_as_damage() {
    let good = written(&draft());
    for length in 0..good.len() {
        let error = read(&good[..length]).unwrap_err();
        let word = matches!(error, BundleError::Cut | BundleError::Damaged);
        assert!(word, "cut at {length}: {error}");
    }
    let mut words = std::collections::BTreeSet::new();
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            words.insert(
                read(&bytes).unwrap_err().to_string().split(';').next().unwrap().to_owned(),
            );
        }
    }
    words.retain(|word| !word.starts_with("it has version"));
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    assert_eq!(
        words,
        [
            "it is cut short: its end is missing",
            "it is damaged: its checksum is wrong",
            "it is not a Takeback bundle",
        ]
    );
    let longer = [&good[..], b"!"].concat();
    assert!(matches!(read(&longer), Err(BundleError::Cut)));
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
fn parts_that_do_not_make_the_whole_are_refused() {
    assert_refused(
        parted,
        &[
            (|d| drop(d.blobs.remove(2)), "lack a part"),
            (|d| d.blobs.rotate_right(1), "lack a part"),
            (|d| d.blobs.last_mut().unwrap().bytes.rotate_left(32), "are not what they are called"),
            (|d| d.blobs.last_mut().unwrap().bytes.push(0), "are not what they are called"),
            (|d| d.blobs.last_mut().unwrap().bytes.clear(), "are not what they are called"),
            (
                // Says a byte more than there is, everywhere.
                |d| {
                    let whole = d.blobs.last_mut().unwrap();
                    whole.size += 1;
                    d.piece.base.last_mut().unwrap().1 =
                        Entry::File { digest: whole.digest, size: whole.size, mode: 0o644 };
                },
                "are not what they are called",
            ),
            (
                |d| {
                    let whole = d.blobs.last_mut().unwrap();
                    whole.bytes = whole.bytes.repeat(1000);
                },
                "are not what they are called",
            ),
            (
                // Made of itself.
                |d| {
                    let whole = d.blobs.last_mut().unwrap();
                    whole.bytes = whole.digest.0.to_vec();
                },
                "lack a part",
            ),
            (|d| d.blobs[2].bytes[9] ^= 1, "are not what they are called"),
            (|d| drop(d.piece.base.pop()), "nothing in it needs its contents"),
            (|d| drop(d.blobs.pop()), "the contents of large are missing in it"),
        ],
    );
}

#[test]
fn bombs_do_not_go_off() {
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
    // More than it says, less than it says, and more than there is in the world.
    for (size, expected) in [
        (1000, "are not what they are called"),
        ((4 << 20) - 1, "are not what they are called"),
        ((4 << 20) + 1, "are not what they are called"),
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

/// Read again for every time that it is named, a part costs what it is long, not what it holds.
#[test]
fn contents_may_not_be_padded() {
    // A frame of one byte and a frame that is passed over.
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
fn what_is_too_large_for_a_record_is_not_written() {
    let mut draft = draft();
    draft.piece.turns[0].prompt = "x".repeat(RECORD_MAX);
    let mut bytes = Vec::new();
    let mut writer = BundleWriter::new(&mut bytes).unwrap();
    let error = writer.piece(&draft.piece).unwrap_err().to_string();
    assert_eq!(error, "a record of 16777248 bytes is too large for a bundle");
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
