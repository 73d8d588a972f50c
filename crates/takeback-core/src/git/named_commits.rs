//! Commits that the user names, and the lines that each of them added.

use std::collections::{BTreeMap, HashSet};

use super::{Commit, GitError, Repository};
use crate::diff::diff;

/// A larger file, or one that is not text, has no lines.
const MOST: usize = 8 << 20;

/// A commit with its parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedCommit {
    /// The commit.
    pub(crate) commit: Commit,
    /// The ids of its parents.
    pub(crate) parents: Vec<String>,
}

/// A text file of a commit, and its lines that no parent of the commit has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommittedFile {
    /// From the top of the repository.
    pub(crate) path: Vec<u8>,
    /// Its contents.
    pub(crate) text: Vec<u8>,
    /// The numbers of the lines, from 0.
    pub(crate) added: Vec<usize>,
}

impl Repository {
    /// The commits that a text in git's syntax names, newest first. `HEAD` and `v1` are one commit each,
    /// `main..HEAD` is all between them.
    pub(crate) fn commits_in(&self, range: &str) -> Result<Vec<NamedCommit>, GitError> {
        let format = "--format=%x01%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%s";
        let args = ["log", "--no-walk", "--no-decorate", format, "--end-of-options", range, "--"];
        let output = self.run(args, b"")?;
        let records = output.split(|byte| *byte == 1).skip(1);
        let commits = records.map(|record| named_commit(&String::from_utf8_lossy(record)));
        let commits: Option<Vec<NamedCommit>> = commits.collect();
        commits.ok_or_else(|| GitError::Unreadable { command: "log".to_owned() })
    }

    /// The files that a commit changed. Of a merge only what it made of several parents is its own.
    pub(crate) fn committed_files(
        &self,
        commit: &NamedCommit,
    ) -> Result<Vec<CommittedFile>, GitError> {
        let mut files: Option<BTreeMap<Vec<u8>, CommittedFile>> = None;
        let parents: Vec<Option<&str>> = match commit.parents.as_slice() {
            [] => vec![None],
            parents => parents.iter().map(|parent| Some(parent.as_str())).collect(),
        };
        for parent in parents {
            let of_parent = self.files_against(parent, &commit.commit.id)?;
            files = Some(match files {
                None => of_parent,
                Some(files) => common_lines(files, &of_parent),
            });
        }
        let files = files.unwrap_or_default().into_values();
        Ok(files.filter(|file| !file.added.is_empty()).collect())
    }

    fn files_against(
        &self,
        parent: Option<&str>,
        commit: &str,
    ) -> Result<BTreeMap<Vec<u8>, CommittedFile>, GitError> {
        let options = ["diff-tree", "-r", "-M", "--raw", "-z", "--no-abbrev", "--no-commit-id"];
        let sides = match parent {
            Some(parent) => vec![parent, commit],
            None => vec!["--root", commit],
        };
        let output = self.run(options.into_iter().chain(sides), b"")?;
        let unreadable = || GitError::Unreadable { command: "diff-tree".to_owned() };
        let changed = parse_raw(&output).ok_or_else(unreadable)?;
        let ids = changed.iter().flat_map(|file| [file.old_blob.clone(), file.new_blob.clone()]);
        let ids: Vec<Vec<u8>> = ids.map(String::into_bytes).collect();
        let texts = self.contents(&ids)?;
        let mut files = BTreeMap::new();
        for (file, texts) in changed.into_iter().zip(texts.chunks_exact(2)) {
            let Some(text) = texts[1].clone().filter(|text| is_text(text)) else { continue };
            let old = texts[0].clone().filter(|text| is_text(text)).unwrap_or_default();
            let added = added_to(&old, &text);
            files.insert(file.path.clone(), CommittedFile { path: file.path, text, added });
        }
        Ok(files)
    }
}

fn named_commit(record: &str) -> Option<NamedCommit> {
    let mut fields = record.trim_end_matches('\n').splitn(7, '\0').map(str::to_owned);
    let mut field = || fields.next();
    let (id, parents) = (field()?, field()?);
    let commit = Commit {
        id,
        name: field()?,
        email: field()?,
        authored_at: field()?.parse().ok()?,
        committed_at: field()?.parse().ok()?,
        summary: field()?,
    };
    let parents = parents.split_whitespace().map(str::to_owned).collect();
    Some(NamedCommit { commit, parents })
}

/// A file that differs between two trees. A blob of a file that is not there has an id of zeros.
struct ChangedFile {
    path: Vec<u8>,
    old_blob: String,
    new_blob: String,
}

/// Records of the form `:OLDMODE NEWMODE OLD NEW STATUS`, path (and, of a rename, the new path), each ended
/// by a zero byte. Only regular files are listed.
fn parse_raw(output: &[u8]) -> Option<Vec<ChangedFile>> {
    let mut fields = output.split(|byte| *byte == 0);
    let mut files = Vec::new();
    while let Some(heading) = fields.next().filter(|field| !field.is_empty()) {
        let heading = std::str::from_utf8(heading.strip_prefix(b":")?).ok()?;
        let mut words = heading.split(' ');
        let (_, mode) = (words.next()?, words.next()?);
        let (old_blob, new_blob) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut path = fields.next()?;
        if words.next()?.starts_with(['R', 'C']) {
            path = fields.next()?;
        }
        if mode.starts_with("100") {
            files.push(ChangedFile { path: path.to_owned(), old_blob, new_blob });
        }
    }
    Some(files)
}

/// What is new against both parents.
fn common_lines(
    files: BTreeMap<Vec<u8>, CommittedFile>,
    others: &BTreeMap<Vec<u8>, CommittedFile>,
) -> BTreeMap<Vec<u8>, CommittedFile> {
    let common = |(path, mut file): (Vec<u8>, CommittedFile)| {
        let other: HashSet<usize> = others.get(&path)?.added.iter().copied().collect();
        file.added.retain(|line| other.contains(line));
        Some((path, file))
    };
    files.into_iter().filter_map(common).collect()
}

fn added_to(old: &[u8], new: &[u8]) -> Vec<usize> {
    let lines =
        |text| -> Vec<&[u8]> { <[u8]>::split_inclusive(text, |byte| *byte == b'\n').collect() };
    diff(&lines(old), &lines(new)).into_iter().flat_map(|hunk| hunk.after).collect()
}

/// Whether lines of the text can be followed.
pub(crate) fn is_text(text: &[u8]) -> bool {
    text.len() <= MOST && !text.iter().take(8000).any(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renames_have_their_new_path_and_links_are_left_out() {
        let raw = b":100644 100644 aa bb M\0a.txt\0:100644 100755 cc dd R090\0old\0new name\0\
                    :000000 120000 00 ee A\0link\0:100644 000000 ff 00 D\0gone\0";
        let files = parse_raw(raw).unwrap();
        let files: Vec<(&[u8], &str, &str)> = files
            .iter()
            .map(|file| (&file.path[..], file.old_blob.as_str(), file.new_blob.as_str()))
            .collect();
        assert_eq!(files, [(&b"a.txt"[..], "aa", "bb"), (&b"new name"[..], "cc", "dd")]);
        assert!(parse_raw(b"nonsense\0").is_none());
    }

    #[test]
    fn only_new_lines_are_added() {
        assert_eq!(added_to(b"a\nb\nc\n", b"a\nx\nc\ny\n"), [1, 3]);
        assert_eq!(added_to(b"", b"a\nb"), [0, 1]);
        assert_eq!(added_to(b"a\n", b""), Vec::<usize>::new());
    }
}
