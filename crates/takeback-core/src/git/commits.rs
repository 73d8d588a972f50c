//! The commits between two commits, and whether other repositories have them.

use super::{GitError, Repository};

/// A commit, and which paths it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedCommit {
    /// Its id in full.
    pub(crate) id: String,
    /// The ids of its parents.
    pub(crate) parents: Vec<String>,
    /// When it was made, in seconds since 1970.
    pub(crate) committed_at: i64,
    /// The first line of its message.
    pub(crate) summary: String,
    /// The paths it changed, from the top of the repository; none for a merge.
    pub(crate) paths: Vec<Vec<u8>>,
}

impl Repository {
    /// Whether every commit of `older` is also in `newer`.
    pub(crate) fn is_ancestor(&self, older: &str, newer: &str) -> Result<bool, GitError> {
        self.test(["merge-base", "--is-ancestor", older, newer])
    }

    /// The newest `most` commits that `newer` has and `older` does not, newest first.
    pub(crate) fn commits_between(
        &self,
        older: &str,
        newer: &str,
        most: usize,
    ) -> Result<Vec<ListedCommit>, GitError> {
        let (most, range) = (format!("--max-count={most}"), format!("{older}..{newer}"));
        let args = [
            "log",
            "-z",
            "--name-only",
            "--no-renames",
            "--diff-merges=off",
            "--format=%x01%H%x00%P%x00%ct%x00%s",
            &most,
            &range,
            "--",
        ];
        let output = self.run(args, b"")?;
        parse(&output).ok_or_else(|| GitError::Unreadable { command: "log".to_owned() })
    }

    /// Whether a remote is known to have this commit, or a tag names it or a later one.
    pub(crate) fn is_shared(&self, commit: &str) -> Result<bool, GitError> {
        let contains = format!("--contains={commit}");
        let args = ["for-each-ref", "--count=1", &contains, "refs/remotes", "refs/tags"];
        Ok(!self.run(args, b"")?.is_empty())
    }

    /// Whether something is staged: the index differs from the checked out commit.
    pub(crate) fn has_staged(&self) -> Result<bool, GitError> {
        let args = ["diff-index", "--cached", "--quiet", "--ignore-submodules=all", "HEAD", "--"];
        self.test(args).map(|is_same| !is_same)
    }

    /// Runs a git command that answers with its exit code.
    fn test<const N: usize>(&self, args: [&str; N]) -> Result<bool, GitError> {
        match self.run(args, b"") {
            Ok(_) => Ok(true),
            Err(GitError::Failed { message, .. }) if message.is_empty() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn parse(output: &[u8]) -> Option<Vec<ListedCommit>> {
    let records = output.split(|byte| *byte == 1).skip(1);
    let commits = records.map(|record| {
        let mut fields = record.split(|byte| *byte == 0);
        let mut text = || Some(String::from_utf8_lossy(fields.next()?).into_owned());
        let (id, parents) = (text()?, text()?);
        let (committed_at, summary) = (text()?.parse().ok()?, text()?);
        let parents = parents.split_whitespace().map(str::to_owned).collect();
        // A line break is between the heading and the first path.
        let paths = fields.map(|path| path.strip_prefix(b"\n").unwrap_or(path));
        let paths = paths.filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect();
        Some(ListedCommit { id, parents, committed_at, summary, paths })
    });
    commits.collect()
}
