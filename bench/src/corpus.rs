//! Real trees to work on: the sources of this workspace's dependencies, as cargo unpacked them.
//!
//! Repeated in folders of their own until there are enough files. Every file of a repetition gets a
//! line of its own, so that keeping equal contents once gains nothing. Left out are ignore files and
//! the like, and files over a mebibyte, which jj and opencode pass over by default: all tools are to
//! see the same files.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use takeback_bench::Result;
use takeback_bench::measure::answer_of;

/// How large a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Extent {
    Small,
    Medium,
    Large,
}

impl Extent {
    pub(crate) const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }

    fn least_files(self) -> usize {
        match self {
            Self::Small => 250,
            Self::Medium => 30_000,
            Self::Large => 100_000,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Corpus {
    pub(crate) extent: Extent,
    pub(crate) tree: PathBuf,
    /// Beside the tree, on the same disk.
    pub(crate) states: PathBuf,
    pub(crate) programs: PathBuf,
    /// From the tree, sorted.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) folders: usize,
    pub(crate) bytes: u64,
}

/// Written when the tree is whole.
const MARK: &str = "complete";

impl Corpus {
    pub(crate) fn open_or_make(place: &Path, extent: Extent) -> Result<Self> {
        let folder = place.join(extent.name());
        let mark = folder.join(MARK);
        let tree = folder.join("tree");
        if !mark.is_file() {
            if folder.is_dir() && fs::read_dir(&folder)?.next().is_some() && !tree.is_dir() {
                return Err(format!("{} holds something else", folder.display()).into());
            }
            eprintln!("making a tree of {} files or more …", extent.least_files());
            if tree.exists() {
                fs::remove_dir_all(&tree)?;
            }
            make(&tree, extent.least_files())?;
            fs::write(&mark, "")?;
        }
        let mut corpus = Self {
            extent,
            tree,
            states: folder.join("states"),
            programs: place.join("programs"),
            paths: Vec::new(),
            folders: 0,
            bytes: 0,
        };
        corpus.count(&corpus.tree.clone())?;
        corpus.paths.sort();
        Ok(corpus)
    }

    /// The `takeback` that is measured.
    pub(crate) fn command(&self) -> PathBuf {
        self.programs.join("takeback")
    }

    /// This program, to measure other programs with.
    pub(crate) fn runner(&self) -> PathBuf {
        self.programs.join("takeback-bench")
    }

    /// Until [`Corpus::is_whole`] the tree counts as spoiled: who opens it next makes it again.
    pub(crate) fn may_change(&self) -> Result<()> {
        Ok(fs::remove_file(self.mark())?)
    }

    /// The tree is what it was, and what tools kept is removed: many gigabytes.
    pub(crate) fn is_whole(&self) -> Result<()> {
        for kept in [self.states.clone(), self.tree.join(".jj")] {
            if kept.exists() {
                fs::remove_dir_all(kept)?;
            }
        }
        Ok(fs::write(self.mark(), "")?)
    }

    fn mark(&self) -> PathBuf {
        self.tree.with_file_name(MARK)
    }

    /// An empty folder for what a tool keeps; what was there before is removed.
    pub(crate) fn empty_state(&self, name: &str) -> Result<PathBuf> {
        let folder = self.states.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    fn count(&mut self, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                if entry.file_name() != ".git" && entry.file_name() != ".jj" {
                    self.folders += 1;
                    self.count(&path)?;
                }
            } else {
                self.bytes += entry.metadata()?.len();
                self.paths.push(path.strip_prefix(&self.tree)?.to_owned());
            }
        }
        Ok(())
    }
}

fn make(tree: &Path, least_files: usize) -> Result<()> {
    let crates = sources()?;
    let mut files = 0;
    for copy in 1.. {
        for (name, source) in &crates {
            if files < least_files {
                files += copy_folder(source, &tree.join(format!("copy-{copy}")).join(name), copy)?;
            }
        }
        if files == 0 {
            return Err("no sources of dependencies; build the workspace first".into());
        }
        if files >= least_files {
            break;
        }
    }
    // A user's project has a repository of its own; that is also how Takeback knows its root.
    answer_of("git", &["init", "-q", &tree.to_string_lossy()])?;
    Ok(())
}

/// The unpacked sources of what `Cargo.lock` names: the same for everyone who builds this version.
fn sources() -> Result<Vec<(String, PathBuf)>> {
    let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock"))?;
    let home = match (std::env::var_os("CARGO_HOME"), std::env::var_os("HOME")) {
        (Some(home), _) => PathBuf::from(home),
        (None, Some(user)) => Path::new(&user).join(".cargo"),
        (None, None) => return Err("neither CARGO_HOME nor HOME is set".into()),
    };
    let registries: Vec<PathBuf> = fs::read_dir(home.join("registry/src"))?
        .map(|registry| Ok(registry?.path()))
        .collect::<Result<_>>()?;
    let mut sources = Vec::new();
    for package in
        lock.split("[[package]]").skip(1).filter(|package| package.contains("\nsource = "))
    {
        let field = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key))?;
            Some(line.trim_start_matches(" = ").trim_matches('"'))
        };
        let (Some(name), Some(version)) = (field("name"), field("version")) else { continue };
        let name = format!("{name}-{version}");
        let unpacked =
            registries.iter().map(|registry| registry.join(&name)).find(|path| path.is_dir());
        sources.extend(unpacked.map(|path| (name, path)));
    }
    Ok(sources)
}

/// In bytes, and below what any of the tools passes over.
const LARGEST: u64 = 1 << 20;

/// The number of files copied.
fn copy_folder(from: &Path, to: &Path, copy: u32) -> Result<usize> {
    fs::create_dir_all(to)?;
    let mut files = 0;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(".git") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            files += copy_folder(&entry.path(), &to.join(&name), copy)?;
        } else if entry.file_type()?.is_file() && entry.metadata()?.len() < LARGEST {
            let mut bytes = fs::read(entry.path())?;
            if copy > 1 {
                bytes.extend_from_slice(format!("\n// copy {copy}\n").as_bytes());
            }
            fs::write(to.join(&name), bytes)?;
            files += 1;
        }
    }
    if files == 0 {
        fs::remove_dir(to)?;
    }
    Ok(files)
}
