//! How files differ from the checked out commit, as `git status` shows it.
//!
//! The answer is git's own: only git knows its index, its line endings and its ignore rules. It is asked
//! without the locks with which it would refresh the index, and without the filters that a repository may
//! have configured (`filter.NAME.clean`), which are commands. Files that such a filter converts are not asked about.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{GitError, Repository, path_arg};

/// How `git status` shows a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileStatus {
    /// Its contents, mode or kind differ from the commit's.
    Modified,
    /// It is staged, and not in the commit.
    Added,
    /// The commit has it.
    Deleted,
    /// Neither the commit nor the index has it.
    Untracked,
}

/// Paths named as arguments; for more, git is asked about everything.
const ARGUMENTS_MAX: usize = 200;

impl Repository {
    /// The status of those paths (from the top) that `git status` lists. Paths that a filter converts are
    /// left out.
    pub(crate) fn status_of(
        &self,
        paths: &BTreeSet<Vec<u8>>,
    ) -> Result<BTreeMap<Vec<u8>, FileStatus>, GitError> {
        let filters = self.filters()?;
        let mut asked: BTreeSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
        if !filters.is_empty() {
            let filtered = self.filtered(paths, &filters)?;
            asked.retain(|path| !filtered.contains(*path));
        }
        if asked.is_empty() {
            return Ok(BTreeMap::new());
        }
        let settings: Vec<String> = filters
            .iter()
            .flat_map(|name| {
                let setting = |key: &str, value: &str| format!("filter.{name}.{key}={value}");
                [setting("clean", ""), setting("process", ""), setting("required", "false")]
            })
            .collect();
        let args = [
            "status",
            "--porcelain=v1",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules=all",
            "--",
        ];
        let args = args.into_iter().map(AsRef::as_ref);
        let named = if asked.len() > ARGUMENTS_MAX { BTreeSet::new() } else { asked.clone() };
        let named = named.into_iter().map(|path| path_arg(as_path(path)));
        let output = self.run_with(&settings, args.chain(named), b"")?;
        let listed =
            parse(&output).ok_or_else(|| GitError::Unreadable { command: "status".to_owned() })?;
        Ok(listed.into_iter().filter(|(path, _)| asked.contains(path.as_slice())).collect())
    }

    /// The names of the filters that have a command.
    fn filters(&self) -> Result<BTreeSet<String>, GitError> {
        let args =
            ["config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$"];
        let output = match self.run(args, b"") {
            Ok(output) => output,
            // There are none.
            Err(GitError::Failed { message, .. }) if message.is_empty() => {
                return Ok(BTreeSet::new());
            }
            Err(error) => return Err(error),
        };
        let unreadable = || GitError::Unreadable { command: "config".to_owned() };
        let keys = output.split(|byte| *byte == 0).filter(|key| !key.is_empty());
        keys.map(|key| {
            let key = std::str::from_utf8(key).ok()?.strip_prefix("filter.")?;
            let (name, _) = key.rsplit_once('.')?;
            // `-c` would read the name only up to there, and the filter would run.
            (!name.contains('=')).then(|| name.to_owned())
        })
        .collect::<Option<_>>()
        .ok_or_else(unreadable)
    }

    /// Those of the paths to which one of the filters applies.
    fn filtered(
        &self,
        paths: &BTreeSet<Vec<u8>>,
        filters: &BTreeSet<String>,
    ) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let input: Vec<u8> = paths.iter().flat_map(|path| [path, &b"\0"[..]].concat()).collect();
        let output = self.run(["check-attr", "-z", "--stdin", "filter"], &input)?;
        // PATH NUL filter NUL VALUE NUL
        let fields: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
        let rows = fields.chunks_exact(3);
        let is_filter = |value: &[u8]| filters.iter().any(|name| name.as_bytes() == value);
        Ok(rows.filter(|row| is_filter(row[2])).map(|row| row[0].to_vec()).collect())
    }
}

fn as_path(path: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt as _;
    Path::new(std::ffi::OsStr::from_bytes(path))
}

/// `XY PATH` records: X is the index beside the commit, Y the file beside the index.
fn parse(output: &[u8]) -> Option<BTreeMap<Vec<u8>, FileStatus>> {
    let mut listed = BTreeMap::new();
    for record in output.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
        let (letters, path) = (record.get(..2)?, record.get(3..)?);
        let letter = if letters[1] == b' ' { letters[0] } else { letters[1] };
        let status = match letter {
            b'?' => FileStatus::Untracked,
            b'A' => FileStatus::Added,
            b'D' => FileStatus::Deleted,
            b'M' | b'T' | b'U' => FileStatus::Modified,
            _ => return None,
        };
        listed.insert(path.to_vec(), status);
    }
    Some(listed)
}
