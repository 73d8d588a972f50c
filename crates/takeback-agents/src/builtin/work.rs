//! The agent's thread: it owns the recorder and the conversation, handles commands one at a time, and
//! sends events.

mod calls;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use takeback_core::Workspace;

use self::calls::calls_in;
use super::NAME;
use super::conversation::{Block, Conversation};
use super::model::{Model, ModelOutput, Reply};
use super::permissions::GrantedPermissions;
use super::signals::Signals;
use super::steps::{Step, Steps};
use super::tools::{Call, Outcome};
use crate::capture::Recording;
use crate::chat_agent::{AgentError, ChatEvent, TurnResult};

pub(crate) enum Command {
    Prompt { message: String, text: String },
    Cut { message: String, answer: SyncSender<Result<(), AgentError>> },
    Load { conversation: Conversation, answer: SyncSender<Result<(), AgentError>> },
    Close,
}

pub(crate) struct Worker {
    pub(crate) capture: Recording,
    pub(crate) say: Sender<ChatEvent>,
    pub(crate) model: Box<dyn Model>,
    pub(crate) conversation: Conversation,
    pub(crate) steps: Steps,
    pub(crate) signals: Arc<Signals>,
    /// The conversation at the last step, for other threads.
    pub(crate) memory: Arc<Mutex<Conversation>>,
    pub(crate) allowed: GrantedPermissions,
    pub(crate) shell_limit: Duration,
    pub(crate) run_tool: RunTool,
    /// The number of model messages after which a turn is ended.
    pub(crate) most_messages: usize,
}

/// Runs a call: [`Call::run`], except in tests of a tool that panics.
type RunTool = fn(&Call, &Workspace, &Signals, Duration) -> Outcome;

impl Worker {
    pub(crate) fn run(mut self, commands: &Receiver<Command>) {
        let model = Some(self.model.name().to_owned());
        self.capture.model.clone_from(&model);
        self.capture.session_start(NAME);
        self.save("start");
        self.send_event(ChatEvent::Ready { session: None, model });
        while let Ok(command) = commands.recv() {
            match command {
                Command::Prompt { message, text } => {
                    let ending = self.turn(&message, &text);
                    // First, because the host may start the next turn as soon as it receives the event.
                    self.signals.end();
                    self.send_event(ChatEvent::TurnEnd(ending));
                }
                Command::Cut { message, answer } => self.answer(&answer, |own| own.cut(&message)),
                Command::Load { conversation, answer } => self.answer(&answer, |own| {
                    own.conversation = conversation;
                    own.save("load");
                    Ok(())
                }),
                Command::Close => {
                    self.capture.session_end();
                    return;
                }
            }
        }
    }

    fn answer(
        &mut self,
        answer: &SyncSender<Result<(), AgentError>>,
        does: impl FnOnce(&mut Self) -> Result<(), AgentError>,
    ) {
        let done = does(self);
        self.signals.end();
        // Fails if the caller is gone.
        drop(answer.send(done));
    }

    fn send_event(&self, event: ChatEvent) {
        // The receiver is gone while the host closes.
        drop(self.say.send(event));
    }

    fn turn(&mut self, message: &str, text: &str) -> TurnResult {
        let point = self.capture.prompt(message, text);
        self.conversation.prompt(message, text);
        self.save_step(&Step {
            name: "prompt",
            message: Some(message),
            error: None,
            with_files: true,
        });
        self.send_event(ChatEvent::PromptAccepted {
            message: message.to_owned(),
            session: None,
            point,
        });
        let ending =
            catch_unwind(AssertUnwindSafe(|| self.run_messages())).unwrap_or_else(|panic| {
                self.fail_step("model", &format!("internal error: {}", panic_text(&*panic)))
            });
        self.capture.turn_end();
        ending
    }

    fn run_messages(&mut self) -> TurnResult {
        for _ in 0..self.most_messages {
            if self.signals.is_interrupted() {
                return TurnResult::Interrupted;
            }
            let (say, signals) = (self.say.clone(), Arc::clone(&self.signals));
            let mut emit = |output: ModelOutput<'_>| {
                let event = match output {
                    ModelOutput::Text(text) => ChatEvent::Text(text.to_owned()),
                    ModelOutput::TextEnd => ChatEvent::TextEnd,
                    ModelOutput::Note(note) => ChatEvent::Note(note),
                };
                drop(say.send(event));
            };
            let reply = match self.model.next(&self.conversation, &signals, &mut emit) {
                Ok(reply) => self.with_fresh_ids(reply),
                Err(error) => return self.fail_step("model", &error.to_string()),
            };
            let calls = calls_in(&reply.content);
            if !reply.content.is_empty() {
                self.conversation.answer(reply.content);
                let with_files = calls.is_empty();
                self.save_step(&Step { name: "model", message: None, error: None, with_files });
            }
            if reply.is_interrupted {
                return TurnResult::Interrupted;
            }
            if calls.is_empty() {
                return TurnResult::Done;
            }
            if let Err(ending) = self.run_calls(calls) {
                return ending;
            }
        }
        let most = self.most_messages;
        TurnResult::Failed(format!("the turn was ended after {most} messages of the model"))
    }

    /// Saves the failed step and returns to the conversation of the last success.
    fn fail_step(&mut self, step: &str, why: &str) -> TurnResult {
        self.save_step(&Step { name: step, message: None, error: Some(why), with_files: true });
        self.conversation = self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
        TurnResult::Failed(why.to_owned())
    }

    /// Gives calls ids that are unique in this session: a scenario is played again after a rewind, and not
    /// every endpoint sends ids. Only the text of an interrupted message stays.
    fn with_fresh_ids(&self, mut reply: Reply) -> Reply {
        let interrupted = reply.is_interrupted;
        reply.content.retain_mut(|block| match block {
            Block::ToolUse { id, .. } => {
                *id = format!("call-{:016x}", (self.capture.workspace.ambient.random)());
                !interrupted
            }
            Block::Text { text } => !text.trim().is_empty(),
            Block::ToolResult { .. } => false,
        });
        reply
    }

    fn cut(&mut self, message: &str) -> Result<(), AgentError> {
        let unknown = || AgentError::UnknownMessage(message.to_owned());
        let before = self.conversation.before(message).ok_or_else(unknown)?;
        let states = Arc::clone(&self.capture.workspace.states);
        let refused = |error: takeback_store::StateError| AgentError::Refused(error.to_string());
        let saved = self.steps.before(&*states, message).map_err(refused)?;
        let is_same = |saved: &takeback_store::state::Checkpoint| {
            Conversation::from_state(&saved.values.state).as_ref() == Some(&before)
        };
        match saved.filter(is_same) {
            Some(saved) => {
                self.steps.move_to(&*states, &saved.record.key).map_err(refused)?;
                self.conversation = before;
                self.remember();
            }
            // The conversation was loaded from another session, or could not be saved.
            None => {
                self.conversation = before;
                self.save("cut");
            }
        }
        Ok(())
    }

    /// Saves a step in the middle of a turn, or one that changed no file.
    fn save(&mut self, step: &str) {
        self.save_step(&Step { name: step, message: None, error: None, with_files: false });
    }

    fn save_step(&mut self, step: &Step<'_>) {
        self.steps.save(&mut self.capture, step, &self.conversation);
        if step.error.is_none() {
            self.remember();
        }
    }

    fn remember(&self) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.clone_from(&self.conversation);
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no reason given").lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use takeback_store::SessionId;
    use takeback_store::state::ExecutionId;
    use takeback_testkit::Sandbox;

    use super::*;
    use crate::builtin::conversation::INTERRUPTED;
    use crate::builtin::{Permissions, Scenario};

    #[test]
    fn a_panic_in_a_tool_is_a_failed_step_and_the_next_prompt_works() {
        let script = r#"{"turns":[
            {"steps":[{"tool":"list_files"},{"tool":"shell","input":{"command":"true"}}]},
            {"steps":[{"say":"Still here."}]}
        ]}"#;
        let (sandbox, (say, events)) = (Sandbox::new(), mpsc::channel());
        let capture = crate::capture::Capture {
            workspace: sandbox.another_process(),
            session: SessionId::from("s"),
            tools: crate::tools::default_tools(),
            say: say.clone(),
            recording: true,
            formatter: false,
        };
        let execution = ExecutionId::new("s").expect("a name");
        let mut worker = Worker {
            steps: Steps::load(&*capture.workspace.states, execution.clone(), "m")
                .expect("none yet"),
            capture: capture.into(),
            say,
            model: Box::new(Scenario::parse(script).expect("a scenario")),
            conversation: Conversation::default(),
            signals: Arc::default(),
            memory: Arc::default(),
            allowed: GrantedPermissions::new(Permissions::AllowAll),
            shell_limit: Duration::from_secs(1),
            most_messages: 9,
            run_tool: |_, _, _, _| panic!("a fault of\nour own"),
        };
        worker.save("start");
        let why = "list_files failed: a fault of".to_owned();
        assert_eq!(worker.turn("m1", "go"), TurnResult::Failed(why.clone()));
        let head = || {
            let head = sandbox.workspace.states.head(&execution, None).expect("it is there");
            let record = head.and_then(|head| head.record).expect("the failed step");
            (record.step_name, record.error)
        };
        let failed = ("tool list_files".to_owned(), Some(why));
        assert_eq!(head(), failed);
        let calls = worker.conversation.memory().to_string().matches(INTERRUPTED).count();
        assert_eq!(calls, 2, "both calls have a result");
        assert_eq!(worker.turn("m2", "go on"), TurnResult::Done);
        worker.cut("m2").expect("it is known");
        assert_eq!(head(), failed, "the head from before the prompt, without a new step");
        let ends =
            events.try_iter().filter(|event| matches!(event, ChatEvent::ToolEnd { ok: false, .. }));
        assert_eq!(ends.count(), 1);
    }
}
