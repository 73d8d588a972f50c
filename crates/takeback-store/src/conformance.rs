//! The suite that every store must pass: each promise of [`Store`]'s documentation, put to the test.

mod chaining;
mod dropping;
mod finding;
mod samples;

use std::collections::BTreeMap;
use std::io;

use self::samples::{
    agent, change, every_author, every_entry, every_path, human, noise, path, point, session,
};
use crate::blob::{CHUNKED_ABOVE, Digest, Encoding, PackedBlob};
use crate::change::{Author, Change, Correction, Evidence};
use crate::entry::Entry;
use crate::id::{CallId, PointId, RewindId, Seq, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::point::{GitState, Point, PointKind, Vouched};
use crate::rewind::{RewindKind, RewindRecord, RewindState};
use crate::session::{Call, CallKind, CallState, Process, Session, Turn};
use crate::store::{Head, Store, StoreError, Write};

/// Runs every case on stores of its own. `make` makes a new, empty store and opens it twice, as two
/// processes would. Panics at the first promise that is not kept.
pub fn run(make: &mut dyn FnMut() -> [Box<dyn Store>; 2]) {
    let cases: [fn(&mut dyn Store, &mut dyn Store); 28] = [
        a_new_store_is_empty,
        every_commit_moves_the_head,
        chaining::the_same_commits_make_the_same_chain,
        chaining::what_is_dropped_and_replaced_leaves_the_rest_whole,
        a_commit_against_an_old_head_does_nothing,
        changes_leave_no_gap,
        every_change_reads_back_as_written,
        a_change_may_name_a_session_that_nobody_recorded,
        the_newest_change_of_a_path_is_found,
        points_are_listed_oldest_first_and_replaced_by_id,
        sessions_and_turns_are_replaced_by_id,
        calls_are_live_until_they_end,
        rewinds_are_listed_oldest_first_and_replaced_by_id,
        the_last_scan_is_the_last_one_committed,
        any_text_is_kept,
        contents_of_every_encoding_read_back,
        contents_are_seen_by_others_once_committed,
        contents_outlive_a_failed_commit,
        missing_and_damaged_contents_are_told_apart,
        a_check_finds_what_is_wrong,
        dropping::what_is_dropped_is_gone_and_the_rest_stands,
        dropping::a_change_is_replaced_in_its_place,
        dropping::a_session_takes_its_own_with_it_and_leaves_the_log,
        dropping::turns_go_that_are_over_and_that_no_change_names,
        dropping::contents_that_nothing_names_are_forgotten,
        finding::points_are_found_by_what_is_asked,
        finding::rewinds_are_found_by_id_and_while_they_are_open,
        finding::the_log_in_brief_says_what_the_log_says,
    ];
    for case in cases {
        let [mut one, mut other] = make();
        case(&mut *one, &mut *other);
    }
}

fn a_new_store_is_empty(store: &mut dyn Store, _other: &mut dyn Store) {
    assert_eq!(good(store.head()), Head::default());
    assert_eq!(everything(store), Everything::default());
    assert_eq!(good(store.change(Seq(0))), None);
    assert_eq!(good(store.change(Seq(1))), None);
    assert_eq!(good(store.latest_of(&[path("a")])), [None]);
    assert_eq!(good(store.session(&session("s").id)), None);
    assert_eq!(good(store.turn(TurnId(1))), None);
    assert_eq!(good(store.call(&"s".into(), &"c".into())), None);
    assert_eq!(good(store.check()), Vec::<String>::new());
}

fn every_commit_moves_the_head(store: &mut dyn Store, other: &mut dyn Store) {
    let first = commit(store, &[]);
    assert_eq!(first, Head { revision: 1, seq: Seq(0) });
    let second = good(other.commit(first, &[human(1, "a"), human(2, "b")]));
    assert_eq!(second, Head { revision: 2, seq: Seq(2) });
    assert_eq!(good(store.head()), second);
    let third = good(store.commit(second, &[Write::Session(session("s"))]));
    assert_eq!(third, Head { revision: 3, seq: Seq(2) });
    assert_eq!(good(other.head()), third);
}

fn a_commit_against_an_old_head_does_nothing(store: &mut dyn Store, other: &mut dyn Store) {
    let old = good(store.head());
    commit(other, &[human(1, "theirs")]);
    let before = everything(store);
    let head = good(store.head());
    let ahead = Head { revision: head.revision + 1, seq: head.seq };
    let elsewhere = Head { revision: head.revision, seq: Seq(0) };
    for expected in [old, ahead, elsewhere] {
        let refused = store.commit(expected, &[human(1, "ours"), Write::Point(point(1, 0))]);
        assert!(matches!(refused, Err(StoreError::Moved)), "{refused:?}");
        assert_eq!(everything(store), before);
        assert_eq!(good(store.head()), head);
    }
    good(store.commit(head, &[human(2, "ours")]));
    assert_eq!(good(other.changes_after(Seq(0))).len(), 2);
}

fn changes_leave_no_gap(store: &mut dyn Store, _other: &mut dyn Store) {
    commit(store, &[human(1, "a")]);
    let before = everything(store);
    let head = good(store.head());
    for (seqs, expected, found) in
        [(&[1][..], 2, 1), (&[3], 2, 3), (&[0], 2, 0), (&[2, 4], 3, 4), (&[2, 3, 3], 4, 3)]
    {
        // What comes before the wrong one is not done either.
        let mut writes = vec![
            Write::Session(session("s")),
            Write::Point(point(1, 1)),
            Write::Scanned(Timestamp(1)),
        ];
        writes.extend(seqs.iter().map(|seq| human(*seq, "b")));
        let refused = store.commit(head, &writes);
        let Err(StoreError::Gap { expected: wanted, found: got }) = refused else {
            panic!("{seqs:?} was not refused: {refused:?}");
        };
        assert_eq!((wanted, got), (Seq(expected), Seq(found)));
        assert_eq!(everything(store), before);
        assert_eq!(good(store.head()), head);
    }
    good(store.commit(head, &[human(2, "b"), human(3, "b")]));
}

fn every_change_reads_back_as_written(store: &mut dyn Store, other: &mut dyn Store) {
    let mut written = Vec::new();
    let mut add = |path: WorkPath, before: &Entry, after: &Entry, author: &Author, cancels| {
        let seq = Seq(written.len() as u64 + 1);
        let evidence =
            [Evidence::Named, Evidence::Window, Evidence::AfterEdit, Evidence::OpenWindow]
                [usize::try_from(seq.0 % 4).expect("below four")];
        let changed_at = seq.0.is_multiple_of(3).then_some(Timestamp(seq.0.cast_signed()));
        let correction = match seq.0 % 5 {
            0 => Some(Correction::Mine),
            1 => Some(Correction::Agent { session: "corrected".into() }),
            _ => None,
        };
        let time = Timestamp(1_700_000_000_000 + seq.0.cast_signed());
        let (before, after, author) = (before.clone(), after.clone(), author.clone());
        written.push(Change {
            seq,
            path,
            before,
            after,
            author,
            evidence,
            time,
            changed_at,
            correction,
            cancels,
        });
    };
    let entries = every_entry();
    for pair in entries.windows(2) {
        add(path("p"), &pair[0], &pair[1], &Author::Human, Vec::new());
    }
    for author in every_author() {
        add(path("q"), &Entry::Absent, &Entry::Dir { mode: 0o755 }, &author, Vec::new());
    }
    for odd in every_path() {
        add(odd, &Entry::Unknown, &Entry::Absent, &Author::Human, Vec::new());
    }
    for cancels in [vec![1], vec![1, 2, 3], vec![9, 4, 4, 1], (1..500).collect()] {
        let cancels = cancels.into_iter().map(Seq).collect();
        let author = Author::Rewind { id: RewindId(u64::MAX) };
        add(path("q"), &Entry::Dir { mode: 0 }, &Entry::Absent, &author, cancels);
    }
    let writes: Vec<_> = written.iter().cloned().map(Write::Change).collect();
    commit(store, &writes);

    for store in [&*store, other] {
        assert_eq!(good(store.changes_after(Seq(0))), written);
        assert_eq!(good(store.changes_after(Seq(7))), written[7..]);
        let last = Seq(written.len() as u64);
        assert_eq!(good(store.changes_after(last)), []);
        assert_eq!(good(store.changes_after(Seq(u64::MAX))), []);
        for change in &written {
            assert_eq!(good(store.change(change.seq)).as_ref(), Some(change));
        }
        assert_eq!(good(store.change(last.next())), None);
    }
}

fn a_change_may_name_a_session_that_nobody_recorded(store: &mut dyn Store, _other: &mut dyn Store) {
    let change = Change { author: agent("ghost", 1, "c"), ..change(1, "a") };
    commit(store, &[Write::Change(change.clone())]);
    assert_eq!(good(store.changes_after(Seq(0))), [change]);
    assert_eq!(good(store.sessions()), []);
    assert_eq!(good(store.session(&"ghost".into())), None);
    commit(store, &[Write::Session(session("ghost"))]);
    assert_eq!(good(store.sessions()), [session("ghost")]);
}

fn the_newest_change_of_a_path_is_found(store: &mut dyn Store, other: &mut dyn Store) {
    let mut newest = BTreeMap::new();
    let mut seq = 0;
    for round in 0..4_u32 {
        let mut writes = Vec::new();
        for odd in every_path().into_iter().skip(round as usize) {
            seq += 1;
            let change =
                Change { path: odd, after: Entry::Dir { mode: round }, ..change(seq, "a") };
            newest.insert(change.path.clone(), change.clone());
            writes.push(Write::Change(change));
        }
        commit(store, &writes);
    }
    for store in [&*store, other] {
        let entries = newest.iter().map(|(path, change)| (path.clone(), change.after.clone()));
        assert_eq!(good(store.latest()), entries.collect::<Vec<_>>());
        // In the order they were asked for, also twice.
        let mut asked: Vec<_> = newest.keys().rev().cloned().collect();
        asked.push(path("never/seen"));
        asked.push(asked[0].clone());
        let answers: Vec<_> = asked.iter().map(|path| newest.get(path).cloned()).collect();
        assert_eq!(good(store.latest_of(&asked)), answers);
        assert_eq!(good(store.latest_of(&[])), []);
        let whole = good(store.changes_after(Seq(0)));
        for path in &asked {
            let of_path = whole.iter().filter(|change| change.path == *path).cloned();
            assert_eq!(good(store.changes_of(path)), of_path.collect::<Vec<_>>());
        }
    }
}

fn points_are_listed_oldest_first_and_replaced_by_id(store: &mut dyn Store, other: &mut dyn Store) {
    commit(store, &[human(1, "a"), human(2, "b")]);
    let full = Point {
        session: Some("s".into()),
        description: "fix the parser\nand its tests".to_owned(),
        label: Some("before".to_owned()),
        pinned: true,
        message_ids: vec!["m2".to_owned(), "m1".to_owned(), "m2".to_owned()],
        git: Some(GitState { head: Some("abc".to_owned()), branch: Some("main".to_owned()) }),
        vouched: Vouched::Watch,
        ..point(u64::MAX, 1)
    };
    let git = Some(GitState { head: None, branch: None });
    let mut points = vec![
        Point { kind: PointKind::Manual, git, ..point(7, 0) },
        full,
        Point { kind: PointKind::Step, ..point(3, 1) },
        Point { kind: PointKind::Safety, created_at: Timestamp(-5), ..point(5, 2) },
    ];
    // At one place of the log the order is that in which they came.
    for at in [3, 1, 2, 0] {
        commit(store, &[Write::Point(points[at].clone())]);
    }
    assert_eq!(good(other.points()), points);

    points[1].message_ids = vec!["m3".to_owned()];
    points[1].session = None;
    points[1].label = None;
    points[1].git = None;
    points[2].pinned = true;
    points[2].message_ids = vec!["late".to_owned()];
    let replaced: Vec<_> = points.iter().rev().cloned().map(Write::Point).collect();
    commit(other, &replaced);
    assert_eq!(good(store.points()), points);
}

fn sessions_and_turns_are_replaced_by_id(store: &mut dyn Store, other: &mut dyn Store) {
    let mut first = Session {
        agent: Some("claude".to_owned()),
        parent: Some("elsewhere".into()),
        owner: Some(Process { pid: u32::MAX, started: u64::MAX }),
        ended_at: Some(Timestamp(9)),
        archived_at: Some(Timestamp(10)),
        open_turn: Some(TurnId(u64::MAX)),
        ..session("first")
    };
    let second = Session { parent: Some("first".into()), ..session("second") };
    let mut turn = Turn {
        id: TurnId(u64::MAX),
        session: "first".into(),
        message: Some("m".to_owned()),
        prompt: "do it".to_owned(),
        opened_at: Timestamp(3),
        closed_at: None,
    };
    commit(
        store,
        &[Write::Turn(turn.clone()), Write::Session(second.clone()), Write::Session(first.clone())],
    );
    assert_eq!(good(other.sessions()), [first.clone(), second.clone()]);
    assert_eq!(good(other.session(&second.id)), Some(second.clone()));
    assert_eq!(good(other.session(&"elsewhere".into())), None);
    assert_eq!(good(other.turn(turn.id)), Some(turn.clone()));

    // Of two in one commit the later counts. What belongs to a session stays when it is replaced.
    let passing = Session { agent: Some("passing".to_owned()), ..first.clone() };
    first = Session { started_at: Timestamp(50), ..session("first") };
    commit(other, &[Write::Session(passing), Write::Session(first.clone())]);
    assert_eq!(good(store.sessions()), [second, first.clone()]);
    assert_eq!(good(store.session(&first.id)), Some(first));
    assert_eq!(good(store.turn(turn.id)), Some(turn.clone()));

    turn = Turn { message: None, closed_at: Some(Timestamp(4)), session: "second".into(), ..turn };
    commit(store, &[Write::Turn(turn.clone())]);
    assert_eq!(good(other.turn(turn.id)), Some(turn));
}

fn calls_are_live_until_they_end(store: &mut dyn Store, other: &mut dyn Store) {
    let kinds = [
        CallKind::Edit { paths: every_path() },
        CallKind::Edit { paths: Vec::new() },
        CallKind::Shell { command: Some("rm -rf build".to_owned()), paths: Vec::new() },
        CallKind::Shell { command: Some("apply_patch".to_owned()), paths: every_path() },
        CallKind::Shell { command: None, paths: every_path() },
        CallKind::Shell { command: None, paths: Vec::new() },
    ];
    let states = [
        CallState::Open,
        CallState::Overtaken,
        CallState::Background,
        CallState::Done,
        CallState::Failed,
        CallState::CutOff,
        CallState::Settling,
        CallState::Interrupted,
        CallState::Rejected,
    ];
    let mut calls = Vec::new();
    for (opened, kind) in (0_i64..).zip(kinds) {
        for state in states {
            calls.push(Call {
                session: "s".into(),
                id: CallId(format!("{opened}-{state:?}")),
                turn: TurnId(u64::MAX),
                tool: "Bash".to_owned(),
                kind: kind.clone(),
                state,
                // The order of opening is not the order of writing.
                opened_at: Timestamp(-opened),
                began_at: (opened % 2 == 0).then_some(Timestamp(50 + opened)),
                active_at: (opened % 3 == 0).then_some(Timestamp(60 + opened)),
                closed_at: (!state.may_write()).then_some(Timestamp(99)),
            });
        }
    }
    // The same id in another session is another call.
    calls.push(Call { session: "t".into(), ..calls[0].clone() });
    commit(store, &calls.iter().cloned().map(Write::Call).collect::<Vec<_>>());
    for call in &calls {
        assert_eq!(good(other.call(&call.session, &call.id)).as_ref(), Some(call));
    }
    assert_eq!(good(other.call(&"u".into(), &calls[0].id)), None);
    let mut live: Vec<_> = calls.iter().filter(|call| call.state.may_write()).cloned().collect();
    live.sort_by_key(|call| (call.opened_at, call.session.clone(), call.id.clone()));
    assert_eq!(good(other.live_calls()), live);
    calls.sort_by_key(|call| (call.opened_at, call.session.clone(), call.id.clone()));
    let known: Vec<_> = good(other.turns()).into_iter().map(|turn| turn.id).collect();
    for call in &calls {
        let turn = good(other.turn(call.turn)).map(|turn| turn.id);
        assert_eq!(turn.is_some(), known.contains(&call.turn));
    }
    for time in [0, 1, 2, 3, 1_000_000].map(Timestamp) {
        let ran = |call: &&Call| call.closed_at.is_none_or(|closed| closed >= time);
        let ran: Vec<_> = calls.iter().filter(ran).cloned().collect();
        assert_eq!(good(other.calls_since(time)), ran);
    }

    let ended = live.into_iter().map(|call| Call { state: CallState::Done, ..call });
    let ended: Vec<_> = ended.map(Write::Call).collect();
    commit(other, &ended);
    assert_eq!(good(store.live_calls()), []);
    for write in ended {
        let Write::Call(call) = write else { unreachable!("only calls were made") };
        assert_eq!(good(store.call(&call.session, &call.id)), Some(call));
    }
}

fn rewinds_are_listed_oldest_first_and_replaced_by_id(
    store: &mut dyn Store,
    other: &mut dyn Store,
) {
    let rewind = |id, began_at, kind| RewindRecord {
        id: RewindId(id),
        kind,
        state: RewindState::Open,
        began_at: Seq(began_at),
        safety_point: PointId(u64::MAX),
        created_at: Timestamp(1),
        plan: "{\"steps\":[]}".to_owned(),
        receipt: None,
    };
    let mut rewinds = [
        rewind(9, 0, RewindKind::Rewind { point: PointId(u64::MAX) }),
        rewind(u64::MAX, 1, RewindKind::Undo { of: RewindId(9) }),
        rewind(1, 1, RewindKind::Redo { of: RewindId(u64::MAX) }),
    ];
    for at in [1, 2, 0] {
        commit(store, &[Write::Rewind(rewinds[at].clone())]);
    }
    assert_eq!(good(other.rewinds()), rewinds);

    rewinds[1].state = RewindState::Done;
    rewinds[1].receipt = Some("{}".to_owned());
    commit(other, &[Write::Rewind(rewinds[1].clone())]);
    assert_eq!(good(store.rewinds()), rewinds);
}

fn the_last_scan_is_the_last_one_committed(store: &mut dyn Store, other: &mut dyn Store) {
    commit(store, &[Write::Scanned(Timestamp(5)), Write::Scanned(Timestamp(3))]);
    assert_eq!(good(other.last_scan()), Some(Timestamp(3)));
    commit(other, &[human(1, "a")]);
    assert_eq!(good(store.last_scan()), Some(Timestamp(3)));
}

fn any_text_is_kept(store: &mut dyn Store, other: &mut dyn Store) {
    for (number, text) in (1..).zip(["", " ", "\0", "a\0b", "\"'\\", "é\u{1f980}\u{202e}", "\r\n"])
    {
        let session = Session { agent: Some(text.to_owned()), ..session(text) };
        let turn = Turn {
            id: TurnId(number),
            session: text.into(),
            message: Some(text.to_owned()),
            prompt: text.to_owned(),
            opened_at: Timestamp(1),
            closed_at: None,
        };
        let call = Call {
            session: text.into(),
            id: text.into(),
            turn: turn.id,
            tool: text.to_owned(),
            kind: CallKind::Shell { command: Some(text.to_owned()), paths: Vec::new() },
            state: CallState::Done,
            opened_at: Timestamp(1),
            began_at: None,
            active_at: None,
            closed_at: None,
        };
        let git = GitState { head: Some(text.to_owned()), branch: Some(text.to_owned()) };
        let point = Point {
            session: Some(text.into()),
            description: text.to_owned(),
            label: Some(text.to_owned()),
            message_ids: vec![text.to_owned(), "m".to_owned()],
            git: Some(git),
            ..point(number, 0)
        };
        let agent = Author::Agent {
            session: text.into(),
            turn: turn.id,
            call: text.into(),
            tool: text.to_owned(),
        };
        let sessions = vec!["s".into(), text.into()];
        let seq = good(store.head()).seq.0 + 1;
        let changes = [agent, Author::Ambiguous { sessions }];
        let changes: Vec<_> = (seq..)
            .zip(changes)
            .map(|(seq, author)| Change { author, ..change(seq, "a") })
            .collect();
        let mut writes = vec![
            Write::Session(session.clone()),
            Write::Turn(turn.clone()),
            Write::Call(call.clone()),
            Write::Point(point.clone()),
        ];
        writes.extend(changes.iter().cloned().map(Write::Change));
        commit(store, &writes);
        assert_eq!(good(other.session(&session.id)), Some(session));
        assert_eq!(good(other.turn(turn.id)), Some(turn));
        assert_eq!(good(other.call(&call.session, &call.id)), Some(call));
        assert_eq!(good(other.points()).last(), Some(&point));
        assert_eq!(good(other.changes_after(Seq(seq - 1))), changes);
    }
}

fn contents_of_every_encoding_read_back(store: &mut dyn Store, other: &mut dyn Store) {
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
        assert_eq!(good(store.packed(&digest)).encoding, encoding);
        kept.push((digest, contents));
    }
    // Many, so that they do not all fit into whatever the store gathers before it writes.
    for number in 10..3000 {
        let contents = noise(number, 700);
        kept.push((put(store, &contents), contents));
    }
    let read_back = |store: &dyn Store| {
        for (digest, contents) in &kept {
            assert!(good(store.has(digest)) && good(store.holds(digest)));
            assert_eq!(good(store.contents(digest)), *contents);
            assert_eq!(good(store.packed(digest)).size, contents.len() as u64);
        }
    };
    read_back(store);
    commit(store, &[]);
    read_back(store);
    read_back(other);
    assert_eq!(good(store.check()), Vec::<String>::new());
}

fn contents_are_seen_by_others_once_committed(store: &mut dyn Store, other: &mut dyn Store) {
    let digest = put(store, b"ours");
    assert!(good(store.has(&digest)));
    assert!(!good(other.has(&digest)));
    assert!(matches!(other.contents(&digest), Err(StoreError::MissingBlob { .. })));

    // Another handle's commit takes only what was put there. Both may keep the same contents.
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

fn contents_outlive_a_failed_commit(store: &mut dyn Store, other: &mut dyn Store) {
    let digest = put(store, b"kept");
    let head = good(store.head());
    let refused = store.commit(head, &[human(5, "a")]);
    assert!(matches!(refused, Err(StoreError::Gap { .. })), "{refused:?}");
    let head = commit(other, &[]);
    let refused = store.commit(Head::default(), &[]);
    assert!(refused.is_err_and(|error| error.is_moved()));
    assert!(good(store.has(&digest)));
    assert!(!good(other.has(&digest)));
    let after = Entry::File { digest, size: 4, mode: 0o644 };
    good(store.commit(head, &[Write::Change(Change { after, ..change(1, "a") })]));
    assert_eq!(good(other.contents(&digest)), b"kept");
    assert_eq!(good(other.check()), Vec::<String>::new());
}

fn missing_and_damaged_contents_are_told_apart(store: &mut dyn Store, _other: &mut dyn Store) {
    let digest = Digest::of(b"never put");
    for error in [
        store.packed(&digest).map(drop),
        store.contents(&digest).map(drop),
        store.read(&digest, &mut |_| Ok(())),
    ] {
        let Err(StoreError::MissingBlob { digest: missing }) = error else {
            panic!("not missing: {error:?}");
        };
        assert_eq!(missing, digest);
    }

    assert!(!good(store.holds(&digest)));

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
        assert_eq!(good(store.packed(&damaged.digest)), damaged);
    }
    assert!(!good(store.holds(&lacking.digest)), "a part of it is not there");
    let read = store.contents(&lacking.digest);
    assert!(matches!(read, Err(StoreError::MissingBlob { digest: part }) if part == digest));

    let digest = put(store, b"fine");
    let refused = store.read(&digest, &mut |_| Err(io::Error::other("full")));
    assert!(matches!(refused, Err(StoreError::Sink { digest: of, .. }) if of == digest));
}

fn a_check_finds_what_is_wrong(store: &mut dyn Store, other: &mut dyn Store) {
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

// --- what the cases have in common ----------------------------------------------------------

/// All that a store lists.
#[derive(Debug, PartialEq, Eq, Default)]
struct Everything {
    changes: Vec<Change>,
    latest: Vec<(WorkPath, Entry)>,
    points: Vec<Point>,
    sessions: Vec<Session>,
    live_calls: Vec<Call>,
    rewinds: Vec<RewindRecord>,
    last_scan: Option<Timestamp>,
    last_cleanup: Option<Timestamp>,
}

fn everything(store: &dyn Store) -> Everything {
    Everything {
        changes: good(store.changes_after(Seq(0))),
        latest: good(store.latest()),
        points: good(store.points()),
        sessions: good(store.sessions()),
        live_calls: good(store.live_calls()),
        rewinds: good(store.rewinds()),
        last_scan: good(store.last_scan()),
        last_cleanup: good(store.last_cleanup()),
    }
}

#[track_caller]
fn good<T>(result: Result<T, StoreError>) -> T {
    result.expect("the store works")
}

#[track_caller]
fn commit(store: &mut dyn Store, writes: &[Write]) -> Head {
    let head = good(store.head());
    good(store.commit(head, writes))
}

#[track_caller]
fn put(store: &mut dyn Store, contents: &[u8]) -> Digest {
    let mut blobs = Vec::new();
    let (digest, _) = PackedBlob::stream(&mut &contents[..], &mut |blob| blobs.push(blob))
        .expect("memory can be read");
    blobs.into_iter().for_each(|blob| good(store.put(blob)));
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;
    use crate::sqlite::SqliteStore;

    #[test]
    fn memory() {
        run(&mut || {
            let store = MemoryStore::new();
            [Box::new(store.clone()), Box::new(store)]
        });
    }

    #[test]
    fn sqlite() {
        let dir = tempfile::tempdir().unwrap();
        let mut number = 0;
        run(&mut || {
            number += 1;
            let dir = dir.path().join(number.to_string());
            let one = SqliteStore::create(&dir).unwrap();
            [Box::new(one), Box::new(SqliteStore::open(&dir).unwrap())]
        });
    }
}
