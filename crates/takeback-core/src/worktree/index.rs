//! The last known entry of every path in scope, with its fingerprint: what makes a scan cheap.
//!
//! A cache. It is stamped with the last change it contains; what came later is caught up from the
//! log, and a file that is missing, damaged or ahead of the log is built again from the log alone
//! (then without fingerprints, so that the next scan reads everything once).
//!
//! The file is read in one go and looked at where it lies; what differs from it is held beside it, and
//! appended to it. Only when that has become long is the file written anew.

mod file;
mod folder;
mod storage;

use std::collections::HashMap;
use std::sync::Arc;

use takeback_store::{Change, Entry, Seq, WorkPath};

use self::file::Heading;
pub(crate) use self::file::{Base, Block, Brief, Kind};
pub use self::folder::{Child, Folder, Known};
use super::fingerprint::Fingerprint;
use super::scope::{OWN_FOLDER, OutReason, has_rules};

/// In the place of [`Index::scope`]: what was passed over is judged again by the next scan.
const UNJUDGED: u64 = 0;

#[derive(Debug, Clone, Default)]
pub struct Index {
    pub stamp: Seq,
    /// Names of one file, oldest first: those of today, and some that were.
    pub linked: Vec<Linked>,
    /// What decided which names are covered, as one number.
    pub(crate) scope: u64,
    /// As the file has it.
    base: Option<Arc<Base>>,
    /// What differs from it, by path; the root's is empty. None: it is not there.
    over: HashMap<Vec<u8>, Option<Arc<Folder>>>,
    /// What the file says of folders for which that is no longer true.
    unsaved: HashMap<Vec<u8>, Option<Arc<Folder>>>,
    saved: Option<Saved>,
}

/// The file as this index knows it: only to such a one may it append.
#[derive(Debug, Clone)]
struct Saved {
    fingerprint: Fingerprint,
    heading: Heading,
    /// As long as it was when it was written in one piece.
    base_length: u64,
}

/// Names that were seen to be one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked {
    /// In order, at least two.
    pub names: Vec<WorkPath>,
    /// They were that at every moment after this one …
    pub since: Seq,
    /// … up to this one, which was the last; none: they still are.
    pub until: Option<Seq>,
}

/// A name that was passed over.
struct PassedOver<'a, 'n> {
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

    /// The folders that are as the file has them: not those of [`Self::over`].
    pub(crate) fn base(&self) -> Option<&Base> {
        self.base.as_deref()
    }

    pub(crate) fn is_over(&self, path: &[u8]) -> bool {
        !self.over.is_empty() && self.over.contains_key(path)
    }

    /// The folders that are not as the file has them, or not in it.
    pub(crate) fn over(&self) -> impl Iterator<Item = (&[u8], &Arc<Folder>)> {
        self.over.iter().filter_map(|(path, folder)| Some((path.as_slice(), folder.as_ref()?)))
    }

    fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let blocks = self.base.iter().flat_map(|base| base.blocks());
        blocks.filter(|block| !self.is_over(block.path))
    }

    /// All of them, in no order.
    pub fn folders(&self) -> impl Iterator<Item = (&[u8], Arc<Folder>)> {
        let base = self.blocks().filter_map(|block| Some((block.path, Arc::new(block.folder()?))));
        base.chain(self.over().map(|(path, folder)| (path, Arc::clone(folder))))
    }

    /// Hands over what was passed over: the folder, the name in it, and why.
    fn each_skipped<'a>(&'a self, take: &mut dyn FnMut(PassedOver<'a, '_>)) {
        for block in self.blocks().filter(Block::has_skipped) {
            block.skipped().for_each(|(name, why, fingerprint)| {
                take(PassedOver { folder: block.path, name, why, fingerprint });
            });
        }
        for (path, folder) in self.over() {
            for child in &folder.children {
                if let Some(why) = child.known.left_out() {
                    let fingerprint = child.known.fingerprint();
                    take(PassedOver { folder: path, name: &child.name, why, fingerprint });
                }
            }
        }
    }

    /// Folders with names that were passed over, each once.
    pub(crate) fn folders_with_skipped(&self) -> Vec<&[u8]> {
        let base = self.blocks().filter(Block::has_skipped).map(|block| block.path);
        let over = self.over().filter(|(_, folder)| folder.has_skipped()).map(|(path, _)| path);
        base.chain(over).collect()
    }

    /// Folders with ignored files for which there was no room, if by now there may be.
    pub(crate) fn folders_with_room(&self, most: u64) -> Vec<&[u8]> {
        let mut folders = Vec::new();
        let mut least = None;
        self.each_skipped(&mut |PassedOver { folder, why, fingerprint, .. }| {
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
        self.each_skipped(&mut |PassedOver { folder, name, why, .. }| {
            skipped.extend(below(folder, name).map(|path| (path, why)));
        });
        skipped.sort();
        skipped
    }

    /// How large the ignored files are that are kept all the same.
    pub(crate) fn precious_bytes(&self) -> u64 {
        let base = self.blocks().map(|block| block.precious_bytes());
        let over = self.over().map(|(_, folder)| folder.precious_bytes());
        base.chain(over).fold(0, u64::saturating_add)
    }

    pub fn set_folder(&mut self, path: Vec<u8>, folder: Arc<Folder>) {
        self.will_change(&path);
        self.over.insert(path, Some(folder));
    }

    pub(crate) fn remove_folder(&mut self, path: &[u8]) {
        self.will_change(path);
        self.over.insert(path.to_vec(), None);
    }

    /// The folder at `path`, to be changed; an empty one if nothing is known of it.
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

    #[must_use]
    pub fn folder_count(&self) -> usize {
        self.blocks().count() + self.over().count()
    }

    #[must_use]
    pub fn known(&self, path: &WorkPath) -> Option<Known> {
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

    /// Whether the last scan would have seen this path, had it been there.
    #[must_use]
    pub fn proves_absent(&self, path: &WorkPath) -> bool {
        if path.is_outside() {
            return false;
        }
        let nearest = path.ancestors().find_map(|folder| match self.known(&folder) {
            Some(Known::Entry { entry: Entry::Dir { .. }, .. }) => {
                Some(self.is_listed(folder.as_bytes()))
            }
            Some(known) if known.is_left() || known.is_unreadable() => Some(false),
            // Nothing is below what is not a folder.
            Some(Known::Entry { .. }) => Some(true),
            Some(Known::Skipped { .. }) => Some(false),
            None => None,
        });
        nearest.unwrap_or_else(|| self.is_listed(b"")) && self.known(path).is_none()
    }

    /// How many names are known below a folder, those that were passed over too.
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

    /// Names, those that were passed over too.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks().map(|block| block.len()).sum::<usize>()
            + self.over().map(|(_, folder)| folder.children.len()).sum::<usize>()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many folders are known, without counting them; 0: none.
    pub(crate) fn least_folders(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.len()).max(self.over.len())
    }

    /// Takes in what was appended to the log after the index was written.
    pub fn catch_up<'a>(&mut self, changes: impl IntoIterator<Item = &'a Change>) {
        for change in changes {
            self.set(&change.path, &change.after);
            // It came after the last scan: so did whatever is found in it.
            if change.before == Entry::Absent && change.after.is_dir() && !change.path.is_outside()
            {
                self.folder_mut(change.path.as_bytes()).listed = true;
            }
            self.stamp = self.stamp.max(change.seq);
        }
    }

    /// Takes in what stands at one path, to be looked at again by the next scan unless it is what was
    /// known.
    pub fn set(&mut self, path: &WorkPath, entry: &Entry) {
        // Takeback's own folder is never an entry; paths outside are looked at only when named.
        if path.is_outside() || path.as_bytes() == OWN_FOLDER {
            return;
        }
        // A scan that finds these rules as they are known would not judge anew what they kept out.
        if has_rules(path.as_bytes())
            && !matches!(self.known(path), Some(Known::Entry { entry: known, .. }) if known == *entry)
        {
            self.scope = UNJUDGED;
        }
        let folder = self.folder_mut(folder_of(path));
        folder.fingerprint = None;
        let place = folder.children.binary_search_by(|child| (*child.name).cmp(path.file_name()));
        match (place, entry) {
            // What it was known by stands for the same bytes.
            (Ok(at), entry @ (Entry::File { .. } | Entry::Symlink { .. }))
                if matches!(&folder.children[at].known, Known::Entry { entry: known, .. }
                    if known == entry) => {}
            (Ok(at), Entry::Absent) => {
                folder.children.remove(at);
            }
            (Err(_), Entry::Absent) => {}
            (Ok(at), entry) => {
                let precious =
                    matches!(folder.children[at].known, Known::Entry { precious: true, .. });
                folder.children[at].known =
                    Known::Entry { entry: entry.clone(), fingerprint: None, precious };
            }
            (Err(at), entry) => {
                let known =
                    Known::Entry { entry: entry.clone(), fingerprint: None, precious: false };
                folder.children.insert(at, Child { name: path.file_name().into(), known });
            }
        }
        // What was known below stays known: the next scan looks for it.
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

/// The folder a path stands in; the root's is empty.
pub(crate) fn folder_of(path: &WorkPath) -> &[u8] {
    let bytes = path.as_bytes();
    bytes.iter().rposition(|b| *b == b'/').map_or(b"", |cut| &bytes[..cut])
}
