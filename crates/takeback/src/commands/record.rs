//! `record`: reads an agent's events as JSON lines, and answers each once it is durable.
//!
//! The end of the input ends the calls that were opened through it: the agent may have died without another
//! event.

mod wire;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, BufRead, Read as _};

use serde_json::Value;
use takeback_core::history::kept_for_call;
use takeback_core::record::{RecordError, RecordOutcome};
use takeback_core::{AgentEvent, CallReport, CallTargets, Outcome, Workspace};
use takeback_store::{
    CallId, CallState, NotCapturedReason, PointId, Process, Seq, SessionId, StoreError, TurnId,
    WorkPath,
};

use self::wire::{InputLine, WireEvent, convert, name_of, running};
use super::cleanup::{clean_up_if_due, enforce_point_cap_in_background};
use super::state::input::check_exact;
use super::state::save::{Files, of_event, save_with_files};
use crate::answers::{
    self, FileCopies, FileCopy, RecordAnswer, RecordedEvent, RecordedStep, RefusedEvent,
};
use crate::args::{Options, RecordArgs};
use crate::error::{CommandError, Kind};
use crate::place::{self, Place, Store};
use crate::screen::Screen;

pub(crate) fn record(
    options: &Options,
    args: &RecordArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let owner = args.pid.map(running).transpose().map_err(|error| {
        CommandError::new(Kind::Usage, error).hint("--pid must name a running process.")
    })?;
    let prepared = place::prepare(options)?;
    if let Some(refusal) = prepared.refusal() {
        let mut place = None;
        return answer_each(screen, |line| {
            without_files(line, &refusal, || match place.take() {
                Some(opened) => Ok(place.insert(opened)),
                None => Ok(place.insert(place::open(options, Store::Create)?)),
            })
        });
    }
    let mut place = place::open_prepared(options, prepared, Store::Create)?;
    place.workspace.limits = place.settings.agent_limits();
    clean_up_if_due(&mut place, options);
    let mut recording = Recording { owner, ..Recording::default() };
    let code = answer_each(screen, |line| recording.answer(&mut place, line));
    let ended = recording.end(&mut place.workspace);
    // Every answer is durable, so the process can exit without closing the store.
    std::mem::forget(place);
    let code = code?;
    ended?;
    Ok(code)
}

/// If recording is off, only events about the agent's state are kept.
pub(crate) fn without_files<'p>(
    line: &[u8],
    refusal: &CommandError,
    open: impl FnOnce() -> Result<&'p mut Place, CommandError>,
) -> RecordAnswer {
    let (session, checkpoint) = match wire::read(line) {
        Ok(WireEvent::Step { session, checkpoint }) => (session, checkpoint),
        Err(error) if error.event() == Some("step") => {
            return refused(error.event(), error.to_string());
        }
        Ok(_) | Err(_) => return refused(None, refusal.what()),
    };
    match open() {
        Ok(place) => step(&mut place.workspace, line, session, checkpoint, Files::Not),
        Err(error) => refused(Some("step"), error.what()),
    }
}

/// Answers line by line. The exit code says whether an event was refused.
fn answer_each(
    screen: &mut Screen,
    mut answer: impl FnMut(&[u8]) -> RecordAnswer,
) -> Result<u8, CommandError> {
    let mut failed = false;
    let mut lines = Lines { from: io::stdin().lock() };
    while let Some(line) = lines.next()? {
        let answer = match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => continue,
            Line::Whole(line) => answer(&line),
            Line::TooLong => {
                refused(None, format!("the line is longer than {} MiB", LONGEST_LINE >> 20))
            }
        };
        failed |= matches!(answer, RecordAnswer::Refused(_));
        screen.json(&answer)?;
    }
    Ok(u8::from(failed))
}

/// No event is longer than this.
const LONGEST_LINE: usize = takeback_ipc::LARGEST_MESSAGE;

enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// Lines of at most [`LONGEST_LINE`] bytes. The rest of a longer one is read and dropped.
struct Lines<R> {
    from: R,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let most = LONGEST_LINE as u64 + 1;
        if self.from.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > LONGEST_LINE {
            drop(line);
            self.from.skip_until(b'\n')?;
            return Ok(Some(Line::TooLong));
        }
        Ok(Some(Line::Whole(line)))
    }
}

/// State that is kept between events.
#[derive(Default)]
pub(crate) struct Recording {
    /// The process whose death ends sessions that name no other process.
    owner: Option<Process>,
    /// Sessions whose process is known.
    owned: HashSet<SessionId>,
    /// Calls that only read: their end is not recorded either.
    passed_over: HashSet<(SessionId, CallId)>,
    /// Calls that were opened through this input and not ended, in order.
    opened: Vec<OpenedCall>,
    /// The last turn of each session whose prompt came through this input.
    turns: HashMap<SessionId, TurnId>,
}

struct OpenedCall {
    session: SessionId,
    call: CallId,
    /// The event may still be in the inbox.
    is_late: bool,
}

/// An `after_tool` without its `before_tool`.
#[derive(Debug, thiserror::Error)]
#[error(
    "no before_tool of the call {:?} in session {:?} is recorded; what changed since is unclear",
    call.0, session.0
)]
struct UnopenedCallError {
    session: SessionId,
    call: CallId,
}

impl Recording {
    /// Records the event in `line`.
    pub(crate) fn answer(&mut self, place: &mut Place, line: &[u8]) -> RecordAnswer {
        let (workspace, tools) = (&mut place.workspace, place.settings.tools());
        let wire = match wire::read(line) {
            Ok(event) => event,
            Err(error) => return refused(error.event(), error.to_string()),
        };
        let name = name_of(&wire);
        let read_only = matches!(&wire, WireEvent::AfterTool { tool: Some(tool), .. }
            if tools.touches(tool, Vec::new(), None) == CallTargets::Nothing);
        let event = match convert(wire, &tools) {
            Ok(InputLine::Event(event)) if event.session().0.trim().is_empty() => {
                return refused(Some(name), "`session` is empty".to_owned());
            }
            Ok(InputLine::Event(event)) => event,
            Ok(InputLine::Step { session, checkpoint }) => {
                return match self.own(workspace, &SessionId(session.clone())) {
                    Ok(()) => step(workspace, line, session, checkpoint, Files::Too),
                    Err(error) => refused_by(name, error),
                };
            }
            Err(error) => return refused(Some(name), error.to_string()),
        };
        match &event {
            AgentEvent::BeforeTool { session, call, touches: CallTargets::Nothing, .. } => {
                self.passed_over.insert((session.clone(), call.clone()));
            }
            AgentEvent::AfterTool { session, call, .. }
                if self.passed_over.remove(&(session.clone(), call.clone())) || read_only =>
            {
                return match workspace.store.head() {
                    Ok(head) => RecordAnswer::Recorded(accepted(name, head.seq, None, &[])),
                    Err(error) => refused_by(name, error),
                };
            }
            _ => {}
        }
        let prompted = match &event {
            AgentEvent::Prompt { session, .. } => Some(session.clone()),
            _ => None,
        };
        let opened = match &event {
            AgentEvent::BeforeTool { session, call, touches, .. } => {
                Some((session.clone(), call.clone(), first_path(workspace, touches)))
            }
            _ => None,
        };
        let ended = self.unopened(&event);
        match self.take(workspace, event) {
            Ok(recorded) => {
                if let Some((session, call)) = ended.filter(|_| !recorded.late) {
                    match workspace.store.call(&session, &call) {
                        Ok(Some(_)) => {}
                        // It was recorded all the same: the call may have written what the look found.
                        Ok(None) => {
                            let error = UnopenedCallError { session, call };
                            return refused(Some(name), error.to_string());
                        }
                        Err(error) => return refused_by(name, error),
                    }
                }
                let mut answer =
                    accepted(name, recorded.seq, recorded.point, &recorded.not_captured);
                answer.copies = opened.map(|(session, call, path)| {
                    file_copies(workspace, &session, &call, path.as_ref())
                });
                if let Some(session) = prompted {
                    enforce_point_cap_in_background(place, &session);
                }
                RecordAnswer::Recorded(answer)
            }
            Err(error) => refused_by(name, error),
        }
    }

    /// The call that the event ends, if it was not opened through this input.
    fn unopened(&self, event: &AgentEvent) -> Option<(SessionId, CallId)> {
        let AgentEvent::AfterTool { session, call, .. } = event else { return None };
        let is_open = |one: &OpenedCall| (&one.session, &one.call) == (session, call);
        (!self.opened.iter().any(is_open)).then(|| (session.clone(), call.clone()))
    }

    fn take(
        &mut self,
        workspace: &mut Workspace,
        mut event: AgentEvent,
    ) -> Result<RecordOutcome, RecordError> {
        if let AgentEvent::SessionStart { session, owner, .. } = &mut event {
            *owner = owner.or(self.owner);
            self.owned.insert(session.clone());
        } else {
            self.own(workspace, event.session())?;
        }
        let recorded = takeback_core::record(workspace, &event)?;
        self.remember(workspace, &event, &recorded)?;
        Ok(recorded)
    }

    /// Sets the process of this input as the session's, once, unless an event names another.
    fn own(&mut self, workspace: &mut Workspace, session: &SessionId) -> Result<(), RecordError> {
        if self.owner.is_none() || !self.owned.insert(session.clone()) {
            return Ok(());
        }
        let known = workspace.store.session(session)?.and_then(|session| session.owner);
        // A session start ends open calls, so it must not be recorded twice.
        if known != self.owner {
            let (session, owner) = (session.clone(), self.owner);
            let start =
                AgentEvent::SessionStart { session, agent: None, parent: None, owner, model: None };
            takeback_core::record(workspace, &start)?;
        }
        Ok(())
    }

    /// Remembers what [`Self::end`] has to close.
    fn remember(
        &mut self,
        workspace: &Workspace,
        event: &AgentEvent,
        recorded: &RecordOutcome,
    ) -> Result<(), StoreError> {
        match event {
            AgentEvent::BeforeTool { touches: CallTargets::Nothing, .. } => {}
            AgentEvent::BeforeTool { session, call, .. } => self.opened.push(OpenedCall {
                session: session.clone(),
                call: call.clone(),
                is_late: recorded.late,
            }),
            AgentEvent::AfterTool { session, call, .. } => {
                self.opened.retain(|one| (&one.session, &one.call) != (session, call));
            }
            _ => {}
        }
        // A turn opened by a call stays open: a process per call must not make a turn of each.
        if let AgentEvent::Prompt { session, .. } = event {
            let turn = workspace.store.session(session)?.and_then(|session| session.open_turn);
            self.turns.extend(turn.map(|turn| (session.clone(), turn)));
        }
        Ok(())
    }

    /// Whether [`Self::end`] has nothing to close.
    pub(crate) fn is_over(&self) -> bool {
        self.opened.is_empty()
    }

    /// Closes as interrupted the open calls of this input, and their turns if the prompt came through this
    /// input, too. Calls that were opened elsewhere or run in the background stay open.
    pub(crate) fn end(&mut self, workspace: &mut Workspace) -> Result<(), RecordError> {
        let mut interrupted = BTreeSet::new();
        for OpenedCall { session, call, is_late } in std::mem::take(&mut self.opened) {
            let state = workspace.store.call(&session, &call)?.map(|call| call.state);
            let is_open = state.map_or(is_late, is_unended);
            if is_open {
                let outcome = Outcome::Interrupted;
                interrupted.insert(session.clone());
                takeback_core::record(
                    workspace,
                    &AgentEvent::AfterTool {
                        session,
                        call,
                        outcome,
                        report: CallReport::default(),
                    },
                )?;
            }
        }
        for session in interrupted {
            let open = workspace.store.session(&session)?.and_then(|session| session.open_turn);
            let is_own = open.is_some() && open == self.turns.get(&session).copied();
            // The end of a turn would end background calls.
            let others = workspace.store.live_calls()?;
            let others =
                others.iter().any(|call| call.session == session && is_unended(call.state));
            if is_own && !others {
                takeback_core::record(workspace, &AgentEvent::TurnEnd { session, model: None })?;
            }
        }
        Ok(())
    }
}

fn is_unended(state: CallState) -> bool {
    matches!(state, CallState::Open | CallState::Overtaken)
}

/// Saves an agent's state; `line` is the event's JSON.
fn step(
    workspace: &mut Workspace,
    line: &[u8],
    session: String,
    checkpoint: Value,
    files: Files,
) -> RecordAnswer {
    let given = check_exact(line).and_then(|()| of_event(session, checkpoint));
    let kept = given
        .map_err(CommandError::from)
        .and_then(|given| save_with_files(workspace, &given, files));
    match kept {
        Ok(kept) => {
            let record = &kept.saved.record;
            let step = RecordedStep { id: record.id().to_string(), attempt: record.key.attempt.0 };
            let answer = accepted("step", kept.seq, record.point, &kept.not_captured);
            RecordAnswer::Recorded(RecordedEvent { step: Some(step), ..answer })
        }
        Err(error) => refused(Some("step"), error.what()),
    }
}

/// The saved copies for a call, by their ids in `checkpoint:list`, and which of them is for `path`.
fn file_copies(
    workspace: &Workspace,
    session: &SessionId,
    call: &CallId,
    path: Option<&WorkPath>,
) -> FileCopies {
    // An unreadable log names no copies. The event is still recorded.
    let kept = kept_for_call(&*workspace.store, session, call).unwrap_or_default();
    let first = kept.iter().find(|(kept, _)| Some(kept) == path);
    FileCopies {
        checkpoint: first.map(|(_, id)| answers::Id::new(id)),
        checkpoints: kept
            .iter()
            .map(|(path, id)| FileCopy { id: answers::Id::new(id), path: answers::path(path) })
            .collect(),
    }
}

/// The first path that a call names, as it is recorded.
fn first_path(workspace: &Workspace, touches: &CallTargets) -> Option<WorkPath> {
    match touches {
        CallTargets::Paths(paths) | CallTargets::Anything { paths, .. } => {
            workspace.resolve(paths.first()?)
        }
        CallTargets::Nothing => None,
    }
}

fn accepted(
    event: &str,
    seq: Seq,
    point: Option<PointId>,
    not_captured: &[(WorkPath, NotCapturedReason)],
) -> RecordedEvent {
    RecordedEvent {
        ok: true,
        event: event.to_owned(),
        seq: seq.0,
        point: point.map(answers::Id::new),
        not_captured: answers::not_captured(not_captured),
        copies: None,
        step: None,
    }
}

fn refused(event: Option<&str>, error: String) -> RecordAnswer {
    RecordAnswer::Refused(RefusedEvent { ok: false, event: event.map(str::to_owned), error })
}

fn refused_by(event: &str, error: impl Into<CommandError>) -> RecordAnswer {
    refused(Some(event), error.into().what())
}
