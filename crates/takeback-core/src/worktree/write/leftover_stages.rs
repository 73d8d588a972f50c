//! Stages that exist while no rewind runs: which of them may be removed.
//!
//! A stage has a *mark* until its rewind is promised: it shows which store made the stage, and that it
//! holds no user's file yet. A stage without a record and without this store's mark may hold the only
//! copy of a file that the user saved, and is never touched.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use takeback_store::{RewindId, disk};

use super::{Stage, stage_name};
use crate::worktree::root::{Access, Root, is_no_folder, names_in};
use crate::worktree::scope::{OWN_FOLDER, STAGE_PREFIX};

const MARK_PREFIX: &[u8] = b"unpromised-";

/// The name of the file by which a store recognises stages that it made and never promised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(Vec<u8>);

impl Mark {
    /// The mark of the store in this folder, whose path must be canonical.
    #[must_use]
    pub fn of(store_dir: &Path) -> Self {
        let hash = blake3::hash(store_dir.as_os_str().as_bytes()).to_hex();
        Self([MARK_PREFIX, &hash.as_bytes()[..16]].concat())
    }
}

impl Stage {
    pub(super) fn set_mark(&self, mark: &Mark) -> io::Result<()> {
        disk::create_file(&self.folder, &mark.0).map(drop)
    }

    /// Marks of any store: this store may have been in another folder when it made the stage.
    pub(super) fn remove_marks(&self) -> io::Result<()> {
        let names = names_in(&self.folder)?;
        let mut marks = names.iter().filter(|name| name.starts_with(MARK_PREFIX));
        marks.try_for_each(|mark| disk::unlink(&self.folder, mark))
    }

    /// The stage of a rewind, if there is a folder of that name.
    fn find(root: &Root, id: RewindId) -> io::Result<Option<Self>> {
        let Some(holder) = own_folder(root)? else { return Ok(None) };
        match Self::existing(holder, stage_name(id)) {
            Err(error) if is_no_folder(&error) => Ok(None),
            found => found.map(Some),
        }
    }
}

/// The folder that stages are in. A file or a link of that name is the user's and has no stages.
fn own_folder(root: &Root) -> io::Result<Option<OwnedFd>> {
    match root.folder(OWN_FOLDER, Access::Read) {
        Err(error) if is_no_folder(&error) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Removes Takeback's own folder if it exists and is empty.
pub fn remove_own_folder(root: &Root) -> io::Result<()> {
    match own_folder(root)? {
        Some(own) if names_in(&own)?.is_empty() => {}
        _ => return Ok(()),
    }
    match disk::remove_folder(root, OWN_FOLDER) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed,
    }
}

/// The rewinds whose stages, by name, are in Takeback's own folder.
pub fn stages(root: &Root) -> io::Result<Vec<RewindId>> {
    let Some(holder) = own_folder(root)? else { return Ok(Vec::new()) };
    let ids = names_in(&holder)?.into_iter().filter_map(|name| {
        let id = std::str::from_utf8(name.strip_prefix(STAGE_PREFIX)?).ok()?.parse().ok()?;
        (stage_name(id) == name).then_some(id)
    });
    Ok(ids.collect())
}

/// Whether a stage without a record holds no user's file: it has the mark, or is empty. `false` if it is
/// not a folder or cannot be read.
#[must_use]
pub fn is_unclaimed(root: &Root, id: RewindId, mark: &Mark) -> bool {
    let names =
        Stage::find(root, id).and_then(|stage| stage.map(|s| names_in(&s.folder)).transpose());
    matches!(names, Ok(Some(names)) if names.is_empty() || names.contains(&mark.0))
}

/// Removes a stage without a record if it is unclaimed; returns whether it was.
pub fn clear_stage(root: &Root, id: RewindId, mark: &Mark) -> io::Result<bool> {
    let Some(stage) = Stage::find(root, id)? else { return Ok(false) };
    let names = names_in(&stage.folder)?;
    if !names.is_empty() {
        if !names.contains(&mark.0) {
            return Ok(false);
        }
        // The mark is removed last: after a crash the rest is still known to be unclaimed.
        for name in names.iter().filter(|name| **name != mark.0) {
            disk::unlink(&stage.folder, name)?;
        }
        disk::unlink(&stage.folder, &mark.0)?;
    }
    stage.close(root)?;
    Ok(true)
}

/// Removes the mark of a stage whose rewind was promised, if the stage exists.
pub fn remove_marks(root: &Root, id: RewindId) -> io::Result<()> {
    Stage::find(root, id)?.map_or(Ok(()), |stage| stage.remove_marks())
}
