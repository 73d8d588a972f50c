//! Writes commits, and a new branch for them. HEAD, the index, the working tree, the hooks and every other
//! reference stay as they are: trees are made in an index file of its own.
//!
//! Until the branch is made, nothing refers to what was written, and git removes it in time.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{GitError, GitUser, Repository};

/// Writes commits into one repository.
pub(crate) struct CommitWriter {
    repository: Repository,
    /// The index of the tree being made, outside the repository.
    index: PathBuf,
    /// The id of no object.
    no_object: String,
    /// In the folder of the index, for a repository of its own: no settings of the user apply.
    is_isolated: bool,
}

/// A path of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// From the top of the repository.
    pub(crate) path: Vec<u8>,
    /// Its mode as git writes it, and the id of its contents. `None`: the path is removed.
    pub(crate) object: Option<(&'static str, String)>,
}

/// What a commit says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewCommit {
    /// Who made the changes.
    pub(crate) author: GitUser,
    /// When, in seconds since 1970.
    pub(crate) at: i64,
    /// What it is about.
    pub(crate) message: String,
}

/// What became of a new branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewBranch {
    /// It is in the repository.
    Made,
    /// There is a branch of this name, or it is the one that is checked out. Nothing refers to the commits.
    Taken,
}

/// The id of no object, where ids have 160 bits.
const NO_OBJECT: &str = "0000000000000000000000000000000000000000";

/// Contents that are handed to git together.
const BATCH: usize = 32 << 20;

impl CommitWriter {
    /// Writes into `repository`. `folder`: an empty folder for the index.
    pub(crate) fn new(repository: Repository, folder: &Path) -> Result<Self, GitError> {
        let (index, no_object) = (folder.join("index"), NO_OBJECT.to_owned());
        let mut writer = Self { repository, index, no_object, is_isolated: false };
        if writer.line(&["rev-parse", "--show-object-format"])? == "sha256" {
            writer.no_object = "0".repeat(64);
        }
        Ok(writer)
    }

    /// Writes into a new repository in an empty folder, which knows neither the user's settings nor the
    /// system's.
    pub(crate) fn isolated(folder: &Path) -> Result<Self, GitError> {
        let repository = Repository { top: folder.to_owned(), time_limit: None };
        let (index, no_object) = (folder.join("index"), NO_OBJECT.to_owned());
        let writer = Self { repository, index, no_object, is_isolated: true };
        writer.run(&[], &["init", "--quiet", "--template=", "--object-format=sha1"], b"")?;
        Ok(writer)
    }

    fn run(
        &self,
        variables: &[(&'static str, OsString)],
        args: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, GitError> {
        // Each of these would write beside the private index, or leave out a part of the tree.
        let settings = ["core.splitIndex=false", "index.sparse=false", "core.sparseCheckout=false"];
        let settings: Vec<String> = settings.into_iter().map(str::to_owned).collect();
        let mut all = vec![("GIT_INDEX_FILE", self.index.clone().into_os_string())];
        if self.is_isolated {
            all.push(("GIT_CONFIG_GLOBAL", "/dev/null".into()));
            all.push(("GIT_CONFIG_NOSYSTEM", "1".into()));
        }
        all.extend(variables.iter().cloned());
        self.repository.run_in(&settings, &all, args, input)
    }

    fn line(&self, args: &[&str]) -> Result<String, GitError> {
        let output = self.run(&[], args, b"")?;
        Ok(String::from_utf8_lossy(&output).trim().to_owned())
    }

    /// Whether a branch may have this name.
    pub(crate) fn is_branch_name(&self, name: &str) -> Result<bool, GitError> {
        if name.starts_with('-') || name == "HEAD" {
            return Ok(false);
        }
        let reference = format!("refs/heads/{name}");
        match self.run(&[], &["check-ref-format", &reference], b"") {
            Ok(_) => Ok(true),
            Err(GitError::Failed { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether there is a branch of this name, or it is the one that is checked out and has no commit yet.
    pub(crate) fn has_branch(&self, name: &str) -> Result<bool, GitError> {
        let reference = format!("refs/heads/{name}");
        if self.repository.commit(&reference)?.is_some() {
            return Ok(true);
        }
        match self.line(&["symbolic-ref", "--quiet", "HEAD"]) {
            Ok(head) => Ok(head == reference),
            // HEAD is a commit.
            Err(GitError::Failed { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes the index that of a commit; `None`: empty.
    pub(crate) fn begin_at(&self, commit: Option<&str>) -> Result<(), GitError> {
        self.run(&[], &["read-tree", commit.unwrap_or("--empty")], b"").map(drop)
    }

    /// The paths of the index, each with whether it is another repository.
    pub(crate) fn paths(&self) -> Result<Vec<(Vec<u8>, bool)>, GitError> {
        let output = self.run(&[], &["ls-files", "--stage", "-z", "--full-name"], b"")?;
        let rows = output.split(|byte| *byte == 0).filter(|row| !row.is_empty());
        let parse = |row: &[u8]| {
            let at = row.iter().position(|byte| *byte == b'\t')?;
            Some((row[at + 1..].to_vec(), row.starts_with(b"160000 ")))
        };
        rows.map(|row| {
            parse(row).ok_or_else(|| GitError::Unreadable { command: "ls-files".to_owned() })
        })
        .collect()
    }

    /// Writes contents, which `next` returns one after the other, and passes the id of each to `take`.
    pub(crate) fn write_contents<E: From<GitError>>(
        &self,
        mut next: impl FnMut() -> Result<Option<Vec<u8>>, E>,
        mut take: impl FnMut(String),
    ) -> Result<(), E> {
        let mut is_over = false;
        while !is_over {
            let mut stream = b"feature done\n".to_vec();
            let mut count = 0;
            while stream.len() < BATCH {
                let Some(contents) = next()? else {
                    is_over = true;
                    break;
                };
                count += 1;
                let head = format!("blob\nmark :{count}\ndata {}\n", contents.len());
                stream.extend(head.into_bytes());
                stream.extend(contents);
                stream.extend(format!("\nget-mark :{count}\n").into_bytes());
            }
            if count == 0 {
                break;
            }
            stream.extend(b"done\n");
            let output = self.run(&[], &["fast-import", "--quiet"], &stream)?;
            let ids: Vec<String> =
                String::from_utf8_lossy(&output).lines().map(str::to_owned).collect();
            if ids.len() != count {
                return Err(GitError::Unreadable { command: "fast-import".to_owned() }.into());
            }
            ids.into_iter().for_each(&mut take);
        }
        Ok(())
    }

    /// Changes these paths in the index, removals first: a file may become a folder.
    pub(crate) fn update(&self, entries: &[IndexEntry]) -> Result<(), GitError> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut input = Vec::new();
        let (removed, placed): (Vec<_>, Vec<_>) =
            entries.iter().partition(|entry| entry.object.is_none());
        for entry in removed.into_iter().chain(placed) {
            let (mode, id) = match &entry.object {
                Some((mode, id)) => (*mode, id),
                None => ("0", &self.no_object),
            };
            input.extend(format!("{mode} {id}\t").into_bytes());
            input.extend(&entry.path);
            input.push(0);
        }
        let args = ["update-index", "-z", "--add", "--replace", "--index-info"];
        self.run(&[], &args, &input).map(drop)
    }

    /// Writes the index as a tree.
    pub(crate) fn tree(&self) -> Result<String, GitError> {
        self.line(&["write-tree"])
    }

    /// The tree of a commit.
    pub(crate) fn tree_of(&self, commit: &str) -> Result<String, GitError> {
        self.line(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")])
    }

    /// Writes a commit of a tree.
    pub(crate) fn commit(
        &self,
        tree: &str,
        parent: Option<&str>,
        commit: &NewCommit,
    ) -> Result<String, GitError> {
        let mut args = vec!["commit-tree", "--no-gpg-sign", tree];
        args.extend(parent.into_iter().flat_map(|parent| ["-p", parent]));
        let date = format!("{} +0000", commit.at);
        let variables = [
            ("GIT_AUTHOR_NAME", commit.author.name.clone().into()),
            ("GIT_AUTHOR_EMAIL", commit.author.email.clone().into()),
            ("GIT_AUTHOR_DATE", date.clone().into()),
            ("GIT_COMMITTER_NAME", "Takeback".into()),
            ("GIT_COMMITTER_EMAIL", "takeback@localhost".into()),
            ("GIT_COMMITTER_DATE", date.into()),
        ];
        let id = self.run(&variables, &args, commit.message.as_bytes())?;
        Ok(String::from_utf8_lossy(&id).trim().to_owned())
    }

    /// Makes the branch, unless another program was faster.
    pub(crate) fn make_branch(&self, name: &str, commit: &str) -> Result<NewBranch, GitError> {
        if self.has_branch(name)? {
            return Ok(NewBranch::Taken);
        }
        let reference = format!("refs/heads/{name}");
        // An empty old value: the reference must not exist.
        let args = ["update-ref", "-m", "takeback export", &reference, commit, ""];
        match self.run(&[], &args, b"") {
            Ok(_) => Ok(NewBranch::Made),
            Err(_) if self.has_branch(name)? => Ok(NewBranch::Taken),
            Err(error) => Err(error),
        }
    }

    /// The commits after `base` up to `tip` as messages that `git am` takes.
    pub(crate) fn patches(&self, base: &str, tip: &str) -> Result<Vec<u8>, GitError> {
        let range = format!("{base}..{tip}");
        let args = [
            "format-patch",
            "--stdout",
            "--binary",
            "--full-index",
            "--no-stat",
            "--find-renames",
            "--zero-commit",
            "--no-signature",
            &range,
        ];
        self.run(&[], &args, b"")
    }
}
