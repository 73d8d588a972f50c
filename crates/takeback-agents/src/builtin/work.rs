//! The thread on which the agent works: it has the recorder and the conversation, takes commands one by
//! one, and says what it does.

mod calls;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use takeback_core::Workspace;

use self::calls::calls_in;
use super::NAME;
use super::allowed::Allowed;
use super::conversation::{Block, Conversation};
use super::model::{Heard, Model, Reply};
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
    /// The conversation at the last step, for whoever asks meanwhile.
    pub(crate) memory: Arc<Mutex<Conversation>>,
    pub(crate) allowed: Allowed,
    pub(crate) shell_limit: Duration,
    pub(crate) run_tool: RunTool,
    /// How many messages of the model a turn may have.
    pub(crate) most_messages: usize,
}

/// How a call is run: [`Call::run`], but for tests of what a fault in it does.
type RunTool = fn(&Call, &Workspace, &Signals, Duration) -> Outcome;

impl Worker {
    pub(crate) fn run(mut self, commands: &Receiver<Command>) {
        self.capture.session_start(NAME);
        self.save("start");
        let model = Some(self.model.name().to_owned());
        self.say(ChatEvent::Ready { session: None, model });
        while let Ok(command) = commands.recv() {
            match command {
                Command::Prompt { message, text } => {
                    let ending = self.turn(&message, &text);
                    // Whoever hears of the end may begin the next turn at once.
                    self.signals.end();
                    self.say(ChatEvent::TurnEnd(ending));
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
        // Whoever asked has gone.
        drop(answer.send(done));
    }

    fn say(&self, said: ChatEvent) {
        // Nobody listens any more when the session is being closed.
        drop(self.say.send(said));
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
        self.say(ChatEvent::Prompted { message: message.to_owned(), session: None, point });
        let ending = catch_unwind(AssertUnwindSafe(|| self.go_on())).unwrap_or_else(|panic| {
            self.go_back_after("model", &format!("a fault in the agent: {}", words_of(&*panic)))
        });
        self.capture.turn_end();
        ending
    }

    fn go_on(&mut self) -> TurnResult {
        for _ in 0..self.most_messages {
            if self.signals.is_interrupted() {
                return TurnResult::Interrupted;
            }
            let (say, signals) = (self.say.clone(), Arc::clone(&self.signals));
            let mut hear = |heard: Heard<'_>| {
                let said = match heard {
                    Heard::Text(text) => ChatEvent::Text(text.to_owned()),
                    Heard::TextEnd => ChatEvent::TextEnd,
                    Heard::Note(note) => ChatEvent::Note(note),
                };
                drop(say.send(said));
            };
            let reply = match self.model.next(&self.conversation, &signals, &mut hear) {
                Ok(reply) => self.named(reply),
                Err(error) => return self.go_back_after("model", &error.to_string()),
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

    /// The failed step is saved, and what it may have added is forgotten: the conversation is that of
    /// the last success.
    fn go_back_after(&mut self, step: &str, why: &str) -> TurnResult {
        self.save_step(&Step { name: step, message: None, error: Some(why), with_files: true });
        self.conversation = self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
        TurnResult::Failed(why.to_owned())
    }

    /// Calls get names that no other call of this session has: a scenario is played again after a
    /// rewind, and not every endpoint gives ids. Of a message that was cut off only the text stays.
    fn named(&self, mut reply: Reply) -> Reply {
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
                self.steps.stand_at(&*states, &saved.record.key).map_err(refused)?;
                self.conversation = before;
                self.remember();
            }
            // It was loaded from another session, or could not be saved.
            None => {
                self.conversation = before;
                self.save("cut");
            }
        }
        Ok(())
    }

    /// One in the middle of a turn, or one that changed no file.
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

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
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
    fn a_fault_in_a_tool_is_a_failed_step_and_the_next_prompt_works() {
        let script = r#"{"turns":[
            {"steps":[{"tool":"list_files"},{"tool":"shell","input":{"command":"true"}}]},
            {"steps":[{"say":"Still here."}]}
        ]}"#;
        let (sandbox, (say, said)) = (Sandbox::new(), mpsc::channel());
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
            steps: Steps::of(&*capture.workspace.states, execution.clone(), "m").expect("none yet"),
            capture: capture.into(),
            say,
            model: Box::new(Scenario::parse(script).expect("a scenario")),
            conversation: Conversation::default(),
            signals: Arc::default(),
            memory: Arc::default(),
            allowed: Allowed::by(Permissions::AllowAll),
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
        assert_eq!(head(), failed, "what stood before the prompt, and no step of its own");
        let ends =
            said.try_iter().filter(|said| matches!(said, ChatEvent::ToolEnd { ok: false, .. }));
        assert_eq!(ends.count(), 1);
    }
}
