//! Bundles that must be refused, one table per kind of damage.

use super::*;

#[test]
fn forbidden_paths_are_refused() {
    assert_refused(
        draft,
        &[
            (
                |d| add(d, "/etc/passwd", file("one")),
                "its path /etc/passwd is outside the workspace",
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
            (|d| add(d, "a", file("two")), "its path a occurs twice in one tree"),
            (|d| add(d, "x", Entry::Absent), "its path x occurs twice in one tree"),
            (
                |d| add(d, "a/b", file("one")),
                "its path a/b is below a, which is not a folder at that point",
            ),
            (
                |d| add(d, "l/b/c", Entry::Dir { mode: 0 }),
                "its path l/b/c is below l, which is not",
            ),
            (
                |d| {
                    d.piece.changes.truncate(3);
                    d.piece.changes.push(change(4, "d", Entry::Dir { mode: 0o755 }, link("/etc")));
                    d.piece.points[2].seq = Seq(4);
                },
                "its path d/new is below d, which is not a folder at that point",
            ),
            (|d| d.piece.base[2].1 = link(""), "its link l has an invalid target"),
            (|d| d.piece.base[2].1 = link("a\0b"), "its link l has an invalid target"),
            (|d| d.piece.base[2].1 = link(&"x".repeat(4096)), "its link l has an invalid target"),
            (
                |d| add(d, "x/".repeat(20_000).trim_end_matches('/'), Entry::Unknown),
                "is malformed: it is too long",
            ),
        ],
    );
}

#[test]
fn inconsistent_changes_are_refused() {
    const CANCELS: &str =
        "its change 2 of a takes back something other than an earlier change of that path";
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
                "its change 2 has an impossible time",
            ),
        ],
    );
}

#[test]
fn inconsistent_points_and_sessions_are_refused() {
    const BEHIND: &str = "its point 0000000000000003 is after its last change, or before an earl";
    assert_refused(
        draft,
        &[
            (|d| d.piece.sessions[1].id = SessionId::from("s"), "its session s occurs twice"),
            (
                |d| d.piece.sessions[0].parent = Some(SessionId::from("t")),
                "it refers to session t, w",
            ),
            (|d| d.piece.sessions.truncate(1), "it refers to session t, which it does not contain"),
            (
                |d| d.piece.turns[0].session = SessionId::from("x"),
                "it refers to session x, which it",
            ),
            (
                |d| d.piece.points[0].session = Some(SessionId::from("x")),
                "it refers to session x, wh",
            ),
            (
                |d| d.piece.sessions[0].ended_at = Some(Timestamp(i64::MAX)),
                "the session s has an impossible ti",
            ),
            (
                |d| d.piece.turns.push(d.piece.turns[0].clone()),
                "its turn 0000000000000007 occurs tw",
            ),
            (
                |d| d.piece.turns[0].opened_at = TIME_END,
                "the turn 0000000000000007 has an impossible",
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
            (|d| d.piece.points[1].id = PointId(1), "its point 0000000000000001 occurs twice"),
            (
                |d| d.piece.points[1].created_at = Timestamp(-1),
                "its point 0000000000000002 has an imp",
            ),
            (
                |d| d.piece.points[1].label = Some("@~1".to_owned()),
                r#"its point 0000000000000002 has the invalid label "@~1""#,
            ),
            (|d| d.piece.points[0].label = Some(" ".to_owned()), r#"has the invalid label " ""#),
            (
                |d| d.piece.points[0].label = Some("\u{1b}[2J".to_owned()),
                r#"has the invalid label "\u{1b}[2J""#,
            ),
        ],
    );
}

#[test]
fn wrong_contents_are_refused() {
    assert_refused(
        draft,
        &[
            (|d| d.blobs.truncate(1), "the contents of a are missing"),
            (
                |d| d.blobs.push(PackedBlob::new(b"three".to_vec())),
                "nothing in it needs its contents",
            ),
            (|d| d.blobs.push(d.blobs[0].clone()), "occur twice"),
            (|d| d.blobs[0].bytes[0] ^= 1, "do not match their digest"),
            (|d| d.blobs[0].size = 4, "the contents of a do not have the declared size"),
            (|d| add(d, "z", of_size("one", 4)), "the contents of z do not have the declared"),
        ],
    );
}

#[test]
fn malformed_paths_are_refused() {
    let table: &[(&[u8; 5], &str)] = &[
        (b"../zz", "an empty, `.` or `..` component"),
        (b"zz/..", "an empty, `.` or `..` component"),
        (b"z/./z", "an empty, `.` or `..` component"),
        (b"zz//z", "an empty, `.` or `..` component"),
        (b"zzzz/", "an empty, `.` or `..` component"),
        (b"//zzz", "an empty, `.` or `..` component"),
        (b"zz\0zz", "it holds a NUL byte"),
        (b"/zzzz", "is outside the workspace"),
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
    let outside = BundleLimits { outside: OutsidePolicy::Accept, ..BundleLimits::default() };
    draft.piece.base.pop();
    draft.piece.base.push((path("/a"), file("one")));
    draft.piece.base.push((path("/a/b"), file("one")));
    let error = read_with(&written(&draft), &outside).unwrap_err().to_string();
    assert_eq!(error, "its path /a/b is below /a, which is not a folder at that point");
}

/// A name, the bytes to replace, and the expected error.
type CorruptionCase = (&'static str, Vec<(usize, u8)>, &'static str);

#[test]
fn malformed_records_are_refused() {
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
    let table: [CorruptionCase; 20] = [
        ("a length beyond the file", vec![(first + 4, 0x7f)], "it is longer than the file"),
        (
            "the largest length",
            (1..5).map(|at| (first + at, 0xff)).collect(),
            "longer than the file",
        ),
        (
            "a length one too small",
            vec![(first + 1, good[first + 1] - 1)],
            "its fields are invalid",
        ),
        (
            "a length one too large",
            vec![(first + 1, good[first + 1] + 1)],
            "its fields are invalid",
        ),
        (
            "a last length too large",
            vec![(last + 1, good[last + 1] + 1)],
            "it is longer than the file",
        ),
        ("an unknown kind", vec![(first, 8)], "its kind is unknown"),
        ("no kind", vec![(first, 0)], "its kind is unknown"),
        ("an end in the middle", vec![(first, END)], "its kind is unknown"),
        ("a state", vec![(first, Kind::State as u8)], "its kind is unknown to this version"),
        ("a session as a turn", vec![(first, Kind::Turn as u8)], "its fields are invalid"),
        ("a session after a point", vec![(last, Kind::Session as u8)], "it is out of order"),
        ("a text longer than its record", vec![(first + RECORD_HEAD + 3, 1)], "are invalid"),
        ("a text that is none", vec![(first + RECORD_HEAD + 4, 0xff)], "its fields are invalid"),
        ("an option of 2", vec![(first + RECORD_HEAD + 5, 2)], "its fields are invalid"),
        ("an unknown encoding", vec![(last + RECORD_HEAD + 40, 9)], "its fields are invalid"),
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
fn every_flipped_or_cut_byte_is_refused_as_damage() {
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
