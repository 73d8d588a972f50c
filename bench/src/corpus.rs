//! Real trees to measure with: the sources of this workspace's dependencies, as cargo unpacked them.
//!
//! Repeated in folders of their own until there are enough files. Every file of a repetition gets one
//! more line, so that storing equal contents once gains nothing. Ignore files are left out, and files
//! over a mebibyte, which jj and opencode skip by default: all tools must see the same files.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::measure::text_of;
use crate::scratch::make_empty;

/// The size of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TreeSize {
    /// 250 files
    Small,
    /// 30,000 files
    Medium,
    /// 100,000 files
    Large,
}

impl TreeSize {
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

#[derive(Debug, clap::Args)]
pub(crate) struct CorpusArgs {
    /// Folder for the trees, made once, and for the tools' own data
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"))]
    pub(crate) corpus: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Corpus {
    pub(crate) size: TreeSize,
    pub(crate) tree: PathBuf,
    /// For the tools' own data: next to the tree, on the same disk.
    pub(crate) states: PathBuf,
    /// Relative to the tree, sorted.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) folders: usize,
    pub(crate) bytes: u64,
}

/// Exists while the tree is complete and unchanged.
const MARK: &str = "complete";

impl Corpus {
    pub(crate) fn open_or_make(args: &CorpusArgs, size: TreeSize) -> Result<Self> {
        let folder = std::path::absolute(&args.corpus)?.join(size.name());
        let (tree, states) = (folder.join("tree"), folder.join("states"));
        if !folder.join(MARK).is_file() {
            if folder.is_dir() && fs::read_dir(&folder)?.next().is_some() && !tree.is_dir() {
                return Err(format!("{} contains other files", folder.display()).into());
            }
            eprintln!("making a tree of {} files or more …", size.least_files());
            make_empty(&tree)?;
            copy_sources(&tree, size.least_files())?;
            fs::write(folder.join(MARK), "")?;
        }
        let mut corpus = Self { size, tree, states, paths: Vec::new(), folders: 0, bytes: 0 };
        corpus.count(&corpus.tree.clone())?;
        corpus.paths.sort();
        Ok(corpus)
    }

    /// Paths at equal distances in the sorted list, other ones in every round.
    pub(crate) fn spread(&self, count: usize, round: usize) -> impl Iterator<Item = PathBuf> {
        let step = self.paths.len() / count;
        (0..count).map(move |n| self.tree.join(&self.paths[n * step + (round * 137) % step]))
    }

    /// Lets `work` change the tree, and removes what tools stored, which is gigabytes. If `work` does
    /// not succeed, the tree is made again the next time.
    pub(crate) fn change<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let mark = self.tree.with_file_name(MARK);
        fs::remove_file(&mark)?;
        let done = work()?;
        for stored in [self.states.clone(), self.tree.join(".jj")] {
            if stored.exists() {
                fs::remove_dir_all(stored)?;
            }
        }
        fs::write(mark, "")?;
        Ok(done)
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

fn copy_sources(tree: &Path, least_files: usize) -> Result<()> {
    let crates = sources()?;
    let mut files = 0;
    for copy in 1.. {
        for (name, source) in &crates {
            if files < least_files {
                files += copy_folder(source, &tree.join(format!("copy-{copy}")).join(name), copy)?;
            }
        }
        if files == 0 {
            return Err("cargo has unpacked no dependencies: build the workspace first".into());
        }
        if files >= least_files {
            break;
        }
    }
    // A user's project is a repository; Takeback also finds its root by it.
    text_of("git", &["init", "-q", &tree.to_string_lossy()])?;
    Ok(())
}

/// The unpacked packages of `Cargo.lock`: the same for everyone who builds this version.
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

/// In bytes; larger files are skipped by some tools.
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
