//! One turn, call or range taken back, paths restored, conflicts settled, operations undone: what
//! becomes of every kind of file, and what the receipt says.

mod authors;
mod conflicts;
mod kinds;
mod missing;
mod settling;

use std::fs;

use takeback_core::rewind::{
    ChosenChanges, ConflictPolicy, Receipt, RewindRequest, RewindScope, Target,
};
use takeback_store::{CallId, Point, PointId, RewindId, SessionId};
use takeback_testkit::Sandbox;

use crate::text::report;

fn point(sandbox: &Sandbox, id: PointId) -> Point {
    let points = sandbox.workspace.store.points().unwrap();
    points.into_iter().find(|point| point.id == id).unwrap()
}

fn turn(sandbox: &Sandbox, of: PointId) -> RewindRequest {
    let chosen = ChosenChanges::of_turn(&*sandbox.workspace.store, &point(sandbox, of));
    RewindRequest::new(Target::Changes(chosen.unwrap()))
}

/// `None`: the call changed nothing.
fn call(sandbox: &Sandbox, session: &str, id: &str) -> Option<RewindRequest> {
    let store = &*sandbox.workspace.store;
    let call = store.call(&SessionId::from(session), &CallId::from(id)).unwrap().unwrap();
    let chosen = ChosenChanges::of_call(store, &call).unwrap()?;
    Some(RewindRequest::new(Target::Changes(chosen)))
}

fn range(
    sandbox: &Sandbox,
    from: PointId,
    to: Option<PointId>,
    scope: Option<RewindScope>,
) -> RewindRequest {
    let (from, to) = (point(sandbox, from), to.map(|to| point(sandbox, to)));
    let store = &*sandbox.workspace.store;
    let chosen = ChosenChanges::of_range(store, &from, to.as_ref(), scope).unwrap();
    RewindRequest::new(Target::Changes(chosen))
}

fn restore(of: PointId, paths: &[&str]) -> RewindRequest {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    RewindRequest { paths, ..RewindRequest::new(Target::Restore(of)) }
}

fn go(sandbox: &mut Sandbox, request: &RewindRequest) -> Receipt {
    let receipt = sandbox.rewind(request).expect("it runs");
    assert!(receipt.errors.is_empty(), "{receipt:?}");
    receipt
}

fn undo(sandbox: &mut Sandbox, of: RewindId) -> Receipt {
    go(sandbox, &RewindRequest::new(Target::Operation(of)))
}

/// Runs it, and undoes it by its id: every byte is as before. What it reported, and the tree between.
#[track_caller]
fn there_and_back(sandbox: &mut Sandbox, request: &RewindRequest) -> (Vec<String>, TreeOf) {
    let before = sandbox.tree();
    let receipt = go(sandbox, request);
    let between = sandbox.tree();
    match receipt.rewind {
        Some(id) => {
            let undone = undo(sandbox, id);
            assert!(undone.success, "{undone:?}");
        }
        None => assert_eq!(between, before, "nothing was recorded: {receipt:?}"),
    }
    assert_eq!(sandbox.tree(), before, "{receipt:?}");
    (report(&receipt), between)
}

type TreeOf = std::collections::BTreeMap<std::path::PathBuf, takeback_testkit::Thing>;
