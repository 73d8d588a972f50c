//! Which paths are exported only if the user asks for it: ignored ones and those outside.
//!
//! Applies the ignore files as they are now, even to paths that no longer exist.

use std::collections::HashMap;
use std::sync::Arc;

use takeback_store::{StoreError, WorkPath};

use crate::workspace::Workspace;
use crate::worktree::index::{Index, KnownName, folder_of};
use crate::worktree::root::{Access, names_in};
use crate::worktree::scope::{
    Coverage, DistrustedRules, IgnoreState, ParentFolder, RuleSet, Rules,
};

pub(super) struct ExportFilter<'a> {
    workspace: &'a Workspace,
    index: Index,
    folders: HashMap<Vec<u8>, Arc<Folder>>,
}

struct Folder {
    rules: Arc<Rules>,
    names: Vec<Vec<u8>>,
    /// Nothing in it is exported.
    out: bool,
}

impl Folder {
    fn inside(&self) -> IgnoreState {
        if self.out { IgnoreState::Excluded } else { IgnoreState::Plain }
    }
}

impl<'a> ExportFilter<'a> {
    pub(super) fn of(workspace: &'a Workspace) -> Result<Self, StoreError> {
        let index = Index::load(&workspace.index_file(), &*workspace.store)?;
        Ok(Self { workspace, index, folders: HashMap::new() })
    }

    /// Whether `path` is not exported. `is_folder`: it is or was one.
    pub(super) fn includes(&mut self, path: &WorkPath, is_folder: bool) -> bool {
        let precious =
            matches!(self.index.known(path), Some(KnownName::Entry { precious: true, .. }));
        if path.is_outside() || precious {
            return true;
        }
        let folder = self.folder(folder_of(path));
        let (rules, scope) = (&folder.rules, &self.workspace.scope);
        let cover = rules.cover_file(scope, path.as_bytes(), folder.inside(), RuleSet::All);
        let ignored_file = cover != Coverage::In;
        ignored_file || (is_folder && self.folder(path.as_bytes()).out)
    }

    fn folder(&mut self, path: &[u8]) -> Arc<Folder> {
        if let Some(folder) = self.folders.get(path) {
            return Arc::clone(folder);
        }
        let above = (!path.is_empty()).then(|| {
            let cut = path.iter().rposition(|b| *b == b'/').unwrap_or(0);
            self.folder(&path[..cut])
        });
        let out = above.as_ref().is_some_and(|above| {
            let has = |name: &[u8]| above.names.binary_search_by(|n| (**n).cmp(name)).is_ok();
            let parent = ParentFolder { has: &has, inside: above.inside() };
            let scope = &self.workspace.scope;
            above.out || above.rules.cover_folder(scope, path, parent, RuleSet::All) != Coverage::In
        });
        let above = above.as_ref().map(|above| &above.rules);
        let opened = self.workspace.root.folder(path, Access::Read);
        let listed = opened.and_then(|folder| names_in(&folder).map(|names| (folder, names)));
        let (rules, names) = match listed {
            Ok((folder, names)) => {
                let has = |name: &[u8]| names.binary_search_by(|n| n.as_slice().cmp(name)).is_ok();
                (Rules::read(above, path, &folder, &DistrustedRules::default(), has), names)
            }
            // Gone or unreadable: it has no rules of its own.
            Err(_) => (above.map_or_else(Rules::none, Arc::clone), Vec::new()),
        };
        let folder = Arc::new(Folder { rules, names, out });
        self.folders.insert(path.to_vec(), Arc::clone(&folder));
        folder
    }
}
