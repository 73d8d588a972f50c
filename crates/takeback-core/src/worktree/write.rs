//! The one place that changes the user's files.
//!
//! New files are made in a *stage*, a private folder on the same file system, and are exchanged with the
//! files in the workspace; a removed file is moved into the stage first. So no file of the user is
//! overwritten or deleted: it stays in the stage until it was checked. Every name is reached from an open
//! folder; links are never followed.

mod leftover_stages;

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
pub(crate) use takeback_store::platform::is_unsupported;
use takeback_store::platform::lacks_unnamed_files;
use takeback_store::{Entry, RewindId, Store, StoreError, WorkPath, disk};

use super::look::{Bytes, LookResult, look};
use super::root::{Access, Root, is_no_folder};
use super::scope::{OUTSIDE_STAGE_PREFIX, OWN_FOLDER, STAGE_PREFIX};
use crate::platform::folder::{open_file, open_folder};
pub use leftover_stages::{
    Mark, clear_stage, is_unclaimed, remove_marks, remove_own_folder, stages,
};

/// A private folder next to the files that a rewind changes.
#[derive(Debug)]
pub struct Stage {
    /// The folder that holds the stage, and the stage's name in it.
    holder: OwnedFd,
    name: Vec<u8>,
    folder: OwnedFd,
}

/// Why nothing was staged or placed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum StageError {
    #[error("cannot stage {path}")]
    Disk { path: String, source: io::Error },
    #[error("a file or link called .takeback is in the way of rewinds")]
    InTheWay,
    #[error("cannot restore {path}")]
    Contents { path: String, source: Box<StoreError> },
}

/// A place in the stage, by the number of the step it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The file to place; after an exchange, the displaced one.
    New(usize),
    /// A file that was moved away.
    Old(usize),
    /// A file that is being made; once complete it becomes `New`.
    Part(usize),
}

impl Slot {
    fn name(self) -> Vec<u8> {
        match self {
            Self::New(step) => format!("new-{step}"),
            Self::Old(step) => format!("old-{step}"),
            Self::Part(step) => format!("part-{step}"),
        }
        .into_bytes()
    }
}

impl Stage {
    /// A new stage in Takeback's own folder, for a rewind that is not promised yet. Its mark is written
    /// before anything else.
    pub fn make_marked(root: &Root, id: RewindId, mark: &Mark) -> Result<Self, StageError> {
        let holder = make_own_folder(root)?;
        let name = stage_name(id);
        disk::make_folder(&holder, &name, 0o700).map_err(not_staged)?;
        let stage = Self::existing(holder, name).map_err(not_staged)?;
        stage.set_mark(mark).map_err(not_staged)?;
        Ok(stage)
    }

    /// The stage of a promised rewind in Takeback's own folder, made if missing. From now on it may hold
    /// a user's file, so its mark is removed.
    pub fn open_promised(root: &Root, id: RewindId) -> Result<Self, StageError> {
        let stage = Self::in_folder(make_own_folder(root)?, stage_name(id)).map_err(not_staged)?;
        stage.remove_marks().map_err(not_staged)?;
        Ok(stage)
    }

    /// The stage of a rewind next to files outside the workspace.
    pub fn open_outside(root: &Root, id: RewindId) -> io::Result<Self> {
        let holder = root.folder(b"", Access::Read)?;
        Self::in_folder(holder, [OUTSIDE_STAGE_PREFIX, id.to_string().as_bytes()].concat())
    }

    fn in_folder(holder: OwnedFd, name: Vec<u8>) -> io::Result<Self> {
        make_if_missing(&holder, &name, 0o700)?;
        Self::existing(holder, name)
    }

    fn existing(holder: OwnedFd, name: Vec<u8>) -> io::Result<Self> {
        let folder = open_folder(&holder, &name, Access::Read)?;
        Ok(Self { holder, name, folder })
    }

    /// Looks at a slot.
    pub fn look(&self, slot: Slot) -> io::Result<LookResult> {
        look(&self.folder, &slot.name(), &mut Bytes::Hash)
    }

    /// The path of a slot for display, relative to the folder that the stage belongs to.
    pub fn place_of(&self, slot: Slot) -> String {
        let own = if self.name.starts_with(STAGE_PREFIX) { OWN_FOLDER } else { b"." };
        let place = [own, b"/", &self.name, b"/", &slot.name()].concat();
        String::from_utf8_lossy(&place).into_owned()
    }

    /// Makes `entry`, a file or a link, in the slot `New` of a step, which must be empty: complete,
    /// durable, and with verified bytes. `place`: its final path, below the root.
    pub fn make(
        &self,
        step: usize,
        entry: &Entry,
        store: &dyn Store,
        place: (&Root, &WorkPath),
    ) -> Result<(), StageError> {
        let (root, path) = place;
        let failed = |source| StageError::Disk { path: path.display(), source };
        match entry {
            Entry::File { digest, size, mode } => {
                let mut lost = None;
                let mut write = |file: &mut File| {
                    let mut end = 0;
                    let read = store.read(digest, &mut |part| {
                        end += part.len() as u64;
                        write_with_holes(file, part, end == *size)
                    });
                    read.map_err(|error| {
                        lost = Some(error);
                        io::ErrorKind::Other.into()
                    })
                };
                let made = if root.has_unnamed_files() {
                    disk::pass_make_file().map_err(failed)?;
                    match self.make_unnamed(step, *mode, place, &mut write) {
                        Err(error) if must_have_a_name(&error) => {
                            if lacks_unnamed_files(&error) {
                                root.without_unnamed_files();
                            }
                            self.make_named(step, *mode, &mut write)
                        }
                        made => made,
                    }
                } else {
                    self.make_named(step, *mode, &mut write)
                };
                made.map_err(|error| match lost {
                    Some(error) => not_brought_back(path, error),
                    None => failed(error),
                })
            }
            Entry::Symlink { target } => {
                self.clear_part(step).map_err(failed)?;
                disk::create_symlink(&self.folder, &Slot::Part(step).name(), target)
                    .and_then(|()| self.finish(step))
                    .map_err(failed)
            }
            other => unreachable!("only files and links are staged, not {other:?}"),
        }
    }

    /// As [`Self::make`], for contents in memory, in a thread that passes no crash points: the caller has
    /// passed those of [`disk::pass_make_file`].
    pub fn make_of(
        &self,
        step: usize,
        mode: u32,
        contents: &[u8],
        place: (&Root, &WorkPath),
    ) -> io::Result<()> {
        let mut write = |file: &mut File| write_with_holes(file, contents, true);
        self.make_unnamed(step, mode, place, &mut write)
    }

    /// As [`Self::make`], with a file that has no name until it is complete. It is made near its place:
    /// if very many files are created in one folder, a file system may take long to find space.
    fn make_unnamed(
        &self,
        step: usize,
        mode: u32,
        (root, path): (&Root, &WorkPath),
        write: &mut dyn FnMut(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let name = Slot::New(step).name();
        match root.parent_of(path) {
            Ok(near) => disk::make_file(near, &self.folder, &name, mode, write),
            Err(_) => disk::make_file(&self.folder, &self.folder, &name, mode, write),
        }
    }

    /// As [`Self::make`], with the slot `Part`, which becomes `New`.
    fn make_named(
        &self,
        step: usize,
        mode: u32,
        write: &mut dyn FnMut(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        self.clear_part(step)?;
        let mut file = disk::create_file(&self.folder, &Slot::Part(step).name())?;
        write(&mut file)?;
        let file = OwnedFd::from(file);
        disk::set_mode(&file, mode)?;
        disk::sync_staged(&file)?;
        self.finish(step)
    }

    /// Removes what an earlier attempt left.
    fn clear_part(&self, step: usize) -> io::Result<()> {
        match disk::unlink(&self.folder, &Slot::Part(step).name()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            cleared => cleared,
        }
    }

    /// Makes the slot `Part` of a step a hard link to the file at `name`. Returns whether that is
    /// `entry`, so that [`Self::finish`] may follow. Nothing is ever written through it.
    fn link(&self, step: usize, entry: &Entry, folder: impl AsFd, name: &[u8]) -> io::Result<bool> {
        let part = Slot::Part(step);
        self.clear_part(step)?;
        match disk::link(folder, name, &self.folder, &part.name()) {
            Ok(()) => Ok(self.look(part)?.entry == *entry),
            // The file system has no hard links, the file has too many, or it belongs to another user.
            Err(_) => Ok(false),
        }
    }

    /// As [`Self::link`], for the file at a path below `root`.
    pub fn link_path(
        &self,
        step: usize,
        entry: &Entry,
        root: &Root,
        path: &WorkPath,
    ) -> io::Result<bool> {
        match root.parent_of(path) {
            Ok(folder) => self.link(step, entry, folder, path.file_name()),
            Err(_) => Ok(false),
        }
    }

    /// As [`Self::link`], for a file in a slot of this stage.
    pub fn link_slot(&self, step: usize, entry: &Entry, slot: Slot) -> io::Result<bool> {
        self.link(step, entry, &self.folder, &slot.name())
    }

    /// Moves the slot `Part` to `New`, which must be empty: a file in `New` is always complete. This is
    /// the same move as into the workspace, so a file system that cannot do it safely fails before
    /// anything was touched.
    pub fn finish(&self, step: usize) -> io::Result<()> {
        self.move_to_new_name(&Slot::Part(step).name(), &self.folder, &Slot::New(step).name())
    }

    /// Makes the names in the stage durable.
    pub fn sync(&self) -> io::Result<()> {
        disk::sync_staged(&self.folder)?;
        disk::sync_staged(&self.holder)
    }

    /// Exchanges the file in the slot with the one at `name`.
    pub fn exchange(&self, slot: Slot, folder: impl AsFd, name: &[u8]) -> io::Result<()> {
        disk::exchange(&self.folder, &slot.name(), folder, name)
    }

    /// Moves the file in the slot to `name`, which must not exist.
    pub fn place(&self, slot: Slot, folder: impl AsFd, name: &[u8]) -> io::Result<()> {
        self.move_to_new_name(&slot.name(), folder, name)
    }

    /// Moves the file at `name` into the slot, which must be empty.
    pub fn take_away(&self, slot: Slot, folder: impl AsFd, name: &[u8]) -> io::Result<()> {
        disk::take_away(folder, name, &self.folder, &slot.name())
    }

    /// Moves a file out of the stage; never replaces. Where a rename cannot guarantee that, the file gets
    /// a second name first, and its name in the stage is unlinked.
    fn move_to_new_name(&self, from: &[u8], to: impl AsFd, to_name: &[u8]) -> io::Result<()> {
        match disk::place(&self.folder, from, &to, to_name) {
            Err(error) if is_unsupported(&error) => {
                disk::link(&self.folder, from, &to, to_name)?;
                disk::unlink(&self.folder, from)
            }
            moved => moved,
        }
    }

    /// Deletes the file in a slot.
    pub fn discard(&self, slot: Slot) -> io::Result<()> {
        disk::unlink(&self.folder, &slot.name())
    }

    /// As [`Self::discard`], for many slots.
    pub fn discard_all(&self, slots: &[Slot]) -> Vec<io::Result<()>> {
        let names: Vec<Vec<u8>> = slots.iter().map(|slot| slot.name()).collect();
        disk::unlink_all(&self.folder, &names)
    }

    /// Removes the stage if it is empty, and Takeback's own folder if nothing else is in it.
    pub fn close(self, root: &Root) -> io::Result<()> {
        disk::remove_folder(&self.holder, &self.name)?;
        if self.name.starts_with(STAGE_PREFIX) { remove_own_folder(root) } else { Ok(()) }
    }
}

fn make_own_folder(root: &Root) -> Result<OwnedFd, StageError> {
    make_if_missing(root, OWN_FOLDER, 0o755).map_err(not_staged)?;
    root.folder(OWN_FOLDER, Access::Read).map_err(not_staged)
}

pub(crate) fn stage_name(id: RewindId) -> Vec<u8> {
    [STAGE_PREFIX, id.to_string().as_bytes()].concat()
}

fn not_staged(source: io::Error) -> StageError {
    match source {
        source if is_no_folder(&source) => StageError::InTheWay,
        source => StageError::Disk { path: ".takeback".to_owned(), source },
    }
}

pub(crate) fn not_brought_back(path: &WorkPath, error: StoreError) -> StageError {
    let path = path.display();
    match error {
        StoreError::Sink { source, .. } => StageError::Disk { path, source },
        source => StageError::Contents { path, source: Box::new(source) },
    }
}

/// Writes the next part of a file, with a hole for every block of zeros. The last block of the last part
/// is always written: it gives the file its length.
fn write_with_holes(file: &mut File, part: &[u8], last: bool) -> io::Result<()> {
    const BLOCK: usize = 64 << 10;
    static ZEROS: [u8; BLOCK] = [0; BLOCK];
    let mut blocks = part.chunks(BLOCK).peekable();
    while let Some(block) = blocks.next() {
        let is_last = last && blocks.peek().is_none();
        if *block == ZEROS[..block.len()] && !is_last {
            file.seek(SeekFrom::Current(block.len() as i64))?;
        } else {
            file.write_all(block)?;
        }
    }
    Ok(())
}

pub fn make_folder(folder: impl AsFd, name: &[u8], mode: u32) -> io::Result<()> {
    // Its owner must be able to fill it; the final mode is set last.
    disk::make_folder(folder, name, mode | 0o700)
}

/// Removes a folder if it is empty.
pub fn remove_empty_folder(folder: impl AsFd, name: &[u8]) -> io::Result<()> {
    disk::remove_folder(folder, name)
}

/// Sets all mode bits of a file.
pub fn set_file_mode(folder: impl AsFd, name: &[u8], mode: u32) -> io::Result<()> {
    disk::set_mode(&open_file(folder, name)?.into(), mode)
}

/// Sets the permission bits of a folder; set-group-id and sticky bit stay as they are.
pub fn set_folder_mode(folder: impl AsFd, name: &[u8], mode: u32) -> io::Result<()> {
    let special =
        |folder: &OwnedFd| Ok::<_, io::Error>(rustix::fs::fstat(folder)?.st_mode & 0o7000);
    match open_folder(&folder, name, Access::Read) {
        // Not even its owner may read it, but may set its mode.
        Err(Errno::ACCESS) => {
            let held = open_folder(&folder, name, Access::Reach)?;
            let special = special(&held)?;
            disk::set_mode_by_path(&held, mode | special)
        }
        opened => {
            let opened = opened?;
            let special = special(&opened)?;
            disk::set_mode(&opened, mode | special)
        }
    }
}

/// Makes folders' names durable.
pub fn sync_all(folders: &[OwnedFd]) -> Vec<io::Result<()>> {
    disk::sync_all(folders)
}

fn make_if_missing(folder: impl AsFd, name: &[u8], mode: u32) -> io::Result<()> {
    match disk::make_folder(folder, name, mode) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Whether a file could not be made without a name, or near its place, but may be with a name: the file
/// system has no unnamed files, the folder is not writable or on another file system, `/proc` is missing.
fn must_have_a_name(error: &io::Error) -> bool {
    let refusals = [Errno::ACCESS, Errno::PERM, Errno::NOENT, Errno::XDEV, Errno::ROFS];
    lacks_unnamed_files(error)
        || refusals.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
