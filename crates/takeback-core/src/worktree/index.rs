//! The last known entry of every path in scope, with its fingerprint: what makes a scan cheap.
//!
//! A cache. It is stamped with the last change it contains; what came later is caught up from the
//! log, and a file that is missing, damaged or ahead of the log is built again from the log alone
//! (then without fingerprints, so that the next scan reads everything once).

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use takeback_store::{Change, Digest, Entry, Lack, Seq, Store, StoreError, WorkPath, disk};

use super::fingerprint::Fingerprint;
use super::scope::OWN_FOLDER;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    pub stamp: Seq,
    /// Names of one file, oldest first: those of today, and some that were.
    pub linked: Vec<Linked>,
    /// By path; the root's is empty. Shared, so that a scan hands on what did not change.
    folders: HashMap<Vec<u8>, Arc<Folder>>,
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
    /// Its own, from before its names were read: as long as it is the same, so are the names. None:
    /// they must be read again.
    pub fingerprint: Option<Fingerprint>,
    /// It holds a `.git`.
    pub repository: bool,
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
    Skipped,
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
}

impl Index {
    /// An empty one.
    #[must_use]
    pub fn stamped(stamp: Seq) -> Self {
        Self { stamp, linked: Vec::new(), folders: HashMap::new() }
    }

    #[must_use]
    pub fn folder(&self, path: &[u8]) -> Option<&Arc<Folder>> {
        self.folders.get(path)
    }

    pub fn folders(&self) -> impl Iterator<Item = (&[u8], &Folder)> {
        self.folders.iter().map(|(path, folder)| (path.as_slice(), &**folder))
    }

    pub fn set_folder(&mut self, path: Vec<u8>, folder: Arc<Folder>) {
        self.folders.insert(path, folder);
    }

    /// The folder at `path`, to be changed; an empty one if nothing is known of it.
    pub fn folder_mut(&mut self, path: &[u8]) -> &mut Folder {
        Arc::make_mut(self.folders.entry(path.to_vec()).or_default())
    }

    #[must_use]
    pub fn folder_count(&self) -> usize {
        self.folders.len()
    }

    #[must_use]
    pub fn known(&self, path: &WorkPath) -> Option<&Known> {
        self.folder(folder_of(path))?.child(path.file_name())
    }

    /// Whether the last scan would have seen this path, had it been there.
    #[must_use]
    pub fn proves_absent(&self, path: &WorkPath) -> bool {
        if path.is_outside() {
            return false;
        }
        let nearest = path.ancestors().find_map(|folder| match self.known(&folder) {
            Some(Known::Entry { entry: Entry::Dir { .. }, .. }) => {
                Some(self.folder(folder.as_bytes()).is_some_and(|folder| folder.listed))
            }
            // Nothing is below what is not a folder.
            Some(Known::Entry { .. }) => Some(true),
            Some(Known::Skipped) => Some(false),
            None => None,
        });
        let listed = nearest.unwrap_or_else(|| self.folder(b"").is_some_and(|root| root.listed));
        listed && self.known(path).is_none()
    }

    pub fn len(&self) -> usize {
        self.folders.values().map(|folder| folder.children.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
        if !entry.is_dir()
            && let Some(folder) = self.folders.get_mut(path.as_bytes())
        {
            Arc::make_mut(folder).listed = false;
        }
    }

    /// The index as of the store's head.
    pub fn load(file: &Path, store: &dyn Store) -> Result<Self, StoreError> {
        let head = store.head()?.seq;
        let cached = std::fs::read(file).ok().and_then(|bytes| Self::decode(&bytes));
        if let Some(mut index) = cached.filter(|index| index.stamp <= head) {
            index.catch_up(&store.changes_after(index.stamp)?);
            return Ok(index);
        }
        let mut index = Self::stamped(head);
        for (path, entry) in store.latest()? {
            index.set(&path, &entry);
        }
        Ok(index)
    }

    /// The names that were one file at a moment, as far as the index in `file` knows. Reads no more
    /// of it than that.
    pub fn linked_at(file: &Path, head: Seq, moment: Seq) -> Vec<Vec<WorkPath>> {
        let known = read_head(file).filter(|(stamp, _)| *stamp <= head);
        let held = |linked: &Linked| {
            linked.since < moment && linked.until.is_none_or(|until| moment <= until)
        };
        let known = known.into_iter().flat_map(|(_, linked)| linked);
        known.filter(held).map(|linked| linked.names).collect()
    }

    /// As [`Self::save`]; a crash brings no older one back.
    pub fn save_durably(&self, file: &Path) -> io::Result<()> {
        self.save(file)?;
        disk::sync(&std::fs::File::open(file)?)?;
        file.parent().map_or(Ok(()), disk::sync_folder)
    }

    pub fn save(&self, file: &Path) -> io::Result<()> {
        disk::replace_private_file(file, &self.encode())
    }

    // The bytes are specified in docs/design/store-format.md.
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len() * 128);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.stamp.0.to_le_bytes());
        put_bytes(&mut out, &linked_bytes(&self.linked));
        let checksum = Digest::of(&out);
        out.extend_from_slice(&checksum.0);
        for (path, folder) in &self.folders {
            put_bytes(&mut out, path);
            out.push(u8::from(folder.listed) | u8::from(folder.repository) << 1);
            put_fingerprint(&mut out, folder.fingerprint);
            out.extend_from_slice(&(folder.children.len() as u32).to_le_bytes());
            for child in &folder.children {
                put_bytes(&mut out, &child.name);
                put_known(&mut out, &child.known);
            }
        }
        let checksum = Digest::of(&out);
        out.extend_from_slice(&checksum.0);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, checksum) = bytes.split_last_chunk::<32>()?;
        if Digest::of(body).0 != *checksum {
            return None;
        }
        let mut input = Input(body.strip_prefix(MAGIC)?);
        let mut index = Self::stamped(Seq(u64::from_le_bytes(input.array()?)));
        index.linked = get_linked(&mut Input(input.bytes()?))?;
        input.array::<32>()?;
        while !input.0.is_empty() {
            let path = input.bytes()?.to_vec();
            let flags = input.byte()?;
            let fingerprint = get_fingerprint(&mut input)?;
            let count = u32::from_le_bytes(input.array()?);
            let mut children = Vec::with_capacity(count as usize);
            for _ in 0..count {
                let name = input.bytes()?.into();
                children.push(Child { name, known: get_known(&mut input)? });
            }
            let (listed, repository) = (flags & 1 != 0, flags & 2 != 0);
            let folder = Folder { listed, fingerprint, repository, children };
            index.folders.insert(path, Arc::new(folder));
        }
        Some(index)
    }
}

/// The folder a path stands in; the root's is empty.
pub(crate) fn folder_of(path: &WorkPath) -> &[u8] {
    let bytes = path.as_bytes();
    bytes.iter().rposition(|b| *b == b'/').map_or(b"", |cut| &bytes[..cut])
}

const MAGIC: &[u8] = b"takeback index 3\n";

/// In the place of a moment that has not come.
const STILL: u64 = u64::MAX;

const SKIPPED: u8 = 0;
const FILE: u8 = 1;
const SYMLINK: u8 = 2;
const DIR: u8 = 3;
const NOT_CAPTURED: u8 = 4;
const UNKNOWN: u8 = 5;
const PRECIOUS: u8 = 0x40;

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn linked_bytes(linked: &[Linked]) -> Vec<u8> {
    let mut out = Vec::new();
    for Linked { names, since, until } in linked {
        out.extend_from_slice(&since.0.to_le_bytes());
        out.extend_from_slice(&until.map_or(STILL, |until| until.0).to_le_bytes());
        out.extend_from_slice(&(names.len() as u32).to_le_bytes());
        names.iter().for_each(|name| put_bytes(&mut out, name.as_bytes()));
    }
    out
}

/// The stamp and the linked names, which have a checksum of their own.
fn read_head(file: &Path) -> Option<(Seq, Vec<Linked>)> {
    let mut file = std::fs::File::open(file).ok()?;
    let mut head = vec![0; MAGIC.len() + 12];
    file.read_exact(&mut head).ok()?;
    let (_, len) = head.split_last_chunk::<4>()?;
    let more = u64::from(u32::from_le_bytes(*len)) + 32;
    file.take(more).read_to_end(&mut head).ok()?;
    let (body, checksum) = head.split_last_chunk::<32>()?;
    if Digest::of(body).0 != *checksum {
        return None;
    }
    let mut input = Input(body.strip_prefix(MAGIC)?);
    let stamp = Seq(u64::from_le_bytes(input.array()?));
    Some((stamp, get_linked(&mut Input(input.bytes()?))?))
}

fn get_linked(input: &mut Input<'_>) -> Option<Vec<Linked>> {
    let mut linked = Vec::new();
    while !input.0.is_empty() {
        let since = Seq(u64::from_le_bytes(input.array()?));
        let until = Some(u64::from_le_bytes(input.array()?)).filter(|until| *until != STILL);
        let names = u32::from_le_bytes(input.array()?);
        let names =
            (0..names).map(|_| WorkPath::new(input.bytes()?).ok()).collect::<Option<_>>()?;
        linked.push(Linked { names, since, until: until.map(Seq) });
    }
    Some(linked)
}

fn put_known(out: &mut Vec<u8>, known: &Known) {
    let Known::Entry { entry, fingerprint, precious } = known else {
        out.push(SKIPPED);
        return;
    };
    let flags = if *precious { PRECIOUS } else { 0 };
    match entry {
        Entry::File { digest, size, mode } => {
            out.push(FILE | flags);
            out.extend_from_slice(&digest.0);
            out.extend_from_slice(&size.to_le_bytes());
            out.extend_from_slice(&mode.to_le_bytes());
        }
        Entry::Symlink { target } => {
            out.push(SYMLINK | flags);
            put_bytes(out, target);
        }
        Entry::Dir { mode } => {
            out.push(DIR | flags);
            out.extend_from_slice(&mode.to_le_bytes());
        }
        Entry::NotCaptured { lack } => {
            out.push(NOT_CAPTURED | flags);
            out.push(*lack as u8);
        }
        Entry::Unknown | Entry::Absent => out.push(UNKNOWN | flags),
    }
    put_fingerprint(out, *fingerprint);
}

fn put_fingerprint(out: &mut Vec<u8>, fingerprint: Option<Fingerprint>) {
    let Some(fingerprint) = fingerprint else {
        out.push(0);
        return;
    };
    out.push(1);
    out.extend_from_slice(&fingerprint.size.to_le_bytes());
    out.extend_from_slice(&fingerprint.modified.to_le_bytes());
    out.extend_from_slice(&fingerprint.changed.to_le_bytes());
    out.extend_from_slice(&fingerprint.inode.to_le_bytes());
    out.extend_from_slice(&fingerprint.mode.to_le_bytes());
}

fn get_fingerprint(input: &mut Input<'_>) -> Option<Option<Fingerprint>> {
    if input.byte()? == 0 {
        return Some(None);
    }
    Some(Some(Fingerprint {
        size: u64::from_le_bytes(input.array()?),
        modified: i64::from_le_bytes(input.array()?),
        changed: i64::from_le_bytes(input.array()?),
        inode: u64::from_le_bytes(input.array()?),
        mode: u32::from_le_bytes(input.array()?),
    }))
}

fn get_known(input: &mut Input<'_>) -> Option<Known> {
    let tag = input.byte()?;
    let entry = match tag & !PRECIOUS {
        SKIPPED => return Some(Known::Skipped),
        FILE => Entry::File {
            digest: Digest(input.array()?),
            size: u64::from_le_bytes(input.array()?),
            mode: u32::from_le_bytes(input.array()?),
        },
        SYMLINK => Entry::Symlink { target: input.bytes()?.to_vec() },
        DIR => Entry::Dir { mode: u32::from_le_bytes(input.array()?) },
        NOT_CAPTURED => Entry::NotCaptured { lack: Lack::from_byte(input.byte()?)? },
        UNKNOWN => Entry::Unknown,
        _ => return None,
    };
    let fingerprint = get_fingerprint(input)?;
    Some(Known::Entry { entry, fingerprint, precious: tag & PRECIOUS != 0 })
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = u32::from_le_bytes(self.array()?) as usize;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }
}
