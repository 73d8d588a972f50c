//! The versions of one path in the commits of all branches, and of those that branches have left.

use std::path::Path;

use super::{Commit, GitError, Repository, path_arg};

/// What a path became in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathVersion {
    /// The commit.
    pub(crate) commit: Commit,
    /// The id of the file's contents after it.
    pub(crate) blob: String,
}

impl Repository {
    /// Every commit in which the path changed, newest first. Deletions are left out.
    pub(crate) fn versions(&self, path: &Path) -> Result<Vec<PathVersion>, GitError> {
        let args = [
            "log",
            "--all",
            "--reflog",
            "--full-history",
            // What a merge made of both sides is in no other commit.
            "--diff-merges=first-parent",
            "--no-renames",
            "--raw",
            "--no-abbrev",
            "--format=%x01%H%x00%an%x00%ae%x00%at%x00%ct%x00%s",
            "--",
        ];
        let args = args.into_iter().map(AsRef::as_ref).chain([path_arg(path)]);
        let output = self.run(args, b"")?;
        parse(&output).ok_or_else(|| GitError::Unreadable { command: "log".to_owned() })
    }
}

fn parse(output: &[u8]) -> Option<Vec<PathVersion>> {
    let mut versions = Vec::new();
    for record in output.split(|byte| *byte == 1).skip(1) {
        let mut rows = record.split(|byte| *byte == b'\n');
        let heading = String::from_utf8_lossy(rows.next()?).into_owned();
        let mut fields = heading.split('\0').map(str::to_owned);
        let mut field = || fields.next();
        let commit = Commit {
            id: field()?,
            name: field()?,
            email: field()?,
            authored_at: field()?.parse().ok()?,
            committed_at: field()?.parse().ok()?,
            summary: field()?,
        };
        // `:100644 100644 OLD NEW M<tab>PATH`
        let Some(raw) = rows.find(|row| row.starts_with(b":")) else { continue };
        let raw = std::str::from_utf8(raw.split(|byte| *byte == b'\t').next()?).ok()?;
        let blob = raw.split(' ').nth(3)?.to_owned();
        if blob.bytes().any(|digit| digit != b'0') {
            versions.push(PathVersion { commit, blob });
        }
    }
    Some(versions)
}
