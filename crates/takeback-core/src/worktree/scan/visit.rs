//! Visits one folder: each of its names is skipped, unchanged, or looked at.

use std::cell::OnceCell;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use rustix::fs::FileType;
use takeback_store::{Entry, NotCapturedReason};

use super::blobs::Blobs;
use super::first_pass::excludes_of;
use super::ignored_files::UNCOVERED;
use super::tasks::Task;
use super::walk::Part;
use super::walk::Walk;
use super::{ObservedChange, is_unread, join, parent, valid};
use crate::worktree::fingerprint::{Fingerprint, Stat, stat};
use crate::worktree::index::{Child, Folder, Kind, KnownName};
use crate::worktree::look::{Bytes, LookResult, look_at};
use crate::worktree::scope::{
    Coverage, IgnoreState, OWN_FOLDER, OutReason, RuleSet, Rules, is_internal_name, is_stage,
    may_be_derived,
};

/// The rules that apply in a folder.
pub(super) struct FolderRules {
    pub(super) rules: Arc<Rules>,
    /// Whether the folder is ignored, or is in an ignored one.
    pub(super) inside: IgnoreState,
    /// The same, by the trusted rules.
    pub(super) inside_by_trusted: IgnoreState,
}

/// One folder being visited.
pub(super) struct Visit<'a, 'w> {
    pub(super) walk: &'a Walk<'w>,
    pub(super) task: &'a Task,
    pub(super) folder: OwnedFd,
    /// Its present names; none: the known ones.
    pub(super) names: Option<Rc<Vec<Vec<u8>>>>,
    pub(super) known: Option<&'a Folder>,
    pub(super) rules: OnceCell<FolderRules>,
    pub(super) part: &'a mut Part,
    pub(super) below: &'a mut Vec<Task>,
    pub(super) blobs: &'a Blobs<'a>,
}

impl<'a, 'w> Visit<'a, 'w> {
    /// The new children of the folder; `None`: the time is up.
    pub(super) fn children(&mut self) -> Option<Vec<Child>> {
        let old = self.known.map(|folder| folder.children.as_slice()).unwrap_or_default();
        match self.names.clone() {
            Some(names) => self.listed(&names, old),
            None => self.same_names(old),
        }
    }

    /// For a folder whose names are the known ones.
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
            // A folder's mode may have changed even if the files around it did not.
            if at < same.len() && child.known.brief(b"").kind != Kind::Folder {
                children.push(child.clone());
                continue;
            }
            match self.name(&child.name, Some(&child.known)) {
                Some(known) => children.push(Child { name: child.name.clone(), known }),
                None => self.record_removed(child),
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
                self.record_removed(gone);
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
                self.record_removed(gone);
            }
        }
        old.iter().for_each(|child| self.record_removed(child));
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

    /// Whether it is a repository, and the fingerprint of its own rules.
    pub(super) fn repository(&self) -> (bool, Option<Fingerprint>) {
        let repository = self.is_repository();
        (repository, if repository { excludes_of(&self.folder) } else { None })
    }

    fn is_repository(&self) -> bool {
        match &self.names {
            Some(_) => self.has(b".git"),
            None => self.known.is_some_and(|known| known.repository),
        }
    }

    /// The rules, read when first needed.
    pub(super) fn rules(&self) -> &FolderRules {
        self.rules.get_or_init(|| {
            let path = &self.task.path;
            let above = match &self.task.above {
                None if !path.is_empty() => Some(self.walk.rules_of(parent(path))),
                above => above.clone(),
            };
            let has = |name: &[u8]| match name {
                b".git" => self.is_repository(),
                name => self.has(name),
            };
            let rules = Rules::read(above.as_ref(), path, &self.folder, self.walk.distrusted, has);
            let inside = rules.inside(path, RuleSet::All);
            let inside_by_trusted = match inside {
                IgnoreState::Plain => IgnoreState::Plain,
                _ => rules.inside(path, RuleSet::Trusted),
            };
            FolderRules { rules, inside, inside_by_trusted }
        })
    }

    /// What is known of a name from now on; `None`: nothing is there, or nothing that is recorded.
    fn name(&mut self, name: &[u8], before: Option<&KnownName>) -> Option<KnownName> {
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

    fn subfolder(
        &mut self,
        path: Vec<u8>,
        seen: &Stat,
        before: Option<&KnownName>,
    ) -> Option<KnownName> {
        let own = path == OWN_FOLDER;
        let is_known = matches!(before, Some(KnownName::Entry { .. }));
        if seen.device != self.walk.root.device {
            return Some(self.mounted_over(path, before));
        }
        // It stays one path until it is gone: when its present contents were created is unknown.
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
            Coverage::Out(reason) => return Some(skipped_name(reason)),
            Coverage::Left(reason) => return Some(self.leave(path, before, reason)),
            Coverage::In | Coverage::Precious => {}
        }
        let precious = match before {
            Some(KnownName::Entry { precious: true, .. }) => true,
            // An index rebuilt from the log does not know which folders are ignored.
            Some(KnownName::Entry { .. }) => self.is_forgotten() && self.is_ignored_folder(&path),
            _ => coverage == Coverage::Precious,
        };
        let entry = Entry::Dir { mode: seen.mode() };
        let listed = self.listed_before(before);
        let mut was = self.before(before);
        if was == Entry::Absent && coverage == Coverage::Precious {
            self.part.new_in_ignored.push(valid(path.clone()));
            was = Entry::Unknown;
        }
        // A known folder is visited by a task of its own.
        if !self.walk.before.has_folder(&path) || self.walk.unvisited.contains(&path) {
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
        self.record_change(path, was, &entry, false);
        Some(KnownName::Entry { entry, fingerprint: None, precious })
    }

    fn file(
        &mut self,
        path: Vec<u8>,
        name: &[u8],
        seen: &Stat,
        before: Option<&KnownName>,
    ) -> Option<KnownName> {
        if matches!(before, Some(KnownName::Entry { entry, .. }) if entry.is_dir() || entry.is_unreadable())
        {
            self.record_removed_below(&path);
        }
        if !matches!(seen.kind, FileType::RegularFile | FileType::Symlink) {
            return Some(self.special(path, before));
        }
        self.walk.counter.files(1);
        let (entry, fingerprint, precious) = match before {
            // It changed and was not covered: there may be room now.
            Some(KnownName::Entry { entry, .. })
                if *entry == UNCOVERED && self.is_precious(&path) =>
            {
                self.precious(path, seen, before);
                return None;
            }
            Some(KnownName::Entry { entry, fingerprint, precious }) => {
                // An index rebuilt from the log does not know which files are ignored.
                let forgotten = fingerprint.is_none() && !precious;
                let precious = *precious || forgotten && self.is_precious(&path);
                (Some(entry), *fingerprint, precious)
            }
            _ => {
                match self.cover_file(&path, before) {
                    Coverage::In | Coverage::Left(_) => {}
                    Coverage::Out(reason) => return Some(skipped_name(reason)),
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
            return Some(KnownName::Entry { entry: entry.clone(), fingerprint, precious });
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
        let looked = look_at(&self.folder, name, seen, &mut bytes).unwrap_or(LookResult {
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
            // Only a changed fingerprint shows that it is another file.
            same_file |= was.is_unreadable() && fingerprint.is_none();
        }
        let fingerprint = self.walk.lasting_fingerprint(&looked);
        self.record_change(path, was, &looked.entry, same_file);
        Some(KnownName::Entry { entry: looked.entry, fingerprint, precious })
    }

    /// Whether the folder was unreadable for a while, or was created while its parent was.
    fn is_surfaced(&self) -> bool {
        self.task.surfaced || self.known.is_some_and(|folder| folder.hidden)
    }

    /// The entry that a name had at the last scan.
    pub(super) fn before(&self, known: Option<&KnownName>) -> Entry {
        match self.listed_before(known) {
            Entry::Absent if known.is_none() && self.is_in_ignored() => Entry::Unknown,
            before => before,
        }
    }

    /// The same, by the last scan only.
    pub(super) fn listed_before(&self, known: Option<&KnownName>) -> Entry {
        match known {
            Some(KnownName::Entry { entry, .. }) => entry.clone(),
            Some(KnownName::Skipped { .. }) => Entry::Unknown,
            None => {
                let listed = self.known.is_some_and(|folder| folder.listed);
                if listed || self.task.was_absent { Entry::Absent } else { Entry::Unknown }
            }
        }
    }

    pub(super) fn record_change(
        &mut self,
        path: Vec<u8>,
        before: Entry,
        after: &Entry,
        same_file: bool,
    ) {
        let observed =
            ObservedChange { path: valid(path), before, after: after.clone(), same_file };
        self.part.found.extend(Some(observed).filter(ObservedChange::is_a_change));
    }

    /// Another file system hides what was known here; it is still there, below.
    fn mounted_over(&mut self, path: Vec<u8>, before: Option<&KnownName>) -> KnownName {
        match before {
            Some(known @ KnownName::Entry { .. }) => {
                self.part.skipped.push((valid(path), OutReason::OtherFileSystem));
                known.clone()
            }
            _ => skipped_name(OutReason::OtherFileSystem),
        }
    }

    /// A device, socket or pipe, never opened. If it took a known path's place, the log says so.
    fn special(&mut self, path: Vec<u8>, before: Option<&KnownName>) -> KnownName {
        match before {
            Some(KnownName::Entry { entry, .. }) => {
                let after = Entry::NotCaptured { reason: NotCapturedReason::Special };
                self.record_change(path.clone(), entry.clone(), &after, false);
                self.part.skipped.push((valid(path), OutReason::Special));
                KnownName::Entry { entry: after, fingerprint: None, precious: false }
            }
            _ => skipped_name(OutReason::Special),
        }
    }

    fn record_removed(&mut self, child: &Child) {
        // Whether an ignored file is covered is decided later: it may be skipped again.
        let waits =
            child.known.is_skipped() && !matches!(stat(&self.folder, &child.name), Ok(None));
        if !waits {
            self.record_removed_at(join(&self.task.path, &child.name), child);
        }
    }

    fn record_removed_at(&mut self, path: Vec<u8>, child: &Child) {
        match &child.known {
            KnownName::Entry { entry, .. } => {
                self.record_removed_below(&path);
                self.record_change(path, entry.clone(), &Entry::Absent, false);
            }
            // A stage is removed by the process that made it.
            KnownName::Skipped { why: OutReason::Reserved, .. } => {}
            // It cannot be restored, but its removal is recorded, unless it is build output.
            KnownName::Skipped { .. } if !may_be_derived(self.walk.options, &child.name) => {
                self.record_change(path, Entry::Unknown, &Entry::Absent, false);
            }
            KnownName::Skipped { .. } => {}
        }
    }

    fn record_removed_below(&mut self, path: &[u8]) {
        let Some(folder) = self.walk.before.folder(path) else { return };
        self.part.dropped.push(path.to_vec());
        for child in &folder.children {
            self.record_removed_at(join(path, &child.name), child);
        }
    }
}

pub(super) fn skipped_name(why: OutReason) -> KnownName {
    KnownName::Skipped { why, fingerprint: None }
}
