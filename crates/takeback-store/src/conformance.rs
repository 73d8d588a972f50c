//! The suite that every store must pass: it tests each promise in the documentation of [`Store`].

mod chain;
mod contents;
mod deletion;
mod queries;
mod records;
mod samples;

use std::collections::BTreeMap;

use self::samples::{
    agent, change, every_author, every_entry, every_path, human, path, point, session,
};
use crate::blob::{Digest, PackedBlob};
use crate::change::{Author, Change, Correction, Evidence};
use crate::entry::Entry;
use crate::id::{RewindId, Seq, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::point::Point;
use crate::rewind::RewindRecord;
use crate::session::{Call, Session};
use crate::store::{Head, Store, StoreError, Write};

/// Runs every case on a fresh store. `make` creates an empty store and opens it twice, as two
/// processes would. Panics at the first broken promise.
pub fn run(make: &mut dyn FnMut() -> [Box<dyn Store>; 2]) {
    let cases: [fn(&mut dyn Store, &mut dyn Store); 30] = [
        a_new_store_is_empty,
        every_commit_moves_the_head,
        chain::the_same_commits_make_the_same_chain,
        chain::drops_and_replacements_leave_a_clean_check,
        a_commit_against_an_old_head_does_nothing,
        changes_leave_no_gap,
        every_change_reads_back_as_written,
        a_change_may_name_a_session_without_a_record,
        changes_of_one_time_are_found_together,
        the_newest_change_of_a_path_is_found,
        records::points_are_listed_oldest_first_and_replaced_by_id,
        records::sessions_and_turns_are_replaced_by_id,
        records::calls_are_live_until_they_end,
        records::rewinds_are_listed_oldest_first_and_replaced_by_id,
        records::the_last_scan_is_the_last_one_committed,
        records::any_text_is_kept,
        contents::contents_of_every_encoding_read_back,
        contents::contents_are_seen_by_others_once_committed,
        contents::contents_outlive_a_failed_commit,
        contents::missing_and_damaged_contents_are_different_errors,
        contents::a_check_finds_what_is_wrong,
        deletion::dropped_records_are_gone_and_the_rest_stays,
        deletion::a_change_is_replaced_in_its_place,
        deletion::dropping_a_session_drops_its_records_and_keeps_the_log,
        deletion::closed_turns_that_no_change_names_are_dropped,
        deletion::unreferenced_contents_are_dropped,
        queries::every_point_query_finds_its_points,
        queries::rewinds_are_found_by_id_and_while_they_are_open,
        queries::every_part_of_the_log_is_found,
        queries::runs_agree_with_the_changes,
    ];
    for case in cases {
        let [mut one, mut other] = make();
        case(&mut *one, &mut *other);
    }
}

fn a_new_store_is_empty(store: &mut dyn Store, _other: &mut dyn Store) {
    assert_eq!(good(store.head()), Head::default());
    assert_eq!(list_everything(store), StoreListing::default());
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
    let before = list_everything(store);
    let head = good(store.head());
    let ahead = Head { revision: head.revision + 1, seq: head.seq };
    let elsewhere = Head { revision: head.revision, seq: Seq(0) };
    for expected in [old, ahead, elsewhere] {
        let refused = store.commit(expected, &[human(1, "ours"), Write::Point(point(1, 0))]);
        assert!(matches!(refused, Err(StoreError::Moved)), "{refused:?}");
        assert_eq!(list_everything(store), before);
        assert_eq!(good(store.head()), head);
    }
    good(store.commit(head, &[human(2, "ours")]));
    assert_eq!(good(other.changes_after(Seq(0))).len(), 2);
}

fn changes_leave_no_gap(store: &mut dyn Store, _other: &mut dyn Store) {
    commit(store, &[human(1, "a")]);
    let before = list_everything(store);
    let head = good(store.head());
    for (seqs, expected, found) in
        [(&[1][..], 2, 1), (&[3], 2, 3), (&[0], 2, 0), (&[2, 4], 3, 4), (&[2, 3, 3], 4, 3)]
    {
        // The writes before the wrong one are not applied either.
        let mut writes = vec![
            Write::Session(session("s")),
            Write::Point(point(1, 1)),
            Write::ScanTime(Timestamp(1)),
        ];
        writes.extend(seqs.iter().map(|seq| human(*seq, "b")));
        let refused = store.commit(head, &writes);
        let Err(StoreError::Gap { expected: wanted, found: got }) = refused else {
            panic!("{seqs:?} was not refused: {refused:?}");
        };
        assert_eq!((wanted, got), (Seq(expected), Seq(found)));
        assert_eq!(list_everything(store), before);
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

fn a_change_may_name_a_session_without_a_record(store: &mut dyn Store, _other: &mut dyn Store) {
    let change = Change { author: agent("ghost", 1, "c"), ..change(1, "a") };
    commit(store, &[Write::Change(change.clone())]);
    assert_eq!(good(store.changes_after(Seq(0))), [change]);
    assert_eq!(good(store.sessions()), []);
    assert_eq!(good(store.session(&"ghost".into())), None);
    commit(store, &[Write::Session(session("ghost"))]);
    assert_eq!(good(store.sessions()), [session("ghost")]);
}

fn changes_of_one_time_are_found_together(store: &mut dyn Store, other: &mut dyn Store) {
    let times = [1, 1, 2, 2, 2, 1, 3];
    let written: Vec<Change> = (1..)
        .zip(times)
        .map(|(seq, time)| Change { time: Timestamp(time), ..change(seq, "a") })
        .collect();
    commit(store, &written.iter().cloned().map(Write::Change).collect::<Vec<_>>());
    for store in [&*store, other] {
        for (change, beside) in written.iter().zip([0..2, 0..2, 2..5, 2..5, 2..5, 5..6, 6..7]) {
            assert_eq!(good(store.changes_beside(change)), written[beside]);
        }
    }
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
        // The answer has the order of the request, including duplicates.
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

// --- shared by the cases ------------------------------------------------------------------

/// Everything that a store lists.
#[derive(Debug, PartialEq, Eq, Default)]
struct StoreListing {
    changes: Vec<Change>,
    latest: Vec<(WorkPath, Entry)>,
    points: Vec<Point>,
    sessions: Vec<Session>,
    live_calls: Vec<Call>,
    rewinds: Vec<RewindRecord>,
    last_scan: Option<Timestamp>,
    last_cleanup: Option<Timestamp>,
}

fn list_everything(store: &dyn Store) -> StoreListing {
    StoreListing {
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

    #[test]
    fn memory() {
        run(&mut || {
            let store = MemoryStore::new();
            [Box::new(store.clone()), Box::new(store)]
        });
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn sqlite() {
        use crate::sqlite::SqliteStore;

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
