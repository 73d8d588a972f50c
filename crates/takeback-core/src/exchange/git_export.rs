//! Exports points as commits: on a new branch of the user's repository, or as patches.
//!
//! The repository gets objects and one new branch, and nothing else. Patches are made in a repository of
//! their own, in a folder that the caller removes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use takeback_store::{Digest, Entry, Point, Timestamp, WorkPath};

use super::export::ExportError;
use super::series::{CommitAuthor, Series, SeriesCommit, SeriesOptions, TurnPart, gap, series};
use crate::git::{CommitWriter, GitError, GitUser, IndexEntry, NewBranch, NewCommit, Repository};
use crate::history::Contents;
use crate::lock::{Hold, Lock};
use crate::record::drain_inbox;
use crate::workspace::Workspace;

/// How commits name the people and programs that the log knows.
#[derive(Debug, Clone, Copy)]
pub struct CommitNames {
    /// The title of an agent, by the name that the log has.
    pub agent: fn(&str) -> Option<&'static str>,
}

/// What was exported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeriesReport {
    /// How many commits or patches there are.
    pub commits: usize,
    /// The last commit of the branch.
    pub tip: Option<String>,
    /// The commit that the branch begins at; `None`: the first commit has no parent.
    pub parent: Option<String>,
    /// How many paths were left out.
    pub left_out: usize,
    /// Paths that are not in a commit as they were, and why.
    pub gaps: BTreeMap<WorkPath, String>,
}

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SeriesError {
    #[error("the workspace is in no git repository")]
    NoRepository,
    #[error("{0:?} is not a name for a branch")]
    BadName(String),
    #[error("there is a branch {0} already")]
    BranchTaken(String),
    #[error("these points changed nothing that can be exported")]
    NoChanges,
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Export(#[from] ExportError),
}

impl From<takeback_store::StoreError> for SeriesError {
    fn from(error: takeback_store::StoreError) -> Self {
        ExportError::from(error).into()
    }
}

/// Writes the points as commits on a new branch. `scratch`: an empty folder outside the workspace.
pub fn export_branch(
    workspace: &mut Workspace,
    options: &SeriesOptions,
    names: CommitNames,
    branch: &str,
    scratch: &Path,
) -> Result<SeriesReport, SeriesError> {
    let root = workspace.root.path().to_owned();
    let repository = Repository::around(&root).ok_or(SeriesError::NoRepository)?;
    let below = repository.path_of(&root).unwrap_or(Path::new("")).to_owned();
    let user = repository.user();
    let writer = CommitWriter::new(repository.clone(), scratch)?;
    if !writer.is_branch_name(branch)? {
        return Err(SeriesError::BadName(branch.to_owned()));
    }
    if writer.has_branch(branch)? {
        return Err(SeriesError::BranchTaken(branch.to_owned()));
    }
    let (series, _lock) = read(workspace, options)?;
    let head = series.first.git.as_ref().and_then(|git| git.head.as_deref());
    let parent = match head {
        Some(head) => repository.commit(head)?,
        None => None,
    };
    let mut export = Export::new(workspace, series, writer, names, user);
    if !below.as_os_str().is_empty() {
        export.prefix = [below.as_os_str().as_bytes(), b"/"].concat();
    }
    let (_, tip) = export.write(parent.as_deref())?;
    let tip = tip.filter(|tip| Some(tip) != parent.as_ref()).ok_or(SeriesError::NoChanges)?;
    if export.writer.make_branch(branch, &tip)? == NewBranch::Taken {
        return Err(SeriesError::BranchTaken(branch.to_owned()));
    }
    Ok(SeriesReport { tip: Some(tip), parent, ..export.report })
}

/// The points as patches that `git am` takes, one after the other. They apply to the files at the first
/// point. `scratch`: an empty folder outside the workspace.
pub fn export_patches(
    workspace: &mut Workspace,
    options: &SeriesOptions,
    names: CommitNames,
    scratch: &Path,
) -> Result<(Vec<u8>, SeriesReport), SeriesError> {
    let user = Repository::around(workspace.root.path()).and_then(|repository| repository.user());
    let writer = CommitWriter::isolated(scratch)?;
    let (series, _lock) = read(workspace, options)?;
    let mut export = Export::new(workspace, series, writer, names, user);
    let (base, tip) = export.write(None)?;
    let (Some(base), Some(tip)) = (base, tip) else { return Err(SeriesError::NoChanges) };
    if export.report.commits == 0 {
        return Err(SeriesError::NoChanges);
    }
    let patches = export.writer.patches(&base, &tip)?;
    Ok((patches, export.report))
}

/// The series, and the shared lock: while it is held, no clean-up removes contents.
fn read(workspace: &mut Workspace, options: &SeriesOptions) -> Result<(Series, Lock), SeriesError> {
    let Some(lock) = workspace
        .lock(Hold::Shared, workspace.limits.rewind_patience)
        .map_err(ExportError::from)?
    else {
        return Err(ExportError::Locked.into());
    };
    drain_inbox(workspace).map_err(ExportError::from)?;
    Ok((series(workspace, options)?, lock))
}

/// An export under way.
struct Export<'a> {
    workspace: &'a Workspace,
    series: Series,
    writer: CommitWriter,
    names: CommitNames,
    user: Option<GitUser>,
    /// The workspace's folder from the top of the repository, with a slash at its end.
    prefix: Vec<u8>,
    /// Repositories inside this one, of which a commit has no files.
    others: HashSet<Vec<u8>>,
    /// The paths that are left out because they are in one of these.
    skipped: HashSet<WorkPath>,
    /// The contents that git has, by digest.
    written: HashMap<Digest, String>,
    report: SeriesReport,
}

impl<'a> Export<'a> {
    fn new(
        workspace: &'a Workspace,
        series: Series,
        writer: CommitWriter,
        names: CommitNames,
        user: Option<GitUser>,
    ) -> Self {
        let report = SeriesReport { left_out: series.left_out, ..SeriesReport::default() };
        Self {
            workspace,
            series,
            writer,
            names,
            user,
            prefix: Vec::new(),
            others: HashSet::new(),
            skipped: HashSet::new(),
            written: HashMap::new(),
            report,
        }
    }

    /// Writes all commits. Returns the one with the files at the first point, and the last one.
    fn write(
        &mut self,
        parent: Option<&str>,
    ) -> Result<(Option<String>, Option<String>), SeriesError> {
        self.writer.begin_at(parent)?;
        let tracked = self.writer.paths()?;
        let others = tracked.iter().filter(|(_, is_repository)| *is_repository);
        self.others = others.map(|(path, _)| path.clone()).collect();
        let mut base = std::mem::take(&mut self.series.base);
        self.find_repositories(base.keys());
        let commits = std::mem::take(&mut self.series.commits);
        for commit in &commits {
            self.find_repositories(commit.entries.keys());
        }
        // What a commit has and the log knows to be gone is removed; what the log does not know stays.
        let gone = std::mem::take(&mut self.series.absent);
        base.extend(gone.into_iter().map(|path| (path, Entry::Absent)));
        self.place(base)?;
        let mut tree = self.writer.tree()?;
        let mut tip = parent.map(str::to_owned);
        let is_new = match parent {
            Some(parent) => self.writer.tree_of(parent)? != tree,
            None => true,
        };
        if is_new {
            let first = &self.series.first;
            let about = NewCommit {
                author: self.person(&CommitAuthor::Several),
                at: seconds(first.created_at),
                message: message(&format!("Files before: {}", title_of(first)), None, first),
            };
            tip = Some(self.writer.commit(&tree, tip.as_deref(), &about)?);
        }
        let base = tip.clone();
        for commit in commits {
            let about = self.about(&commit);
            self.place(commit.entries)?;
            let next = self.writer.tree()?;
            if next == tree {
                // Only empty folders differ, or what git does not keep.
                continue;
            }
            tip = Some(self.writer.commit(&next, tip.as_deref(), &about)?);
            tree = next;
            self.report.commits += 1;
        }
        Ok((base, tip))
    }

    /// Adds the repositories that are in the workspace now and have one of these paths.
    fn find_repositories<'p>(&mut self, paths: impl Iterator<Item = &'p WorkPath>) {
        let mut seen: HashSet<&[u8]> = HashSet::new();
        for path in paths {
            let bytes = path.as_bytes();
            let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            for folder in ends.map(|(end, _)| &bytes[..end]) {
                if !seen.insert(folder) {
                    continue;
                }
                let git = self.workspace.root.path().join(OsStr::from_bytes(folder)).join(".git");
                if git.symlink_metadata().is_ok() {
                    self.others.insert([self.prefix.as_slice(), folder].concat());
                }
            }
        }
    }

    /// Whether a path of the repository is another repository, or in one.
    fn is_in_other(&self, name: &[u8]) -> bool {
        let ends = name.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
        ends.chain([name.len()]).any(|end| self.others.contains(&name[..end]))
    }

    /// Makes these paths of the index what they are.
    fn place(&mut self, entries: BTreeMap<WorkPath, Entry>) -> Result<(), SeriesError> {
        let mut placed = Vec::new();
        for (path, entry) in entries {
            let name = [self.prefix.as_slice(), path.as_bytes()].concat();
            if self.is_in_other(&name) {
                let is_new = entry != Entry::Absent && !entry.is_dir() && self.skipped.insert(path);
                self.report.left_out += usize::from(is_new);
                continue;
            }
            match gap(&entry) {
                Some(reason) => _ = self.report.gaps.insert(path, reason.to_owned()),
                None => placed.push((path, name, entry)),
            }
        }
        self.write_contents(&placed)?;
        let mut index = Vec::new();
        for (path, name, entry) in placed {
            let object = match &entry {
                Entry::File { digest, mode, .. } => {
                    let mode = if mode & 0o100 != 0 { "100755" } else { "100644" };
                    let Some(id) = self.written.get(digest) else {
                        self.report.gaps.insert(path, crate::history::DAMAGED.to_owned());
                        continue;
                    };
                    Some((mode, id.clone()))
                }
                Entry::Symlink { target } => {
                    let digest = Digest(*blake3::hash(target).as_bytes());
                    self.written.get(&digest).map(|id| ("120000", id.clone()))
                }
                _ => None,
            };
            index.push(IndexEntry { path: name, object });
        }
        Ok(self.writer.update(&index)?)
    }

    /// Writes the contents that git does not have yet. Lost ones are left out.
    fn write_contents(&mut self, placed: &[(WorkPath, Vec<u8>, Entry)]) -> Result<(), SeriesError> {
        let contents = Contents { store: &*self.workspace.store, made: &self.series.made };
        let mut seen: HashSet<Digest> = self.written.keys().copied().collect();
        let mut sent = Vec::new();
        let mut left = placed.iter();
        let mut ids = Vec::new();
        let next = || -> Result<Option<Vec<u8>>, SeriesError> {
            for (_, _, entry) in left.by_ref() {
                let (digest, bytes) = match entry {
                    Entry::File { digest, .. } if seen.insert(*digest) => {
                        match contents.read(digest) {
                            Err(error) if error.is_lost_contents() => continue,
                            bytes => (*digest, bytes?),
                        }
                    }
                    Entry::Symlink { target } => {
                        let digest = Digest(*blake3::hash(target).as_bytes());
                        if !seen.insert(digest) {
                            continue;
                        }
                        (digest, target.clone())
                    }
                    _ => continue,
                };
                sent.push(digest);
                return Ok(Some(bytes));
            }
            Ok(None)
        };
        self.writer.write_contents(next, |id| ids.push(id))?;
        self.written.extend(sent.into_iter().zip(ids));
        Ok(())
    }

    fn about(&self, commit: &SeriesCommit) -> NewCommit {
        let (kind, whole) = match (commit.part, &commit.author) {
            (TurnPart::Own, _) => ("", Some(&*commit.prompt)),
            (TurnPart::Rest, CommitAuthor::You) => ("My changes after: ", None),
            (TurnPart::Rest, CommitAuthor::Rewind) => ("Rewind after: ", None),
            (TurnPart::Rest, _) => ("Other changes after: ", None),
        };
        let title = first_line(&commit.prompt).unwrap_or_else(|| title_of(&commit.point));
        let message = message(&format!("{kind}{title}"), whole, &commit.point);
        NewCommit { author: self.person(&commit.author), at: seconds(commit.at), message }
    }

    fn person(&self, author: &CommitAuthor) -> GitUser {
        let person = |name: &str, address: &str| GitUser {
            name: name.to_owned(),
            email: format!("{address}@localhost"),
        };
        match author {
            CommitAuthor::You => self.user.clone().unwrap_or_else(|| person("You", "you")),
            CommitAuthor::Agent(Some(agent)) => match (self.names.agent)(agent) {
                Some(title) => person(title, agent),
                None => person("Agent", "agent"),
            },
            CommitAuthor::Agent(None) => person("Agent", "agent"),
            CommitAuthor::Rewind => person("Takeback", "takeback"),
            CommitAuthor::Several => person("Several authors", "several"),
        }
    }
}

fn seconds(time: Timestamp) -> i64 {
    time.0.div_euclid(1000)
}

fn title_of(point: &Point) -> String {
    let label = point.label.as_deref().filter(|_| point.description.is_empty());
    let title = label.unwrap_or(&point.description).trim();
    if title.is_empty() { format!("point {}", point.id) } else { title.to_owned() }
}

/// The longest first line of a message.
const MOST_OF_TITLE: usize = 72;

fn first_line(text: &str) -> Option<String> {
    let line = text.trim().lines().next()?;
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// A message: a title of one line, the whole text if the title is not all of it, and the point.
fn message(title: &str, whole: Option<&str>, point: &Point) -> String {
    let is_long = title.chars().count() > MOST_OF_TITLE;
    let mut message: String = title.chars().take(MOST_OF_TITLE - usize::from(is_long)).collect();
    if is_long {
        message.push('…');
    }
    let whole = whole.map(str::trim).filter(|whole| *whole != message);
    message.push_str("\n\n");
    for line in whole.into_iter().flat_map(str::lines) {
        let line: String = line.chars().filter(|c| *c == '\t' || !c.is_control()).collect();
        if ends_message(&line) {
            message.push(' ');
        }
        message.push_str(line.trim_end());
        message.push('\n');
    }
    if whole.is_some() {
        message.push('\n');
    }
    message.push_str(&format!("Takeback-point: {}\n", point.id));
    message
}

/// Whether `git am` would take a line of a message for the beginning of a patch, of another message, or for
/// a header.
fn ends_message(line: &str) -> bool {
    let starts =
        ["---", "diff -", "diff ", "Index: ", "From ", ">From ", "From:", "Date:", "Subject:"];
    starts.iter().any(|start| line.starts_with(start)) || line.contains(">8") || line.contains("8<")
}
