//! The last known entry of every path in scope, with its fingerprint: what makes a scan cheap.
//!
//! A cache. It is stamped with the last change it contains; what came later is caught up from the
//! log, and a file that is missing, damaged or ahead of the log is built again from the log alone
//! (then without fingerprints, so that the next scan reads everything once).
//!
//! The file is read in one go and looked at where it lies; what differs from it is held beside it, and
//! appended to it. Only when that has become long is the file written anew.

mod file;

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::Builder;

use takeback_store::{Change, Entry, Seq, Store, StoreError, WorkPath, disk};

pub(crate) use self::file::{Base, Block, Brief, Kind};
use self::file::{Delta, FolderDelta, Heading};
use super::fingerprint::{Fingerprint, stat_open};
use super::scope::{OWN_FOLDER, OutReason, has_rules};

/// What was appended to a file of the index may be this large, or a quarter of it: then it is written
/// anew.
const MOST_APPENDED: u64 = 256 << 10;

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

/// What is known of the names in one folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folder {
    /// The last scan read all its names: one that is not among `children` was absent then.
    pub listed: bool,
    /// It could not be read since a scan that read all its names: what is found in it that is not among
    /// `children` came after that scan.
    pub hidden: bool,
    /// Its own, from before its names were read: as long as it is the same, so are the names. None:
    /// they must be read again.
    pub fingerprint: Option<Fingerprint>,
    /// It holds a `.git`.
    pub repository: bool,
    /// That of the repository's own rules, which are no entry (`.git/info/exclude`).
    pub excludes: Option<Fingerprint>,
    /// By name.
    pub children: Vec<Child>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    pub name: Box<[u8]>,
    pub known: Known,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    Entry {
        entry: Entry,
        /// None: it must be looked at.
        fingerprint: Option<Fingerprint>,
        /// Ignored, and in scope for being small.
        precious: bool,
    },
    /// It stood there and was out of scope: what it was before it comes into scope is unknown.
    Skipped {
        why: OutReason,
        /// Of a file that might come into scope by becoming another.
        fingerprint: Option<Fingerprint>,
    },
}

impl Known {
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        matches!(self, Self::Skipped { .. })
    }

    /// A folder that is recorded as one path.
    #[must_use]
    pub fn is_left(&self) -> bool {
        matches!(self, Self::Entry { entry: Entry::NotCaptured { lack }, .. }
            if lack.is_of_whole_folder())
    }

    /// What is known not to have been read, and what is in it.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Entry { entry, .. } if entry.is_unreadable())
    }

    /// Why it is not covered, nor what is in it.
    pub(crate) fn left_out(&self) -> Option<OutReason> {
        match self {
            Self::Skipped { why, .. } => Some(*why),
            Self::Entry { entry: Entry::NotCaptured { lack }, .. } => OutReason::of_left(*lack),
            Self::Entry { .. } => None,
        }
    }

    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        match self {
            Self::Entry { fingerprint, .. } | Self::Skipped { fingerprint, .. } => *fingerprint,
        }
    }
}

impl Folder {
    #[must_use]
    pub fn child(&self, name: &[u8]) -> Option<&Known> {
        let at = self.children.binary_search_by(|child| (*child.name).cmp(name)).ok()?;
        Some(&self.children[at].known)
    }

    /// What was known of a folder whose names could not be read.
    #[must_use]
    pub fn unread(&self) -> Self {
        Self { listed: false, fingerprint: None, ..self.clone() }
    }

    /// Whether names in it were passed over, or left as a whole.
    pub(crate) fn has_skipped(&self) -> bool {
        self.children.iter().any(|child| child.known.left_out().is_some())
    }

    /// How large the ignored files in it are that are kept all the same.
    pub(crate) fn precious_bytes(&self) -> u64 {
        let size = |child: &Child| match child.known {
            Known::Entry { entry: Entry::File { size, .. }, precious: true, .. } => size,
            _ => 0,
        };
        self.children.iter().map(size).fold(0, u64::saturating_add)
    }

    fn without_children(&self) -> Self {
        Self { children: Vec::new(), ..*self }
    }
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

    /// The index as of the store's head.
    pub fn load(file: &Path, store: &dyn Store) -> Result<Self, StoreError> {
        Self::read(file).map_or_else(|| Self::rebuilt(store), |index| index.up_to_date(store))
    }

    /// As of the store's head.
    pub(crate) fn up_to_date(mut self, store: &dyn Store) -> Result<Self, StoreError> {
        if self.stamp > store.head()?.seq {
            return Self::rebuilt(store);
        }
        self.catch_up(&store.changes_after(self.stamp)?);
        Ok(self)
    }

    /// From the log alone.
    fn rebuilt(store: &dyn Store) -> Result<Self, StoreError> {
        let mut index = Self::stamped(store.head()?.seq);
        for (path, entry) in store.latest()? {
            index.set(&path, &entry);
        }
        Ok(index)
    }

    /// Whether so many folders lie beside the bulk of it that they are not worth copying each time.
    pub(crate) fn is_loose(&self) -> bool {
        self.over.len() > 512
    }

    /// Whether it is what is in the file, and worth keeping in memory.
    pub(crate) fn is_kept_in(&self, file: &Path) -> bool {
        let is_saved = |saved: &Saved| {
            let stat = File::open(file).and_then(|file| stat_open(&file));
            stat.is_ok_and(|stat| stat.fingerprint == saved.fingerprint)
        };
        self.unsaved.is_empty() && !self.is_loose() && self.saved.as_ref().is_some_and(is_saved)
    }

    fn read(file: &Path) -> Option<Self> {
        let opened = File::open(file).ok()?;
        let fingerprint = stat_open(&opened).ok()?.fingerprint;
        let mut bytes = vec![0; usize::try_from(fingerprint.size).ok()?];
        read_in_parts(&opened, &mut bytes).ok()?;
        let decoded = file::decode(bytes)?;
        let heading = decoded.heading;
        let base_length = decoded.base.file_length();
        let saved = Saved { fingerprint, heading: heading.clone(), base_length };
        Some(Self {
            stamp: heading.stamp,
            linked: heading.linked,
            scope: heading.scope,
            base: Some(Arc::new(decoded.base)),
            over: decoded.over,
            unsaved: HashMap::new(),
            saved: decoded.is_whole.then_some(saved),
        })
    }

    /// The names that were one file at a moment, as far as the index in `file` knows. Reads no more
    /// of it than that.
    pub fn linked_at(file: &Path, head: Seq, moment: Seq) -> Vec<Vec<WorkPath>> {
        let known = File::open(file).ok().and_then(|file| file::read_heading(&file));
        let known = known.filter(|heading| heading.stamp <= head);
        let held = |linked: &Linked| {
            linked.since < moment && linked.until.is_none_or(|until| moment <= until)
        };
        let known = known.into_iter().flat_map(|heading| heading.linked);
        known.filter(held).map(|linked| linked.names).collect()
    }

    /// As [`Self::save`], in one piece; a crash brings no older one back.
    pub fn save_durably(&mut self, file: &Path) -> io::Result<()> {
        self.replace(file)?;
        disk::sync(&File::open(file)?)?;
        file.parent().map_or(Ok(()), disk::sync_folder)
    }

    /// Appends to the file what it does not know, or writes it anew.
    pub fn save(&mut self, file: &Path) -> io::Result<()> {
        let Some(saved) = &self.saved else { return self.replace(file) };
        let heading = self.heading();
        if heading == saved.heading && self.unsaved.is_empty() {
            return Ok(());
        }
        let appended = saved.fingerprint.size - saved.base_length;
        let most = MOST_APPENDED.max(saved.base_length / 4);
        // What is there costs far more than a folder: no need to encode it to see that it is too much.
        if appended > most || self.unsaved.len() as u64 * 64 > most {
            return self.replace(file);
        }
        let folders = self.unsaved.iter().map(|(path, before)| {
            let after = self.folder(path);
            (path.clone(), FolderDelta::between(before.as_deref(), after))
        });
        let delta = Delta {
            stamp: heading.stamp,
            scope: heading.scope,
            linked: (heading.linked != saved.heading.linked).then(|| heading.linked.clone()),
            folders: folders.collect(),
        };
        let bytes = delta.encode();
        if appended + bytes.len() as u64 > most {
            return self.replace(file);
        }
        let fingerprint = append(file, saved.fingerprint, &bytes)?;
        let base_length = saved.base_length;
        self.saved = fingerprint.map(|fingerprint| Saved { fingerprint, heading, base_length });
        self.unsaved.clear();
        Ok(())
    }

    /// Puts everything in one piece, as if it had been read from a file: then copies cost nothing.
    pub(crate) fn compact(&mut self) {
        let encoded = self.encode();
        if let Some(decoded) = file::decode(encoded) {
            self.base = Some(Arc::new(decoded.base));
            self.over.clear();
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut folders: Vec<_> = self.over().collect();
        folders.sort_unstable_by_key(|(path, _)| *path);
        file::encode(&self.heading(), self.blocks(), &folders)
    }

    fn heading(&self) -> Heading {
        Heading { stamp: self.stamp, scope: self.scope, linked: self.linked.clone() }
    }

    fn replace(&mut self, file: &Path) -> io::Result<()> {
        let heading = self.heading();
        let bytes = self.encode();
        let written = disk::replace_private_file(file, &bytes)?;
        let (fingerprint, base_length) = (stat_open(&written)?.fingerprint, bytes.len() as u64);
        self.saved = Some(Saved { fingerprint, heading, base_length });
        self.unsaved.clear();
        Ok(())
    }
}

/// Appends to the file if it still is the one that is known: what others wrote meanwhile is as good,
/// and what is lost with this is only time. Its fingerprint after that.
fn append(file: &Path, known: Fingerprint, bytes: &[u8]) -> io::Result<Option<Fingerprint>> {
    let mut opened = match OpenOptions::new().read(true).append(true).open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    opened.lock()?;
    if stat_open(&opened)?.fingerprint != known {
        return Ok(None);
    }
    disk::append(&mut opened, bytes)?;
    Ok(Some(stat_open(&opened)?.fingerprint))
}

/// Reads a file from its beginning; a large one by two threads, since most of it is to find the memory.
fn read_in_parts(file: &File, bytes: &mut [u8]) -> io::Result<()> {
    const ONE_BELOW: usize = 4 << 20;
    if bytes.len() < ONE_BELOW {
        return file.read_exact_at(bytes, 0);
    }
    let (first, rest) = bytes.split_at_mut(bytes.len() / 2);
    let behind = first.len() as u64;
    let read = std::thread::scope(|scope| {
        let other = Builder::new().spawn_scoped(scope, || file.read_exact_at(rest, behind)).ok()?;
        let read = file.read_exact_at(first, 0);
        let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Some(read.and(other))
    });
    // There may be no thread to be had.
    read.unwrap_or_else(|| file.read_exact_at(bytes, 0))
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
