//! One folder of a scan: each of its names is passed over, as it was, or looked at.

use std::cell::OnceCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use rustix::fs::FileType;
use takeback_store::{Entry, NotCapturedReason};

use super::blobs::Blobs;
use super::first_pass::excludes_of;
use super::ignored::UNCOVERED;
use super::tasks::Task;
use super::walk::Part;
use super::walk::Walk;
use super::{ObservedChange, is_unread, join, parent, valid};
use crate::worktree::fingerprint::{Fingerprint, Stat, stat};
use crate::worktree::index::{Child, Folder, Kind, Known};
use crate::worktree::look::{Bytes, Looked, look_at};
use crate::worktree::scope::{
    By, Coverage, Inside, OWN_FOLDER, OutReason, Rules, is_internal_name, is_stage, may_be_derived,
};

/// The rules that hold in a folder.
pub(super) struct FolderRules {
    pub(super) rules: Arc<Rules>,
    /// Whether the folder is ignored, or is in one that is.
    pub(super) inside: Inside,
    /// The same, by the rules that are trusted.
    pub(super) inside_by_trusted: Inside,
}

/// One folder being visited.
pub(super) struct Visit<'a, 'w> {
    pub(super) walk: &'a Walk<'w>,
    pub(super) task: &'a Task,
    pub(super) folder: OwnedFd,
    /// As they are now; none: those that are known.
    pub(super) names: Option<Rc<Vec<Vec<u8>>>>,
    pub(super) known: Option<&'a Folder>,
    pub(super) rules: OnceCell<FolderRules>,
    pub(super) part: &'a mut Part,
    pub(super) below: &'a mut Vec<Task>,
    pub(super) blobs: &'a Blobs<'a>,
}

impl<'a, 'w> Visit<'a, 'w> {
    /// What is known of all its names from now on; `None`: the time is up.
    pub(super) fn children(&mut self) -> Option<Vec<Child>> {
        let old = self.known.map(|folder| folder.children.as_slice()).unwrap_or_default();
        match self.names.clone() {
            Some(names) => self.listed(&names, old),
            None => self.same_names(old),
        }
    }

    /// The names are those that were known.
    fn same_names(&mut self, old: &[Child]) -> Option<Vec<Child>> {
        let same = &old[..self.task.same.unwrap_or(0).min(old.len())];
        let files = same.iter().filter(|child| child.known.brief(b"").kind == Kind::Kept).count();
        self.part.stats.files += files as u64;
        self.walk.counter.files(files as u64);
        let mut children = Vec::with_capacity(old.len());
        for (at, child) in old.iter().enumerate() {
            if self.walk.is_over() {
                return None;
            }
            // A folder's mode is its own: that the files before and after it are the same says nothing.
            if at < same.len() && child.known.brief(b"").kind != Kind::Folder {
                children.push(child.clone());
                continue;
            }
            match self.name(&child.name, Some(&child.known)) {
                Some(known) => children.push(Child { name: child.name.clone(), known }),
                None => self.gone(child),
            }
        }
        Some(children)
    }

    fn listed(&mut self, names: &[Vec<u8>], mut old: &[Child]) -> Option<Vec<Child>> {
        let mut children = Vec::with_capacity(names.len());
        for name in names {
            if self.walk.is_over() {
                return None;
            }
            while let Some((gone, rest)) =
                old.split_first().filter(|(child, _)| *child.name < **name)
            {
                self.gone(gone);
                old = rest;
            }
            let before = match old.split_first() {
                Some((child, rest)) if *child.name == **name => {
                    old = rest;
                    Some(child)
                }
                _ => None,
            };
            if let Some(known) = self.name(name, before.map(|child| &child.known)) {
                children.push(Child { name: name.as_slice().into(), known });
            } else if let Some(gone) = before {
                self.gone(gone);
            }
        }
        old.iter().for_each(|child| self.gone(child));
        Some(children)
    }

    /// Whether a name is in this folder.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        match (&self.names, self.known) {
            (Some(names), _) => names.binary_search_by(|n| n.as_slice().cmp(name)).is_ok(),
            (None, Some(known)) => known.child(name).is_some(),
            (None, None) => false,
        }
    }

    /// Whether it is a repository, and the fingerprint of the rules that one keeps for itself.
    pub(super) fn repository(&self) -> (bool, Option<Fingerprint>) {
        let repository = match &self.names {
            Some(_) => self.has(b".git"),
            None => self.known.is_some_and(|known| known.repository),
        };
        (repository, if repository { excludes_of(&self.folder) } else { None })
    }

    /// Read when they are first needed.
    pub(super) fn rules(&self) -> &FolderRules {
        self.rules.get_or_init(|| {
            let path = &self.task.path;
            let above = match &self.task.above {
                None if !path.is_empty() => Some(self.walk.rules_of(parent(path))),
                above => above.clone(),
            };
            let (repository, _) = self.repository();
            let has = |name: &[u8]| self.has(name);
            let distrusted = self.walk.distrusted;
            let rules =
                Rules::read(above.as_ref(), path, &self.folder, repository, distrusted, has);
            let inside = rules.inside(path, By::All);
            let inside_by_trusted = match inside {
                Inside::Plain => Inside::Plain,
                _ => rules.inside(path, By::Trusted),
            };
            FolderRules { rules, inside, inside_by_trusted }
        })
    }

    /// What is known of a name from now on; `None`: nothing stands there, or nothing that counts.
    fn name(&mut self, name: &[u8], before: Option<&Known>) -> Option<Known> {
        if is_internal_name(name) {
            return None;
        }
        let seen = match stat(&self.folder, name) {
            Ok(Some(seen)) => seen,
            Ok(None) => return None,
            Err(_) => return Some(self.unsearched(name, before)),
        };
        let path = join(&self.task.path, name);
        if before.is_none() && self.is_surfaced() {
            self.part.unread.surfaced.push(valid(path.clone()));
        }
        let is_new = before.is_none() && self.listed_before(None) == Entry::Absent;
        if is_new && self.is_in_ignored() {
            self.part.new_in_ignored.push(valid(path.clone()));
        }
        if is_stage(&path) {
            self.stage(path, before)
        } else if seen.kind == FileType::Directory {
            self.subfolder(path, &seen, before)
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
        // It stays that until it is gone: what is in it by now, nobody has seen come.
        if let Some(left) = before.filter(|known| known.is_left()) {
            return Some(left.clone());
        }
        if let Some(known) = before.filter(|known| known.is_watched_as(seen)) {
            return Some(known.clone());
        }
        let coverage =
            if is_known || own { Coverage::In } else { self.cover_folder(&path, before) };
        if coverage == Coverage::Precious && self.has_too_many(&path) {
            return Some(self.watch_from_outside(path, seen, before));
        }
        match coverage {
            Coverage::Out(reason) => return Some(passed_over(reason)),
            Coverage::Left(reason) => return Some(self.leave(path, before, reason)),
            Coverage::In | Coverage::Precious => {}
        }
        let precious = match before {
            Some(Known::Entry { precious: true, .. }) => true,
            // An index made again from the log does not know which folders are ignored.
            Some(Known::Entry { .. }) => self.is_forgotten() && self.is_ignored_folder(&path),
            _ => coverage == Coverage::Precious,
        };
        let entry = Entry::Dir { mode: seen.mode() };
        let listed = self.listed_before(before);
        let mut was = self.before(before);
        if was == Entry::Absent && coverage == Coverage::Precious {
            self.part.new_in_ignored.push(valid(path.clone()));
            was = Entry::Unknown;
        }
        // One that is known is looked at by itself.
        if !self.walk.before.has_folder(&path) || self.walk.strays.contains(&path) {
            self.below.push(Task {
                was_absent: !matches!(listed, Entry::Dir { .. } | Entry::Unknown)
                    && !listed.is_unreadable(),
                surfaced: before.is_none() && self.is_surfaced(),
                path: path.clone(),
                above: Some(Arc::clone(&self.rules().rules)),
                same: None,
            });
        }
        if own {
            return None;
        }
        self.differs(path, was, &entry, false);
        Some(Known::Entry { entry, fingerprint: None, precious })
    }

    fn file(
        &mut self,
        path: Vec<u8>,
        name: &[u8],
        seen: &Stat,
        before: Option<&Known>,
    ) -> Option<Known> {
        if matches!(before, Some(Known::Entry { entry, .. }) if entry.is_dir() || entry.is_unreadable())
        {
            self.below_gone(&path);
        }
        if !matches!(seen.kind, FileType::RegularFile | FileType::Symlink) {
            return Some(self.special(path, before));
        }
        self.walk.counter.files(1);
        let (entry, fingerprint, precious) = match before {
            // The log says that it changed and was not covered: there may be room by now.
            Some(Known::Entry { entry, .. }) if *entry == UNCOVERED && self.is_precious(&path) => {
                self.precious(path, seen, before);
                return None;
            }
            Some(Known::Entry { entry, fingerprint, precious }) => {
                // An index made again from the log does not know which files are ignored.
                let forgotten = fingerprint.is_none() && !precious;
                let precious = *precious || forgotten && self.is_precious(&path);
                (Some(entry), *fingerprint, precious)
            }
            _ => {
                match self.cover_file(&path, before) {
                    Coverage::In | Coverage::Left(_) => {}
                    Coverage::Out(reason) => return Some(passed_over(reason)),
                    Coverage::Precious => {
                        self.precious(path, seen, before);
                        return None;
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
            return Some(Known::Entry { entry: entry.clone(), fingerprint, precious });
        }
        let known = entry.and_then(Entry::digest);
        let blobs = self.blobs;
        let mut sink = |blob| blobs.put(blob);
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
        let mut bytes = Bytes::Keep { known, kept: self.walk.kept, sink: &mut sink, budget };
        let looked = look_at(&self.folder, name, seen, &mut bytes).unwrap_or(Looked {
            entry: Entry::NotCaptured { reason: NotCapturedReason::Unreadable },
            fingerprint: None,
        });
        if looked.entry == Entry::Absent {
            return None;
        }
        self.part.stats.read += u64::from(!is_unread(&looked.entry));
        self.part.note_links(seen, || path.clone());
        let was = self.before(before);
        let mut same_file = same_file;
        if looked.entry.is_unreadable() {
            self.part.unread.files.push(valid(path.clone()));
            // Only a fingerprint that moved says that it is another.
            same_file |= was.is_unreadable() && fingerprint.is_none();
        }
        let fingerprint = self.walk.lasting(&looked);
        self.differs(path, was, &looked.entry, same_file);
        Some(Known::Entry { entry: looked.entry, fingerprint, precious })
    }

    /// Whether the folder could not be read for a while, or came while the one it is in could not.
    fn is_surfaced(&self) -> bool {
        self.task.surfaced || self.known.is_some_and(|folder| folder.hidden)
    }

    /// The entry that a name had at the last scan.
    pub(super) fn before(&self, known: Option<&Known>) -> Entry {
        match self.listed_before(known) {
            Entry::Absent if known.is_none() && self.is_in_ignored() => Entry::Unknown,
            before => before,
        }
    }

    /// The same by what the last scan saw alone.
    pub(super) fn listed_before(&self, known: Option<&Known>) -> Entry {
        match known {
            Some(Known::Entry { entry, .. }) => entry.clone(),
            Some(Known::Skipped { .. }) => Entry::Unknown,
            None => {
                let listed = self.known.is_some_and(|folder| folder.listed);
                if listed || self.task.was_absent { Entry::Absent } else { Entry::Unknown }
            }
        }
    }

    pub(super) fn differs(&mut self, path: Vec<u8>, before: Entry, after: &Entry, same_file: bool) {
        let observed =
            ObservedChange { path: valid(path), before, after: after.clone(), same_file };
        self.part.found.extend(Some(observed).filter(ObservedChange::is_a_change));
    }

    /// Another file system hides what was known here; it is still there, below.
    fn mounted_over(&mut self, path: Vec<u8>, before: Option<&Known>) -> Known {
        match before {
            Some(known @ Known::Entry { .. }) => {
                self.part.skipped.push((valid(path), OutReason::OtherFileSystem));
                known.clone()
            }
            _ => passed_over(OutReason::OtherFileSystem),
        }
    }

    /// A device, socket or pipe, never opened. If it took a known path's place, the log says so.
    fn special(&mut self, path: Vec<u8>, before: Option<&Known>) -> Known {
        match before {
            Some(Known::Entry { entry, .. }) => {
                let after = Entry::NotCaptured { reason: NotCapturedReason::Special };
                self.differs(path.clone(), entry.clone(), &after, false);
                self.part.skipped.push((valid(path), OutReason::Special));
                Known::Entry { entry: after, fingerprint: None, precious: false }
            }
            _ => passed_over(OutReason::Special),
        }
    }

    fn gone(&mut self, child: &Child) {
        // An ignored file waits for the budget to be divided: it may be passed over again.
        let waits =
            child.known.is_skipped() && !matches!(stat(&self.folder, &child.name), Ok(None));
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
            // Whoever made the stage took it away.
            Known::Skipped { why: OutReason::Reserved, .. } => {}
            // Nobody can bring it back, but everybody can be told, unless it can be made again.
            Known::Skipped { .. } if !may_be_derived(self.walk.options, &child.name) => {
                self.differs(path, Entry::Unknown, &Entry::Absent, false);
            }
            Known::Skipped { .. } => {}
        }
    }

    fn below_gone(&mut self, path: &[u8]) {
        let Some(folder) = self.walk.before.folder(path) else { return };
        self.part.dropped.push(path.to_vec());
        for child in &folder.children {
            self.gone_from(join(path, &child.name), child);
        }
    }
}

pub(super) fn passed_over(why: OutReason) -> Known {
    Known::Skipped { why, fingerprint: None }
}
