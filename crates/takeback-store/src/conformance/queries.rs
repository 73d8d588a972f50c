//! A targeted query finds the same as a scan of all records.

use std::collections::BTreeSet;

use super::samples::{agent, change, path, point, session};
use super::{commit, good};
use crate::blob::Digest;
use crate::change::{Attribution, Author, Change, Evidence};
use crate::entry::{Entry, NotCapturedReason};
use crate::id::{PointId, RewindId, Seq, SessionId, Timestamp};
use crate::path::WorkPath;
use crate::point::{Point, PointFilter, PointKind, PointQuery};
use crate::rewind::{RewindKind, RewindRecord, RewindState, StoredPlan};
use crate::runs::{CallLookup, ChangeRun, group_runs};
use crate::store::{Store, Write};

pub(super) fn every_point_query_finds_its_points(store: &mut dyn Store, other: &mut dyn Store) {
    let ids = [0xabcd_0000_0000_0001, 0xabcd_0000_0000_0002, 0xabce_0000_0000_0000, 7, u64::MAX];
    let kinds = [PointKind::Prompt, PointKind::Step, PointKind::Manual, PointKind::Safety];
    let mut points: Vec<Point> = Vec::new();
    for (n, id) in ids.into_iter().enumerate() {
        points.push(Point {
            session: [None, Some("s".into()), Some("t".into())][n % 3].clone(),
            kind: kinds[n % kinds.len()],
            label: [None, Some("here".to_owned())][n % 2].clone(),
            message_ids: vec![format!("m{n}"), "s:m0".to_owned()],
            ..point(id, n as u64 / 2)
        });
    }
    points[4].session = Some("s".into());
    points.push(Point { session: Some("s".into()), ..point(8, 1) });
    let sessions = ["s", "t"].map(|name| Write::Session(session(name)));
    let changes = [1, 2, 3].map(|seq| Write::Change(change(seq, "a")));
    let writes = sessions.into_iter().chain(changes);
    let writes: Vec<Write> = writes.chain(points.into_iter().map(Write::Point)).collect();
    commit(store, &writes);

    let (s, t, none) = (SessionId::from("s"), SessionId::from("t"), SessionId::from("nobody"));
    let mut queries = vec![
        PointQuery::LastPromptOf(&s),
        PointQuery::LastPromptOf(&t),
        PointQuery::LastPromptOf(&none),
    ];
    queries.extend(ids.map(|id| PointQuery::Id(PointId(id))));
    queries.push(PointQuery::Id(PointId(99)));
    for n in 0..4 {
        let most = usize::try_from(n).expect("it is small");
        queries.push(PointQuery::At(Seq(n)));
        queries.push(PointQuery::From { seq: Seq(n), most: 2 });
        for filter in [PointFilter::All, PointFilter::WithoutSafety] {
            queries.push(PointQuery::Newest { filter, most });
            queries.push(PointQuery::Before { seq: Seq(n), filter, most: 2 });
            queries.push(PointQuery::Newest { filter, most: usize::MAX });
        }
    }
    queries.extend(
        [
            "",
            "here",
            "m1",
            "s:m1",
            "t:s:m0",
            "s:m0",
            "m9",
            "abc",
            "abcd",
            "ABCD",
            "abce",
            "abcd000000000001",
            "ffff",
            "0000",
            "0000000000000007",
            "00000000000000070",
            "%",
            "hər",
        ]
        .map(PointQuery::Name),
    );
    let all = good(other.points());
    assert_eq!(all.len(), 6);
    for query in queries {
        assert_eq!(good(other.find_points(query)), query.select(all.clone()), "{query:?}");
    }
    assert_eq!(good(other.count_points(PointFilter::All)), 6);
    assert_eq!(good(other.count_points(PointFilter::WithoutSafety)), 5);
    let of_session = |session: Option<&SessionId>| -> Vec<Point> {
        let points = good(other.points()).into_iter();
        points.filter(|point| point.session.as_ref() == session).collect()
    };
    let counts = good(other.points_by_session());
    let sessions = good(other.sessions()).into_iter().map(|session| Some(session.id));
    for session in sessions.chain([None]) {
        let points = of_session(session.as_ref());
        let counted = good(other.count_points_of(session.as_ref()));
        let expected = points.iter().filter(|point| point.may_expire()).count();
        assert_eq!(counted, expected, "{session:?}");
        assert_eq!(counts.get(&session).copied().unwrap_or(0), points.len(), "{session:?}");
    }
    let found = good(other.find_points(PointQuery::Name("abcd")));
    assert_eq!(found.iter().map(|point| point.id.0).collect::<Vec<_>>(), ids[..2]);
}

pub(super) fn rewinds_are_found_by_id_and_while_they_are_open(
    store: &mut dyn Store,
    other: &mut dyn Store,
) {
    let rewind = |id, began_at, state| RewindRecord {
        id: RewindId(id),
        kind: RewindKind::Rewind { point: PointId(1) },
        state,
        began_at: Seq(began_at),
        safety_point: PointId(2),
        created_at: Timestamp(1),
        plan: StoredPlan::of_text("{}").expect("it fits in memory"),
        receipt: None,
    };
    let rewinds = [
        rewind(u64::MAX, 2, RewindState::Open),
        rewind(2, 1, RewindState::Done),
        rewind(3, 1, RewindState::Open),
    ];
    commit(store, &rewinds.clone().map(Write::Rewind));
    for rewind in &rewinds {
        assert_eq!(good(other.rewind(rewind.id)).as_ref(), Some(rewind));
    }
    assert_eq!(good(other.rewind(RewindId(9))), None);
    assert_eq!(good(other.open_rewinds()), [rewinds[2].clone(), rewinds[0].clone()]);
}

pub(super) fn every_part_of_the_log_is_found(store: &mut dyn Store, other: &mut dyn Store) {
    let paths = ["d", "d/a", "d/b/c", "d.txt", "d0", "e", "d/a"];
    let mut log: Vec<Change> = (1..).zip(paths).map(|(seq, path)| change(seq, path)).collect();
    log[2].author = Author::Rewind { id: RewindId(7) };
    log[5].author = Author::Rewind { id: RewindId(8) };
    let unreadable = Entry::NotCaptured { reason: NotCapturedReason::Unreadable };
    (log[1].after, log[6].before) = (unreadable.clone(), unreadable);
    commit(store, &log.iter().cloned().map(Write::Change).collect::<Vec<_>>());
    let of = |seqs: &[usize]| seqs.iter().map(|seq| log[seq - 1].clone()).collect::<Vec<_>>();
    for (folder, seqs) in
        [("d", &[1, 2, 3, 7][..]), ("d/a", &[2, 7]), ("d/b", &[3]), ("e", &[6]), ("f", &[])]
    {
        let all: Vec<Seq> = of(seqs).iter().map(|change| change.seq).collect();
        for (before, most) in [(99, 99), (99, 2), (4, 2), (7, 1), (1, 9)] {
            let mut positions = all.clone();
            positions.retain(|seq| *seq < Seq(before));
            let positions = positions.split_off(positions.len().saturating_sub(most));
            let found = good(other.positions_below(&path(folder), Seq(before), most));
            assert_eq!(found, positions, "{folder} before {before}, {most} at most");
        }
    }
    for (after, through, seqs) in
        [(0, 2, &[1, 2][..]), (2, 4, &[3, 4]), (5, 99, &[6, 7]), (3, 3, &[])]
    {
        assert_eq!(good(other.changes_between(Seq(after), Seq(through))), of(seqs));
    }
    for (before, most, seqs) in [(99, 99, &[2, 7][..]), (99, 1, &[7]), (7, 9, &[2]), (2, 9, &[])] {
        assert_eq!(good(other.newest_changes_of(&path("d/a"), Seq(before), most)), of(seqs));
    }
    assert_eq!(good(other.unreadable_changes()), of(&[2, 7]));
    for (after, seqs) in [(0, &[3, 6][..]), (3, &[6]), (6, &[])] {
        assert_eq!(good(other.rewind_changes_after(Seq(after))), of(seqs));
    }
}

pub(super) fn runs_agree_with_the_changes(store: &mut dyn Store, other: &mut dyn Store) {
    let file = |n: u64| Entry::File { digest: Digest::of(&n.to_le_bytes()), size: n, mode: 0o644 };
    let mut log: Vec<Change> = Vec::new();
    let mut add = |at: &str, author: Author, evidence, cancels: &[u64]| {
        let seq = log.len() as u64 + 1;
        let before = log.iter().rev().find(|change| change.path == path(at));
        let before = before.map_or(Entry::Unknown, |change| change.after.clone());
        let after = if seq.is_multiple_of(61) { Entry::Absent } else { file(seq) };
        let cancels = cancels.iter().copied().map(Seq).collect();
        log.push(Change { before, after, author, evidence, cancels, ..change(seq, at) });
    };
    let call = |n: u64| format!("c{}", n / 3);
    for n in 0..300_u64 {
        let at = ["a", "b", "c"][usize::try_from(n % 3).expect("it is small")];
        let (author, evidence) = match n / 50 {
            0 => (agent(["s", "t"][usize::from(n % 7 == 0)], n / 9, &call(n)), Evidence::Named),
            1..3 => (agent("s", n / 9, &call(n)), Evidence::Named),
            3 => (Author::Human, Evidence::Named),
            4 => (agent("t", n / 9, &call(n)), Evidence::Window),
            _ => (Author::Ambiguous { sessions: vec!["s".into()] }, Evidence::Window),
        };
        add(at, author, evidence, &[]);
    }
    // The second rewind undoes the first; both cancel some neighbouring changes and not others.
    add("a", Author::Rewind { id: RewindId(1) }, Evidence::Named, &[31, 34, 37, 40]);
    add("a", Author::Rewind { id: RewindId(2) }, Evidence::Named, &[301]);
    add("b", Author::Rewind { id: RewindId(1) }, Evidence::Named, &[50, 44, 47]);
    for n in 0..60 {
        add("a", agent("u", n, "once"), Evidence::Window, &[]);
    }
    commit(store, &log.iter().cloned().map(Write::Change).collect::<Vec<_>>());
    let mut longest = 0;
    let none = BTreeSet::new();
    let both = BTreeSet::from(["s".into(), "t".into(), "unheard".into()]);
    let moments = [0, 1, 30, 100, 160, 299, 301, 330, 362, 363, u64::MAX];
    for (after, merged) in moments.iter().flat_map(|after| [(*after, &none), (*after, &both)]) {
        let brief = good(other.runs_after(Seq(after), merged));
        let whole = good(other.changes_after(Seq(after)));
        assert_eq!(
            brief,
            group_runs(whole.clone(), &CallLookup::default(), merged),
            "after {after}"
        );
        let mut seqs: Vec<Seq> = Vec::new();
        for history in &brief {
            for run in &history.runs {
                longest = longest.max(run.seqs.len());
                check(&whole, &history.path, run, merged);
                seqs.extend(&run.seqs);
            }
        }
        seqs.sort();
        assert_eq!(seqs, whole.iter().map(|change| change.seq).collect::<Vec<_>>());
    }
    assert!(longest >= 15, "little was put together: {longest}");
    commit(store, &[Write::DropSession("s".into())]);
    let whole = good(other.changes_after(Seq(0)));
    assert_eq!(
        good(other.runs_after(Seq(0), &none)),
        group_runs(whole, &CallLookup::default(), &none)
    );
}

fn check(log: &[Change], path: &WorkPath, run: &ChangeRun, merged: &BTreeSet<SessionId>) {
    let own: Vec<&Change> = log.iter().filter(|change| run.seqs.contains(&change.seq)).collect();
    assert_eq!((&own[0].before, &own[own.len() - 1].after), (&run.before, &run.after));
    let between = run.seqs[0]..=run.seqs[own.len() - 1];
    let neighbours =
        log.iter().filter(|change| change.path == *path && between.contains(&change.seq));
    assert_eq!(neighbours.count(), own.len(), "a change by another author is in between: {run:?}");
    for change in &own {
        assert_eq!(change.path, *path);
        let hand = |author: &Author| {
            let merged = author.sessions().iter().all(|session| merged.contains(session));
            let sessions = if merged { &[] } else { author.sessions() };
            (std::mem::discriminant(author), sessions.to_vec())
        };
        assert_eq!(hand(&change.author), hand(&run.author));
        for rewind in log.iter().filter(|other| other.path == *path) {
            let taken = |seq: &Seq| rewind.cancels.contains(seq);
            assert_eq!(taken(&change.seq), taken(&run.seqs[0]), "{run:?}");
        }
        let is_window =
            change.evidence == Evidence::Window && matches!(change.author, Author::Agent { .. });
        let known = Attribution { author: change.author.clone(), evidence: change.evidence };
        assert!(!is_window || run.inferred.iter().any(|one| **one == known));
    }
}
