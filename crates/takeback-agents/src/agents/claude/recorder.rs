//! Records what `claude` does: which calls are open, and in which session.
//!
//! A subagent is a session of its own below the conversation's: several work at once, and the log
//! has one open call per session.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::Value;
use takeback_core::middleware::{command_in, paths_in};
use takeback_core::{AgentEvent, CallReport, CallTargets, Outcome, process};
use takeback_store::{CallId, Seq, SessionId};

use super::orphans::OrphanState;
use super::wire::WireCall;
use crate::capture::{Capture, Recording};
use crate::chat_agent::PromptPoint;

pub(super) struct Recorder {
    capture: Recording,
    calls: HashMap<String, OpenCall>,
    subagents: HashSet<SessionId>,
    /// Sessions with a command that may have outlived the program.
    in_doubt: HashSet<SessionId>,
    /// Whether the log has an open turn.
    in_turn: bool,
}

struct OpenCall {
    session: SessionId,
    tool: String,
    touches: CallTargets,
    /// `None`: it waits for permission, and does nothing.
    since: Option<Option<Seq>>,
    /// It has returned, and its command still runs.
    in_background: bool,
}

impl OpenCall {
    /// Commands may write anything at any time.
    fn may_write(&self) -> bool {
        self.since.is_some() && matches!(self.touches, CallTargets::Anything { .. })
    }
}

impl Recorder {
    pub(super) fn new(capture: Capture) -> Self {
        let mut capture = Recording::from(capture);
        capture.session_start(super::NAME);
        let (calls, subagents, in_doubt) = (HashMap::new(), HashSet::new(), HashSet::new());
        Self { capture, calls, subagents, in_doubt, in_turn: false }
    }

    /// The program gives its own messages a model in angle brackets.
    pub(super) fn answered_by(&mut self, model: Option<&str>) {
        if let Some(model) = model.filter(|model| !model.starts_with('<')) {
            self.capture.model = Some(model.to_owned());
        }
    }

    pub(super) fn prompt(&mut self, message: &str, text: &str) -> Option<PromptPoint> {
        self.in_turn = true;
        self.capture.prompt(message, text)
    }

    /// A turn without a prompt of the user: a background task has ended.
    pub(super) fn own_prompt(&mut self, text: &str) {
        self.in_turn = true;
        let session = self.capture.session.clone();
        self.capture.record_event(&AgentEvent::Prompt {
            session,
            message: None,
            text: text.to_owned(),
            model: None,
        });
    }

    /// A call is about to start; what it may overwrite is durable when this returns.
    pub(super) fn before(&mut self, call: &WireCall) {
        if super::CLAUDE.tools.writes_nothing(&call.tool_name) {
            return;
        }
        let (paths, command) = (paths_in(&call.tool_input), command_in(&call.tool_input));
        let touches = self.capture.tools.touches(&call.tool_name, paths, command);
        if touches == CallTargets::Nothing {
            return;
        }
        let session = match &call.agent_id {
            Some(agent) => self.subagent(agent),
            None => self.capture.session.clone(),
        };
        let tool = call.tool_name.clone();
        let id = call.tool_use_id.clone();
        self.calls.insert(
            id.clone(),
            OpenCall { session, tool, touches, since: None, in_background: false },
        );
        self.resume(&id);
    }

    /// The call waits for permission. Changes made while it waits are not the call's.
    pub(super) fn suspend(&mut self, call: &str) {
        let Some(open) = self.calls.get_mut(call).filter(|open| open.since.is_some()) else {
            return;
        };
        open.since = None;
        let (session, call) = (open.session.clone(), CallId::from(call));
        self.capture.record_event(&AgentEvent::AfterTool {
            session,
            call,
            outcome: Outcome::Done,
            report: CallReport::default(),
        });
    }

    /// The call starts; durable like [`Self::before`].
    pub(super) fn resume(&mut self, call: &str) {
        let Some(open) = self.calls.get_mut(call).filter(|open| open.since.is_none()) else {
            return;
        };
        let event = AgentEvent::BeforeTool {
            session: open.session.clone(),
            call: CallId::from(call),
            tool: open.tool.clone(),
            touches: open.touches.clone(),
        };
        open.since = Some(self.capture.record_event(&event).map(|recorded| recorded.seq));
        self.in_turn |= open.session == self.capture.session;
    }

    /// Records the end of a call; the range of its changes in the log. At most once per call.
    pub(super) fn after(&mut self, call: &str, outcome: Outcome) -> Option<(Seq, Seq)> {
        let open = self.calls.remove(call)?;
        let since = open.since?;
        let id = CallId::from(call);
        let session = open.session.clone();
        let event = AgentEvent::AfterTool {
            session,
            call: id,
            outcome,
            report: CallReport { formatter: self.capture.formatter, ..CallReport::default() },
        };
        let until = self.capture.record_event(&event).map(|recorded| recorded.seq);
        if outcome == Outcome::Background {
            self.calls.insert(call.to_owned(), OpenCall { in_background: true, ..open });
        }
        Some((since?, until?))
    }

    /// Whether a path leads into the workspace, outside the folders of Takeback and version
    /// control.
    pub(super) fn is_inside(&self, path: &Path) -> bool {
        let workspace = &self.capture.workspace;
        let resolved = workspace.resolve(path);
        resolved.is_some_and(|path| workspace.absolute(&path).starts_with(workspace.root.path()))
    }

    pub(super) fn subagent_start(&mut self, agent: &str) {
        self.subagent(agent);
    }

    pub(super) fn subagent_stop(&mut self, agent: &str) {
        let session = self.name_of(agent);
        if self.subagents.remove(&session) {
            self.calls.retain(|_, call| call.session != session);
            self.capture.record_event(&AgentEvent::SessionEnd { session, model: None });
        }
    }

    /// The program may stop, unless a hook of the user's makes it continue in the same turn.
    pub(super) fn may_stop(&mut self) {
        self.capture.scan();
    }

    /// No more writes for the prompt, except from the background.
    pub(super) fn turn_end(&mut self) {
        if !std::mem::take(&mut self.in_turn) {
            return;
        }
        self.capture.turn_end();
    }

    /// Whether a command may be running.
    pub(super) fn may_write(&self) -> bool {
        self.calls.values().any(OpenCall::may_write)
    }

    /// The program has ended, and with it its open calls, except for what `orphans` says.
    ///
    /// The end of a command that outlived the program is never reported: changes from here on may
    /// be its work, until this process ends too.
    pub(super) fn program_ended(&mut self, orphans: OrphanState) {
        self.interrupt(|call| orphans == OrphanState::None && !call.in_background);
        let running = self.calls.iter().filter(|(_, call)| call.may_write());
        let running: Vec<(String, SessionId)> =
            running.map(|(id, call)| (id.clone(), call.session.clone())).collect();
        for (id, session) in running {
            match orphans {
                OrphanState::None => {}
                OrphanState::Killed => drop(self.after(&id, Outcome::Failed)),
                OrphanState::Unknown => {
                    self.after(&id, Outcome::Background);
                    self.in_doubt.insert(session);
                }
            }
        }
        self.subagents_end();
        self.calls.clear();
        self.turn_end();
    }

    /// Closes commands that have ended without a hook.
    fn interrupt(&mut self, is_over: impl Fn(&OpenCall) -> bool) {
        let over = self.calls.iter().filter(|(_, call)| call.may_write() && is_over(call));
        let over: Vec<String> = over.map(|(id, _)| id.clone()).collect();
        for id in over {
            self.after(&id, Outcome::Interrupted);
        }
    }

    /// An interrupted turn reports no end of its subagents. One that continues in the background is
    /// started again by its next call.
    pub(super) fn subagents_end(&mut self) {
        for session in std::mem::take(&mut self.subagents) {
            let in_doubt = self.in_doubt.contains(&session);
            self.interrupt(|call| call.session == session && !call.in_background && !in_doubt);
            self.calls.retain(|_, call| call.session != session);
            if self.in_doubt.contains(&session) {
                self.capture.record_event(&AgentEvent::TurnEnd { session, model: None });
            } else {
                self.capture.record_event(&AgentEvent::SessionEnd { session, model: None });
            }
        }
    }

    /// A session in doubt stays open; it ends when this process does.
    pub(super) fn end(&mut self) {
        self.program_ended(OrphanState::None);
        if !self.in_doubt.contains(&self.capture.session) {
            self.capture.session_end();
        }
    }

    fn name_of(&self, agent: &str) -> SessionId {
        self.capture.session.part(agent)
    }

    fn subagent(&mut self, agent: &str) -> SessionId {
        let session = self.name_of(agent);
        if self.subagents.insert(session.clone()) {
            self.capture.record_event(&AgentEvent::SessionStart {
                session: session.clone(),
                agent: Some(super::NAME.to_owned()),
                parent: Some(self.capture.session.clone()),
                owner: process::current(),
                model: None,
            });
        }
        session
    }
}

/// Whether a call's command runs on after its answer.
pub(super) fn outcome_of(call: &WireCall, response: &Value) -> Outcome {
    if runs_in_background(&call.tool_name, response) { Outcome::Background } else { Outcome::Done }
}

pub(super) fn runs_in_background(tool: &str, response: &Value) -> bool {
    !response["backgroundTaskId"].is_null() || tool == "Monitor"
}
