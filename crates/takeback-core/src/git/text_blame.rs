//! `git blame` of a text that may not be committed yet.

use std::path::Path;

use super::{CommitLine, GitError, Repository, path_arg};

impl Repository {
    /// The commits of the lines of a text, as if it were the file's contents now; `None`: a line that is not
    /// committed.
    pub(crate) fn blame_text(
        &self,
        path: &Path,
        text: &[u8],
    ) -> Result<Vec<Option<CommitLine>>, GitError> {
        let lines = text.split_inclusive(|byte| *byte == b'\n').count();
        let in_head = [b"HEAD:".as_slice(), path_arg(path).as_encoded_bytes()].concat();
        let is_committed = !in_head.contains(&b'\n')
            && self.head()?.is_some()
            && self.contents(&[in_head])?.iter().any(Option::is_some);
        if !is_committed || lines == 0 {
            return Ok(vec![None; lines]);
        }
        let args = ["blame", "--porcelain", "--no-textconv", "-w", "-M", "--contents", "-", "--"];
        let args = args.into_iter().map(AsRef::as_ref).chain([path_arg(path)]);
        let output = self.run(args, text)?;
        let unreadable = || GitError::Unreadable { command: "blame".to_owned() };
        let found = super::commit_blame::parse(&output).ok_or_else(unreadable)?;
        let is_commit = |line: &CommitLine| line.commit.id.bytes().any(|digit| digit != b'0');
        let found: Vec<Option<CommitLine>> =
            found.into_iter().map(|line| Some(line).filter(is_commit)).collect();
        // Git may convert line ends; the number of lines stays.
        if found.len() == lines { Ok(found) } else { Err(unreadable()) }
    }
}
