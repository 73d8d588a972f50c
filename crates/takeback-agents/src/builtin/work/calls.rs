//! Tool calls: parsed, permitted, recorded, run, and answered.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use takeback_core::Outcome as CallOutcome;
use takeback_store::Seq;

use super::{Worker, panic_text};
use crate::builtin::conversation::{Block, INTERRUPTED};
use crate::builtin::tools::{Call, Outcome};
use crate::chat_agent::{ChatEvent, Decision, PermissionRequest, TurnResult};

/// Why a tool call ended its turn.
enum CallAbort {
    Interrupted,
    Panicked(String),
}

impl Worker {
    /// Every call has its result in the conversation when this returns, even if it was not run.
    pub(super) fn run_calls(
        &mut self,
        calls: Vec<(String, String, Value)>,
    ) -> Result<(), TurnResult> {
        for (id, tool, input) in calls {
            if self.signals.is_interrupted() {
                self.conversation.close_open_calls();
                self.save(INTERRUPTED);
                return Err(TurnResult::Interrupted);
            }
            let name = format!("tool {tool}");
            match self.run_call(&id, &tool, &input) {
                Ok(outcome) => {
                    let text = self.model.redact(outcome.text);
                    self.conversation.result(&id, text, !outcome.ok);
                    self.save(&name);
                }
                Err(CallAbort::Interrupted) => {
                    self.conversation.close_open_calls();
                    self.save(&name);
                    return Err(TurnResult::Interrupted);
                }
                Err(CallAbort::Panicked(why)) => {
                    return Err(self.fail_step(&name, &format!("{tool} failed: {why}")));
                }
            }
        }
        Ok(())
    }

    fn run_call(&mut self, id: &str, tool: &str, input: &Value) -> Result<Outcome, CallAbort> {
        let parsed = Call::parse(tool, input);
        let title = parsed.as_ref().map_or_else(|_| tool.to_owned(), Call::title);
        self.send_event(ChatEvent::Tool { call: id.to_owned(), title: title.clone() });
        let checked = parsed.and_then(|call| {
            call.check(&self.capture.workspace)?;
            Ok(call)
        });
        let call = match checked {
            Ok(call) => call,
            Err(why) => return Ok(self.end_call(id, Outcome::failed(why), None)),
        };
        match self.permission(id, &call, title) {
            None => {
                self.end_call(id, Outcome::failed(INTERRUPTED), None);
                return Err(CallAbort::Interrupted);
            }
            Some(Err(why)) => return Ok(self.end_call(id, refused(&why), None)),
            Some(Ok(())) => {}
        }
        let before = self.capture.before(id, tool, input);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            (self.run_tool)(&call, &self.capture.workspace, &self.signals, self.shell_limit)
        }));
        let done = matches!(&ran, Ok(outcome) if outcome.ok);
        let recorded = if done { CallOutcome::Done } else { CallOutcome::Failed };
        let after = before.and_then(|_| self.capture.after(id, recorded));
        let changes = before.zip(after).filter(|(before, after)| before != after);
        match ran {
            Ok(outcome) => Ok(self.end_call(id, outcome, changes)),
            Err(panic) => {
                let why = panic_text(&*panic);
                self.end_call(id, Outcome::failed(&why), changes);
                Err(CallAbort::Panicked(why))
            }
        }
    }

    fn end_call(&self, id: &str, outcome: Outcome, changes: Option<(Seq, Seq)>) -> Outcome {
        let line = self.model.redact(outcome.line.clone());
        self.send_event(ChatEvent::ToolEnd { call: id.to_owned(), ok: outcome.ok, line, changes });
        outcome
    }

    /// `None`: the turn was interrupted before the user decided.
    fn permission(&mut self, id: &str, call: &Call, title: String) -> Option<Result<(), String>> {
        if self.allowed.covers(call) {
            return Some(Ok(()));
        }
        self.signals.ask(id);
        let (request, detail) = (id.to_owned(), call.detail());
        self.send_event(ChatEvent::PermissionRequest(PermissionRequest { request, title, detail }));
        Some(match self.signals.decision()? {
            Decision::Allow => Ok(()),
            Decision::AllowAlways => {
                self.allowed.add(call);
                Ok(())
            }
            Decision::Deny(why) => Err(why),
        })
    }
}

fn refused(why: &str) -> Outcome {
    let text = if why.trim().is_empty() {
        "the user refused this".to_owned()
    } else {
        format!("the user refused this: {why}")
    };
    Outcome { ok: false, line: "refused".to_owned(), text }
}

pub(super) fn calls_in(content: &[Block]) -> Vec<(String, String, Value)> {
    let calls = content.iter().filter_map(|block| match block {
        Block::ToolUse { id, name, input } => Some((id.clone(), name.clone(), input.clone())),
        _ => None,
    });
    calls.collect()
}
