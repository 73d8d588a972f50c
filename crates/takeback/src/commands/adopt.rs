//! `adopt`: brings what happened in a fork back here.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use takeback_core::Workspace;
use takeback_core::fork::ForkChange;
use takeback_core::rewind::{Incoming, IncomingChange, RewindRequest, Target};
use takeback_store::{PackedBlob, RewindKind, StoreError};

use super::compare::{open, scope_of};
use super::rewind::{TitledRequest, from_root, run_request};
use crate::args::{AdoptArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store, quoted, tilde_path};
use crate::screen::{Screen, WARNING, count, plain};

pub(crate) fn adopt(
    options: &Options,
    args: &AdoptArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let folder = place::start(options)?.join(&args.folder);
    let home = place::home(options)?;
    let workspace = &mut place.workspace;
    let titled = request(workspace, options, &home, &folder, args)?;
    if titled.unreadable > 0 && !screen.quiet {
        let what = count(titled.unreadable, "path");
        let text =
            format!("{what} in the fork could not be read, and what changed there is missing");
        writeln!(anstream::stderr().lock(), "{WARNING}takeback:{WARNING:#} {text}")?;
    }
    let code = run_request(workspace, options, titled.request, &args.doing, screen)?;
    // What could not be read is not adopted.
    Ok(if code == 0 && titled.unreadable > 0 { Kind::Conflicts as u8 } else { code })
}

/// The request, and how many paths of the fork could not be read.
pub(crate) struct Adoption {
    pub(crate) request: TitledRequest,
    pub(crate) unreadable: usize,
}

/// Scans the fork and puts the contents of what differs into this workspace's store.
pub(crate) fn request(
    workspace: &mut Workspace,
    options: &Options,
    home: &Path,
    folder: &Path,
    args: &AdoptArgs,
) -> Result<Adoption, CommandError> {
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
        changes: found.changes.into_iter().map(incoming).collect(),
        settles: false,
    };
    let name = plain(&tilde_path(fork.path()));
    let mut request = RewindRequest::new(Target::Incoming(Arc::new(incoming)));
    request.paths = from_root(workspace, options, &args.paths)?;
    request.conflicts = args.conflicts.into();
    request.title = Some(format!("adopt of {name}"));
    let request = TitledRequest { title: format!("Adopt {name}"), request };
    Ok(Adoption { request, unreadable: found.unreadable.len() })
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
