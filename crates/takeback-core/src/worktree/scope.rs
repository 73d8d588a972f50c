//! The scope of a workspace: which names a scan covers, and why it skips the others.

mod distrusted_rules;

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde::Serialize;
use takeback_store::{NotCapturedReason, WorkPath};

pub(crate) use self::distrusted_rules::{DistrustedRules, is_exclude};
pub(crate) use self::distrusted_rules::{has_rules, manifests_of};
use crate::platform::folder::open_file;

/// What a workspace covers beyond the rules of its ignore files.
#[derive(Debug, Clone)]
pub struct ScopeOptions {
    /// Additional names of derived folders.
    pub derived_folders: Vec<String>,
    /// An ignored file up to this size is covered anyway, …
    pub precious_file_max: u64,
    /// … while all of them together are not larger than this.
    pub precious_total_max: u64,
    /// How many names in an ignored folder are covered at most; 0: none.
    pub ignored_folder_names: usize,
    /// Folders that are workspaces of their own.
    pub nested_workspaces: Vec<WorkPath>,
}

impl Default for ScopeOptions {
    fn default() -> Self {
        Self {
            derived_folders: Vec::new(),
            precious_file_max: 16 << 20,
            precious_total_max: 256 << 20,
            ignored_folder_names: MOST_NAMES,
            nested_workspaces: Vec::new(),
        }
    }
}

impl ScopeOptions {
    /// Whether small files in ignored folders are covered.
    fn covers_ignored(&self) -> bool {
        self.ignored_folder_names > 0 && self.precious_file_max > 0 && self.precious_total_max > 0
    }

    /// Changes when names that were skipped may be covered now.
    pub(crate) fn number(&self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        let mut add = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        self.derived_folders.iter().for_each(|name| add(name.as_bytes()));
        add(b"/");
        self.nested_workspaces.iter().for_each(|path| add(path.as_bytes()));
        add(b"/");
        add(&self.precious_file_max.to_le_bytes());
        add(&self.precious_total_max.to_le_bytes());
        add(&(self.ignored_folder_names as u64).to_le_bytes());
        let mut number = [0; 8];
        hasher.finalize_xof().fill(&mut number);
        u64::from_le_bytes(number)
    }
}

/// Whether a new name is covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    In,
    /// Ignored: a file is covered if it is small and there is room, a folder if it does not have too many
    /// names.
    Precious,
    Out(OutReason),
    /// Recorded as one path, without what is in it.
    Left(NotCapturedReason),
}

/// Whether a folder is ignored, by the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoreState {
    /// Not ignored.
    Plain,
    /// It is ignored, or is in an ignored folder. `top`: the length of the outermost one's path.
    Ignored { top: usize },
    /// A `.takebackignore` excludes it, or one of its parents.
    Excluded,
}

/// Which rules to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleSet {
    /// All, as they are on disk.
    All,
    /// As they were before an agent wrote them.
    Trusted,
}

/// Why a name is not covered. The numbers are stored in the index's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[repr(u8)]
pub enum OutReason {
    /// Build output: `node_modules`, `target`.
    Derived = 0,
    /// A folder that a rule ignores, where ignored files are not covered.
    IgnoredFolder = 1,
    /// Ignored, and too large for a single file.
    IgnoredFile = 2,
    /// Ignored, and the total limit is used up.
    OverBudget = 3,
    /// Excluded by a `.takebackignore`.
    Excluded = 4,
    /// The root of another workspace.
    NestedWorkspace = 5,
    /// Another file system is mounted there.
    OtherFileSystem = 6,
    /// A device, a pipe or a socket.
    Special = 7,
    /// The folder it is in may be listed, but not searched.
    Unreachable = 8,
    /// Ignored, with too many names in it.
    TooMany = 9,
    /// It has the name of a stage of Takeback's.
    Reserved = 10,
}

impl OutReason {
    const ALL: [Self; 11] = [
        Self::Derived,
        Self::IgnoredFolder,
        Self::IgnoredFile,
        Self::OverBudget,
        Self::Excluded,
        Self::NestedWorkspace,
        Self::OtherFileSystem,
        Self::Special,
        Self::Unreachable,
        Self::TooMany,
        Self::Reserved,
    ];

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == byte)
    }

    /// The reason for a folder that is recorded as one path.
    pub(crate) fn of_left(reason: NotCapturedReason) -> Option<Self> {
        match reason {
            NotCapturedReason::Derived => Some(Self::Derived),
            NotCapturedReason::TooMany => Some(Self::TooMany),
            NotCapturedReason::Reserved => Some(Self::Reserved),
            _ => None,
        }
    }

    /// The reason, for messages.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Derived => "build output",
            Self::IgnoredFolder => "ignored folder",
            Self::IgnoredFile => "ignored, and larger than preciousFileMaxBytes",
            Self::OverBudget => "ignored, and preciousTotalBytes is used up",
            Self::Excluded => "excluded by .takebackignore",
            Self::NestedWorkspace => "a workspace of its own",
            Self::OtherFileSystem => "on another file system",
            Self::Special => "not a file, link or folder",
            Self::Unreachable => "in a folder without search permission",
            Self::TooMany => "ignored, with more than 20,000 names",
            Self::Reserved => "named like a stage of Takeback",
        }
    }
}

/// Whether a path is in version control's own files or Takeback's stages: those are never read or
/// written, even if named.
#[must_use]
pub(crate) fn is_internal(path: &WorkPath) -> bool {
    is_version_controls(path) || stage_of(path).is_some()
}

pub(crate) fn is_version_controls(path: &WorkPath) -> bool {
    path.as_bytes().split(|b| *b == b'/').any(is_internal_name)
}

/// The stage that `path` is, or is in: by its name, regardless of which store made it.
#[must_use]
pub(crate) fn stage_of(path: &WorkPath) -> Option<WorkPath> {
    let bytes = path.as_bytes();
    let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
    let end = ends.chain([bytes.len()]).find(|end| is_stage(&bytes[..*end]))?;
    WorkPath::new(&bytes[..end]).ok()
}

/// Whether a path has the name of a stage. A name that only begins like one is the user's.
pub(crate) fn is_stage(path: &[u8]) -> bool {
    let id = match path.iter().rposition(|b| *b == b'/') {
        Some(cut) if &path[..cut] == OWN_FOLDER => path[cut + 1..].strip_prefix(STAGE_PREFIX),
        _ => None,
    };
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    let id = id.or_else(|| name.strip_prefix(OUTSIDE_STAGE_PREFIX));
    id.is_some_and(|id| id.len() == 16 && id.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

/// How many new names are copied below a folder that only an agent's rules hide.
pub(crate) const MOST_NAMES: usize = 20_000;

/// Takeback's folder in a workspace. It is never recorded itself; the user's files in it are.
pub(crate) const OWN_FOLDER: &[u8] = b".takeback";
pub(crate) const STAGE_PREFIX: &[u8] = b"stage-";
/// The stage next to a file outside the workspace.
pub(crate) const OUTSIDE_STAGE_PREFIX: &[u8] = b".takeback-stage-";

pub(crate) fn is_internal_name(name: &[u8]) -> bool {
    matches!(name, b".git" | b".jj" | b".hg" | b".svn" | b".bzr" | b"_darcs" | b".pijul" | b".sl")
}

/// Derived folders, each with the files that must be next to it. No files: always derived.
const DERIVED: &[(&str, &[&str])] = &[
    ("node_modules", &["package.json"]),
    ("bower_components", &["bower.json"]),
    ("target", &["Cargo.toml", "pom.xml", "build.sbt"]),
    (".venv", &["pyproject.toml", "requirements.txt", "setup.py", "Pipfile"]),
    ("venv", &["pyproject.toml", "requirements.txt", "setup.py", "Pipfile"]),
    ("__pycache__", &[]),
    (".mypy_cache", &[]),
    (".pytest_cache", &[]),
    (".ruff_cache", &[]),
    (".tox", &["tox.ini", "pyproject.toml"]),
    (".next", &["package.json"]),
    (".nuxt", &["package.json"]),
    (".svelte-kit", &["package.json"]),
    (".turbo", &["package.json"]),
    (".parcel-cache", &["package.json"]),
    (".gradle", &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]),
    (".terraform", &[]),
    (".dart_tool", &["pubspec.yaml"]),
    ("_build", &["mix.exs", "rebar.config"]),
    ("Pods", &["Podfile"]),
];

/// The rules that apply in one folder: its own ignore files, then those of the folders above.
#[derive(Debug)]
pub(crate) struct Rules {
    above: Option<Arc<Self>>,
    /// The length of the path that these rules' patterns are relative to.
    folder_len: usize,
    all: Layer,
    /// None: all of them are.
    trusted: Option<Layer>,
    /// The files with these rules, relative to the folder.
    files: Vec<&'static [u8]>,
    /// A repository of its own: ignore files above it do not apply.
    repository: bool,
}

/// The rules in the ignore files of one folder.
#[derive(Debug, Default)]
struct Layer {
    ignore: Option<Gitignore>,
    excluded: Option<Gitignore>,
}

/// A rule file, as it was read.
struct RuleFile {
    name: &'static [u8],
    text: Vec<u8>,
    /// Its text before an agent wrote it.
    trusted: Option<Vec<u8>>,
}

const GITIGNORE: &[u8] = b".gitignore";
const TAKEBACKIGNORE: &[u8] = b".takebackignore";
/// A repository's own rules, which are not an entry of the workspace.
pub(crate) const EXCLUDE: &[u8] = b".git/info/exclude";

/// What a new folder's parent says about it.
#[derive(Clone, Copy)]
pub(crate) struct ParentFolder<'a> {
    /// Whether a name is in the parent.
    pub has: &'a dyn Fn(&[u8]) -> bool,
    /// [`Rules::inside`] of the parent.
    pub inside: IgnoreState,
}

impl Rules {
    /// Reads the rules of the folder `path`; `has`: whether a name is in it. With `.git` it is a
    /// repository.
    pub(crate) fn read(
        above: Option<&Arc<Self>>,
        path: &[u8],
        folder: impl AsFd,
        distrusted: &DistrustedRules,
        has: impl Fn(&[u8]) -> bool,
    ) -> Arc<Self> {
        let repository = has(b".git");
        let read = |name: &'static [u8], is_there: bool| {
            let text = is_there.then(|| small_file(&folder, name)).flatten()?;
            let trusted = match distrusted.of(path, name) {
                Some(trusted) => trusted.cloned(),
                None => Some(text.clone()),
            };
            Some(RuleFile { name, text, trusted })
        };
        let ignore = [read(EXCLUDE, repository), read(GITIGNORE, has(GITIGNORE))];
        let excluded = [read(TAKEBACKIGNORE, has(TAKEBACKIGNORE))];
        let files: Vec<&[u8]> =
            ignore.iter().chain(&excluded).flatten().map(|file| file.name).collect();
        if let Some(above) = above
            && files.is_empty()
            && !repository
        {
            return Arc::clone(above);
        }
        let layer = |by: RuleSet| {
            let compiled = |files: &[Option<RuleFile>]| {
                let texts = files.iter().flatten().filter_map(|file| match by {
                    RuleSet::All => Some(file.text.as_slice()),
                    RuleSet::Trusted => file.trusted.as_deref(),
                });
                compile(texts)
            };
            Layer { ignore: compiled(&ignore), excluded: compiled(&excluded) }
        };
        let has_distrusted = files.iter().any(|name| distrusted.of(path, name).is_some());
        Arc::new(Self {
            above: above.cloned(),
            folder_len: if path.is_empty() { 0 } else { path.len() + 1 },
            all: layer(RuleSet::All),
            trusted: has_distrusted.then(|| layer(RuleSet::Trusted)),
            files,
            repository,
        })
    }

    /// No rules.
    pub(crate) fn none() -> Arc<Self> {
        let (all, trusted, files) = (Layer::default(), None, Vec::new());
        Arc::new(Self { above: None, folder_len: 0, all, trusted, files, repository: false })
    }

    fn layer(&self, by: RuleSet) -> &Layer {
        match (&self.trusted, by) {
            (Some(trusted), RuleSet::Trusted) => trusted,
            _ => &self.all,
        }
    }

    fn and_above(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |rules| rules.above.as_deref())
    }

    /// The files whose rules apply to a path below this folder.
    pub(crate) fn files_for(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let file = |here: &Self, name: &[u8]| [&path[..here.folder_len], name].concat();
        self.and_above()
            .flat_map(|here| here.files.iter().map(move |name| file(here, name)))
            .collect()
    }

    /// `path` relative to the folder of these rules; `None`: it is not below it.
    fn below<'p>(&self, path: &'p [u8]) -> Option<&'p OsStr> {
        path.get(self.folder_len..).filter(|below| !below.is_empty()).map(OsStr::from_bytes)
    }

    fn is_ignored(&self, path: &[u8], is_folder: bool, by: RuleSet) -> bool {
        let mut rules = Some(self);
        while let Some(here) = rules {
            if let (Some(ignore), Some(below)) = (&here.layer(by).ignore, here.below(path)) {
                let matched = ignore.matched(below, is_folder);
                if !matched.is_none() {
                    return matched.is_ignore();
                }
            }
            let own = here.repository && here.below(path).is_some();
            rules = if own { None } else { here.above.as_deref() };
        }
        false
    }

    fn is_excluded(&self, path: &[u8], is_folder: bool, by: RuleSet) -> bool {
        self.and_above().any(|here| match (&here.layer(by).excluded, here.below(path)) {
            (Some(excluded), Some(below)) => excluded.matched(below, is_folder).is_ignore(),
            _ => false,
        })
    }

    /// Whether the folder at `path`, or one of its parents, is ignored, for a folder that is known.
    pub(crate) fn inside(&self, path: &[u8], by: RuleSet) -> IgnoreState {
        let ends = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
        let mut inside = IgnoreState::Plain;
        for end in ends.chain([path.len()]).filter(|end| *end > 0) {
            if self.is_excluded(&path[..end], true, by) {
                return IgnoreState::Excluded;
            }
            if inside == IgnoreState::Plain && self.is_ignored(&path[..end], true, by) {
                inside = IgnoreState::Ignored { top: end };
            }
        }
        inside
    }

    /// Judges a new folder at `path`.
    pub(crate) fn cover_folder(
        &self,
        options: &ScopeOptions,
        path: &[u8],
        ParentFolder { has: beside, inside }: ParentFolder<'_>,
        by: RuleSet,
    ) -> Coverage {
        let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
        let ignored = inside != IgnoreState::Plain || self.is_ignored(path, true, by);
        if options.nested_workspaces.iter().any(|nested| nested.as_bytes() == path) {
            Coverage::Out(OutReason::NestedWorkspace)
        } else if is_derived(options, name, beside, ignored) {
            Coverage::Out(OutReason::Derived)
        } else if inside == IgnoreState::Excluded || self.is_excluded(path, true, by) {
            Coverage::Out(OutReason::Excluded)
        } else if ignored && options.covers_ignored() {
            Coverage::Precious
        } else if ignored {
            Coverage::Out(OutReason::IgnoredFolder)
        } else {
            Coverage::In
        }
    }

    /// Judges a new file or link at `path`. Rule files are always covered, even if they exclude
    /// themselves: what an agent writes into them can be taken back.
    pub(crate) fn cover_file(
        &self,
        options: &ScopeOptions,
        path: &[u8],
        inside: IgnoreState,
        by: RuleSet,
    ) -> Coverage {
        if has_rules(path) {
            Coverage::In
        } else if inside == IgnoreState::Excluded || self.is_excluded(path, false, by) {
            Coverage::Out(OutReason::Excluded)
        } else if inside != IgnoreState::Plain {
            match options.covers_ignored() {
                true => Coverage::Precious,
                false => Coverage::Out(OutReason::IgnoredFolder),
            }
        } else if self.is_ignored(path, false, by) {
            Coverage::Precious
        } else {
            Coverage::In
        }
    }
}

fn is_derived(
    options: &ScopeOptions,
    name: &[u8],
    beside: &dyn Fn(&[u8]) -> bool,
    ignored: bool,
) -> bool {
    let listed = DERIVED.iter().any(|(derived, manifests)| {
        derived.as_bytes() == name
            && (ignored
                || manifests.is_empty()
                || manifests.iter().any(|manifest| beside(manifest.as_bytes())))
    });
    listed || options.derived_folders.iter().any(|derived| derived.as_bytes() == name)
}

/// Whether a folder is excluded regardless of any rule file.
pub(crate) fn is_always_out(options: &ScopeOptions, path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    options.nested_workspaces.iter().any(|nested| nested.as_bytes() == path)
        || is_derived(options, name, &|_| false, false)
}

/// Whether a folder of this name can be a derived folder.
pub(crate) fn may_be_derived(options: &ScopeOptions, name: &[u8]) -> bool {
    is_derived(options, name, &|_| false, true)
}

/// How many bytes of an ignore file are read at most.
pub(crate) const MOST_RULES: u64 = 1 << 20;

/// An ignore file's text, or the beginning of it if it is absurdly large.
fn small_file(folder: impl AsFd, name: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    open_file(folder, name).ok()?.take(MOST_RULES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Invalid patterns are ignored, as in git.
fn compile<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    for text in texts {
        for line in String::from_utf8_lossy(text).lines() {
            drop(builder.add_line(None, line));
        }
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
