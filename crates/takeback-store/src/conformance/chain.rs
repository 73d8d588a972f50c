//! The chain of commits, which is the same in every store.

use super::samples::{agent, change, human, point, session};
use super::{commit, good};
use crate::chain::{self, Chain, RowSet};
use crate::change::{Author, Change, Correction};
use crate::entry::Entry;
use crate::id::{Seq, Timestamp};
use crate::session::Session;
use crate::store::{Head, Store, StoreError, Write};

/// The chain depends only on what was written and in which order: the test computes it from the
/// writes.
pub(super) fn the_same_commits_make_the_same_chain(store: &mut dyn Store, other: &mut dyn Store) {
    let mut expected = Chain::genesis(Head::default(), &RowSet::default());
    assert_eq!(good(store.chain()), expected);
    let commits: [&[Write]; 5] = [
        &[human(1, "a"), human(2, "b")],
        &[],
        &[Write::Session(session("s")), Write::Point(point(1, 2))],
        &[Write::Point(point(1, 2))],
        &[Write::DropPoint(point(1, 2).id), Write::ScanTime(Timestamp(1))],
    ];
    let mut seen = vec![expected];
    for writes in commits {
        let head = commit(store, writes);
        expected = expected.next(head, &chain::hash_writes(writes));
        assert_eq!(good(store.chain()), expected);
        assert_eq!(good(other.chain()), expected, "as another process sees it");
        assert!(!seen.contains(&expected), "never the same twice");
        seen.push(expected);
    }
    let moved = store.commit(Head::default(), &[human(3, "c")]);
    assert!(moved.is_err_and(|error| matches!(error, StoreError::Moved)));
    assert_eq!(good(store.chain()), expected);
    assert_eq!(good(store.losses()), []);
    let turned = [human(2, "b"), human(1, "a")];
    assert_ne!(chain::hash_writes(&turned), chain::hash_writes(&[human(1, "a"), human(2, "b")]));
}

/// Retention, deleting a session and corrections alter existing records; a check must not report
/// that as damage.
pub(super) fn drops_and_replacements_leave_a_clean_check(
    store: &mut dyn Store,
    _other: &mut dyn Store,
) {
    let child = Session { parent: Some("s".into()), ..session("child") };
    let both = Author::Ambiguous { sessions: vec!["s".into(), "child".into()] };
    let by =
        |seq, name: &str, author: Author| Write::Change(Change { author, ..change(seq, name) });
    commit(
        store,
        &[
            Write::Session(session("s")),
            Write::Session(child),
            by(1, "agent", agent("s", 1, "c")),
            by(2, "both", both),
            by(3, "mine", Author::Human),
            by(4, "kept", agent("child", 2, "c")),
            Write::Point(crate::point::Point { session: Some("s".into()), ..point(7, 4) }),
        ],
    );
    let whole = |store: &dyn Store| assert_eq!(good(store.check()), Vec::<String>::new());
    whole(store);
    let correction = Correction::Agent { session: "s".into() };
    commit(store, &[Write::Correct { change: Seq(3), correction }]);
    whole(store);
    commit(store, &[Write::Correct { change: Seq(9), correction: Correction::Mine }]);
    whole(store);
    commit(store, &[Write::DropSession("s".into())]);
    whole(store);
    assert_eq!(good(store.session(&"child".into())).map(|child| child.parent), Some(None));
    let replaced = Change { after: Entry::Unknown, ..change(3, "mine") };
    commit(store, &[Write::ReplaceChange(replaced), Write::DropChange(Seq(1))]);
    whole(store);
    commit(store, &[Write::DropSession("child".into()), Write::DropSession("nobody".into())]);
    whole(store);
}
