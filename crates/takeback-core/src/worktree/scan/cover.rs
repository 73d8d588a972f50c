//! Whether a new name is covered: by all rules, and if these exclude it, by the rules that no agent wrote.

use takeback_store::{Entry, NotCapturedReason};

use super::join;
use super::visit::{Visit, skipped_name};
use super::walk::Walk;
use crate::worktree::fingerprint::stat;
use crate::worktree::index::KnownName;
use crate::worktree::root::{Access, FolderOpener, names_in};
use crate::worktree::scope::{
    Coverage, IgnoreState, MOST_NAMES, OutReason, ParentFolder, RuleSet, is_always_out,
    manifests_of, may_be_derived,
};

impl Visit<'_, '_> {
    pub(super) fn cover_folder(&mut self, path: &[u8], before: Option<&KnownName>) -> Coverage {
        let held = self.rules();
        let cover = |by, has: &dyn Fn(&[u8]) -> bool, inside| {
            held.rules.cover_folder(self.walk.options, path, ParentFolder { has, inside }, by)
        };
        let all = cover(RuleSet::All, &|name| self.has(name), held.inside);
        if all == Coverage::In || !self.is_new(before) || is_always_out(self.walk.options, path) {
            return all;
        }
        let distrusted = self.walk.distrusted;
        if distrusted.is_empty() {
            self.name_judges(path, Kind::Folder);
            return all;
        }
        let folder = &self.task.path;
        let beside = |name: &[u8]| self.has(name) && !distrusted.is_made(folder, name);
        if cover(RuleSet::Trusted, &beside, held.inside_by_trusted) != Coverage::In {
            return all;
        }
        // Names in a new folder were counted with it.
        let is_counted = held.inside != IgnoreState::Plain && self.task.was_absent;
        match all {
            Coverage::Out(OutReason::Derived) => Coverage::Left(NotCapturedReason::Derived),
            _ if !is_counted && self.walk.has_more_names(path, MOST_NAMES) => {
                Coverage::Left(NotCapturedReason::TooMany)
            }
            _ => Coverage::In,
        }
    }

    pub(super) fn cover_file(&mut self, path: &[u8], before: Option<&KnownName>) -> Coverage {
        let held = self.rules();
        let options = self.walk.options;
        let all = held.rules.cover_file(options, path, held.inside, RuleSet::All);
        if all == Coverage::In || !self.is_new(before) {
            return all;
        }
        if self.walk.distrusted.is_empty() {
            self.name_judges(path, Kind::File);
            return all;
        }
        match held.rules.cover_file(options, path, held.inside_by_trusted, RuleSet::Trusted) {
            Coverage::Out(_) => all,
            trusted => trusted,
        }
    }

    /// Whether a known file is one that is ignored.
    pub(super) fn is_precious(&self, path: &[u8]) -> bool {
        let held = self.rules();
        let all = held.rules.cover_file(self.walk.options, path, held.inside, RuleSet::All);
        all == Coverage::Precious
    }

    /// Records a folder as one path, without what is in it.
    pub(super) fn leave(
        &mut self,
        path: Vec<u8>,
        before: Option<&KnownName>,
        reason: NotCapturedReason,
    ) -> KnownName {
        let entry = Entry::NotCaptured { reason };
        let was = self.before(before);
        self.record_change(path, was, &entry, false);
        KnownName::Entry { entry, fingerprint: None, precious: false }
    }

    /// An entry with the name of a stage. This store's own stages are not part of the workspace. Another
    /// store's are never touched either, but an agent can use such a name too: a new one is recorded in
    /// the log.
    pub(super) fn stage(&mut self, path: Vec<u8>, before: Option<&KnownName>) -> Option<KnownName> {
        if before.is_some() {
            return before.cloned();
        }
        let name = path.rsplit(|b| *b == b'/').next().unwrap_or(&path);
        if self.walk.stages.contains(name) {
            return None;
        }
        if self.is_new(before) {
            return Some(self.leave(path, before, NotCapturedReason::Reserved));
        }
        Some(skipped_name(OutReason::Reserved))
    }

    /// Whether a name is known to have been absent at the last scan.
    fn is_new(&self, before: Option<&KnownName>) -> bool {
        self.listed_before(before) == Entry::Absent
    }

    /// Notes which files exclude a name. The caller finds out who wrote them.
    fn name_judges(&mut self, path: &[u8], kind: Kind) {
        let mut judges = self.rules().rules.files_for(path);
        if kind == Kind::Folder {
            let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
            let manifests = manifests_of(name).filter(|manifest| self.has(manifest));
            judges.extend(manifests.map(|manifest| join(&self.task.path, manifest)));
        }
        self.part.judges.extend(judges);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

impl Walk<'_> {
    /// Whether a folder has more than `most` names below it. Build output does not count, nor do
    /// unreadable folders: they are not copied either.
    pub(super) fn has_more_names(&self, path: &[u8], most: usize) -> bool {
        let mut count = 0;
        let mut open = vec![path.to_vec()];
        let mut opener = FolderOpener::new(self.root);
        while let Some(path) = open.pop() {
            let Ok(folder) = opener.folder(&path, Access::Read) else { continue };
            let Ok(names) = names_in(&folder) else { continue };
            count += names.len();
            if count > most {
                return true;
            }
            for name in names {
                let seen = stat(&folder, &name).ok().flatten();
                let is_folder = seen.is_some_and(|seen| {
                    seen.kind == rustix::fs::FileType::Directory && seen.device == self.root.device
                });
                if is_folder && !may_be_derived(self.options, &name) {
                    open.push(join(&path, &name));
                }
            }
        }
        false
    }
}
