//! Dropping a record removes it with everything that belongs to it, and nothing else.

use super::samples::{agent, change, human, noise, path, point, session};
use super::{commit, good, list_everything, put};
use crate::blob::{CHUNKED_ABOVE, Digest};
use crate::change::{Author, Change};
use crate::entry::Entry;
use crate::id::{CallId, PointId, RewindId, Seq, Timestamp, TurnId};
use crate::point::Point;
use crate::rewind::{RewindKind, RewindRecord, RewindState, StoredPlan};
use crate::session::{Call, CallKind, CallState, Session, Turn};
use crate::store::{CompactEffort, Store, StoreError, Write};

fn file(digest: Digest, size: usize) -> Entry {
    Entry::File { digest, size: size as u64, mode: 0o644 }
}

fn turn(id: u64, of: &str, closed_at: Option<i64>) -> Turn {
    Turn {
        id: TurnId(id),
        session: of.into(),
        message: None,
        prompt: "do it".to_owned(),
        opened_at: Timestamp(1),
        closed_at: closed_at.map(Timestamp),
        model: None,
    }
}

fn call(id: &str, of: &str, turn: u64, state: CallState) -> Call {
    Call {
        session: of.into(),
        id: CallId::from(id),
        turn: TurnId(turn),
        tool: "Bash".to_owned(),
        kind: CallKind::Shell { command: None, paths: Vec::new() },
        state,
        opened_at: Timestamp(1),
        began_at: None,
        active_at: None,
        closed_at: None,
    }
}

pub(super) fn dropped_records_are_gone_and_the_rest_stays(
    store: &mut dyn Store,
    other: &mut dyn Store,
) {
    let rewind = |id| RewindRecord {
        id: RewindId(id),
        kind: RewindKind::Rewind { point: PointId(1) },
        state: RewindState::Done,
        began_at: Seq(1),
        safety_point: PointId(2),
        created_at: Timestamp(1),
        plan: StoredPlan::of_text("{}").expect("it fits in memory"),
        receipt: None,
    };
    let known = Point { message_ids: vec!["m".to_owned()], ..point(1, 1) };
    let writes = [
        human(1, "a"),
        human(2, "b"),
        human(3, "a"),
        Write::Point(known),
        Write::Point(point(2, 2)),
        Write::Rewind(rewind(1)),
        Write::Rewind(rewind(2)),
    ];
    commit(store, &writes);
    let mut left = list_everything(store);

    let head = commit(
        other,
        &[
            Write::DropChange(Seq(3)),
            Write::DropChange(Seq(2)),
            Write::DropPoint(PointId(1)),
            Write::DropRewind(RewindId(2)),
            Write::CleanupTime(Timestamp(77)),
            // Records that do not exist.
            Write::DropChange(Seq(9)),
            Write::DropPoint(PointId(9)),
            Write::DropRewind(RewindId(9)),
            Write::DropSession("nobody".into()),
        ],
    );
    assert_eq!((head.revision, head.seq), (2, Seq(3)), "the log does not start over");
    left.changes.truncate(1);
    left.latest.truncate(1);
    left.points.remove(0);
    left.rewinds.pop();
    left.last_cleanup = Some(Timestamp(77));
    assert_eq!(list_everything(store), left);
    assert_eq!(good(store.latest_of(&[path("a"), path("b")])), [Some(change(1, "a")), None]);
    assert_eq!(good(store.change(Seq(2))), None);
    commit(store, &[human(4, "b")]);
    assert_eq!(good(other.latest_of(&[path("b")])), [Some(change(4, "b"))]);
    assert_eq!(good(other.check()), Vec::<String>::new());
}

pub(super) fn a_change_is_replaced_in_its_place(store: &mut dyn Store, other: &mut dyn Store) {
    let unclear = Author::Ambiguous { sessions: vec!["s".into(), "t".into()] };
    let first = Change { author: unclear, ..change(1, "a") };
    commit(store, &[Write::Change(first.clone()), human(2, "b")]);
    let mut now = Change {
        before: Entry::Unknown,
        after: Entry::Absent,
        author: agent("s", 1, "c"),
        cancels: vec![Seq(2)],
        ..first
    };
    let head = commit(other, &[Write::ReplaceChange(now.clone())]);
    assert_eq!(head.seq, Seq(2));
    assert_eq!(good(store.changes_after(Seq(0))), [now.clone(), change(2, "b")]);
    assert_eq!(good(store.latest_of(&[path("a")])), [Some(now.clone())]);
    now.author = Author::Ambiguous { sessions: vec!["t".into()] };
    commit(store, &[Write::ReplaceChange(now.clone())]);
    assert_eq!(good(other.change(Seq(1))), Some(now));
}

pub(super) fn dropping_a_session_drops_its_records_and_keeps_the_log(
    store: &mut dyn Store,
    other: &mut dyn Store,
) {
    let unclear = |sessions: &[&str]| Author::Ambiguous {
        sessions: sessions.iter().map(|id| (*id).into()).collect(),
    };
    let by = |seq, author| Write::Change(Change { author, ..change(seq, "a") });
    let of = |id, session: &str| Point { session: Some(session.into()), ..point(id, 1) };
    commit(
        store,
        &[
            Write::Session(session("going")),
            Write::Session(Session { parent: Some("going".into()), ..session("staying") }),
            Write::Turn(turn(1, "going", None)),
            Write::Turn(turn(2, "staying", None)),
            Write::Call(call("c", "going", 1, CallState::Open)),
            Write::Call(call("c", "staying", 2, CallState::Open)),
            by(1, agent("going", 1, "c")),
            by(2, agent("staying", 2, "c")),
            by(3, unclear(&["going", "staying"])),
            by(4, unclear(&["going"])),
            Write::Point(of(1, "going")),
            Write::Point(of(2, "staying")),
            Write::Point(point(3, 1)),
        ],
    );
    let mut left = list_everything(store);
    commit(other, &[Write::DropSession("going".into())]);

    // Changes stay, without an author: going back to a point of another session may need them.
    left.changes[0].author = Author::Deleted;
    left.changes[2].author = unclear(&["staying"]);
    left.changes[3].author = unclear(&[]);
    left.points.remove(0);
    left.sessions = vec![session("staying")];
    left.live_calls.retain(|call| call.session.0 == "staying");
    assert_eq!(list_everything(store), left);
    assert_eq!(good(store.session(&"going".into())), None);
    assert_eq!(good(store.turn(TurnId(1))), None);
    assert!(good(store.turn(TurnId(2))).is_some());
    assert_eq!(good(store.call(&"going".into(), &"c".into())), None);
    assert_eq!(good(store.check()), Vec::<String>::new());
    // A new session with the same name is a different session.
    commit(store, &[Write::Session(session("going")), by(5, agent("going", 1, "c"))]);
    assert_eq!(good(other.change(Seq(1))).map(|change| change.author), Some(Author::Deleted));
}

pub(super) fn closed_turns_that_no_change_names_are_dropped(
    store: &mut dyn Store,
    other: &mut dyn Store,
) {
    let named = Change { author: agent("s", 2, "named"), ..change(1, "a") };
    let turns = [
        turn(1, "s", Some(10)),
        turn(2, "s", Some(10)),
        turn(3, "s", Some(20)),
        turn(4, "s", None),
        turn(5, "t", Some(10)),
        turn(6, "s", Some(10)),
    ];
    let calls = [
        call("over", "s", 1, CallState::Done),
        call("named", "s", 2, CallState::Done),
        call("later", "s", 3, CallState::Done),
        call("over", "t", 5, CallState::Done),
        call("runs", "s", 6, CallState::Background),
        call("over too", "s", 6, CallState::Done),
    ];
    let mut writes = vec![Write::Session(session("s")), Write::Session(session("t"))];
    writes.extend(turns.iter().cloned().map(Write::Turn));
    writes.extend(calls.iter().cloned().map(Write::Call));
    writes.push(Write::Change(named));
    commit(store, &writes);
    commit(other, &[Write::DropTurns { session: "s".into(), before: Timestamp(20) }]);
    let left: Vec<u64> = (1..=6).filter(|id| good(store.turn(TurnId(*id))).is_some()).collect();
    assert_eq!(left, [2, 3, 4, 5, 6]);
    let gone: Vec<(&str, &str)> = calls
        .iter()
        .filter(|call| good(store.call(&call.session, &call.id)).is_none())
        .map(|call| (call.session.0.as_str(), call.id.0.as_str()))
        .collect();
    assert_eq!(gone, [("s", "over")]);
}

pub(super) fn unreferenced_contents_are_dropped(store: &mut dyn Store, other: &mut dyn Store) {
    let large_size = usize::try_from(CHUNKED_ABOVE).expect("it fits") * 2;
    let kept_large = put(store, &noise(1, large_size));
    // A store may wait until half of its space is dead.
    let lost_size = large_size + 500;
    let lost_large = put(store, &noise(2, lost_size));
    let before = put(store, b"before");
    let lost = put(store, b"lost");
    let again = put(store, b"named again in time");
    let filled_in = put(store, b"named by an old change in time");
    let named = |seq, before, after| Write::Change(Change { before, after, ..change(seq, "a") });
    commit(
        store,
        &[
            named(1, file(before, 6), file(kept_large, large_size)),
            named(2, file(lost, 4), file(lost_large, lost_size)),
            named(3, file(filled_in, 30), file(again, 19)),
        ],
    );
    assert!(good(store.unreferenced()).digests.is_empty());
    commit(store, &[Write::DropChange(Seq(2)), Write::DropChange(Seq(3))]);
    let used = good(store.usage());
    let unreferenced = good(other.unreferenced());
    assert_eq!(unreferenced.at, good(store.head()));
    let parts = |digest| good(store.read_packed(&digest)).chunks();
    let mut expected: Vec<Digest> = [lost, lost_large, again, filled_in].into();
    expected.extend(parts(lost_large));
    assert_eq!(unreferenced.digests, expected.iter().copied().collect());

    commit(store, &[named(4, Entry::Absent, file(again, 19))]);
    let (before_it, after_it) = (file(before, 6), file(filled_in, 30));
    let replaced = Change { before: before_it, after: after_it, ..change(1, "a") };
    commit(store, &[Write::ReplaceChange(replaced)]);
    good(other.drop_blobs(&unreferenced));
    good(other.compact(CompactEffort::Worthwhile));
    for digest in [kept_large, before, again, filled_in] {
        assert!(good(store.contents(&digest)).len() > 5);
        assert!(good(other.has(&digest)));
    }
    for digest in expected.iter().filter(|digest| ![again, filled_in].contains(digest)) {
        assert!(!good(store.has(digest)));
        assert!(matches!(store.contents(digest), Err(StoreError::MissingBlob { .. })));
    }
    assert_eq!(good(store.check()), Vec::<String>::new());
    let now = good(store.usage());
    assert_eq!(used.contents - now.contents, lost_size as u64 + 4);
    assert!(now.kept < used.kept && now.packs < used.packs && now.blobs < used.blobs);

    // Dropped contents can be stored again.
    assert_eq!(put(store, b"lost"), lost);
    commit(store, &[named(5, Entry::Absent, file(lost, 4))]);
    assert_eq!(good(other.contents(&lost)), b"lost");
    assert_eq!(good(other.check()), Vec::<String>::new());
}
