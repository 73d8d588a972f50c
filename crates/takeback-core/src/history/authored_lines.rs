//! Who wrote each line of a file, from everything that knows it: the log, then notes and traces that other
//! tools left, then git. What none of them knows is unknown.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use takeback_store::{
    Author, Call, Change, Evidence, Point, SessionId, Store, StoreError, Timestamp, Turn, WorkPath,
};

use super::blame::{Blame, BlameError, BlamedLine, LineOrigin, TracedPath, blame};
use super::commit_lines::ask_git;
use super::prompts::point_of;
use crate::attribution::{AI_NOTES, AgentTrace, AiNote, NotedAuthor};
use crate::git::{Commit, CommitLine, GitError, Repository};
use crate::workspace::Workspace;

/// Where Agent Trace records are kept: as notes, and as a file at the top of the repository.
const TRACE_NOTES: &str = "refs/notes/agent-trace";
const TRACE_FILE: &str = ".agent-trace/traces.jsonl";
/// A larger file of records is not read.
const MOST_TRACES: u64 = 64 << 20;

/// The lines of a file with their writers.
#[derive(Debug, Clone)]
pub struct AuthoredFile {
    /// In order.
    pub lines: Vec<AuthoredLine>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// One line.
#[derive(Debug, Clone)]
pub struct AuthoredLine {
    /// Its bytes, with its end.
    pub text: Vec<u8>,
    /// Who wrote it. Lines of one change, or of one commit, share this.
    pub writer: Arc<LineWriter>,
    /// The line's number, from 0, after the change that wrote it, if the log has that change.
    pub number_then: Option<usize>,
}

/// Who wrote a line, and how that is known.
#[derive(Debug, Clone, Default)]
pub struct LineWriter {
    /// Who.
    pub author: LineAuthor,
    /// What says so.
    pub source: LineSource,
    /// How the agent is known to be the author; also of one that only may be.
    pub evidence: Option<Evidence>,
    /// The session.
    pub session: Option<SessionId>,
    /// The agent's name.
    pub agent: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The turn.
    pub turn: Option<Turn>,
    /// The point of the prompt.
    pub point: Option<Point>,
    /// The tool call.
    pub call: Option<Call>,
    /// When the line was written.
    pub at: Option<Timestamp>,
    /// The change that wrote it, with the author known now.
    pub change: Option<Change>,
    /// The commit that it came from.
    pub commit: Option<Arc<Commit>>,
    /// The person's name, where it is not you.
    pub name: Option<String>,
}

/// Who wrote a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineAuthor {
    /// An agent.
    Agent,
    /// You.
    You,
    /// The author of a commit, or a person named by another tool.
    Other,
    /// The line is older than the log, and nothing else names its author.
    Before,
    /// The evidence does not tell.
    #[default]
    Unknown,
}

/// What names a line's author.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineSource {
    /// Takeback's log.
    #[default]
    Log,
    /// A commit's author.
    Git,
    /// A note that git-ai or `takeback notes` left on the commit.
    Note,
    /// An Agent Trace record.
    Trace,
}

/// The lines of a path's newest entry in the log, with their writers.
pub fn authored_lines(workspace: &Workspace, path: &WorkPath) -> Result<AuthoredFile, BlameError> {
    let mut blame = blame(&*workspace.store, path)?;
    ask_git(&mut blame, workspace)?;
    let file = workspace.absolute(path);
    let repository = file.parent().and_then(Repository::around);
    let commits = blame.lines.iter().filter_map(|line| line.commit.as_ref());
    let records = ForeignRecords::read(repository.as_ref(), commits);
    let mut problems: Vec<String> = blame.git_problem.take().into_iter().collect();
    problems.extend(records.problems.iter().cloned());
    let lines = author(&*workspace.store, blame, |line| records.author_of(line))?;
    Ok(AuthoredFile { lines, problems })
}

/// A path that was followed through the log, to be asked about texts that it had.
pub(crate) struct AuthoredPath<'w> {
    workspace: &'w Workspace,
    traced: TracedPath<'w>,
}

impl<'w> AuthoredPath<'w> {
    /// Follows a path up to now.
    pub(crate) fn new(workspace: &'w Workspace, path: &WorkPath) -> Result<Self, BlameError> {
        Ok(Self { workspace, traced: TracedPath::new(&*workspace.store, path)? })
    }

    /// The lines of a text that the log knows, with their numbers in the text, from 0. What other tools say is not asked.
    pub(crate) fn lines_of(&mut self, text: &[u8]) -> Result<NumberedLines, StoreError> {
        let (mut blame, numbers) = self.traced.blame_text(text)?;
        ask_git(&mut blame, self.workspace)?;
        let problem = blame.git_problem.take();
        let lines = author(&*self.workspace.store, blame, |_| None)?;
        Ok(NumberedLines { lines: numbers.into_iter().zip(lines).collect(), problem })
    }
}

/// Some lines of a text.
pub(crate) struct NumberedLines {
    /// With their numbers, from 0.
    pub(crate) lines: Vec<(usize, AuthoredLine)>,
    /// Why git could not be asked about lines that only it can know.
    pub(crate) problem: Option<String>,
}

/// The writers of blamed lines.
fn author(
    store: &dyn Store,
    blame: Blame,
    noted: impl Fn(&CommitLine) -> Option<(LineSource, NotedAuthor)>,
) -> Result<Vec<AuthoredLine>, StoreError> {
    let mut writers = Writers { store, known: HashMap::new() };
    let mut lines = Vec::new();
    for BlamedLine { text, origin, commit } in blame.lines {
        let noted = commit.as_ref().and_then(&noted);
        let change = origin.change().and_then(|seq| blame.changes.get(&seq));
        let writer = writers.writer(origin, change, commit, noted)?;
        let number_then = match origin {
            LineOrigin::Change { line, .. } => Some(line as usize),
            LineOrigin::Before { .. } | LineOrigin::Unknown { .. } => None,
        };
        lines.push(AuthoredLine { text, writer, number_then });
    }
    Ok(lines)
}

/// Which writers there are, each made once.
struct Writers<'a> {
    store: &'a dyn Store,
    known: HashMap<WriterKey, Arc<LineWriter>>,
}

#[derive(PartialEq, Eq, Hash)]
struct WriterKey {
    /// `None`: not from a change, and whether it is older than the log.
    change: Result<takeback_store::Seq, bool>,
    commit: Option<String>,
    noted: Option<NotedAuthor>,
}

impl Writers<'_> {
    fn writer(
        &mut self,
        origin: LineOrigin,
        change: Option<&Change>,
        commit: Option<CommitLine>,
        noted: Option<(LineSource, NotedAuthor)>,
    ) -> Result<Arc<LineWriter>, StoreError> {
        let is_older = matches!(origin, LineOrigin::Before { .. });
        let key = WriterKey {
            change: change.map(|change| change.seq).ok_or(is_older),
            commit: commit.as_ref().map(|line| line.commit.id.clone()),
            noted: noted.as_ref().map(|(_, author)| author.clone()),
        };
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let writer = match (commit, change) {
            (Some(line), _) => from_commit(&line.commit, noted),
            (None, Some(change)) => from_change(self.store, change)?,
            (None, None) => LineWriter {
                author: if is_older { LineAuthor::Before } else { LineAuthor::Unknown },
                ..LineWriter::default()
            },
        };
        Ok(self.known.entry(key).or_insert(Arc::new(writer)).clone())
    }
}

pub(super) fn from_commit(
    commit: &Arc<Commit>,
    noted: Option<(LineSource, NotedAuthor)>,
) -> LineWriter {
    let writer = LineWriter {
        at: Some(Timestamp(commit.authored_at.saturating_mul(1000))),
        commit: Some(commit.clone()),
        ..LineWriter::default()
    };
    match noted {
        Some((source, NotedAuthor::Agent { tool, conversation, model, is_doubtful })) => {
            LineWriter {
                author: LineAuthor::Agent,
                source,
                evidence: is_doubtful.then_some(Evidence::Window),
                session: conversation.map(SessionId),
                agent: tool,
                model,
                ..writer
            }
        }
        Some((source, NotedAuthor::Person { name })) => {
            let name = name.or(Some(commit.name.clone()));
            LineWriter { author: LineAuthor::Other, source, name, ..writer }
        }
        None => LineWriter {
            author: LineAuthor::Other,
            source: LineSource::Git,
            name: Some(commit.name.clone()),
            ..writer
        },
    }
}

fn from_change(store: &dyn Store, change: &Change) -> Result<LineWriter, StoreError> {
    let writer = LineWriter {
        at: Some(change.changed_at.unwrap_or(change.time)),
        change: Some(change.clone()),
        ..LineWriter::default()
    };
    let (session, turn, call) = match &change.author {
        Author::Human => return Ok(LineWriter { author: LineAuthor::You, ..writer }),
        // Whose session it was is gone; that it was one is not.
        Author::Deleted => return Ok(LineWriter { author: LineAuthor::Agent, ..writer }),
        Author::Ambiguous { .. } | Author::Rewind { .. } | Author::Import => return Ok(writer),
        Author::Agent { session, turn, call, .. } => (session, *turn, call),
    };
    let is_open = change.evidence == Evidence::OpenWindow;
    let record = store.session(session)?;
    let agent = match &record {
        Some(record) if record.agent.is_some() => record.agent.clone(),
        Some(record) => match record.whole() {
            Some(whole) => store.session(whole)?.and_then(|whole| whole.agent),
            None => None,
        },
        None => None,
    };
    let turn = store.turn(turn)?;
    let point = turn.as_ref().map(|turn| point_of(store, turn, change)).transpose()?.flatten();
    Ok(LineWriter {
        author: if is_open { LineAuthor::Unknown } else { LineAuthor::Agent },
        evidence: Some(change.evidence),
        session: Some(session.clone()),
        agent,
        call: store.call(session, call)?,
        model: turn.as_ref().and_then(|turn| turn.model.clone()),
        turn,
        point,
        ..writer
    })
}

/// What other tools say about the commits of some lines.
#[derive(Default)]
pub(super) struct ForeignRecords {
    notes: HashMap<String, AiNote>,
    traces: Vec<AgentTrace>,
    /// What cannot be read.
    pub(super) problems: Vec<String>,
}

impl ForeignRecords {
    /// Reads what there is about the commits of these lines.
    pub(super) fn read<'l>(
        repository: Option<&Repository>,
        lines: impl Iterator<Item = &'l CommitLine>,
    ) -> Self {
        let mut records = Self::default();
        let commits: BTreeSet<&str> = lines.map(|line| line.commit.id.as_str()).collect();
        let Some(repository) = repository.filter(|_| !commits.is_empty()) else { return records };
        let commits: Vec<String> = commits.into_iter().map(str::to_owned).collect();
        if let Err(error) = records.read_notes(repository, &commits) {
            records.problems.push(error.to_string());
        }
        records
    }

    fn read_notes(&mut self, repository: &Repository, commits: &[String]) -> Result<(), GitError> {
        let notes = repository.notes(AI_NOTES, commits)?;
        for (commit, note) in commits.iter().zip(notes) {
            match note.map(|note| AiNote::parse(&note)) {
                Some(Ok(note)) => drop(self.notes.insert(commit.clone(), note)),
                Some(Err(error)) => {
                    let short = commit.get(..12).unwrap_or(commit);
                    self.problems
                        .push(format!("the note on commit {short} cannot be read: {error}"));
                }
                None => {}
            }
        }
        let file = repository.top().join(TRACE_FILE);
        let is_readable =
            file.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MOST_TRACES);
        let in_file =
            if is_readable { std::fs::read(&file).unwrap_or_default() } else { Vec::new() };
        let in_notes = repository.notes(TRACE_NOTES, commits)?.into_iter().flatten();
        for text in in_notes.chain([in_file]) {
            let (records, unreadable) = AgentTrace::parse_all(&text);
            self.traces.extend(records);
            if unreadable > 0 {
                self.problems.push(format!("{unreadable} Agent Trace records cannot be read"));
            }
        }
        Ok(())
    }

    pub(super) fn author_of(&self, line: &CommitLine) -> Option<(LineSource, NotedAuthor)> {
        let (path, number) = (&line.path, line.line + 1);
        let note = self.notes.get(&line.commit.id);
        if let Some(author) = note.and_then(|note| note.author_of(path, number)) {
            return Some((LineSource::Note, author));
        }
        let traces = self.traces.iter().rev().filter(|trace| trace.is_of(&line.commit.id));
        let author = traces.filter_map(|trace| trace.author_of(path, number)).next();
        author.map(|author| (LineSource::Trace, author))
    }
}
