//! What takes time, on a thread of its own: the screen goes on meanwhile. One thing after the other.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use serde_json::Value;
use takeback_agents::builtin::last_memory;
use takeback_agents::talk::Agent;
use takeback_core::point_name::find_point;
use takeback_core::rewind::{Receipt, RewindError, RewindRequest, Target, preview, rewind};
use takeback_core::{checkpoint, look_around};
use takeback_store::state::{Category, DocumentKey};
use takeback_store::{PointId, PointKind, RewindId, RewindKind, Seq, SessionId};
use takeback_tui::menu::{DiffLine, ExecutionRow, LineKind, Preview, Row};
use takeback_tui::transcript::ToolEnd;

use super::Happening;
use super::host::back::Way;
use super::restore::{Choice, RestoreError, Restored, restore};
use super::session::{self, Kept};
use crate::args::{ExportArgs, ImportArgs, LogArgs, Options};
use crate::commands::cleanup::hold_cap;
use crate::commands::filediff::{Contents, FileDiff, LineCounts, Lines};
use crate::commands::menu::{
    changed_between, diff_lines, execution_preview, execution_request, execution_rows, is_listed,
    preview_of, rows,
};
use crate::commands::{export, import, log, receipt, status};
use crate::error::{CommandError, Kind};
use crate::place::Place;
use crate::point::check_label;
use crate::screen::{Captured, Screen, count, name};
use crate::time::{ago, now, parse, parse_iso};

/// Lines of a diff that a transcript takes in.
const MOST_LINES: usize = 400;
/// How long lines are counted for the foot of the screen.
const COUNTING: Duration = Duration::from_millis(100);

pub(super) enum Job {
    /// For the menu; if `open` names a point, that is what is asked about.
    Rows {
        open: Option<String>,
        asked: Asked,
    },
    Look(String),
    LookExecution(String),
    Restore(Choice),
    RestoreExecution(String),
    /// Takes back the last rewind, or the last undo, if it is one of these; none: whoever did it.
    Again(Way, Vec<RewindId>),
    Checkpoint(String),
    /// How many points there are, and what changed since the last prompt.
    Count,
    ToolEnd {
        call: String,
        ok: bool,
        line: String,
        changes: Option<(Seq, Seq)>,
    },
    Diff,
    Points,
    Status,
    Export(String),
    Import(String),
    Keep(Box<Kept>),
    Remember(Vec<String>),
    Save {
        name: Option<String>,
        kept: Box<Kept>,
    },
    Load(String),
    /// The agent goes on from this.
    Recall(Value),
    Conversations,
    Delete(String),
}

/// How the menu was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// By the rewind key, twice.
    Key,
    /// By a command.
    Slash,
}

impl Asked {
    /// What is said if there is nothing to choose from. The words are those that users of the key, and
    /// of the commands, know from elsewhere.
    pub(super) fn nothing(self) -> &'static str {
        match self {
            Self::Key => "No checkpoints available",
            Self::Slash => "No checkpoints found.",
        }
    }
}

pub(super) enum Done {
    Rows {
        asked: Asked,
        rows: Vec<Row>,
        executions: Vec<ExecutionRow>,
        can_undo: bool,
        open: Option<String>,
    },
    Look {
        id: String,
        preview: Result<Preview, String>,
    },
    LookExecution {
        execution: String,
        preview: Result<Preview, String>,
    },
    Restored {
        choice: Box<Choice>,
        restored: Result<Restored, RestoreError>,
    },
    RestoredExecution {
        execution: String,
        restored: Result<Receipt, String>,
    },
    /// An undo, or a redo.
    Again {
        way: Way,
        receipt: Result<Receipt, String>,
        /// Whether it was one of those that were named.
        ours: bool,
    },
    Counted {
        points: usize,
        /// Whether the menu would have anything to choose from.
        can_rewind: bool,
        files: usize,
        lines: Option<Lines>,
    },
    ToolEnd {
        call: String,
        end: ToolEnd,
    },
    Diff(Vec<DiffLine>),
    Loaded(Box<Kept>),
    /// With what it had before.
    Recalled(Result<Value, String>),
    /// The last word of something that was asked for.
    Said(Result<String, String>),
    /// Of what nobody asked for, and what went wrong all the same.
    Trouble(String),
}

pub(super) struct Worker {
    place: Place,
    options: Options,
    session: SessionId,
    agent: Arc<dyn Agent>,
    say: Sender<Happening>,
    counts: LineCounts,
}

impl Worker {
    pub(super) fn start(
        place: Place,
        options: Options,
        session: SessionId,
        agent: Arc<dyn Agent>,
        say: Sender<Happening>,
    ) -> io::Result<(Sender<Job>, JoinHandle<()>)> {
        let (send, receive) = channel();
        let counts = LineCounts::default();
        let mut worker = Self { place, options, session, agent, say, counts };
        Ok((send, Builder::new().spawn(move || worker.work(&receive))?))
    }

    fn work(&mut self, jobs: &Receiver<Job>) {
        let mut next = jobs.recv().ok();
        while let Some(mut job) = next {
            next = None;
            // Who moves quickly through a menu wants to see where they have stopped.
            while matches!(job, Job::Look(_) | Job::LookExecution(_) | Job::Count)
                && let Ok(later) = jobs.try_recv()
            {
                let passed = std::mem::discriminant(&job) == std::mem::discriminant(&later);
                if passed {
                    job = later;
                } else {
                    next = Some(later);
                    break;
                }
            }
            // A fault here must not leave the session waiting for ever.
            let done = catch_unwind(AssertUnwindSafe(|| self.done(job)));
            let fault = |_| Some(Done::Said(Err("a fault in Takeback".to_owned())));
            if let Some(done) = done.unwrap_or_else(fault)
                && self.say.send(Happening::Done(Box::new(done))).is_err()
            {
                return;
            }
            next = next.or_else(|| jobs.recv().ok());
        }
    }

    fn done(&mut self, job: Job) -> Option<Done> {
        let said =
            |said: Result<String, CommandError>| Done::Said(said.map_err(|error| error.line()));
        Some(match job {
            Job::Rows { open, asked } => {
                self.rows(open, asked).unwrap_or_else(|error| Done::Said(Err(error.line())))
            }
            Job::Look(id) => {
                let preview = self.look(&id).map_err(|error| error.line());
                Done::Look { id, preview }
            }
            Job::LookExecution(execution) => {
                let preview = execution_preview(&mut self.place.workspace, &execution);
                Done::LookExecution { execution, preview: preview.map_err(|error| error.line()) }
            }
            Job::Restore(choice) => {
                let workspace = &mut self.place.workspace;
                let restored = restore(workspace, &*self.agent, &self.session, &choice);
                Done::Restored { choice: Box::new(choice), restored }
            }
            Job::RestoreExecution(execution) => {
                let restored = self.restore_execution(&execution).map_err(|error| error.line());
                Done::RestoredExecution { execution, restored }
            }
            Job::Again(way, ours) => {
                let receipt = self.again(way, &ours).map_err(|error| error.line());
                Done::Again { way, receipt, ours: !ours.is_empty() }
            }
            Job::Checkpoint(label) => said(self.checkpoint(&label)),
            Job::Count => self.count().unwrap_or_else(|error| trouble(&error)),
            Job::ToolEnd { call, ok, line, changes } => {
                let end = self.tool_end(ok, line, changes);
                Done::ToolEnd { call, end }
            }
            Job::Diff => self.diff().map_or_else(|error| Done::Said(Err(error.line())), Done::Diff),
            Job::Points => {
                let args = LogArgs { limit: 20, session: None, all: false };
                said(self.asked(|options, screen| log::log(options, &args, screen)))
            }
            Job::Status => said(self.asked(status::status)),
            Job::Export(file) => {
                let args = ExportArgs {
                    file: file.into(),
                    point: None,
                    session: None,
                    include_ignored: false,
                    force: false,
                };
                said(self.asked(|options, screen| export::export(options, &args, screen)))
            }
            Job::Import(file) => {
                let args = ImportArgs::of(Path::new(&file));
                said(self.asked(|options, screen| import::import(options, &args, screen)))
            }
            Job::Keep(kept) => {
                let states = &*self.place.workspace.states;
                let kept = session::put(states, Category::Session, &kept.session, &kept);
                let why =
                    |error: CommandError| format!("the conversation is not kept: {}", error.what());
                return kept.err().map(|error| Done::Trouble(why(error)));
            }
            Job::Remember(lines) => {
                let remembered = session::remember(&*self.place.workspace.states, &lines);
                return remembered.err().map(|error| trouble(&error));
            }
            Job::Save { name, kept } => said(self.save(name, &kept)),
            Job::Load(name) => match self.load(&name) {
                Ok(kept) => Done::Loaded(Box::new(kept)),
                Err(error) => Done::Said(Err(error.line())),
            },
            Job::Recall(memory) => {
                let before = self.agent.memory();
                let loaded = self.agent.load(&memory).map_err(|error| error.to_string());
                Done::Recalled(loaded.map(|()| before))
            }
            Job::Conversations => said(self.conversations()),
            Job::Delete(name) => said(self.delete(&name)),
        })
    }

    fn rows(&mut self, open: Option<String>, asked: Asked) -> Result<Done, CommandError> {
        hold_cap(&mut self.place);
        let workspace = &self.place.workspace;
        let executions = execution_rows(workspace)?;
        let rewinds = workspace.store.rewinds()?;
        let open = match open {
            Some(name) => {
                let points = workspace.store.points()?;
                let time = now();
                let found = find_point(&points, &name, &|text| parse(text, time));
                let point = found.map_err(|_unknown| {
                    CommandError::new(Kind::Error, format!("Checkpoint {name} not found"))
                })?;
                Some(point.id)
            }
            None => None,
        };
        let rows = rows(workspace, Some(&self.session), open, &mut self.counts)?;
        let open = open.map(|point| point.to_string());
        Ok(Done::Rows { asked, rows, executions, can_undo: !rewinds.is_empty(), open })
    }

    fn look(&mut self, id: &str) -> Result<Preview, CommandError> {
        let id = self.point(id)?;
        let shown = preview(&mut self.place.workspace, &RewindRequest::new(Target::Point(id)))?;
        preview_of(&*self.place.workspace.store, &shown)
    }

    fn point(&self, id: &str) -> Result<PointId, CommandError> {
        let points = self.place.workspace.store.points()?;
        let point = points.iter().find(|point| point.id.to_string() == id);
        point
            .map(|point| point.id)
            .ok_or_else(|| CommandError::new(Kind::Error, format!("Checkpoint {id} not found")))
    }

    /// `name`: an execution, whose last success it is, or a checkpoint.
    fn restore_execution(&mut self, name: &str) -> Result<Receipt, CommandError> {
        let workspace = &mut self.place.workspace;
        let (record, request) = execution_request(workspace, name)?;
        let receipt = rewind(workspace, &request, None)?;
        // The state of this very conversation: the agent goes on from there.
        if receipt.success
            && record.key.execution.as_str() == self.session.0
            && let Some(memory) = last_memory(&*workspace.states, &record.key.execution)?
        {
            self.agent.load(&memory).map_err(|error| CommandError::new(Kind::Error, error))?;
        }
        Ok(receipt)
    }

    fn again(&mut self, way: Way, ours: &[RewindId]) -> Result<Receipt, CommandError> {
        let target = match way {
            Way::Undo => Target::Undo,
            Way::Redo => Target::Redo,
        };
        let workspace = &mut self.place.workspace;
        let request = RewindRequest::new(target);
        if ours.is_empty() {
            return Ok(rewind(workspace, &request, None)?);
        }
        loop {
            let shown = preview(workspace, &request)?;
            let of = match shown.kind {
                RewindKind::Undo { of } | RewindKind::Redo { of } => Some(of),
                RewindKind::Rewind { .. } => None,
            };
            if !of.is_some_and(|of| ours.contains(&of)) {
                let why = "somebody else has gone back or forth in this folder since";
                return Err(CommandError::new(Kind::Error, why)
                    .hint("`takeback undo` shows what it would take back."));
            }
            match rewind(workspace, &request, Some(&shown)) {
                // Somebody saved a file between the look and the lock.
                Err(RewindError::Changed(_)) => {}
                done => return Ok(done?),
            }
        }
    }

    fn checkpoint(&mut self, label: &str) -> Result<String, CommandError> {
        check_label(label)?;
        let recorded = checkpoint(&mut self.place.workspace, Some(label))?;
        let id = recorded.point.map(|point| point.to_string()).unwrap_or_default();
        Ok(format!("Point {} “{label}”", id.get(..8).unwrap_or_default()))
    }

    fn since_last_prompt(&self) -> Result<Vec<FileDiff>, CommandError> {
        let store = &*self.place.workspace.store;
        let points = store.points()?;
        let is_prompt = |point: &&takeback_store::Point| {
            point.kind == PointKind::Prompt && point.session.as_ref() == Some(&self.session)
        };
        let Some(last) = points.iter().rev().find(is_prompt) else { return Ok(Vec::new()) };
        Ok(changed_between(store, last.seq, Seq(u64::MAX >> 1))?)
    }

    fn count(&mut self) -> Result<Done, CommandError> {
        let diffs = self.since_last_prompt()?;
        let store = &*self.place.workspace.store;
        let lines = self.counts.total(&diffs, store, COUNTING);
        let files = diffs.iter().filter(|diff| !diff.is_folder()).count();
        let own = |point: &&takeback_store::Point| {
            is_listed(point) && point.session.as_ref().is_none_or(|of| *of == self.session)
        };
        let all = store.points()?;
        let points = all.iter().filter(own).count();
        let can_rewind = all.iter().any(is_listed) || self.has_other_executions()?;
        Ok(Done::Counted { points, can_rewind, files, lines })
    }

    /// Those that the menu lists where there is no point.
    fn has_other_executions(&self) -> Result<bool, CommandError> {
        let listed = self.place.workspace.states.executions()?.executions;
        let is_other = |id: &str| id != self.session.0;
        Ok(listed.iter().any(|one| one.head.is_some() && is_other(&one.id.to_string())))
    }

    fn tool_end(&self, ok: bool, line: String, changes: Option<(Seq, Seq)>) -> ToolEnd {
        let mut end = ToolEnd { ok, line, insertions: 0, deletions: 0, diff: Vec::new() };
        let store = &*self.place.workspace.store;
        let Some((from, to)) = changes else { return end };
        let Ok(diffs) = changed_between(store, from, to) else { return end };
        let several = diffs.iter().filter(|diff| !diff.is_folder()).count() > 1;
        for diff in diffs.iter().filter(|diff| !diff.is_folder()) {
            // What cannot be compared is only not counted.
            let lines = diff.lines(store).ok().flatten().unwrap_or_default();
            end.insertions += lines.insertions;
            end.deletions += lines.deletions;
            if several {
                let text = format!("{} {}", name(&diff.path), diff.what());
                end.diff.push(DiffLine { kind: LineKind::Heading, text });
            }
            let room = MOST_LINES.saturating_sub(end.diff.len());
            end.diff.extend(diff_lines(diff, Contents::of(store), room).unwrap_or_default());
        }
        end
    }

    fn diff(&mut self) -> Result<Vec<DiffLine>, CommandError> {
        look_around(&mut self.place.workspace)?;
        let diffs = self.since_last_prompt()?;
        let store = &*self.place.workspace.store;
        let mut shown = Vec::new();
        for diff in &diffs {
            let text = format!("{}  {}", name(&diff.path), diff.what());
            shown.push(DiffLine { kind: LineKind::Heading, text });
            let room = MOST_LINES.saturating_sub(shown.len());
            shown.extend(diff_lines(diff, Contents::of(store), room)?);
        }
        Ok(shown)
    }

    /// What a command of the command line answers.
    fn asked(
        &self,
        command: impl FnOnce(&Options, &mut Screen) -> Result<u8, CommandError>,
    ) -> Result<String, CommandError> {
        let text = Captured::default();
        let mut screen = Screen::captured(&self.options, text.clone());
        // A warning on standard error would stand across the session, which said it when it began.
        let options = Options { quiet: true, ..self.options.clone() };
        command(&options, &mut screen)?;
        screen.out.flush()?;
        Ok(text.text().trim_end().to_owned())
    }

    fn save(&self, name: Option<String>, kept: &Kept) -> Result<String, CommandError> {
        let name = name.unwrap_or_else(|| crate::time::iso(now()));
        session::put(&*self.place.workspace.states, Category::Conversation, &name, kept)?;
        Ok(format!("Saved as {name}"))
    }

    fn load(&self, name: &str) -> Result<Kept, CommandError> {
        let states = &*self.place.workspace.states;
        let kept = session::get(states, Category::Conversation, name)?;
        let kept = kept.ok_or_else(|| no_conversation(name))?;
        self.agent.load(&kept.memory).map_err(|error| CommandError::new(Kind::Error, error))?;
        Ok(kept)
    }

    fn conversations(&self) -> Result<String, CommandError> {
        let found = session::all(&*self.place.workspace.states, Category::Conversation)?;
        if found.is_empty() {
            return Ok("No conversations are saved. /save NAME saves this one.".to_owned());
        }
        let time = now();
        let lines = found.iter().map(|(name, kept)| {
            let age = parse_iso(&kept.updated_at).map_or_else(String::new, |at| ago(at, time));
            let prompts =
                kept.transcript.iter().filter(|line| matches!(line, session::Line::Person { .. }));
            let title = crate::screen::shorten(kept.title(), 50);
            format!("{name}  {age}  {}  {}  {title}", kept.agent, count(prompts.count(), "prompt"))
        });
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    fn delete(&self, name: &str) -> Result<String, CommandError> {
        let key = DocumentKey::new(name).map_err(|error| CommandError::new(Kind::Usage, error))?;
        if self.place.workspace.states.delete_document(Category::Conversation, &key)? {
            Ok(format!("Deleted {name}"))
        } else {
            Err(no_conversation(name))
        }
    }
}

fn no_conversation(name: &str) -> CommandError {
    CommandError::new(
        Kind::Error,
        format!("there is no conversation {name}; /conversations lists them"),
    )
}

fn trouble(error: &CommandError) -> Done {
    Done::Trouble(error.line())
}

/// A receipt for the transcript.
pub(super) fn receipt_text(receipt: &Receipt) -> String {
    let mut text = Captured::default();
    let written = receipt::print(&mut text, receipt, &[], receipt::Tense::Did, false);
    match written {
        Ok(()) => text.text().trim_end().to_owned(),
        Err(error) => error.to_string(),
    }
}
