//! The index: the last known entry of every path in scope, with its fingerprint. It makes scans cheap.
//!
//! A cache. It is stamped with the last change it contains; later changes are added from the log. A file
//! that is missing, damaged or ahead of the log is rebuilt from the log alone, without fingerprints, so
//! that the next scan reads everything once.
//!
//! The file is read in one go and decoded in place. Folders that differ from it are held in `over`, and
//! appended to the file. The file is rewritten only when the appended part has become long.

mod file;
mod folder;
mod storage;

use std::collections::HashMap;
use std::sync::Arc;

use takeback_store::{Change, Entry, Seq, WorkPath};

use self::file::Heading;
pub(crate) use self::file::{Base, Block, Brief, Kind};
pub(crate) use self::folder::Child;
pub use self::folder::{Folder, KnownName};
use super::fingerprint::Fingerprint;
use super::scope::{OWN_FOLDER, OutReason, has_rules};

/// A value of [`Index::scope`] that makes the next scan judge all skipped names again.
const UNJUDGED: u64 = 0;

/// The last known entry of every path in the workspace. A cache: the log is the truth.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// The last change of the log that is in the index.
    pub stamp: Seq,
    /// Hard links, oldest first: present ones and some former ones.
    pub linked: Vec<LinkedNames>,
    /// A number for the settings that decide which names are covered.
    pub(crate) scope: u64,
    /// The folders in the file.
    base: Option<Arc<Base>>,
    /// Folders that differ from the base, by path; the root's is empty. None: the folder does not exist.
    over: HashMap<Vec<u8>, Option<Arc<Folder>>>,
    /// For each folder that changed since the file was saved, what the file says.
    unsaved: HashMap<Vec<u8>, Option<Arc<Folder>>>,
    saved: Option<IndexFile>,
}

/// The file as this index last saw it. A delta may be appended only to that very file.
#[derive(Debug, Clone)]
struct IndexFile {
    fingerprint: Fingerprint,
    heading: Heading,
    /// Its length without the appended deltas.
    base_length: u64,
}

/// Names that were found to be one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedNames {
    /// In order, at least two.
    pub names: Vec<WorkPath>,
    /// They were one file at every position after this one …
    pub since: Seq,
    /// … up to and including this one; none: they still are.
    pub until: Option<Seq>,
}

/// A name that is not covered.
struct SkippedName<'a, 'n> {
    folder: &'a [u8],
    name: &'n [u8],
    why: OutReason,
    fingerprint: Option<Fingerprint>,
}

impl Index {
    /// An empty one.
    #[must_use]
    pub fn stamped(stamp: Seq) -> Self {
        Self { stamp, ..Self::default() }
    }

    /// What is known of a folder; `None`: nothing.
    #[must_use]
    pub fn folder(&self, path: &[u8]) -> Option<Arc<Folder>> {
        match self.over.get(path) {
            Some(over) => over.clone(),
            None => self.base.as_ref()?.find(path)?.folder().map(Arc::new),
        }
    }

    pub(crate) fn has_folder(&self, path: &[u8]) -> bool {
        match self.over.get(path) {
            Some(over) => over.is_some(),
            None => self.base.as_ref().is_some_and(|base| base.find(path).is_some()),
        }
    }

    /// The folders of the file, except those of [`Self::over`].
    pub(crate) fn base(&self) -> Option<&Base> {
        self.base.as_deref()
    }

    pub(crate) fn is_over(&self, path: &[u8]) -> bool {
        !self.over.is_empty() && self.over.contains_key(path)
    }

    /// The folders that differ from the file or are not in it.
    pub(crate) fn over(&self) -> impl Iterator<Item = (&[u8], &Arc<Folder>)> {
        self.over.iter().filter_map(|(path, folder)| Some((path.as_slice(), folder.as_ref()?)))
    }

    fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let blocks = self.base.iter().flat_map(|base| base.blocks());
        blocks.filter(|block| !self.is_over(block.path))
    }

    /// All folders, in no order.
    pub fn folders(&self) -> impl Iterator<Item = (&[u8], Arc<Folder>)> {
        let base = self.blocks().filter_map(|block| Some((block.path, Arc::new(block.folder()?))));
        base.chain(self.over().map(|(path, folder)| (path, Arc::clone(folder))))
    }

    /// Passes every skipped name to `take`.
    fn each_skipped<'a>(&'a self, take: &mut dyn FnMut(SkippedName<'a, '_>)) {
        for block in self.blocks().filter(Block::has_skipped) {
            block.skipped().for_each(|(name, why, fingerprint)| {
                take(SkippedName { folder: block.path, name, why, fingerprint });
            });
        }
        for (path, folder) in self.over() {
            for child in &folder.children {
                if let Some(why) = child.known.left_out() {
                    let fingerprint = child.known.fingerprint();
                    take(SkippedName { folder: path, name: &child.name, why, fingerprint });
                }
            }
        }
    }

    /// Folders with skipped names, each once.
    pub(crate) fn folders_with_skipped(&self) -> Vec<&[u8]> {
        let base = self.blocks().filter(Block::has_skipped).map(|block| block.path);
        let over = self.over().filter(|(_, folder)| folder.has_skipped()).map(|(path, _)| path);
        base.chain(over).collect()
    }

    /// Folders with ignored files that exceeded the total limit, if there may be room now.
    pub(crate) fn folders_with_room(&self, most: u64) -> Vec<&[u8]> {
        let mut folders = Vec::new();
        let mut least = None;
        self.each_skipped(&mut |SkippedName { folder, why, fingerprint, .. }| {
            if why == OutReason::OverBudget {
                folders.push(folder);
                let size = fingerprint.map_or(0, |print| print.size);
                least = Some(least.map_or(size, |least: u64| least.min(size)));
            }
        });
        folders.dedup();
        let room = least.is_some_and(|least| self.precious_bytes().saturating_add(least) <= most);
        if room { folders } else { Vec::new() }
    }

    /// What is not covered, by path.
    #[must_use]
    pub fn skipped(&self) -> Vec<(WorkPath, OutReason)> {
        let mut skipped = Vec::new();
        self.each_skipped(&mut |SkippedName { folder, name, why, .. }| {
            skipped.extend(below(folder, name).map(|path| (path, why)));
        });
        skipped.sort();
        skipped
    }

    /// The total size of the ignored files that are covered.
    pub(crate) fn precious_bytes(&self) -> u64 {
        let base = self.blocks().map(|block| block.precious_bytes());
        let over = self.over().map(|(_, folder)| folder.precious_bytes());
        base.chain(over).fold(0, u64::saturating_add)
    }

    /// Replaces what is known of a folder.
    pub fn set_folder(&mut self, path: Vec<u8>, folder: Arc<Folder>) {
        self.will_change(&path);
        self.over.insert(path, Some(folder));
    }

    pub(crate) fn remove_folder(&mut self, path: &[u8]) {
        self.will_change(path);
        self.over.insert(path.to_vec(), None);
    }

    /// The folder at `path`, to change it; an empty one if it is unknown.
    pub fn folder_mut(&mut self, path: &[u8]) -> &mut Folder {
        self.will_change(path);
        if self.over.get(path).is_none_or(Option::is_none) {
            let folder = self.folder(path).unwrap_or_default();
            self.over.insert(path.to_vec(), Some(folder));
        }
        let folder = self.over.get_mut(path).and_then(Option::as_mut);
        Arc::make_mut(folder.expect("it was put there"))
    }

    fn will_change(&mut self, path: &[u8]) {
        if !self.unsaved.contains_key(path) {
            self.unsaved.insert(path.to_vec(), self.folder(path));
        }
    }

    /// How many folders are known.
    #[must_use]
    pub fn folder_count(&self) -> usize {
        self.blocks().count() + self.over().count()
    }

    /// What is known of a path; `None`: nothing.
    #[must_use]
    pub fn known(&self, path: &WorkPath) -> Option<KnownName> {
        let (folder, name) = (folder_of(path), path.file_name());
        match self.over.get(folder) {
            Some(over) => over.as_ref()?.child(name).cloned(),
            None => self.base.as_ref()?.find(folder)?.child(name),
        }
    }

    fn is_listed(&self, folder: &[u8]) -> bool {
        match self.over.get(folder) {
            Some(over) => over.as_ref().is_some_and(|folder| folder.listed),
            None => {
                let block = self.base.as_ref().and_then(|base| base.find(folder));
                block.is_some_and(|block| block.is_listed())
            }
        }
    }

    /// Whether the last scan would have seen this path if it had existed.
    #[must_use]
    pub fn proves_absent(&self, path: &WorkPath) -> bool {
        if path.is_outside() {
            return false;
        }
        let nearest = path.ancestors().find_map(|folder| match self.known(&folder) {
            Some(KnownName::Entry { entry: Entry::Dir { .. }, .. }) => {
                Some(self.is_listed(folder.as_bytes()))
            }
            Some(known) if known.is_left() || known.is_unreadable() => Some(false),
            // Nothing is below what is not a folder.
            Some(KnownName::Entry { .. }) => Some(true),
            Some(KnownName::Skipped { .. }) => Some(false),
            None => None,
        });
        nearest.unwrap_or_else(|| self.is_listed(b"")) && self.known(path).is_none()
    }

    /// How many names are known below a folder, skipped ones included.
    pub(crate) fn names_below(&self, folder: &[u8]) -> usize {
        let is_in = |path: &[u8]| {
            path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        let base = self.base.iter().flat_map(|base| base.blocks_below(folder));
        let base = base.filter(|block| is_in(block.path) && !self.is_over(block.path));
        let over = self.over().filter(|(path, _)| is_in(path));
        base.map(|block| block.len()).sum::<usize>()
            + over.map(|(_, folder)| folder.children.len()).sum::<usize>()
    }

    /// The number of names, skipped ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks().map(|block| block.len()).sum::<usize>()
            + self.over().map(|(_, folder)| folder.children.len()).sum::<usize>()
    }

    /// Whether no name is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many folders are known, without counting them; 0: none.
    pub(crate) fn least_folders(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.len()).max(self.over.len())
    }

    /// Adds changes that were appended to the log after the index was written.
    pub fn catch_up<'a>(&mut self, changes: impl IntoIterator<Item = &'a Change>) {
        for change in changes {
            self.set(&change.path, &change.after);
            // It was created after the last scan, and so was everything in it.
            if change.before == Entry::Absent && change.after.is_dir() && !change.path.is_outside()
            {
                self.folder_mut(change.path.as_bytes()).listed = true;
            }
            self.stamp = self.stamp.max(change.seq);
        }
    }

    /// Sets the entry of one path. The next scan looks at it again, unless the entry is the known one.
    pub fn set(&mut self, path: &WorkPath, entry: &Entry) {
        // Takeback's own folder is never an entry; paths outside are looked at only when named.
        if path.is_outside() || path.as_bytes() == OWN_FOLDER {
            return;
        }
        // A scan that finds the rules as the index knows them would not judge the names again that they
        // excluded.
        if has_rules(path.as_bytes())
            && !matches!(self.known(path), Some(KnownName::Entry { entry: known, .. }) if known == *entry)
        {
            self.scope = UNJUDGED;
        }
        let folder = self.folder_mut(folder_of(path));
        folder.fingerprint = None;
        let place = folder.children.binary_search_by(|child| (*child.name).cmp(path.file_name()));
        match (place, entry) {
            // The same entry: its fingerprint stays valid.
            (Ok(at), entry @ (Entry::File { .. } | Entry::Symlink { .. }))
                if matches!(&folder.children[at].known, KnownName::Entry { entry: known, .. }
                    if known == entry) => {}
            (Ok(at), Entry::Absent) => {
                folder.children.remove(at);
            }
            (Err(_), Entry::Absent) => {}
            (Ok(at), entry) => {
                let precious =
                    matches!(folder.children[at].known, KnownName::Entry { precious: true, .. });
                folder.children[at].known =
                    KnownName::Entry { entry: entry.clone(), fingerprint: None, precious };
            }
            (Err(at), entry) => {
                let known =
                    KnownName::Entry { entry: entry.clone(), fingerprint: None, precious: false };
                folder.children.insert(at, Child { name: path.file_name().into(), known });
            }
        }
        // The entries below stay known, so that the next scan reports them as removed.
        if !entry.is_dir() && self.has_folder(path.as_bytes()) {
            self.folder_mut(path.as_bytes()).listed = false;
        }
    }
}

/// A name in a folder of the index, as a path.
pub(crate) fn below(folder: &[u8], name: &[u8]) -> Option<WorkPath> {
    let path = if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() };
    WorkPath::new(path).ok()
}

/// The folder that a path is in; the root's is empty.
pub(crate) fn folder_of(path: &WorkPath) -> &[u8] {
    let bytes = path.as_bytes();
    bytes.iter().rposition(|b| *b == b'/').map_or(b"", |cut| &bytes[..cut])
}
