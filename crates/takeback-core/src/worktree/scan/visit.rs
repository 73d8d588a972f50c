//! One folder of a scan: each of its names is passed over, as it was, or looked at.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use rustix::fs::FileType;
use takeback_store::{Entry, Lack, PackedBlob};

use super::{Observed, Part, Task, Walk, is_unread, join, valid};
use crate::worktree::fingerprint::{Stat, stat};
use crate::worktree::index::{Child, Known};
use crate::worktree::look::{Bytes, look_at};
use crate::worktree::scope::{
    Coverage, OUTSIDE_STAGE_PREFIX, OWN_FOLDER, OutReason, Rules, STAGE_PREFIX, is_internal_name,
    may_be_derived,
};

/// One folder being read.
pub(super) struct Visit<'a, 'w> {
    pub(super) walk: &'a Walk<'w>,
    pub(super) task: &'a Task,
    pub(super) folder: OwnedFd,
    pub(super) names: &'a [Vec<u8>],
    pub(super) rules: Arc<Rules>,
    /// The folder is known but by now ignored: nothing new in it is covered.
    pub(super) in_ignored: bool,
    pub(super) part: &'a mut Part,
    pub(super) below: &'a mut Vec<Task>,
    pub(super) blobs: &'a SyncSender<PackedBlob>,
}

impl Visit<'_, '_> {
    /// What is known of a name from now on; `None`: nothing stands there, or nothing that counts.
    pub(super) fn name(
        &mut self,
        name: &[u8],
        before: Option<&Known>,
    ) -> io::Result<Option<Known>> {
        if is_internal_name(name)
            || name.starts_with(OUTSIDE_STAGE_PREFIX)
            || (self.task.path == OWN_FOLDER && name.starts_with(STAGE_PREFIX))
        {
            return Ok(None);
        }
        let seen = match stat(&self.folder, name) {
            Ok(Some(seen)) => seen,
            Ok(None) => return Ok(None),
            // A folder that may be listed but not searched: what was known in it stays known.
            Err(_) => return Ok(Some(before.cloned().unwrap_or(Known::Skipped))),
        };
        let path = join(&self.task.path, name);
        if seen.kind == FileType::Directory {
            Ok(self.subfolder(path, &seen, before))
        } else {
            self.file(path, name, &seen, before)
        }
    }

    fn subfolder(&mut self, path: Vec<u8>, seen: &Stat, before: Option<&Known>) -> Option<Known> {
        let own = path == OWN_FOLDER;
        let is_known = matches!(before, Some(Known::Entry { .. }));
        if seen.device != self.walk.root.device {
            return Some(self.mounted_over(path, before));
        }
        let coverage = if is_known || own {
            Coverage::In
        } else {
            self.rules.cover_folder(self.walk.options, &path, self.names, self.in_ignored)
        };
        if let Coverage::Out(reason) = coverage {
            return Some(self.skip(path, reason));
        }
        let entry = Entry::Dir { mode: seen.mode() };
        let was = self.before(before);
        self.below.push(Task {
            fingerprint: Some(seen.fingerprint),
            was_absent: match &was {
                Entry::Dir { .. } | Entry::Unknown => false,
                _ => !own,
            },
            path: path.clone(),
            above: Some(Arc::clone(&self.rules)),
        });
        if own {
            return None;
        }
        self.differs(path, was, &entry, false);
        Some(Known::Entry { entry, fingerprint: None, precious: false })
    }

    fn file(
        &mut self,
        path: Vec<u8>,
        name: &[u8],
        seen: &Stat,
        before: Option<&Known>,
    ) -> io::Result<Option<Known>> {
        if !matches!(seen.kind, FileType::RegularFile | FileType::Symlink) {
            return Ok(Some(self.special(path, before)));
        }
        self.walk.counter.files(1);
        let (entry, fingerprint, precious) = match before {
            Some(Known::Entry { entry, fingerprint, precious }) => {
                // An index made again from the log does not know which files are ignored.
                let forgotten = fingerprint.is_none() && !precious;
                let precious = *precious
                    || forgotten
                        && self.rules.cover_file(&path, self.in_ignored) == Coverage::Precious;
                (Some(entry), *fingerprint, precious)
            }
            _ => {
                match self.rules.cover_file(&path, self.in_ignored) {
                    Coverage::In => {}
                    Coverage::Out(reason) => return Ok(Some(self.skip(path, reason))),
                    Coverage::Precious => {
                        let was = self.before(before);
                        self.part.precious.push((valid(path), *seen, was));
                        return Ok(None);
                    }
                }
                (None, None, false)
            }
        };
        self.part.stats.files += 1;
        let same_file = fingerprint == Some(seen.fingerprint);
        if let Some(entry) = entry
            && same_file
            && !self.walk.reads_later(entry)
        {
            self.part.note_links(seen, || path);
            return Ok(Some(Known::Entry { entry: entry.clone(), fingerprint, precious }));
        }
        let known = entry.and_then(Entry::digest);
        let blobs = self.blobs;
        // The receiver lives as long as any reader: a failed send cannot happen.
        let mut sink = |blob| drop(blobs.send(blob));
        let is_likely = |entry: &Entry| match entry {
            Entry::File { size, mode, .. } => {
                fingerprint.is_none() && (*size, *mode) == (seen.fingerprint.size, seen.mode())
            }
            _ => false,
        };
        let budget = if entry.is_some_and(is_likely) {
            self.walk.budget.to_confirm()
        } else {
            self.walk.budget
        };
        let mut bytes = Bytes::Keep { known, sink: &mut sink, budget };
        let looked = look_at(&self.folder, name, seen, &mut bytes)?;
        if looked.entry == Entry::Absent {
            return Ok(None);
        }
        self.part.stats.read += u64::from(!is_unread(&looked.entry));
        self.part.note_links(seen, || path.clone());
        let was = self.before(before);
        let fingerprint = self.walk.lasting(&looked);
        self.differs(path, was, &looked.entry, same_file);
        Ok(Some(Known::Entry { entry: looked.entry, fingerprint, precious }))
    }

    /// The entry that a name had at the last scan.
    fn before(&self, known: Option<&Known>) -> Entry {
        match known {
            Some(Known::Entry { entry, .. }) => entry.clone(),
            Some(Known::Skipped) => Entry::Unknown,
            None => {
                let listed = self.walk.before.folder(&self.task.path).is_some_and(|f| f.listed);
                if listed || self.task.was_absent { Entry::Absent } else { Entry::Unknown }
            }
        }
    }

    fn differs(&mut self, path: Vec<u8>, before: Entry, after: &Entry, same_file: bool) {
        let observed = Observed { path: valid(path), before, after: after.clone(), same_file };
        self.part.found.extend(Some(observed).filter(Observed::is_a_change));
    }

    fn skip(&mut self, path: Vec<u8>, reason: OutReason) -> Known {
        self.part.skipped.push((valid(path), reason));
        Known::Skipped
    }

    /// Another file system hides what was known here; it is still there, below.
    fn mounted_over(&mut self, path: Vec<u8>, before: Option<&Known>) -> Known {
        if let Some(folder) = self.walk.before.folder(&path) {
            self.part.folders.push((path.clone(), Arc::new(folder.unread())));
            self.walk.keep_below(&path, Some(folder), self.part);
        }
        self.skip(path, OutReason::OtherFileSystem);
        before.cloned().unwrap_or(Known::Skipped)
    }

    /// A device, socket or pipe, never opened. If it took a known path's place, the log says so.
    fn special(&mut self, path: Vec<u8>, before: Option<&Known>) -> Known {
        let known = match before {
            Some(Known::Entry { entry, .. }) => {
                let after = Entry::NotCaptured { lack: Lack::Special };
                self.below_gone(&path);
                self.differs(path.clone(), entry.clone(), &after, false);
                Known::Entry { entry: after, fingerprint: None, precious: false }
            }
            _ => Known::Skipped,
        };
        self.part.skipped.push((valid(path), OutReason::Special));
        known
    }

    pub(super) fn gone(&mut self, child: &Child) {
        // An ignored file waits for the budget to be divided: it may be passed over again.
        let waits =
            child.known == Known::Skipped && !matches!(stat(&self.folder, &child.name), Ok(None));
        if !waits {
            self.gone_from(join(&self.task.path, &child.name), child);
        }
    }

    fn gone_from(&mut self, path: Vec<u8>, child: &Child) {
        match &child.known {
            Known::Entry { entry, .. } => {
                self.below_gone(&path);
                self.differs(path, entry.clone(), &Entry::Absent, false);
            }
            // Nobody can bring it back, but everybody can be told, unless it can be made again.
            Known::Skipped if !may_be_derived(self.walk.options, &child.name) => {
                self.differs(path, Entry::Unknown, &Entry::Absent, false);
            }
            Known::Skipped => {}
        }
    }

    fn below_gone(&mut self, path: &[u8]) {
        for child in
            self.walk.before.folder(path).map(|f| f.children.as_slice()).unwrap_or_default()
        {
            self.gone_from(join(path, &child.name), child);
        }
    }
}
