//! The worker thread: jobs that take time, one after another, while the screen stays responsive.

mod actions;
mod changes;
mod conversations;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use serde_json::Value;
use takeback_agents::{ChatAgent, last_memory};
use takeback_core::rewind::{Receipt, RewindError, RewindRequest, Target, preview, rewind};
use takeback_core::{checkpoint, find_point};
use takeback_store::state::Category;
use takeback_store::{PointId, PointQuery, RewindId, Seq, SessionId};
use takeback_tui::{
    DiffLine, ExecutionRow, MenuAnswer, MenuQuestion, OperationRow, PointRow, Preview,
    PreviewRequest, RowId, ToolEnd,
};

pub(super) use self::actions::Action;
use super::Event;
use super::conversation::{self, Conversation};
use super::host::Direction;
use super::restore::{RestoreContext, RestoreError, RestoreJob, RestoreOutcome, restore};
use crate::args::{
    BlameArgs, ExportArgs, HistoryArgs, ImportArgs, LogArgs, Options, ShowArgs, StatsArgs, WhyArgs,
};
use crate::commands::cleanup::enforce_point_cap;
use crate::commands::filediff::{LineCounts, Lines};
use crate::commands::menu::{
    self, covered, execution_preview, execution_request, execution_rows, operation_rows,
    point_rows, preview_files,
};
use crate::commands::{blame, export, history, import, log, receipt, show, stats, status, why};
use crate::error::{CommandError, Kind};
use crate::place::Place;
use crate::point::check_label;
use crate::screen::{CapturedText, Screen};
use crate::time::{now, parse};

pub(super) enum Job {
    /// The rows of the menu; `open` names a point to open it at.
    Rows {
        open: Option<String>,
        trigger: MenuTrigger,
    },
    Preview(PreviewRequest),
    /// A question about a file of the menu's preview.
    Ask(MenuQuestion),
    Restore(RestoreJob),
    RestoreExecution(String),
    /// Change files without a menu.
    Act(Action),
    /// List the open conflicts.
    Conflicts,
    /// Undo or redo one of these rewinds; if there are none, the last one in the store.
    Reverse(Direction, Vec<RewindId>),
    Checkpoint(String),
    /// Count points and changes for the status line.
    Count,
    ToolEnd {
        call: String,
        ok: bool,
        line: String,
        changes: Option<(Seq, Seq)>,
    },
    Diff,
    Points,
    Blame(String),
    Why(String),
    History(String),
    Stats,
    Show(Option<String>),
    Status,
    Export(String),
    Import(String),
    SaveSession(Box<Conversation>),
    AddToHistory(Vec<String>),
    Save {
        name: Option<String>,
        conversation: Box<Conversation>,
    },
    Load(String),
    /// Make the agent load this memory.
    Recall(Value),
    Conversations,
    Delete(String),
}

/// How the user opened the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MenuTrigger {
    Key,
    Slash,
    /// `/restore`: what is no point is a path.
    Restore,
    /// `/revert`: what is no point is a call or a range.
    Revert,
}

impl MenuTrigger {
    /// The message for an empty menu. Users know it from the tools whose keys and commands these are.
    pub(super) fn empty_message(self) -> &'static str {
        match self {
            Self::Key => "No checkpoints available",
            Self::Slash | Self::Restore | Self::Revert => "No checkpoints found.",
        }
    }
}

pub(super) enum JobResult {
    Rows(Box<MenuRows>),
    /// The menu was to open at something else.
    NotAPoint {
        name: String,
        trigger: MenuTrigger,
    },
    Acted(Result<Receipt, String>),
    Preview {
        request: PreviewRequest,
        preview: Result<Preview, String>,
    },
    Answer {
        question: MenuQuestion,
        answer: Result<MenuAnswer, String>,
    },
    Restored {
        job: Box<RestoreJob>,
        result: Result<RestoreOutcome, RestoreError>,
    },
    RestoredExecution {
        execution: String,
        result: Result<Receipt, String>,
    },
    Reversed {
        direction: Direction,
        receipt: Result<Receipt, String>,
        /// Whether the job named the rewinds.
        own: bool,
    },
    Counts {
        points: usize,
        /// Whether the menu would have a row.
        can_rewind: bool,
        files: usize,
        lines: Option<Lines>,
    },
    ToolEnd {
        call: String,
        end: ToolEnd,
    },
    /// `None`: the session has no prompt yet.
    Diff(Option<Vec<DiffLine>>),
    Loaded(Box<Conversation>),
    /// The agent's memory before.
    Recalled(Result<Value, String>),
    /// The result of a command, as text.
    Message(Result<String, String>),
    /// A job that the user did not ask for has failed.
    Failure(String),
}

/// What the menu needs.
pub(super) struct MenuRows {
    pub(super) trigger: MenuTrigger,
    pub(super) points: Vec<PointRow>,
    pub(super) operations: Vec<OperationRow>,
    pub(super) executions: Vec<ExecutionRow>,
    pub(super) can_undo: bool,
    /// The id of the point to open.
    pub(super) open: Option<String>,
}

pub(super) struct Worker {
    place: Place,
    options: Options,
    session: SessionId,
    agent: Arc<dyn ChatAgent>,
    events: Sender<Event>,
    counts: LineCounts,
}

impl Worker {
    pub(super) fn new(
        place: Place,
        options: Options,
        session: SessionId,
        agent: Arc<dyn ChatAgent>,
        events: Sender<Event>,
    ) -> Self {
        Self { place, options, session, agent, events, counts: LineCounts::default() }
    }

    pub(super) fn start(mut self) -> io::Result<(Sender<Job>, JoinHandle<()>)> {
        let (send, receive) = channel();
        Ok((send, Builder::new().spawn(move || self.work(&receive))?))
    }

    fn work(&mut self, jobs: &Receiver<Job>) {
        let mut next = jobs.recv().ok();
        while let Some(mut job) = next {
            next = None;
            // Of several previews or counts in a row, only the last one matters.
            while matches!(job, Job::Preview(_) | Job::Count)
                && let Ok(later) = jobs.try_recv()
            {
                if std::mem::discriminant(&job) == std::mem::discriminant(&later) {
                    job = later;
                } else {
                    next = Some(later);
                    break;
                }
            }
            // A panic must not leave the session waiting for ever.
            let result = catch_unwind(AssertUnwindSafe(|| self.run(job)));
            let result = result.unwrap_or_else(|_panic| {
                Some(JobResult::Message(Err("internal error in Takeback".to_owned())))
            });
            if let Some(result) = result
                && self.events.send(Event::Worker(Box::new(result))).is_err()
            {
                return;
            }
            next = next.or_else(|| jobs.recv().ok());
        }
    }

    fn run(&mut self, job: Job) -> Option<JobResult> {
        Some(match job {
            Job::Rows { open, trigger } => self.rows(open, trigger),
            Job::Preview(request) => {
                let preview = self.preview(&request).map_err(|error| error.line());
                JobResult::Preview { request, preview }
            }
            Job::Restore(job) => {
                let workspace = &mut self.place.workspace;
                let (agent, session) = (&*self.agent, &self.session);
                let result = restore(&mut RestoreContext { workspace, agent, session }, &job);
                JobResult::Restored { job: Box::new(job), result }
            }
            Job::Ask(question) => {
                let options = Options { quiet: true, ..self.options.clone() };
                let answer = menu::answer(&mut self.place.workspace, &options, &question);
                JobResult::Answer { question, answer: answer.map_err(|error| error.line()) }
            }
            Job::RestoreExecution(execution) => {
                let result = self.restore_execution(&execution).map_err(|error| error.line());
                JobResult::RestoredExecution { execution, result }
            }
            Job::Act(action) => JobResult::Acted(self.act(action).map_err(|error| error.line())),
            Job::Conflicts => message(self.conflicts()),
            Job::Reverse(direction, rewinds) => {
                let receipt = self.reverse(direction, &rewinds).map_err(|error| error.line());
                JobResult::Reversed { direction, receipt, own: !rewinds.is_empty() }
            }
            Job::Checkpoint(label) => message(self.checkpoint(&label)),
            Job::Count => self.count().unwrap_or_else(|error| JobResult::Failure(error.line())),
            Job::ToolEnd { call, ok, line, changes } => {
                JobResult::ToolEnd { call, end: self.tool_end(ok, line, changes) }
            }
            Job::Diff => self.diff().map_or_else(failed, JobResult::Diff),
            Job::Points => {
                let args = LogArgs::newest(LogArgs::LIMIT);
                message(self.command(|options, screen| log::log(options, &args, screen)))
            }
            Job::Blame(path) => {
                let args = BlameArgs { path: path.into(), lines: None };
                message(self.command(|options, screen| blame::blame(options, &args, screen)))
            }
            Job::Why(line) => {
                let args = WhyArgs { line: line.into() };
                message(self.command(|options, screen| why::why(options, &args, screen)))
            }
            Job::History(path) => {
                let args = HistoryArgs { path: path.into(), limit: LogArgs::LIMIT };
                message(self.command(|options, screen| history::history(options, &args, screen)))
            }
            Job::Stats => {
                let args = StatsArgs { range: None, since: None };
                message(self.command(|options, screen| stats::stats(options, &args, screen)))
            }
            Job::Show(point) => message(self.show(point)),
            Job::Status => message(self.command(status::status)),
            Job::Export(file) => {
                let args = ExportArgs {
                    file: file.into(),
                    agent_trace: false,
                    patch: false,
                    git: false,
                    point: None,
                    session: None,
                    include_ignored: false,
                    force: false,
                };
                message(self.command(|options, screen| export::export(options, &args, screen)))
            }
            Job::Import(file) => {
                let args = ImportArgs::of(Path::new(&file));
                message(self.command(|options, screen| import::import(options, &args, screen)))
            }
            Job::SaveSession(conversation) => {
                let states = &*self.place.workspace.states;
                let name = &conversation.session;
                let saved = conversation::put(states, Category::Session, name, &conversation);
                let why = |error: CommandError| {
                    format!("could not save the conversation: {}", error.what())
                };
                return saved.err().map(|error| JobResult::Failure(why(error)));
            }
            Job::AddToHistory(prompts) => {
                let added = conversation::add_to_history(&*self.place.workspace.states, &prompts);
                return added.err().map(|error| JobResult::Failure(error.line()));
            }
            Job::Save { name, conversation } => message(self.save(name, &conversation)),
            Job::Load(name) => {
                let loaded = self.load(&name);
                loaded.map_or_else(failed, |loaded| JobResult::Loaded(Box::new(loaded)))
            }
            Job::Recall(memory) => {
                let before = self.agent.memory();
                let loaded = self.agent.load(&memory).map_err(|error| error.to_string());
                JobResult::Recalled(loaded.map(|()| before))
            }
            Job::Conversations => message(self.conversations()),
            Job::Delete(name) => message(self.delete(&name)),
        })
    }

    fn rows(&mut self, open: Option<String>, trigger: MenuTrigger) -> JobResult {
        match open {
            Some(name) if self.is_no_point(&name, trigger) => {
                JobResult::NotAPoint { name, trigger }
            }
            open => {
                let rows = self.menu_rows(open.as_deref(), trigger);
                rows.map_or_else(failed, |rows| JobResult::Rows(Box::new(rows)))
            }
        }
    }

    fn menu_rows(
        &mut self,
        open: Option<&str>,
        trigger: MenuTrigger,
    ) -> Result<MenuRows, CommandError> {
        enforce_point_cap(&mut self.place);
        let workspace = &self.place.workspace;
        let executions = execution_rows(workspace)?;
        let can_undo = !workspace.store.rewind_headers()?.is_empty();
        let last = match (open, trigger) {
            (None, MenuTrigger::Revert) => {
                let last = PointQuery::LastPromptOf(&self.session);
                self.place.workspace.store.find_points(last)?.pop().map(|point| point.id)
            }
            _ => None,
        };
        let open = open.map(|name| self.find_point(name)).transpose()?.or(last);
        let points = point_rows(workspace, Some(&self.session), open, &mut self.counts)?;
        let operations = operation_rows(workspace, &points)?;
        let open = open.map(|point| point.to_string());
        Ok(MenuRows { trigger, points, operations, executions, can_undo, open })
    }

    fn find_point(&self, name: &str) -> Result<PointId, CommandError> {
        let time = now();
        let points = self.place.workspace.store.points()?;
        match find_point(&points, name, &|text| parse(text, time)) {
            Ok(point) => Ok(point.id),
            Err(_unknown) => Err(not_found(name)),
        }
    }

    fn preview(&mut self, request: &PreviewRequest) -> Result<Preview, CommandError> {
        let workspace = &mut self.place.workspace;
        let id = match &request.row {
            RowId::Execution(name) => return execution_preview(workspace, name),
            RowId::Point(id) => id,
        };
        let points = workspace.store.points()?;
        let point = points.iter().find(|point| point.id.to_string() == *id);
        let point = point.ok_or_else(|| not_found(id))?;
        let rewind = RewindRequest::new(Target::Point(point.id));
        let request = covered(workspace, rewind, point, request.coverage)?.request;
        let preview = preview(workspace, &request)?;
        preview_files(workspace, &preview)
    }

    /// `name`: an execution, for its last success, or a checkpoint.
    fn restore_execution(&mut self, name: &str) -> Result<Receipt, CommandError> {
        let workspace = &mut self.place.workspace;
        let (record, request) = execution_request(workspace, name)?;
        let receipt = rewind(workspace, &request, None)?;
        // If it is this conversation's own state, the agent continues from there.
        if receipt.success
            && record.key.execution.as_str() == self.session.0
            && let Some(memory) = last_memory(&*workspace.states, &record.key.execution)?
        {
            self.agent.load(&memory).map_err(|error| CommandError::new(Kind::Error, error))?;
        }
        Ok(receipt)
    }

    /// Undo or redo. With `rewinds`, only if the last rewind in the store is one of them.
    fn reverse(
        &mut self,
        direction: Direction,
        rewinds: &[RewindId],
    ) -> Result<Receipt, CommandError> {
        let workspace = &mut self.place.workspace;
        let request = RewindRequest::new(match direction {
            Direction::Undo => Target::Undo,
            Direction::Redo => Target::Redo,
        });
        if rewinds.is_empty() {
            return Ok(rewind(workspace, &request, None)?);
        }
        loop {
            let preview = preview(workspace, &request)?;
            let reversed = preview.kind.operation();
            if !reversed.is_some_and(|id| rewinds.contains(&id)) {
                let why = "another process has rewound this folder since";
                return Err(CommandError::new(Kind::Error, why)
                    .hint("`takeback undo` shows what it would undo."));
            }
            match rewind(workspace, &request, Some(&preview)) {
                // A file was saved between the preview and the lock.
                Err(RewindError::Changed(_)) => {}
                result => return Ok(result?),
            }
        }
    }

    /// Without a name: the last prompt. `@` may be a step of the agent.
    fn show(&self, point: Option<String>) -> Result<String, CommandError> {
        let last = PointQuery::LastPromptOf(&self.session);
        let last = self.place.workspace.store.find_points(last)?.pop();
        let last = last.map_or_else(|| "@".to_owned(), |point| point.id.to_string());
        let args = ShowArgs { point: point.unwrap_or(last), patch: false };
        self.command(|options, screen| show::show(options, &args, screen))
    }

    fn checkpoint(&mut self, label: &str) -> Result<String, CommandError> {
        check_label(label)?;
        let recorded = checkpoint(&mut self.place.workspace, Some(label))?;
        let id = recorded.point.map(|point| point.to_string()).unwrap_or_default();
        Ok(format!("Created point {} “{label}”", id.get(..8).unwrap_or_default()))
    }

    /// The text output of a command of the command line.
    fn command(
        &self,
        command: impl FnOnce(&Options, &mut Screen) -> Result<u8, CommandError>,
    ) -> Result<String, CommandError> {
        let text = CapturedText::default();
        let mut screen = Screen::captured(&self.options, text.clone());
        // Warnings on standard error would write across the screen; the session showed them at its start.
        let options = Options { quiet: true, ..self.options.clone() };
        command(&options, &mut screen)?;
        screen.out.flush()?;
        Ok(text.text().trim_end().to_owned())
    }
}

fn message(result: Result<String, CommandError>) -> JobResult {
    JobResult::Message(result.map_err(|error| error.line()))
}

#[expect(clippy::needless_pass_by_value, reason = "it is an argument of `map_or_else`")]
fn failed(error: CommandError) -> JobResult {
    JobResult::Message(Err(error.line()))
}

fn not_found(name: &str) -> CommandError {
    CommandError::new(Kind::Error, format!("Checkpoint {name} not found"))
}

/// A receipt for the transcript.
pub(super) fn receipt_text(receipt: &Receipt) -> String {
    let mut text = CapturedText::default();
    let written = receipt::print(&mut text, receipt, &[], receipt::Tense::Did, false);
    match written {
        Ok(()) => text.text().trim_end().to_owned(),
        Err(error) => error.to_string(),
    }
}
