//! What there was no time for, read when there is: nobody waits for it.

use takeback_store::SessionId;

use super::commit::commit;
use super::count::unread;
use super::decide::Decision;
use super::late::drain_spool;
use super::sight::Sight;
use super::{RecordError, Recorded};
use crate::lock::Hold;
use crate::spool;
use crate::workspace::Workspace;
use crate::worktree::budget::Budget;
use crate::worktree::index::Index;

/// Looks at the whole tree, whatever time it takes, and then records what waits in the spool. In this
/// order: as long as somebody is at the spool, every event has to go there.
pub fn look_at_rest(workspace: &mut Workspace) -> Result<Recorded, RecordError> {
    let Some(_lock) = workspace.lock_only(Hold::Shared, workspace.limits.rewind_patience)? else {
        return Err(RecordError::Locked);
    };
    let time = (workspace.ambient.now)();
    let sight = Sight::of_whole_tree(workspace, Budget::UNLIMITED)?;
    // What those have done of whom something waits is not told yet, and so not to be told from a person's.
    let suspects = suspects(workspace)?;
    let recorded = commit(workspace, sight, &[], |now| {
        let mut scene = now.scene.clone();
        suspects.iter().for_each(|session| scene.may_have_written(session));
        Ok(Decision { scanned: Some(time), scene: Some(scene), ..Decision::at(time) })
    })?;
    drain_spool(workspace)?;
    Ok(recorded)
}

fn suspects(workspace: &Workspace) -> Result<Vec<SessionId>, RecordError> {
    let path = &workspace.store_dir;
    let mut suspects = spool::sessions(path)
        .map_err(|source| RecordError::Spool { path: path.clone(), source })?;
    suspects.sort();
    suspects.dedup();
    Ok(suspects)
}

/// How many bytes are left to read, as far as it is known.
pub fn left_to_read(workspace: &Workspace) -> Result<u64, RecordError> {
    let index = Index::load(&workspace.index_file(), &*workspace.store)?;
    let unread = index.folders().map(|(_, folder)| -> u64 {
        folder.children.iter().filter_map(|child| unread(&child.known)).sum()
    });
    Ok(unread.sum())
}
