//! What belongs to the workspace: which names a scan looks at, and why it passes over the others.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use takeback_store::WorkPath;

/// What a workspace covers beyond the rules of its ignore files.
#[derive(Debug, Clone)]
pub struct ScopeOptions {
    /// Further names of folders whose contents can be made again.
    pub derived_folders: Vec<String>,
    /// An ignored file up to this size is kept all the same, …
    pub precious_file_max: u64,
    /// … as long as all of these together are not larger than this.
    pub precious_total_max: u64,
    /// Folders that are workspaces of their own.
    pub nested_workspaces: Vec<WorkPath>,
}

impl Default for ScopeOptions {
    fn default() -> Self {
        Self {
            derived_folders: Vec::new(),
            precious_file_max: 16 << 20,
            precious_total_max: 256 << 20,
            nested_workspaces: Vec::new(),
        }
    }
}

impl ScopeOptions {
    /// Another number: names that were passed over may be covered now.
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
        let mut number = [0; 8];
        hasher.finalize_xof().fill(&mut number);
        u64::from_le_bytes(number)
    }
}

/// Whether a name that no scan has seen before is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    In,
    /// Ignored, but a file: in, if it is small and the budget lasts.
    Precious,
    Out(OutReason),
}

/// The numbers are those of the index's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[repr(u8)]
pub enum OutReason {
    /// Can be made again: `node_modules`, `target`.
    Derived = 0,
    IgnoredFolder = 1,
    /// Ignored, and larger than one such file may be.
    IgnoredFile = 2,
    /// Ignored, and no room is left for it among those that are kept.
    OverBudget = 3,
    /// Named by a `.takebackignore`.
    Excluded = 4,
    NestedWorkspace = 5,
    OtherFileSystem = 6,
    Special = 7,
    /// The folder it is in may be listed, but not searched.
    Unreachable = 8,
}

impl OutReason {
    const ALL: [Self; 9] = [
        Self::Derived,
        Self::IgnoredFolder,
        Self::IgnoredFile,
        Self::OverBudget,
        Self::Excluded,
        Self::NestedWorkspace,
        Self::OtherFileSystem,
        Self::Special,
        Self::Unreachable,
    ];

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == byte)
    }

    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Derived => "can be made again",
            Self::IgnoredFolder => "ignored folder",
            Self::IgnoredFile => "ignored, and larger than preciousFileMaxBytes",
            Self::OverBudget => "ignored, and preciousTotalBytes is used up",
            Self::Excluded => "excluded by .takebackignore",
            Self::NestedWorkspace => "a workspace of its own",
            Self::OtherFileSystem => "on another file system",
            Self::Special => "not a file, link or folder",
            Self::Unreachable => "in a folder that may not be searched",
        }
    }
}

/// Version control's own files and Takeback's: never looked at, never written, even if named.
#[must_use]
pub fn is_internal(path: &WorkPath) -> bool {
    let mut parts = path.as_bytes().split(|b| *b == b'/').peekable();
    let mut first = true;
    while let Some(part) = parts.next() {
        let stage = first
            && part == OWN_FOLDER
            && parts.peek().is_some_and(|next| next.starts_with(STAGE_PREFIX));
        if is_internal_name(part) || part.starts_with(OUTSIDE_STAGE_PREFIX) || stage {
            return true;
        }
        first = false;
    }
    false
}

/// Takeback's folder in a workspace. Itself never recorded, what the user keeps in it is.
pub(crate) const OWN_FOLDER: &[u8] = b".takeback";
pub(crate) const STAGE_PREFIX: &[u8] = b"stage-";
/// The files that say which names are covered.
pub(crate) const RULE_FILES: [&[u8]; 2] = [b".gitignore", b".takebackignore"];
/// The stage beside a file outside the workspace.
pub(crate) const OUTSIDE_STAGE_PREFIX: &[u8] = b".takeback-stage-";

pub(crate) fn is_internal_name(name: &[u8]) -> bool {
    matches!(name, b".git" | b".jj" | b".hg" | b".svn" | b".bzr" | b"_darcs" | b".pijul" | b".sl")
}

/// Folders whose contents can be made again, with the files beside which they are known to be that.
/// None named: always.
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

/// The rules that hold in one folder: its own ignore files, then those of the folders above.
#[derive(Debug)]
pub struct Rules {
    above: Option<Arc<Self>>,
    /// Where these rules' patterns start.
    folder_len: usize,
    ignore: Option<Gitignore>,
    excluded: Option<Gitignore>,
    /// A repository of its own: ignore files above it do not speak for it.
    repository: bool,
}

impl Rules {
    /// Reads the rules of the folder `path`; `has` tells which ignore files are in it.
    pub fn read(
        above: Option<&Arc<Self>>,
        path: &[u8],
        folder: impl AsFd,
        repository: bool,
        has: impl Fn(&[u8]) -> bool,
    ) -> Arc<Self> {
        let mut ignore_texts = Vec::new();
        if repository {
            ignore_texts.extend(small_file(&folder, b".git/info/exclude"));
        }
        if has(b".gitignore") {
            ignore_texts.extend(small_file(&folder, b".gitignore"));
        }
        let excluded_text =
            has(b".takebackignore").then(|| small_file(&folder, b".takebackignore")).flatten();
        if let Some(above) = above
            && ignore_texts.is_empty()
            && excluded_text.is_none()
            && !repository
        {
            return Arc::clone(above);
        }
        Arc::new(Self {
            above: above.cloned(),
            folder_len: if path.is_empty() { 0 } else { path.len() + 1 },
            ignore: compile(&ignore_texts),
            excluded: excluded_text.and_then(|text| compile(&[text])),
            repository,
        })
    }

    /// Those of a folder of which none are known.
    pub(crate) fn none() -> Arc<Self> {
        let (ignore, excluded) = (None, None);
        Arc::new(Self { above: None, folder_len: 0, ignore, excluded, repository: false })
    }

    /// `path` below the folder that these rules are of; `None`: it is not.
    fn below<'p>(&self, path: &'p [u8]) -> Option<&'p OsStr> {
        path.get(self.folder_len..).filter(|below| !below.is_empty()).map(OsStr::from_bytes)
    }

    fn is_ignored(&self, path: &[u8], is_folder: bool) -> bool {
        let mut rules = Some(self);
        while let Some(here) = rules {
            if let (Some(ignore), Some(below)) = (&here.ignore, here.below(path)) {
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

    fn is_excluded(&self, path: &[u8], is_folder: bool) -> bool {
        std::iter::successors(Some(self), |rules| rules.above.as_deref()).any(|here| {
            match (&here.excluded, here.below(path)) {
                (Some(excluded), Some(below)) => excluded.matched(below, is_folder).is_ignore(),
                _ => false,
            }
        })
    }

    /// Whether the folder at `path`, or one it is in, is ignored: then nothing new in it is covered,
    /// although the folder itself is known.
    pub fn ignores_folder(&self, path: &[u8]) -> bool {
        let ends = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
        ends.chain([path.len()])
            .filter(|end| *end > 0)
            .any(|end| self.is_ignored(&path[..end], true) || self.is_excluded(&path[..end], true))
    }

    /// Judges a new folder at `path`; `beside` tells which names are in the folder it is in, and
    /// `in_ignored` is as of [`Self::ignores_folder`] for that.
    pub fn cover_folder(
        &self,
        options: &ScopeOptions,
        path: &[u8],
        beside: &dyn Fn(&[u8]) -> bool,
        in_ignored: bool,
    ) -> Coverage {
        let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
        let ignored = in_ignored || self.is_ignored(path, true);
        if options.nested_workspaces.iter().any(|nested| nested.as_bytes() == path) {
            Coverage::Out(OutReason::NestedWorkspace)
        } else if is_derived(options, name, beside, ignored) {
            Coverage::Out(OutReason::Derived)
        } else if self.is_excluded(path, true) {
            Coverage::Out(OutReason::Excluded)
        } else if ignored {
            Coverage::Out(OutReason::IgnoredFolder)
        } else {
            Coverage::In
        }
    }

    /// Judges a new file or link at `path`. Files with rules are covered whatever they say of
    /// themselves: what an agent writes into them can be taken back.
    pub fn cover_file(&self, path: &[u8], in_ignored: bool) -> Coverage {
        if has_rules(path) {
            Coverage::In
        } else if self.is_excluded(path, false) {
            Coverage::Out(OutReason::Excluded)
        } else if in_ignored {
            Coverage::Out(OutReason::IgnoredFolder)
        } else if self.is_ignored(path, false) {
            Coverage::Precious
        } else {
            Coverage::In
        }
    }
}

fn has_rules(path: &[u8]) -> bool {
    let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    RULE_FILES.contains(&name)
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

/// Whether a folder of this name can be one whose contents can be made again.
pub(crate) fn may_be_derived(options: &ScopeOptions, name: &[u8]) -> bool {
    is_derived(options, name, &|_| false, true)
}

/// An ignore file's text, or the first of it if it is absurdly large.
fn small_file(folder: impl AsFd, name: &[u8]) -> Option<Vec<u8>> {
    const MOST: u64 = 1 << 20;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    file.take(MOST).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Patterns that make no sense have no say, as in git.
fn compile(texts: &[Vec<u8>]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    for text in texts {
        for line in String::from_utf8_lossy(text).lines() {
            drop(builder.add_line(None, line));
        }
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
