//! Points, sessions, turns, calls and rewinds: order, replacement by id, any text.

use super::samples::{change, every_path, human, point, session};
use super::{commit, good};
use crate::change::{Author, Change};
use crate::id::{CallId, PointId, RewindId, Seq, Timestamp, TurnId};
use crate::point::{GitState, Point, PointBasis, PointKind};
use crate::rewind::{RewindKind, RewindRecord, RewindState, StoredPlan};
use crate::session::{Call, CallKind, CallState, Process, Session, Turn};
use crate::store::{Store, Write};

pub(super) fn points_are_listed_oldest_first_and_replaced_by_id(
    store: &mut dyn Store,
    other: &mut dyn Store,
) {
    commit(store, &[human(1, "a"), human(2, "b")]);
    let full = Point {
        session: Some("s".into()),
        description: "fix the parser\nand its tests".to_owned(),
        label: Some("before".to_owned()),
        pinned: true,
        message_ids: vec!["m2".to_owned(), "m1".to_owned(), "m2".to_owned()],
        git: Some(GitState { head: Some("abc".to_owned()), branch: Some("main".to_owned()) }),
        basis: PointBasis::Watch,
        ..point(u64::MAX, 1)
    };
    let git = Some(GitState { head: None, branch: None });
    let mut points = vec![
        Point { kind: PointKind::Manual, git, ..point(7, 0) },
        full,
        Point { kind: PointKind::Step, ..point(3, 1) },
        Point { kind: PointKind::Safety, created_at: Timestamp(-5), ..point(5, 2) },
    ];
    // Points at the same position are listed in the order in which they were committed.
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

pub(super) fn sessions_and_turns_are_replaced_by_id(store: &mut dyn Store, other: &mut dyn Store) {
    let mut first = Session {
        agent: Some("claude".to_owned()),
        parent: Some("elsewhere".into()),
        owner: Some(Process { pid: u32::MAX, started: u64::MAX }),
        ended_at: Some(Timestamp(9)),
        archived_at: Some(Timestamp(10)),
        open_turn: Some(TurnId(u64::MAX)),
        model: Some("claude-opus-5-5".to_owned()),
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
        model: Some("m".to_owned()),
    };
    commit(
        store,
        &[Write::Turn(turn.clone()), Write::Session(second.clone()), Write::Session(first.clone())],
    );
    assert_eq!(good(other.sessions()), [first.clone(), second.clone()]);
    assert_eq!(good(other.session(&second.id)), Some(second.clone()));
    assert_eq!(good(other.session(&"elsewhere".into())), None);
    assert_eq!(good(other.turn(turn.id)), Some(turn.clone()));

    // Of two records in one commit the later one counts. Replacing a session keeps its turns, calls
    // and points.
    let passing = Session { agent: Some("passing".to_owned()), ..first.clone() };
    first = Session { started_at: Timestamp(50), ..session("first") };
    commit(other, &[Write::Session(passing), Write::Session(first.clone())]);
    assert_eq!(good(store.sessions()), [second, first.clone()]);
    assert_eq!(good(store.session(&first.id)), Some(first));
    assert_eq!(good(store.turn(turn.id)), Some(turn.clone()));

    turn = Turn {
        message: None,
        closed_at: Some(Timestamp(4)),
        session: "second".into(),
        model: None,
        ..turn
    };
    commit(store, &[Write::Turn(turn.clone())]);
    assert_eq!(good(other.turn(turn.id)), Some(turn));
}

pub(super) fn calls_are_live_until_they_end(store: &mut dyn Store, other: &mut dyn Store) {
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
                // Calls are opened in another order than they are written.
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

pub(super) fn rewinds_are_listed_oldest_first_and_replaced_by_id(
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
        plan: StoredPlan::of_text("{\"steps\":[]}").expect("it fits in memory"),
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
    assert_eq!(good(other.rewind_headers()), rewinds.each_ref().map(RewindRecord::header));

    rewinds[1].state = RewindState::Done;
    rewinds[1].receipt = Some("{}".to_owned());
    commit(other, &[Write::Rewind(rewinds[1].clone())]);
    assert_eq!(good(store.rewinds()), rewinds);
}

pub(super) fn the_last_scan_is_the_last_one_committed(
    store: &mut dyn Store,
    other: &mut dyn Store,
) {
    commit(store, &[Write::ScanTime(Timestamp(5)), Write::ScanTime(Timestamp(3))]);
    assert_eq!(good(other.last_scan()), Some(Timestamp(3)));
    commit(other, &[human(1, "a")]);
    assert_eq!(good(store.last_scan()), Some(Timestamp(3)));
}

pub(super) fn any_text_is_kept(store: &mut dyn Store, other: &mut dyn Store) {
    for (number, text) in (1..).zip(["", " ", "\0", "a\0b", "\"'\\", "é\u{1f980}\u{202e}", "\r\n"])
    {
        let named = Some(text.to_owned());
        let session = Session { agent: named.clone(), model: named.clone(), ..session(text) };
        let turn = Turn {
            id: TurnId(number),
            session: text.into(),
            message: Some(text.to_owned()),
            prompt: text.to_owned(),
            opened_at: Timestamp(1),
            closed_at: None,
            model: named,
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
