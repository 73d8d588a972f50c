//! What the built-in agent promises, behaviour by behaviour.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
#![expect(clippy::unwrap_used, reason = "a failing test panics")]

mod endpoints;
mod errors;
mod interrupts;
mod killed_agent;
mod memory;
#[path = "../it/real_workspace.rs"]
mod real_workspace;
mod story;
mod tools;
mod tour;

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use serde_json::Value;
use takeback_agents::{
    AgentError, Builtin, BuiltinOptions, Capture, ChatAgent, ChatEvent, ModelSource, Scenario,
    TurnResult,
};
use takeback_core::rewind::{Receipt, RewindRequest, Target, rewind};
use takeback_store::state::{ExecutionId, ListQuery, ListScope, Record, Status};
use takeback_store::{PointId, SessionId};
use takeback_testkit::Sandbox;

const TIMEOUT: Duration = Duration::from_secs(60);

const SESSION: &str = "session-1";

/// An agent, and the host's side of the conversation.
struct ChatFixture {
    agent: Builtin,
    received: Receiver<ChatEvent>,
    prompts: usize,
}

fn scenario(text: &str) -> BuiltinOptions {
    BuiltinOptions::new(ModelSource::Scenario(Scenario::parse(text).unwrap()))
}

fn capture(sandbox: &Sandbox, say: &Sender<ChatEvent>) -> Capture {
    Capture {
        workspace: sandbox.another_process(),
        session: SessionId::from(SESSION),
        tools: takeback_agents::default_tools(),
        say: say.clone(),
        recording: true,
        formatter: false,
    }
}

impl ChatFixture {
    fn start(sandbox: &Sandbox, options: BuiltinOptions) -> Self {
        Self::by(Builtin::start, sandbox, options, 0)
    }

    /// Resumes the session, as after a crash.
    fn resume(sandbox: &Sandbox, options: BuiltinOptions, prompts: usize) -> Self {
        Self::by(Builtin::resume, sandbox, options, prompts)
    }

    fn by(
        start: impl FnOnce(BuiltinOptions, Capture, Sender<ChatEvent>) -> Result<Builtin, AgentError>,
        sandbox: &Sandbox,
        options: BuiltinOptions,
        prompts: usize,
    ) -> Self {
        let (say, received) = mpsc::channel();
        let agent = start(options, capture(sandbox, &say), say).unwrap();
        let talk = Self { agent, received, prompts };
        assert!(matches!(talk.next(), ChatEvent::Ready { session: None, .. }));
        talk
    }

    fn next(&self) -> ChatEvent {
        self.received.recv_timeout(TIMEOUT).expect("the agent says something")
    }

    /// All events up to the first that matches, including it.
    fn until(&self, is_it: impl Fn(&ChatEvent) -> bool) -> Vec<ChatEvent> {
        let mut events = Vec::new();
        loop {
            events.push(self.next());
            if events.last().is_some_and(&is_it) {
                return events;
            }
        }
    }

    fn to_the_end(&self) -> Vec<ChatEvent> {
        self.until(|event| matches!(event, ChatEvent::TurnEnd(_)))
    }

    /// Starts a turn; returns the id of its prompt.
    fn prompt(&mut self, text: &str) -> String {
        self.prompts += 1;
        let message = message(self.prompts);
        self.agent.prompt(&message, text).unwrap();
        message
    }

    fn turn(&mut self, text: &str) -> Vec<ChatEvent> {
        self.prompt(text);
        self.to_the_end()
    }
}

fn message(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn ending(events: &[ChatEvent]) -> &TurnResult {
    match events.last() {
        Some(ChatEvent::TurnEnd(ending)) => ending,
        other => panic!("{other:?}"),
    }
}

/// All text, paragraph by paragraph.
fn text(events: &[ChatEvent]) -> String {
    let pieces = events.iter().filter_map(|event| match event {
        ChatEvent::Text(text) => Some(text.as_str()),
        ChatEvent::TextEnd => Some("\n"),
        _ => None,
    });
    pieces.collect()
}

/// Every tool call: its title, whether it succeeded, and its line.
fn tools(events: &[ChatEvent]) -> Vec<(String, bool, String)> {
    let mut all = Vec::new();
    for event in events {
        let ChatEvent::Tool { call, title } = event else { continue };
        let end = events.iter().find_map(|event| match event {
            ChatEvent::ToolEnd { call: ended, ok, line, .. } if ended == call => {
                Some((title.clone(), *ok, line.clone()))
            }
            _ => None,
        });
        all.push(end.expect("every call has an end"));
    }
    all
}

fn called(title: &str, ok: bool, line: &str) -> (String, bool, String) {
    (title.to_owned(), ok, line.to_owned())
}

fn point(events: &[ChatEvent]) -> PointId {
    let points = events.iter().find_map(|event| match event {
        ChatEvent::PromptAccepted { point, .. } => point.map(|point| point.id),
        _ => None,
    });
    points.expect("the prompt has a point")
}

fn go_to(sandbox: &mut Sandbox, point: PointId) -> Receipt {
    let request = RewindRequest::new(Target::Point(point));
    rewind(&mut sandbox.workspace, &request, None).unwrap()
}

/// Whether the turn has ended in the log.
fn is_between_turns(sandbox: &Sandbox) -> bool {
    let sessions = sandbox.workspace.store.sessions().unwrap();
    sessions.iter().all(|session| session.open_turn.is_none())
}

fn execution() -> ExecutionId {
    ExecutionId::new(SESSION).unwrap()
}

/// The steps on the current branch.
fn steps(sandbox: &Sandbox) -> Vec<Record> {
    let query = ListQuery {
        execution: &execution(),
        scope: ListScope::Branch(None),
        after: None,
        limit: None,
    };
    sandbox.workspace.states.list(&query).unwrap().records
}

fn step_names(sandbox: &Sandbox) -> Vec<String> {
    let named = |record: Record| match record.status {
        Status::Success => record.step_name,
        _ => format!("{} ({})", record.step_name, record.status.name()),
    };
    steps(sandbox).into_iter().map(named).collect()
}

/// The state that a step was saved with.
fn state_at(sandbox: &Sandbox, step: &Record) -> Value {
    sandbox.workspace.states.load(&step.key.id()).unwrap().unwrap().values.state
}

/// A killed process is gone soon; one that was forgotten sleeps longer than this waits.
fn wait_until_gone(pid: &str) {
    let is_there = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).ok()?;
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        (!matches!(state, Some('Z' | 'X'))).then_some(())
    };
    let begun = std::time::Instant::now();
    while is_there().is_some() {
        assert!(begun.elapsed() < TIMEOUT, "process {pid} still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}
