//! `adopt`: brings what happened in a fork back here.

use std::path::Path;
use std::sync::Arc;

use takeback_core::Workspace;
use takeback_core::fork::{ForkChange, ForkChanges};
use takeback_core::record::Unreadable;
use takeback_core::rewind::{ConflictPolicy, Incoming, IncomingChange, RewindRequest, Target};
use takeback_store::{Entry, NotCapturedReason, PackedBlob, RewindKind, StoreError};

use super::compare::{open, scope_of};
use super::rewind::{TitledRequest, from_root, run_request};
use crate::args::{AdoptArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store, quoted, tilde_path};
use crate::screen::{Screen, plain};

pub(crate) fn adopt(
    options: &Options,
    args: &AdoptArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let folder = place::start(options)?.join(&args.folder);
    let home = place::home(options)?;
    let workspace = &mut place.workspace;
    let paths = from_root(workspace, options, &args.paths)?;
    let titled = request(workspace, &home, &folder, paths, args.conflicts.into())?;
    run_request(workspace, options, titled, &args.doing, screen)
}

/// Scans the fork and puts the contents of what differs into this workspace's store.
pub(crate) fn request(
    workspace: &mut Workspace,
    home: &Path,
    folder: &Path,
    paths: Vec<String>,
    conflicts: ConflictPolicy,
) -> Result<TitledRequest, CommandError> {
    let fork = open(folder, home)?;
    if fork.origin.root != workspace.root.path() {
        let of = &fork.origin.root;
        let text = format!("{} is a fork of {}", tilde_path(fork.path()), tilde_path(of));
        return Err(CommandError::new(Kind::Usage, text).hint(format!(
            "Adopt it there: `takeback -C {} adopt {}`.",
            quoted(of),
            quoted(fork.path())
        )));
    }
    let scope = scope_of(fork.path(), home)?;
    let mut failed: Option<StoreError> = None;
    let store = &mut workspace.store;
    let mut keep = |blob: PackedBlob| {
        if failed.is_none() {
            failed = store.put(blob).err();
        }
    };
    let found = fork.changes(&scope, &place::ambient(), &mut keep)?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let incoming = Incoming {
        kind: RewindKind::Adopt { point: fork.origin.point },
        changes: incoming_changes(found),
        settles: false,
    };
    let name = plain(&tilde_path(fork.path()));
    let mut request = RewindRequest::new(Target::Incoming(Arc::new(incoming)));
    request.paths = paths;
    request.conflicts = conflicts;
    request.title = Some(format!("adopt of {name}"));
    Ok(TitledRequest { title: format!("Adopt {name}"), request })
}

fn incoming_changes(found: ForkChanges) -> Vec<IncomingChange> {
    let ForkChanges { changes, mut unreadable } = found;
    // A file that cannot be read is a change already; a folder is not.
    unreadable.retain(|one| !changes.iter().any(|change| change.path == one.path));
    changes.into_iter().map(incoming).chain(unreadable.into_iter().map(unread)).collect()
}

/// What could not be read in the fork is not adopted, and the receipt says so.
fn unread(unreadable: Unreadable) -> IncomingChange {
    IncomingChange {
        path: unreadable.path,
        base: Entry::Unknown,
        entry: Entry::NotCaptured { reason: NotCapturedReason::Unreadable },
        cancels: Vec::new(),
        lines: Vec::new(),
    }
}

fn incoming(change: ForkChange) -> IncomingChange {
    IncomingChange {
        path: change.path,
        base: change.base,
        entry: change.now,
        cancels: Vec::new(),
        lines: Vec::new(),
    }
}
