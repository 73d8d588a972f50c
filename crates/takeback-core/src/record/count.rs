//! How much a first look at a tree will be, for whoever watches it.

use std::collections::HashSet;
use std::time::Duration;

use takeback_store::Entry;

use crate::progress::Work;
use crate::workspace::Workspace;
use crate::worktree::budget::Budget;
use crate::worktree::index::{Index, Known};
use crate::worktree::scan::{Ask, Extent, ScanError, scan};
use crate::worktree::scope::Distrusted;

/// Files to read and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Amount {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// Looks at all names, which takes little beside reading the files. Nobody knows (none) after the first
/// look, when only what has changed is read, and nobody is told if nobody watches.
pub(super) fn to_read(workspace: &Workspace, before: &Index) -> Result<Amount, ScanError> {
    if workspace.ambient.watch.is_none() || before.least_folders() > 0 {
        return Ok(Amount::default());
    }
    let work = workspace.ambient.begin(Work::Count, 0);
    let ask = Ask {
        root: &workspace.root,
        before,
        options: &workspace.scope,
        threads: workspace.limits.threads(),
        budget: Budget::starting_now(Duration::ZERO, Duration::MAX),
        counter: work.counter(),
        extent: Extent::Whole,
        kept: &HashSet::new(),
        distrusted: &Distrusted::default(),
        stages: &HashSet::new(),
    };
    let scan = scan(&ask, &mut |_| {})?;
    let mut amount = Amount { files: scan.stats.files, bytes: 0 };
    for (_, folder) in scan.index.folders() {
        amount.bytes +=
            folder.children.iter().filter_map(|child| unread(&child.known)).sum::<u64>();
    }
    Ok(amount)
}

/// The size of a file whose bytes are still to be kept.
pub(super) fn unread(known: &Known) -> Option<u64> {
    match known {
        Known::Entry { entry: Entry::NotCaptured { lack }, fingerprint: Some(print), .. } => {
            lack.may_be_kept_later().then_some(print.size)
        }
        _ => None,
    }
}
