//! The commits that lines came from: those that the log does not explain, and those that git brought in.
//!
//! A line that is older than the log, or follows a gap in it, has the commit that git names, if the file was
//! committed then.
//!
//! A change that no call named may be git's work: a merge, a pull, a checkout writes lines that a commit had
//! before. Such a line keeps its commit. The evidence is the contents and the time: the commit was made
//! before the file was written, and has the line. A commit that was made later has the line from the change.
//! A rebase makes a commit anew; then the commit that it was made from, with the same author at the same
//! time, must be older.
//!
//! Commits are dated in seconds. One of the same second was first if it was made in another repository and
//! was in this one before the file was written. One that was made here while the call ran has the line from
//! the call, even if git wrote the file once more later: a commit, a checkout and a merge in one command.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use takeback_store::{
    Author, CallId, Change, Digest, Evidence, PointFilter, PointQuery, Seq, SessionId, Store,
    StoreError, Timestamp, WorkPath,
};

use super::blame::{Blame, LineOrigin};
use super::lines::{has_words, split_lines};
use crate::diff::diff;
use crate::git::{Commit, CommitLine, GitError, PathVersion, Repository};
use crate::workspace::Workspace;

/// Older versions that a change is compared with if its result was never committed.
const VERSIONS_COMPARED: usize = 10;

/// Asks git about the lines of a blame that need it, and notes the commits in them. Without a repository
/// nothing happens; what git could not answer is noted in the blame.
pub fn ask_git(blame: &mut Blame, workspace: &Workspace) -> Result<(), StoreError> {
    let store = &*workspace.store;
    let mut repositories: HashMap<WorkPath, Option<Repository>> = HashMap::new();
    let mut committed: HashMap<WorkPath, CommittedVersions> = HashMap::new();
    for (version, lines) in questions(blame) {
        let file = workspace.absolute(&version.path);
        let repository = repositories
            .entry(version.path.clone())
            .or_insert_with(|| file.parent().and_then(Repository::around));
        let Some(repository) = repository else { continue };
        let Some(path) = repository.path_of(&file) else { continue };
        let text = match store.contents(&version.digest) {
            Ok(text) => text,
            Err(error) if error.is_lost_contents() => continue,
            Err(error) => return Err(error),
        };
        let question = Question { repository, path, text: &text, lines: &lines };
        let found = match version.written_at {
            None => question.committed_then(store, version.seq),
            Some(_) => {
                let known = match committed.entry(version.path.clone()) {
                    Slot::Occupied(known) => Ok(known.into_mut()),
                    Slot::Vacant(slot) => {
                        CommittedVersions::read(repository, path).map(|read| slot.insert(read))
                    }
                };
                let moment = WriteMoment::of(&version, store)?;
                known.map_err(AskError::from).and_then(|all| question.brought_in(moment, all))
            }
        };
        match found {
            Ok(found) => {
                for (line, commit) in found {
                    blame.lines[line].commit = Some(commit);
                }
            }
            Err(AskError::Git(error)) => {
                blame.git_problem.get_or_insert_with(|| error.to_string());
            }
            Err(AskError::Store(error)) => return Err(error),
        }
    }
    Ok(())
}

/// A version of a file whose new lines git is asked about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct AskedVersion {
    path: WorkPath,
    digest: Digest,
    seq: Seq,
    /// When it was written; `None`: before the log knew it.
    written_at: Option<Timestamp>,
    /// The call that may have written it.
    call: Option<(SessionId, CallId)>,
}

/// A line of a blame, by its number, and its number in a version.
type LineNumbers = Vec<(usize, usize)>;

fn questions(blame: &Blame) -> BTreeMap<AskedVersion, LineNumbers> {
    let mut questions: BTreeMap<AskedVersion, LineNumbers> = BTreeMap::new();
    let mut written: HashMap<Seq, Option<AskedVersion>> = HashMap::new();
    for (at, line) in blame.lines.iter().enumerate() {
        let (version, number) = match line.origin {
            LineOrigin::Change { seq, line } => {
                let version = match written.entry(seq) {
                    Slot::Occupied(known) => known.into_mut(),
                    Slot::Vacant(slot) => slot.insert(blame.changes.get(&seq).and_then(brought_by)),
                };
                let Some(version) = version.clone() else { continue };
                (version, line)
            }
            LineOrigin::Before { version, line } | LineOrigin::Unknown { version, line } => {
                let version = &blame.versions[version as usize];
                let (path, digest, seq) = (version.path.clone(), version.digest, version.seq);
                (AskedVersion { path, digest, seq, written_at: None, call: None }, line)
            }
        };
        questions.entry(version).or_default().push((at, number as usize));
    }
    questions
}

/// The version that a change made, if git may have brought it in.
fn brought_by(change: &Change) -> Option<AskedVersion> {
    let is_named = match &change.author {
        Author::Agent { .. } => matches!(change.evidence, Evidence::Named | Evidence::AfterEdit),
        Author::Rewind { .. } => true,
        Author::Human | Author::Ambiguous { .. } | Author::Deleted | Author::Import => false,
    };
    let (digest, written_at) = (change.after.digest()?, change.changed_at?);
    let (path, seq) = (change.path.clone(), change.seq);
    let call = match &change.author {
        Author::Agent { session, call, .. } => Some((session.clone(), call.clone())),
        _ => None,
    };
    (!is_named).then_some(AskedVersion { path, digest, seq, written_at: Some(written_at), call })
}

/// When a file was written, and since when its writer may have been at it.
#[derive(Debug, Clone, Copy)]
struct WriteMoment {
    written_at: Timestamp,
    /// When its call began.
    began_at: Option<Timestamp>,
}

impl WriteMoment {
    fn of(version: &AskedVersion, store: &dyn Store) -> Result<Self, StoreError> {
        let call = match &version.call {
            Some((session, call)) => store.call(session, call)?,
            None => None,
        };
        let written_at = version.written_at.unwrap_or(Timestamp(i64::MIN));
        Ok(Self { written_at, began_at: call.map(|call| call.opened_at) })
    }

    /// In which commits are dated.
    fn second(&self) -> i64 {
        self.written_at.0.div_euclid(1000)
    }

    fn is_during_call(&self, commit: &Commit) -> bool {
        self.began_at.is_some_and(|began| commit.committed_at >= began.0.div_euclid(1000))
    }
}

enum AskError {
    Git(GitError),
    Store(StoreError),
}

impl From<GitError> for AskError {
    fn from(error: GitError) -> Self {
        Self::Git(error)
    }
}

impl From<StoreError> for AskError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

struct Question<'a> {
    repository: &'a Repository,
    /// From the top of the repository.
    path: &'a Path,
    text: &'a [u8],
    lines: &'a LineNumbers,
}

/// The versions of a file that were committed.
struct CommittedVersions {
    versions: Vec<PathVersion>,
    /// By line, without white space: when the first version that has it was committed. `None`: there are
    /// too many versions to read.
    first_with: Option<HashMap<Vec<u8>, i64>>,
    /// The commits that were made in this repository, read when they are needed.
    made_here: OnceCell<Option<HashSet<String>>>,
}

impl CommittedVersions {
    /// So many versions are read at once.
    const MOST: usize = 1_000;

    fn read(repository: &Repository, path: &Path) -> Result<Self, GitError> {
        let versions = repository.versions(path)?;
        if versions.len() > Self::MOST {
            return Ok(Self { versions, first_with: None, made_here: OnceCell::new() });
        }
        let mut first_blob: HashMap<&str, i64> = HashMap::new();
        for PathVersion { commit, blob } in &versions {
            let first = first_blob.entry(blob).or_insert(commit.committed_at);
            *first = commit.committed_at.min(*first);
        }
        let names: Vec<Vec<u8>> = first_blob.keys().map(|id| id.as_bytes().to_vec()).collect();
        let texts = repository.contents(&names)?;
        let mut first_with: HashMap<Vec<u8>, i64> = HashMap::new();
        for (text, time) in texts.iter().zip(first_blob.values()) {
            for line in split_lines(text.as_deref().unwrap_or_default()) {
                let first = first_with.entry(without_space(line)).or_insert(*time);
                *first = (*time).min(*first);
            }
        }
        Ok(Self { versions, first_with: Some(first_with), made_here: OnceCell::new() })
    }

    /// Whether a commit had its lines before the file was written.
    fn is_older(&self, commit: &Commit, moment: WriteMoment, repository: &Repository) -> bool {
        // Without a log, every commit may be from here.
        let is_made_here = || {
            let made = self.made_here.get_or_init(|| repository.made_here());
            made.as_ref().is_none_or(|made| made.contains(&commit.id))
        };
        match commit.committed_at.cmp(&moment.second()) {
            Ordering::Less => !moment.is_during_call(commit) || !is_made_here(),
            Ordering::Equal => {
                !is_made_here()
                    && repository
                        .here_since(&commit.id)
                        .is_some_and(|since| since < moment.written_at.0)
            }
            Ordering::Greater => false,
        }
    }

    /// Whether a commit that was made until this second may have one of the lines that are asked about.
    /// `false` spares a `git blame`, of which a person's file would need one for each change.
    fn may_have_until(&self, second: i64, question: &Question<'_>) -> bool {
        let Some(first_with) = &self.first_with else {
            return self.versions.iter().any(|version| version.commit.committed_at <= second);
        };
        let lines: Vec<&[u8]> = split_lines(question.text).collect();
        let is_older = |line: &[u8]| {
            has_words(line)
                && first_with.get(&without_space(line)).is_some_and(|first| *first <= second)
        };
        question.lines.iter().any(|(_, at)| lines.get(*at).is_some_and(|line| is_older(line)))
    }
}

fn without_space(line: &[u8]) -> Vec<u8> {
    line.iter().filter(|byte| !byte.is_ascii_whitespace()).copied().collect()
}

/// Lines of a blame, by their number, with their commits.
type Answer = Vec<(usize, CommitLine)>;

impl Question<'_> {
    /// The commits of a version that is older than the log, as of what was checked out at the next point.
    fn committed_then(&self, store: &dyn Store, seq: Seq) -> Result<Answer, AskError> {
        let filter = PointFilter::All;
        let before = store.find_points(PointQuery::Before { seq, filter, most: 1 })?;
        let after = store.find_points(PointQuery::From { seq, most: 1 })?;
        let points = before.into_iter().chain(after);
        let heads = points.filter_map(|point| point.git).filter_map(|git| git.head);
        // A commit that a rebase left may be gone.
        for head in heads.chain(["HEAD".to_owned()]) {
            if let Some(commit) = self.repository.commit(&head)?
                && let Some(text) = self.text_in(&commit)?
            {
                return Ok(self.pair_with(&commit, &text, |_| true)?);
            }
        }
        Ok(Vec::new())
    }

    /// The commits of lines that git wrote into the file at this time.
    fn brought_in(
        &self,
        moment: WriteMoment,
        committed: &CommittedVersions,
    ) -> Result<Answer, AskError> {
        let CommittedVersions { versions, .. } = committed;
        let is_older = |commit: &Commit| committed.is_older(commit, moment, self.repository);
        if !committed.may_have_until(moment.second(), self) {
            return Ok(Vec::new());
        }
        let mut answer: BTreeMap<usize, CommitLine> = BTreeMap::new();
        // Younger commits may be older ones made anew.
        let mut made_anew = HashSet::new();
        let all = match self.version_with_text(versions) {
            Some(version) => self.repository.blame(&version.commit.id, self.path)?,
            None => Vec::new(),
        };
        for (at, number) in self.lines {
            match all.get(*number) {
                Some(line) if is_older(&line.commit) => {
                    answer.insert(*at, line.clone());
                }
                Some(line) => drop(made_anew.insert(line.commit.authorship())),
                None => {}
            }
        }
        // Others unite several, as a squash does, or nothing is committed yet.
        let is_made_anew = |version: &PathVersion| made_anew.contains(&version.commit.authorship());
        let mut compared: Vec<&PathVersion> =
            versions.iter().filter(|version| is_older(&version.commit)).collect();
        compared.sort_by_key(|version| {
            (!is_made_anew(version), std::cmp::Reverse(version.commit.committed_at))
        });
        let mut seen = HashSet::new();
        compared.retain(|version| seen.insert(version.blob.as_str()));
        let most = compared.iter().filter(|version| is_made_anew(version)).count();
        compared.truncate(most.max(VERSIONS_COMPARED));
        let blobs: Vec<Vec<u8>> =
            compared.iter().map(|version| version.blob.clone().into_bytes()).collect();
        let texts = self.repository.contents(&blobs)?;
        for (version, text) in compared.into_iter().zip(texts) {
            let Some(text) = text else { continue };
            let open = |at| !answer.contains_key(&at);
            if !self.shares_words_with(&text, open) {
                continue;
            }
            let pairs = self.pair_with(&version.commit.id, &text, open)?;
            let older = pairs.into_iter().filter(|(_, line)| is_older(&line.commit));
            answer.extend(older.collect::<Vec<_>>());
        }
        Ok(answer.into_iter().collect())
    }

    /// The oldest version with exactly this text.
    fn version_with_text<'v>(&self, versions: &'v [PathVersion]) -> Option<&'v PathVersion> {
        let with_unix_ends = || -> Option<Vec<u8>> {
            let has_dos_ends = self.text.windows(2).any(|pair| pair == b"\r\n");
            has_dos_ends.then(|| {
                let lines = self.text.split(|byte| *byte == b'\n');
                let lines: Vec<&[u8]> =
                    lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect();
                lines.join(&b'\n')
            })
        };
        let format = versions.first()?.blob.len();
        let mut ids = vec![blob_id(self.text, format)];
        // As `core.autocrlf` commits it.
        ids.extend(with_unix_ends().map(|text| blob_id(&text, format)));
        let with_text = versions.iter().filter(|version| ids.contains(&version.blob));
        with_text.min_by_key(|version| version.commit.committed_at)
    }

    fn text_in(&self, commit: &str) -> Result<Option<Vec<u8>>, GitError> {
        use std::os::unix::ffi::OsStrExt as _;
        let path = self.path.as_os_str().as_bytes();
        if path.contains(&b'\n') {
            return Ok(None);
        }
        let name = [commit.as_bytes(), b":", path].concat();
        Ok(self.repository.contents(&[name])?.pop().flatten())
    }

    /// Whether a text has one of the lines that are asked about, and that line can be recognised. Braces
    /// alone prove nothing.
    fn shares_words_with(&self, text: &[u8], is_open: impl Fn(usize) -> bool) -> bool {
        let known: HashSet<&[u8]> =
            split_lines(text).map(<[u8]>::trim_ascii).filter(|line| has_words(line)).collect();
        let own: Vec<&[u8]> = split_lines(self.text).map(<[u8]>::trim_ascii).collect();
        let is_known = |number: usize| own.get(number).is_some_and(|line| known.contains(line));
        self.lines.iter().any(|(at, number)| is_open(*at) && is_known(*number))
    }

    /// Pairs the lines that are asked about with those of a commit.
    fn pair_with(
        &self,
        commit: &str,
        text: &[u8],
        is_open: impl Fn(usize) -> bool,
    ) -> Result<Answer, GitError> {
        let old: Vec<&[u8]> = split_lines(text).map(<[u8]>::trim_ascii).collect();
        let new: Vec<&[u8]> = split_lines(self.text).map(<[u8]>::trim_ascii).collect();
        let mut old_of: Vec<Option<usize>> = vec![None; new.len()];
        let mut at = (0, 0);
        let end = (old.len(), new.len());
        let hunks = diff(&old, &new);
        let starts = hunks.iter().map(|hunk| (hunk.before.start, hunk.after.start)).chain([end]);
        let ends = hunks.iter().map(|hunk| (hunk.before.end, hunk.after.end)).chain([end]);
        for (start, next) in starts.zip(ends) {
            for (old_at, new_at) in (at.0..start.0).zip(at.1..start.1) {
                old_of[new_at] = Some(old_at);
            }
            at = next;
        }
        let paired: Vec<(usize, usize)> = self
            .lines
            .iter()
            .filter(|(at, _)| is_open(*at))
            .filter_map(|(at, number)| Some((*at, (*old_of.get(*number)?)?)))
            .collect();
        if paired.is_empty() {
            return Ok(Vec::new());
        }
        let lines = self.repository.blame(commit, self.path)?;
        let answer = paired.into_iter();
        Ok(answer.filter_map(|(at, number)| Some((at, lines.get(number)?.clone()))).collect())
    }
}

/// The id that git gives these contents. `digits`: the length of the repository's ids.
fn blob_id(text: &[u8], digits: usize) -> String {
    use sha2::Digest as _;
    let heading = format!("blob {}\0", text.len());
    if digits == 64 {
        hex(&sha2::Sha256::new().chain_update(heading).chain_update(text).finalize())
    } else {
        hex(&sha1::Sha1::new().chain_update(heading).chain_update(text).finalize())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::blob_id;

    #[test]
    fn contents_have_the_ids_that_git_gives_them() {
        assert_eq!(blob_id(b"", 40), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(blob_id(b"what is up, doc?", 40), "bd9dbf5aae1a3862dd1526723246b20206e5fc37");
        let empty = "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813";
        assert_eq!(blob_id(b"", 64), empty);
    }
}
