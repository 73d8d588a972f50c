//! What the rewind menu shows: points as rows, and what going to one would do.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use similar::{DiffTag, group_diff_ops};
use takeback_core::Workspace;
use takeback_core::exchange::{name_there, same_story};
use takeback_core::execution::{RollbackFiles, rollback_request};
use takeback_core::history::by_path;
use takeback_core::rewind::journal::Preview;
use takeback_core::rewind::{Plan, Receipt, RewindRequest, Step, preview};
use takeback_store::state::{CheckpointId, ExecutionId, Record};
use takeback_store::{
    Author, Entry, Point, PointId, PointKind, Seq, Session, SessionId, Store, StoreError, WorkPath,
};
use takeback_tui::menu::{DiffLine, ExecutionRow, Fate, FilePreview, LineKind, Marks, Origin, Row};

use super::filediff::{Contents, DAMAGED, FileDiff, LineCounts, LineDiff, Text, between};
use super::log::{described, whose, within};
use super::receipt::{first_seen_name, first_seen_reason};
use crate::error::{CommandError, Kind};
use crate::screen::{name, plain};
use crate::session_name::SessionNames;
use crate::time::{ago, clock, now};

/// Lines shown around what changed.
const CONTEXT: usize = 3;
/// A preview is for looking at, not for reading a whole library.
const MOST_LINES: usize = 2000;
const MOST_FILES: usize = 500;
/// A menu is opened at once: lines that are not counted by then are not told.
const PATIENCE: Duration = Duration::from_millis(150);

/// The points that can be gone back to, newest first, those of `session` with their changes; then
/// those of other sessions. `also`: one that was named, of whatever kind it is.
pub(crate) fn rows(
    workspace: &Workspace,
    session: Option<&SessionId>,
    also: Option<PointId>,
    counts: &mut LineCounts,
) -> Result<Vec<Row>, CommandError> {
    let began = Instant::now();
    let store = &*workspace.store;
    let points = store.points()?;
    let is_shown = |point: &&Point| is_listed(point) || Some(point.id) == also;
    let listed: Vec<&Point> = points.iter().filter(is_shown).collect();
    let is_own = |point: &Point| {
        session.is_none() || point.session.is_none() || point.session.as_ref() == session
    };
    let mut newest: Vec<(usize, &&Point)> = listed.iter().enumerate().rev().collect();
    // Stable: each part stays newest first.
    newest.sort_by_key(|(_, point)| !is_own(point));
    let oldest = listed.first().map(|point| point.seq);
    let changes = oldest.map_or(Ok(Vec::new()), |oldest| store.changes_after(oldest))?;
    let time = now();
    let sessions = store.sessions()?;
    let makers = Makers::of(&sessions, &listed);
    let mut rows = Vec::new();
    for (at, point) in newest {
        let next = listed[at + 1..].iter().find(|next| same_story(point, next));
        // What a rewind did was not done by the turn that began here.
        let mut own = within(&changes, point.seq, next.map(|next| next.seq)).to_vec();
        own.retain(|change| !matches!(change.author, Author::Rewind { .. }));
        let diffs = between(&by_path(own), None);
        let lines = counts.total(&diffs, store, PATIENCE.saturating_sub(began.elapsed()));
        let description = match point.description.as_str() {
            "" => format!("Checkpoint at {}", clock(point.created_at)),
            _ => described(point),
        };
        let origin = match &point.session {
            None => Origin::ByHand,
            Some(_) if is_own(point) => Origin::Present,
            Some(_) => Origin::Other,
        };
        let (agent, of) = makers.get(point);
        let is_present = session.is_some() && origin == Origin::Present;
        rows.push(Row {
            id: point.id.to_string(),
            age: ago(point.created_at, time),
            description,
            label: point.label.clone(),
            files: diffs.iter().filter(|diff| !diff.is_folder()).count(),
            lines: lines.map(|lines| (lines.insertions, lines.deletions)),
            agent,
            session: of.filter(|_| !is_present),
            origin,
        });
    }
    Ok(rows)
}

/// What the agents and sessions of some points are called.
struct Makers<'a> {
    names: SessionNames,
    agents: HashMap<&'a SessionId, &'a str>,
    /// How many sessions of an agent have points.
    sessions: HashMap<&'a str, HashSet<&'a SessionId>>,
}

impl<'a> Makers<'a> {
    fn of(sessions: &'a [Session], points: &[&'a Point]) -> Self {
        let agents: HashMap<&SessionId, &str> = sessions
            .iter()
            .filter_map(|session| Some((&session.id, session.agent.as_deref()?)))
            .collect();
        let mut by_agent: HashMap<&str, HashSet<&SessionId>> = HashMap::new();
        for session in points.iter().filter_map(|point| point.session.as_ref()) {
            if let Some(agent) = agents.get(session) {
                by_agent.entry(agent).or_default().insert(session);
            }
        }
        Self { names: SessionNames::of(sessions), agents, sessions: by_agent }
    }

    /// The agent, and which of its sessions if it has several here. A session of which no agent is known
    /// has its own name for one.
    fn get(&self, point: &Point) -> (String, Option<String>) {
        let agent = point.session.as_ref().and_then(|session| self.agents.get(session));
        let (Some(session), Some(agent)) = (&point.session, agent) else {
            return (whose(point, &self.names), None);
        };
        let several = self.sessions.get(agent).is_some_and(|sessions| sessions.len() > 1);
        let name = whose(point, &self.names);
        let agent = plain(agent);
        let own = name.strip_prefix(&agent).map(|own| own.trim_start_matches([' ', '-']));
        let own = own.filter(|own| !own.is_empty()).unwrap_or(&name).to_owned();
        (agent, Some(own).filter(|_| several || name_there(session).is_some()))
    }
}

/// Steps have a tab of their own; safety points are `undo`'s.
pub(crate) fn is_listed(point: &Point) -> bool {
    matches!(point.kind, PointKind::Prompt | PointKind::Manual)
}

/// Executions, each with the step to which it would go back: its last success.
pub(crate) fn execution_rows(workspace: &Workspace) -> Result<Vec<ExecutionRow>, CommandError> {
    let time = now();
    let states = &*workspace.states;
    let mut rows = Vec::new();
    for execution in states.executions()?.executions {
        let Some(head) = execution.head else { continue };
        let (step, at) = match states.last_successful(&execution.id, None, None)? {
            Some(record) => (record.step_name, record.time),
            None => (head.step_name, head.time),
        };
        rows.push(ExecutionRow { execution: execution.id.to_string(), step, age: ago(at, time) });
    }
    Ok(rows)
}

/// What was chosen in the menu of a point's files: their names as its preview showed them, which may stand
/// for others on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Picks {
    /// Only these; `None`: all.
    pub(crate) paths: Option<Vec<String>>,
    pub(crate) marks: Marks,
}

/// Puts what was chosen in the menu into a request.
pub(crate) fn pick(
    workspace: &mut Workspace,
    request: &mut RewindRequest,
    picks: &Picks,
) -> Result<(), CommandError> {
    if picks.paths.is_none() && picks.marks.is_empty() {
        return Ok(());
    }
    let plan = preview(workspace, request)?.plan;
    let marked = |shown: &[String]| {
        let shown: HashSet<&String> = shown.iter().collect();
        let paths = plan.steps.iter().map(|step| &step.path);
        patterns_of(&plan, &paths.filter(|path| shown.contains(&name(path))).collect())
    };
    let (take, mine) = (marked(&picks.marks.take), marked(&picks.marks.mine));
    request.take.extend(take.iter().cloned());
    request.mine.extend(mine.iter().cloned());
    let Some(shown) = &picks.paths else { return Ok(()) };
    // What there was no room for, nobody could leave out.
    let changes = plan.actions().map(change_of).enumerate().filter(|(at, change)| {
        !change.is_folder() && (*at >= MOST_FILES || shown.contains(&name(&change.path)))
    });
    let ticked = changes.map(|(_, change)| literally(&change.path));
    // A mark counts only for paths that the request is about.
    let patterns: Vec<String> = ticked.chain(take).chain(mine).collect();
    if patterns.is_empty() {
        // No pattern at all would mean every file.
        return Err(CommandError::new(
            Kind::Error,
            "none of the chosen files would change any more",
        ));
    }
    request.paths = patterns;
    Ok(())
}

/// Patterns for these paths of a plan, and for no other path of it.
///
/// A pattern of a folder includes what is in the folder: it is left out where the plan has paths in there
/// that are not meant.
pub(crate) fn patterns_of(plan: &Plan, paths: &BTreeSet<&WorkPath>) -> Vec<String> {
    let others = plan.steps.iter().map(|step| &step.path).filter(|path| !paths.contains(path));
    let others = others.filter(|path| !path.is_outside());
    let shared: HashSet<WorkPath> = others.flat_map(WorkPath::ancestors).collect();
    paths.iter().filter(|path| !shared.contains(**path)).map(|path| literally(path)).collect()
}

/// A pattern that stands for this path alone, as far as a text can: a byte that is none stands for any.
fn literally(path: &WorkPath) -> String {
    let mut pattern = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern.extend(chunk.invalid().iter().map(|_| '?'));
    }
    pattern
}

/// The last success of an execution, and what going back to it would ask of a rewind: its files too, if it
/// has any. A checkpoint's own name will do too.
pub(crate) fn execution_request(
    workspace: &Workspace,
    name: &str,
) -> Result<(Record, RewindRequest), CommandError> {
    let record = match name.parse::<CheckpointId>() {
        Ok(id) => workspace.states.find(&id)?,
        Err(_) => {
            let execution =
                ExecutionId::new(name).map_err(|error| CommandError::new(Kind::Usage, error))?;
            workspace.states.last_successful(&execution, None, None)?
        }
    };
    let not_found = || CommandError::new(Kind::Error, format!("Checkpoint {name} not found"));
    let record = record.ok_or_else(not_found)?;
    let files = if record.point.is_some() { RollbackFiles::All } else { RollbackFiles::Stay };
    let request = rollback_request(workspace, &record.key, files)?;
    Ok((record, request))
}

/// What restoring an execution would do.
pub(crate) fn execution_preview(
    workspace: &mut Workspace,
    name: &str,
) -> Result<takeback_tui::menu::Preview, CommandError> {
    let (_, request) = execution_request(workspace, name)?;
    let shown = preview(workspace, &request)?;
    let mut told = preview_of(&*workspace.store, &shown)?;
    if shown.is_refused() {
        let why = "state and files go back together, or not at all: nothing would be changed";
        told.notes.push(why.to_owned());
    }
    Ok(told)
}

/// What a preview says, file by file.
pub(crate) fn preview_of(
    store: &dyn Store,
    shown: &Preview,
) -> Result<takeback_tui::menu::Preview, CommandError> {
    let receipt = shown.receipt();
    let contents = Contents { store, made: &shown.plan.merged };
    let mut files = Vec::new();
    let mut left = MOST_LINES;
    for diff in shown.plan.actions().take(MOST_FILES).map(change_of) {
        if diff.is_folder() {
            continue;
        }
        let path = name(&diff.path);
        let (fate, reason) = fate_of(&receipt, &diff.path, &diff);
        let lines = diff_lines(&diff, contents, left)?;
        left = left.saturating_sub(lines.len());
        files.push(FilePreview { path, fate, reason, diff: lines });
    }
    let actions = shown.plan.actions().count();
    let names = SessionNames::of(&store.sessions()?);
    let groups = [
        (Fate::Kept, &receipt.kept_files),
        (Fate::Conflict, &receipt.conflicts),
        (Fate::Unclear, &receipt.ambiguous),
        (Fate::NotCaptured, &receipt.not_captured),
    ];
    for (fate, notes) in groups {
        for note in notes.iter().take(MOST_FILES) {
            let reason = Some(names.in_text(&note.reason));
            files.push(FilePreview { path: name(&note.path), fate, reason, diff: Vec::new() });
        }
    }
    for seen in receipt.first_seen.iter().take(MOST_FILES) {
        let (path, reason) = (first_seen_name(seen), Some(first_seen_reason(seen)));
        files.push(FilePreview { path, fate: Fate::Kept, reason, diff: Vec::new() });
    }
    let mut notes: Vec<String> = shown
        .windows
        .iter()
        .filter_map(|window| {
            let command = window.command.as_ref()?;
            let files = crate::screen::count(window.paths, "file");
            Some(format!("{files} changed while `{command}` ran; may include yours"))
        })
        .collect();
    if actions > MOST_FILES {
        notes.push(format!("and {} more files", actions - MOST_FILES));
    }
    Ok(takeback_tui::menu::Preview { files, notes })
}

fn change_of(step: &Step) -> FileDiff {
    let after = step.goal().unwrap_or_else(|| step.present.clone());
    FileDiff { path: step.path.clone(), before: step.present.clone(), after }
}

fn fate_of(receipt: &Receipt, path: &WorkPath, diff: &FileDiff) -> (Fate, Option<String>) {
    if let Some(note) = receipt.merged_files.iter().find(|note| note.path == *path) {
        return (Fate::Merged, Some(note.reason.clone()));
    }
    match diff.after {
        Entry::Absent => (Fate::Deleted, None),
        _ => (Fate::Restored, None),
    }
}

/// How a file differs, in lines with what stands around them; at most `most`.
pub(crate) fn diff_lines(
    diff: &FileDiff,
    contents: Contents<'_>,
    most: usize,
) -> Result<Vec<DiffLine>, StoreError> {
    let heading = |text: &str| vec![DiffLine { kind: LineKind::Heading, text: text.to_owned() }];
    let texts = (Text::of(&diff.before, contents)?, Text::of(&diff.after, contents)?);
    let (before, after) = match &texts {
        (Text::Lines(before), Text::Lines(after)) => (before, after),
        (Text::TooLarge, _) | (_, Text::TooLarge) => {
            return Ok(heading("too large to be compared"));
        }
        (Text::Damaged, _) | (_, Text::Damaged) => return Ok(heading(DAMAGED)),
        _ => return Ok(heading("not text")),
    };
    let lines = LineDiff::new(before, after);
    let mut shown = Vec::new();
    for hunk in group_diff_ops(lines.ops.clone(), CONTEXT) {
        if let (Some(first), true) = (hunk.first(), !shown.is_empty()) {
            shown.extend(heading(&format!("line {}", first.new_range().start + 1)));
        }
        for op in hunk {
            let (old, new) = (&lines.old[op.old_range()], &lines.new[op.new_range()]);
            match op.tag() {
                DiffTag::Equal => {
                    shown.extend(new.iter().map(|line| of_line(LineKind::Context, line)));
                }
                _ => {
                    shown.extend(old.iter().map(|line| of_line(LineKind::Removed, line)));
                    shown.extend(new.iter().map(|line| of_line(LineKind::Added, line)));
                }
            }
        }
        if shown.len() > most {
            shown.truncate(most);
            shown.extend(heading("…"));
            break;
        }
    }
    Ok(shown)
}

fn of_line(kind: LineKind, line: &[u8]) -> DiffLine {
    let text = String::from_utf8_lossy(line).trim_end_matches(['\n', '\r']).to_owned();
    DiffLine { kind, text }
}

/// What changed between two moments of the log, for a tool's line in the transcript.
pub(crate) fn changed_between(
    store: &dyn Store,
    from: Seq,
    to: Seq,
) -> Result<Vec<FileDiff>, StoreError> {
    let changes = store.changes_after(from)?;
    Ok(between(&by_path(within(&changes, from, Some(to)).to_vec()), None))
}

#[cfg(test)]
mod tests {
    use takeback_core::rewind::Verdict;
    use takeback_core::rewind::path_filter::PathFilter;

    use super::*;

    fn path(bytes: impl AsRef<[u8]>) -> WorkPath {
        WorkPath::new(bytes.as_ref()).expect("a plain path")
    }

    #[test]
    fn a_pattern_stands_for_one_path() {
        let odd = [
            "plain.txt",
            "a!.txt",
            "!a",
            "[!a]",
            "[^a]",
            "[a-z]",
            "{a,b}",
            "*",
            "**",
            "?",
            "a\\b",
            "a\\*",
            "]",
            "}{",
            "dots..",
            "é*",
            "in/[x]/*.rs",
        ];
        for one in odd {
            let filter = PathFilter::new(&[literally(&path(one))]).expect("it is a pattern");
            for other in odd.iter().copied().chain(["a", "b", "aa", "x", "in/x/a.rs", "a,b"]) {
                assert_eq!(filter.includes(&path(other)), one == other, "{one} and {other}");
            }
        }
        let filter = PathFilter::new(&[literally(&path(b"not-\xff"))]).expect("it is a pattern");
        assert!(filter.includes(&path(b"not-\xff")) && !filter.includes(&path("not-")));
    }

    #[test]
    fn a_folder_is_named_only_with_all_that_is_in_it() {
        let step = |name: &str| Step::new(path(name), Entry::Absent, Verdict::Delete);
        let steps = ["a", "a/b", "a/b/one", "a/two"].map(step).to_vec();
        let plan = Plan { steps, ..Plan::default() };
        let all: Vec<WorkPath> = plan.steps.iter().map(|step| step.path.clone()).collect();
        assert_eq!(patterns_of(&plan, &all.iter().collect()), ["a", "a/b", "a/b/one", "a/two"]);
        assert_eq!(patterns_of(&plan, &all[..3].iter().collect()), ["a/b", "a/b/one"]);
        assert_eq!(patterns_of(&plan, &all[..1].iter().collect()), [""; 0]);
    }
}
