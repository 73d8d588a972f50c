//! `git blame`: the commit of each line of a committed file.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::{Commit, GitError, Repository, path_arg};

/// A line of a committed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitLine {
    /// The commit that wrote it.
    pub commit: Arc<Commit>,
    /// The file's path in that commit, from the top of the repository.
    pub path: Vec<u8>,
    /// The line's number there, from 0.
    pub line: usize,
}

impl Repository {
    /// The lines of a file as of a commit. A line that was only indented or moved keeps its commit.
    pub fn blame(&self, commit: &str, path: &Path) -> Result<Vec<CommitLine>, GitError> {
        let args = ["blame", "--porcelain", "--no-textconv", "-w", "-M", commit, "--"];
        let args = args.into_iter().map(AsRef::as_ref).chain([path_arg(path)]);
        let output = self.run(args, b"")?;
        parse(&output).ok_or_else(|| GitError::Unreadable { command: "blame".to_owned() })
    }
}

/// The porcelain format: a heading for each line, with the commit's details where it is named first, and the
/// line itself after a tab.
pub(super) fn parse(output: &[u8]) -> Option<Vec<CommitLine>> {
    let mut known: HashMap<String, (Commit, Vec<u8>)> = HashMap::new();
    let mut found = Vec::new();
    let mut rows = output.split(|byte| *byte == b'\n').peekable();
    while let Some(heading) = rows.next().filter(|row| !row.is_empty()) {
        let mut words = std::str::from_utf8(heading).ok()?.split(' ');
        let (id, line) = (words.next()?.to_owned(), words.next()?.parse::<usize>().ok()?);
        let (commit, path) = known.entry(id.clone()).or_default();
        commit.id.clone_from(&id);
        loop {
            let row = rows.next()?;
            if row.starts_with(b"\t") {
                break;
            }
            let (key, value) = match row.iter().position(|byte| *byte == b' ') {
                Some(at) => (&row[..at], &row[at + 1..]),
                None => (row, &b""[..]),
            };
            let text = || String::from_utf8_lossy(value).into_owned();
            match key {
                b"author" => commit.name = text(),
                b"author-mail" => commit.email = text().trim_matches(['<', '>']).to_owned(),
                b"author-time" => commit.authored_at = text().parse().ok()?,
                b"committer-time" => commit.committed_at = text().parse().ok()?,
                b"summary" => commit.summary = text(),
                b"filename" => *path = unquoted(value),
                _ => {}
            }
        }
        found.push((id, path.clone(), line.checked_sub(1)?));
    }
    let commits: HashMap<String, Arc<Commit>> =
        known.into_iter().map(|(id, (commit, _))| (id, Arc::new(commit))).collect();
    let line = |(id, path, line): (String, Vec<u8>, usize)| {
        Some(CommitLine { commit: commits.get(&id)?.clone(), path, line })
    };
    found.into_iter().map(line).collect()
}

/// A path as git quotes it where it has unusual characters.
pub(super) fn unquoted(path: &[u8]) -> Vec<u8> {
    let Some(inner) = path.strip_prefix(b"\"").and_then(|path| path.strip_suffix(b"\"")) else {
        return path.to_vec();
    };
    let mut plain = Vec::new();
    let mut bytes = inner.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => plain.push(b'\n'),
            Some(b't') => plain.push(b'\t'),
            Some(b'r') => plain.push(b'\r'),
            Some(b'a') => plain.push(7),
            Some(b'b') => plain.push(8),
            Some(b'v') => plain.push(11),
            Some(b'f') => plain.push(12),
            Some(first @ b'0'..=b'3') => {
                let digits = [first, bytes.next().unwrap_or(b'0'), bytes.next().unwrap_or(b'0')];
                plain.push(digits.iter().fold(0, |sum: u8, digit| {
                    sum.wrapping_mul(8).wrapping_add(digit.wrapping_sub(b'0'))
                }));
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_paths_are_read_as_git_writes_them() {
        for (quoted, plain) in [
            ("plain.rs", "plain.rs"),
            ("\"a\\tb\\\"c\\\\d\"", "a\tb\"c\\d"),
            ("\"\\303\\244.rs\"", "ä.rs"),
        ] {
            assert_eq!(unquoted(quoted.as_bytes()), plain.as_bytes(), "{quoted}");
        }
    }
}
