//! Agent Trace records of the files as the log has them.
//!
//! Line numbers of a record are those of one revision: each line is in the record of the commit that added
//! it, with its number there. That is where readers look: they ask for the blame of a line first. Lines that
//! are not committed are in a record without a revision, with their numbers in the file as it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use takeback_store::{Entry, Evidence, Point, Seq, SessionId, StoreError, WorkPath};

use super::agent_trace::{
    AgentTrace, Contributor, OwnLines, OwnTrace, TraceConversation, TraceFile, TraceMetadata,
    TraceRange, TraceRevision, TraceTool, VERSION,
};
use super::ai_note::ranges;
use crate::exchange::{IgnoredPaths, paths_left_out};
use crate::git::{CommitLine, Repository, is_text};
use crate::history::{
    AuthoredPath, BlameError, LineAuthor, LineSource, LineWriter, PathHistory, by_path,
};
use crate::workspace::Workspace;

/// What to export.
#[derive(Debug, Clone, Copy)]
pub struct TraceRequest<'a> {
    /// Only the lines of this session and its subagents.
    pub session: Option<&'a SessionId>,
    /// The files as they were at this point.
    pub point: Option<&'a Point>,
    /// Whether ignored paths are included.
    pub ignored: IgnoredPaths,
    /// When the records are written, as in RFC 3339.
    pub written_at: &'a str,
}

/// Records, and what they say.
#[derive(Debug, Clone, Default)]
pub struct TraceReport {
    /// One for each commit, oldest first, then one for lines that are not committed.
    pub records: Vec<AgentTrace>,
    /// Files with lines in the records.
    pub files: usize,
    /// Lines by agents.
    pub ai: usize,
    /// Of those: written while a command of the agent ran, so perhaps by someone else.
    pub doubtful: usize,
    /// Lines by you.
    pub human: usize,
    /// Lines of which the evidence does not tell who wrote them.
    pub unknown: usize,
    /// Files whose lines cannot be followed: too large, lost, or with a name that is not UTF-8.
    pub not_followed: Vec<WorkPath>,
    /// What git could not be asked.
    pub problems: BTreeSet<String>,
}

/// Makes the records.
pub fn traces(
    workspace: &Workspace,
    request: &TraceRequest<'_>,
) -> Result<TraceReport, StoreError> {
    let mut traced = TracedLines::default();
    let mut report = TraceReport::default();
    for (path, entry) in files(workspace, request)? {
        let Entry::File { digest, .. } = entry else { continue };
        let text = match workspace.store.contents(&digest) {
            Ok(text) => text,
            Err(error) if error.is_lost_contents() => {
                report.not_followed.push(path);
                continue;
            }
            Err(error) => return Err(error),
        };
        // A file that is not text has no lines.
        if !is_text(&text) {
            continue;
        }
        match traced.add(workspace, request, (&path, &text), &mut report) {
            Ok(()) => {}
            Err(BlameError::Store(error)) => return Err(error),
            Err(_) => report.not_followed.push(path),
        }
    }
    traced.finish(workspace, request, &mut report);
    Ok(report)
}

/// The files that the log knows, as they are asked for.
fn files(
    workspace: &Workspace,
    request: &TraceRequest<'_>,
) -> Result<Vec<(WorkPath, Entry)>, StoreError> {
    let changes = workspace.store.changes_after(Seq(0))?;
    let histories = by_path(changes.clone());
    let entry = |history: &PathHistory| match request.point {
        Some(point) => history.at(point.seq).clone(),
        None => history.at_end().clone(),
    };
    let files = histories.iter().map(|history| (history.path.clone(), entry(history)));
    let files: BTreeMap<WorkPath, Entry> =
        files.filter(|(path, entry)| !path.is_outside() && entry.digest().is_some()).collect();
    let left_out = paths_left_out(workspace, request.ignored, &files, &changes)?;
    Ok(files.into_iter().filter(|(path, _)| !left_out.contains(path)).collect())
}

/// Who wrote lines, as far as a record tells writers apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TraceWriter {
    contributor: &'static str,
    model: Option<String>,
    agent: Option<String>,
    session: Option<String>,
    point: Option<String>,
    evidence: Option<&'static str>,
}

/// Line numbers of one file, from 1.
type LinesByWriter = BTreeMap<TraceWriter, BTreeSet<usize>>;

/// Lines by commit (`None`: not committed), path and writer.
#[derive(Default)]
struct TracedLines {
    lines: BTreeMap<Option<String>, BTreeMap<String, LinesByWriter>>,
    committed_at: HashMap<String, i64>,
    repositories: HashMap<PathBuf, Option<Repository>>,
}

impl TracedLines {
    fn add(
        &mut self,
        workspace: &Workspace,
        request: &TraceRequest<'_>,
        (path, text): (&WorkPath, &[u8]),
        report: &mut TraceReport,
    ) -> Result<(), BlameError> {
        let found = AuthoredPath::new(workspace, path)?.lines_of(text)?;
        report.problems.extend(found.problem);
        let writers: Vec<(usize, TraceWriter)> = found
            .lines
            .iter()
            .filter(|(_, line)| is_of(&line.writer, request.session))
            .filter_map(|(number, line)| Some((*number, trace_writer(&line.writer)?)))
            .collect();
        if writers.is_empty() {
            return Ok(());
        }
        let file = workspace.absolute(path);
        let places = self.places(&file, text, report);
        let own = self.path_of(workspace, &file);
        let not_text = || BlameError::NotText { path: path.clone() };
        for (number, writer) in writers {
            match writer.contributor {
                "ai" => report.ai += 1,
                "human" => report.human += 1,
                _ => report.unknown += 1,
            }
            report.doubtful += usize::from(writer.is_doubtful());
            let (commit, path, line) = match places.get(number).and_then(Option::as_ref) {
                Some(line) => {
                    let (id, at) = (line.commit.id.clone(), line.commit.committed_at);
                    self.committed_at.insert(id.clone(), at);
                    (Some(id), line.path.clone(), line.line)
                }
                None => (None, own.clone(), number),
            };
            let path = String::from_utf8(path).map_err(|_not_utf8| not_text())?;
            let of_path = self.lines.entry(commit).or_default().entry(path).or_default();
            of_path.entry(writer).or_default().insert(line + 1);
        }
        report.files += 1;
        Ok(())
    }

    /// Where git has the lines; nothing if they are not committed or git cannot say.
    fn places(
        &mut self,
        file: &Path,
        text: &[u8],
        report: &mut TraceReport,
    ) -> Vec<Option<CommitLine>> {
        let Some(repository) = self.repository(file) else { return Vec::new() };
        let Some(path) = repository.path_of(file) else { return Vec::new() };
        match repository.blame_text(path, text) {
            Ok(places) => places,
            Err(error) => {
                report.problems.insert(error.to_string());
                Vec::new()
            }
        }
    }

    fn repository(&mut self, file: &Path) -> Option<&Repository> {
        let folder = file.parent()?;
        let found = self
            .repositories
            .entry(folder.to_owned())
            .or_insert_with(|| Repository::around(folder));
        found.as_ref()
    }

    /// The path from the top of the repository, or of the workspace.
    fn path_of(&mut self, workspace: &Workspace, file: &Path) -> Vec<u8> {
        let of_repository = self
            .repository(file)
            .and_then(|repository| repository.path_of(file))
            .map(Path::to_owned);
        let path = of_repository
            .or_else(|| file.strip_prefix(workspace.root.path()).ok().map(Path::to_owned));
        path.map_or_else(Vec::new, |path| path.as_os_str().as_bytes().to_vec())
    }

    fn finish(
        mut self,
        workspace: &Workspace,
        request: &TraceRequest<'_>,
        report: &mut TraceReport,
    ) {
        let mut lines: Vec<_> = std::mem::take(&mut self.lines).into_iter().collect();
        let at = |commit: &Option<String>| match commit {
            Some(commit) => self.committed_at.get(commit).copied().unwrap_or_default(),
            None => i64::MAX,
        };
        lines.sort_by_key(|(commit, _)| (at(commit), commit.clone()));
        for (commit, paths) in lines {
            let mut own = Vec::new();
            let files = paths.into_iter().map(|(path, writers)| {
                let file = trace_file(&path, &writers);
                own.extend(
                    writers
                        .into_iter()
                        .flat_map(|(writer, lines)| own_lines(&path, &writer, &lines)),
                );
                file
            });
            let files = files.collect();
            report.records.push(AgentTrace {
                version: VERSION.to_owned(),
                id: uuid(workspace),
                timestamp: request.written_at.to_owned(),
                vcs: commit.map(|revision| TraceRevision { kind: "git".to_owned(), revision }),
                tool: Some(TraceTool {
                    name: Some("takeback".to_owned()),
                    version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                }),
                files,
                metadata: Some(TraceMetadata { own: Some(OwnTrace { lines: own }) }),
            });
        }
    }
}

impl TraceWriter {
    fn is_doubtful(&self) -> bool {
        self.contributor == "ai" && self.evidence == Some("window")
    }
}

fn is_of(writer: &LineWriter, session: Option<&SessionId>) -> bool {
    let Some(wanted) = session else { return true };
    writer.session.as_ref().is_some_and(|own| own == wanted || own.part_of(wanted).is_some())
}

/// `None`: the log does not say who wrote the line.
fn trace_writer(writer: &LineWriter) -> Option<TraceWriter> {
    if writer.source != LineSource::Log {
        return None;
    }
    let contributor = match writer.author {
        LineAuthor::Agent => "ai",
        LineAuthor::You => "human",
        LineAuthor::Unknown if writer.change.is_some() => "unknown",
        LineAuthor::Unknown | LineAuthor::Other | LineAuthor::Before => return None,
    };
    Some(TraceWriter {
        contributor,
        model: writer.model.clone().filter(|_| contributor == "ai"),
        agent: writer.agent.clone(),
        session: writer.session.as_ref().map(|session| session.0.clone()),
        point: writer.point.as_ref().map(|point| point.id.to_string()),
        evidence: writer.evidence.map(evidence_word),
    })
}

fn evidence_word(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Named => "named",
        Evidence::AfterEdit => "afterEdit",
        Evidence::Window => "window",
        Evidence::OpenWindow => "openWindow",
    }
}

fn trace_file(path: &str, writers: &LinesByWriter) -> TraceFile {
    let conversation = |(writer, lines): (&TraceWriter, &BTreeSet<usize>)| TraceConversation {
        contributor: Some(Contributor {
            kind: writer.contributor.to_owned(),
            model_id: writer.model.as_deref().map(model_id),
        }),
        ranges: ranges(&lines.iter().copied().collect::<Vec<_>>())
            .into_iter()
            .map(|range| TraceRange {
                start_line: *range.start(),
                end_line: *range.end(),
                contributor: None,
            })
            .collect(),
        ..TraceConversation::default()
    };
    let mut conversations: Vec<TraceConversation> = writers.iter().map(conversation).collect();
    conversations.sort_by_key(|conversation| conversation.ranges[0].start_line);
    TraceFile { path: path.to_owned(), conversations }
}

/// What the format has no field for; nothing about lines of yours.
fn own_lines(path: &str, writer: &TraceWriter, lines: &BTreeSet<usize>) -> Vec<OwnLines> {
    if writer.session.is_none() {
        return Vec::new();
    }
    let lines: Vec<usize> = lines.iter().copied().collect();
    let own = |range: std::ops::RangeInclusive<usize>| OwnLines {
        path: path.to_owned(),
        start_line: *range.start(),
        end_line: *range.end(),
        agent: writer.agent.clone(),
        session: writer.session.clone(),
        point: writer.point.clone(),
        evidence: writer.evidence.map(str::to_owned),
        doubtful: writer.is_doubtful(),
    };
    ranges(&lines).into_iter().map(own).collect()
}

/// `provider/model`, where the name tells the provider; otherwise the name alone.
fn model_id(model: &str) -> String {
    const FAMILIES: [(&str, &str); 10] = [
        ("claude-", "anthropic"),
        ("gpt-", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("codex-", "openai"),
        ("gemini-", "google"),
        ("grok-", "xai"),
        ("deepseek-", "deepseek"),
        ("mistral-", "mistral"),
    ];
    if model.contains('/') {
        return model.to_owned();
    }
    match FAMILIES.iter().find(|(family, _)| model.starts_with(family)) {
        Some((_, provider)) => format!("{provider}/{model}"),
        None => model.to_owned(),
    }
}

/// A random UUID (version 4).
fn uuid(workspace: &Workspace) -> String {
    let (high, low) = ((workspace.ambient.random)(), (workspace.ambient.random)());
    let high = high & !0xf000 | 0x4000;
    let low = low & !(0b11 << 62) | (0b10 << 62);
    let digits = format!("{high:016x}{low:016x}");
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_a_provider_only_if_its_name_tells() {
        for (name, id) in [
            ("claude-opus-5-5", "anthropic/claude-opus-5-5"),
            ("gpt-6.1-sol", "openai/gpt-6.1-sol"),
            ("gemini-3.8-flash", "google/gemini-3.8-flash"),
            ("lab/scripted", "lab/scripted"),
            ("scripted", "scripted"),
        ] {
            assert_eq!(model_id(name), id);
        }
    }
}
