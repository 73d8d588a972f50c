//! The one place that changes the user's files.
//!
//! New files are made in a *stage*, a private folder on the same file system, and change places with
//! what stands in the workspace; what is removed is moved into the stage first. So nothing of the
//! user's is ever overwritten or deleted without lying in the stage until it was checked. Every name
//! is reached from an open folder; links are never followed.

mod left;

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
pub(crate) use takeback_store::platform::is_unsupported;
use takeback_store::platform::lacks_unnamed_files;
use takeback_store::{Entry, RewindId, Store, StoreError, WorkPath, disk};

use super::look::{Bytes, Looked, look};
use super::root::{Access, Root, is_no_folder};
use super::scope::{OUTSIDE_STAGE_PREFIX, OWN_FOLDER, STAGE_PREFIX};
use crate::platform::folder::{open_file, open_folder};
pub use left::{Mark, clear_stage, is_nobodys, remove_marks, remove_own_folder, stages};

/// A private folder beside what a rewind changes.
#[derive(Debug)]
pub struct Stage {
    /// The folder that holds the stage, and the stage's name in it.
    holder: OwnedFd,
    name: Vec<u8>,
    folder: OwnedFd,
}

#[derive(Debug, thiserror::Error)]
pub enum StageError {
    #[error("cannot make {path} ready beside its place")]
    Disk { path: String, source: io::Error },
    #[error("a file or link called .takeback stands where rewinds are made ready")]
    InTheWay,
    #[error("cannot bring back {path}")]
    Contents { path: String, source: Box<StoreError> },
}

/// A place in the stage, by the number of the step it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// What is to be placed; after an exchange, what it displaced.
    New(usize),
    /// What was moved away.
    Old(usize),
    /// What is being made; once whole it becomes `New`.
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
    /// A new stage in the workspace's own folder, for a rewind that is not promised yet. Its mark is
    /// in it before anything else.
    pub fn make_marked(root: &Root, id: RewindId, mark: &Mark) -> Result<Self, StageError> {
        let holder = make_own_folder(root)?;
        let name = stage_name(id);
        disk::make_folder(&holder, &name, 0o700).map_err(not_staged)?;
        let stage = Self::existing(holder, name).map_err(not_staged)?;
        stage.set_mark(mark).map_err(not_staged)?;
        Ok(stage)
    }

    /// The stage of a promised rewind in the workspace's own folder, made if missing. What lies in it
    /// may be somebody's from now on: it has no mark.
    pub fn open_promised(root: &Root, id: RewindId) -> Result<Self, StageError> {
        let stage = Self::in_folder(make_own_folder(root)?, stage_name(id)).map_err(not_staged)?;
        stage.remove_marks().map_err(not_staged)?;
        Ok(stage)
    }

    /// The stage of a rewind beside files outside the workspace.
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

    /// What lies in a slot.
    pub fn look(&self, slot: Slot) -> io::Result<Looked> {
        look(&self.folder, &slot.name(), &mut Bytes::Hash)
    }

    /// Where a slot is, for people: from the folder that the stage belongs to.
    pub fn place_of(&self, slot: Slot) -> String {
        let own = if self.name.starts_with(STAGE_PREFIX) { OWN_FOLDER } else { b"." };
        let place = [own, b"/", &self.name, b"/", &slot.name()].concat();
        String::from_utf8_lossy(&place).into_owned()
    }

    /// Makes `entry`, a file or a link, in the slot `New` of a step, which must be empty: whole,
    /// durable, its bytes verified. `place` is where it will stand, below `root`.
    pub fn make(
        &self,
        step: usize,
        entry: &Entry,
        store: &dyn Store,
        root: &Root,
        place: &WorkPath,
    ) -> Result<(), StageError> {
        let failed = |source| StageError::Disk { path: place.display(), source };
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
                    match self.make_unnamed(step, *mode, root, place, &mut write) {
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
                    Some(error) => not_brought_back(place, error),
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

    /// As [`Self::make`], of a file whose contents are at hand, by a thread that comes to no crash
    /// points: whoever lets it has passed those of [`disk::pass_make_file`].
    pub fn make_of(
        &self,
        step: usize,
        mode: u32,
        contents: &[u8],
        root: &Root,
        place: &WorkPath,
    ) -> io::Result<()> {
        let mut write = |file: &mut File| write_with_holes(file, contents, true);
        self.make_unnamed(step, mode, root, place, &mut write)
    }

    /// As [`Self::make`], by a file that has no name until it is whole. FolderOpener its place: where very many
    /// come and go in one folder, a file system may look long for room.
    fn make_unnamed(
        &self,
        step: usize,
        mode: u32,
        root: &Root,
        place: &WorkPath,
        write: &mut dyn FnMut(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let name = Slot::New(step).name();
        match root.parent_of(place) {
            Ok(near) => disk::make_file(near, &self.folder, &name, mode, write),
            Err(_) => disk::make_file(&self.folder, &self.folder, &name, mode, write),
        }
    }

    /// As [`Self::make`]: as the slot `Part`, which becomes `New`.
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

    /// Removes what an earlier try left.
    fn clear_part(&self, step: usize) -> io::Result<()> {
        match disk::unlink(&self.folder, &Slot::Part(step).name()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            cleared => cleared,
        }
    }

    /// Makes the slot `Part` of a step by a further name of what stands at `name`; whether that is
    /// `entry`, and [`Self::finish`] may follow. Nothing is ever written through it.
    pub fn link(
        &self,
        step: usize,
        entry: &Entry,
        folder: impl AsFd,
        name: &[u8],
    ) -> io::Result<bool> {
        let part = Slot::Part(step);
        self.clear_part(step)?;
        match disk::link(folder, name, &self.folder, &part.name()) {
            Ok(()) => Ok(self.look(part)?.entry == *entry),
            // A file system without hard links, too many of them, somebody else's file.
            Err(_) => Ok(false),
        }
    }

    /// As [`Self::link`], of what lies in a slot of this stage.
    pub fn link_slot(&self, step: usize, entry: &Entry, slot: Slot) -> io::Result<bool> {
        self.link(step, entry, &self.folder, &slot.name())
    }

    /// What was made becomes the slot `New`, which must be empty: whatever lies there is whole. This
    /// is the same move as into the workspace, so that a file system which cannot do it safely says
    /// so before anything was touched.
    pub fn finish(&self, step: usize) -> io::Result<()> {
        self.move_to_new_name(&Slot::Part(step).name(), &self.folder, &Slot::New(step).name())
    }

    /// What was made is durable under its name when this returns.
    pub fn sync(&self) -> io::Result<()> {
        disk::sync_staged(&self.folder)?;
        disk::sync_staged(&self.holder)
    }

    /// Whatever lies in the slot and what stands at `name` change places.
    pub fn exchange(&self, slot: Slot, folder: impl AsFd, name: &[u8]) -> io::Result<()> {
        disk::exchange(&self.folder, &slot.name(), folder, name)
    }

    /// Gives what lies in the slot a name that nothing has.
    pub fn place(&self, slot: Slot, folder: impl AsFd, name: &[u8]) -> io::Result<()> {
        self.move_to_new_name(&slot.name(), folder, name)
    }

    /// Moves what stands at `name` into the slot, which must be empty.
    pub fn take_away(&self, slot: Slot, folder: impl AsFd, name: &[u8]) -> io::Result<()> {
        disk::take_away(folder, name, &self.folder, &slot.name())
    }

    /// Out of the stage; never replaces. Where a rename cannot promise that, the file gets a second
    /// name first: what is unlinked then is the stage's.
    fn move_to_new_name(&self, from: &[u8], to: impl AsFd, to_name: &[u8]) -> io::Result<()> {
        match disk::place(&self.folder, from, &to, to_name) {
            Err(error) if is_unsupported(&error) => {
                disk::link(&self.folder, from, &to, to_name)?;
                disk::unlink(&self.folder, from)
            }
            moved => moved,
        }
    }

    /// Removes what lies in a slot for good.
    pub fn discard(&self, slot: Slot) -> io::Result<()> {
        disk::unlink(&self.folder, &slot.name())
    }

    /// As [`Self::discard`], of many.
    pub fn discard_all(&self, slots: &[Slot]) -> Vec<io::Result<()>> {
        let names: Vec<Vec<u8>> = slots.iter().map(|slot| slot.name()).collect();
        disk::unlink_all(&self.folder, &names)
    }

    /// Removes the stage if it is empty, and the workspace's own folder if nothing else is in it.
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

/// Writes the next part of a file, with a hole for every block of nothing but zeros. The last block
/// of the last part is written in any case: it gives the file its length.
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
    // Its owner must be able to fill it; the mode it is to have comes last.
    disk::make_folder(folder, name, mode | 0o700)
}

/// Removes a folder if nothing is in it.
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
        // Not even its owner may look into it, but set its mode.
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

/// Whether a file could not be made without a name, or not near its place, but may be with one: the
/// file system has no others, its folder may not be written to or is on another one, `/proc` is not there.
fn must_have_a_name(error: &io::Error) -> bool {
    let refusals = [Errno::ACCESS, Errno::PERM, Errno::NOENT, Errno::XDEV, Errno::ROFS];
    lacks_unnamed_files(error)
        || refusals.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
