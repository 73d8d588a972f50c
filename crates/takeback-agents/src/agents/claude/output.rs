//! Which of the program's texts and calls the host sees: text as it arrives, each call once from
//! start to end.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::Sender;

use serde_json::Value;
use takeback_store::Seq;

use super::call_text;
use super::wire::{WireBlock, WireContent, WireDelta, WireEvent, WireMessage};
use crate::chat_agent::{ChatEvent, TurnResult};

pub(super) struct ChatOutput {
    say: Sender<ChatEvent>,
    folder: PathBuf,
    /// The message whose text was streamed; it is not repeated when it arrives whole.
    streamed: Option<String>,
    in_text: bool,
    calls: HashMap<String, CallState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    Open(CallMaker),
    Ended,
}

/// Who makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallMaker {
    Agent,
    Subagent,
}

impl ChatOutput {
    pub(super) fn new(say: Sender<ChatEvent>, folder: PathBuf) -> Self {
        Self { say, folder, streamed: None, in_text: false, calls: HashMap::new() }
    }

    pub(super) fn event(&mut self, event: WireEvent) {
        match event {
            WireEvent::MessageStart { message } => self.streamed = message.id,
            WireEvent::ContentBlockDelta { delta: WireDelta::TextDelta { text } } => {
                self.in_text = true;
                self.send(ChatEvent::Text(text));
            }
            WireEvent::ContentBlockStop {} => self.text_end(),
            WireEvent::ContentBlockDelta { .. } | WireEvent::Other => {}
        }
    }

    /// A message of the model, whose text may have been shown already.
    pub(super) fn message(&mut self, message: &WireMessage) {
        let is_subagent = message.parent_tool_use_id.is_some();
        let maker = if is_subagent { CallMaker::Subagent } else { CallMaker::Agent };
        let is_shown = message.message.id.is_some() && message.message.id == self.streamed;
        let blocks = match &message.message.content {
            WireContent::Blocks(blocks) => blocks.as_slice(),
            WireContent::Text(_) => &[],
        };
        for block in blocks {
            match block {
                WireBlock::Text { text } if !is_subagent && !is_shown => {
                    self.text_end();
                    self.send(ChatEvent::Text(text.clone()));
                    self.send(ChatEvent::TextEnd);
                }
                WireBlock::ToolUse { id, name, input } => self.call(id, name, input, maker),
                WireBlock::Text { .. } | WireBlock::ToolResult { .. } | WireBlock::Other => {}
            }
        }
    }

    /// A call, reported by its message or by its hook, whichever comes first.
    pub(super) fn call(&mut self, call: &str, tool: &str, input: &Value, maker: CallMaker) {
        if self.calls.contains_key(call) {
            return;
        }
        self.calls.insert(call.to_owned(), CallState::Open(maker));
        let title = call_text::title(tool, input, &self.folder);
        self.send(ChatEvent::Tool { call: call.to_owned(), title });
    }

    pub(super) fn is_open(&self, call: &str) -> bool {
        matches!(self.calls.get(call), Some(CallState::Open(_)))
    }

    pub(super) fn call_ended(
        &mut self,
        call: &str,
        ok: bool,
        line: String,
        changes: Option<(Seq, Seq)>,
    ) {
        let before = self.calls.insert(call.to_owned(), CallState::Ended);
        if matches!(before, Some(CallState::Open(_))) {
            self.send(ChatEvent::ToolEnd { call: call.to_owned(), ok, line, changes });
        }
    }

    /// Closes the open calls as interrupted. A subagent that has an open call when a turn is done
    /// runs in the background, and continues.
    pub(super) fn turn_end(&mut self, ending: &TurnResult) {
        self.text_end();
        self.streamed = None;
        let continues = |state: &CallState| {
            *ending == TurnResult::Done && *state == CallState::Open(CallMaker::Subagent)
        };
        let over = self.calls.extract_if(|_, state| !continues(state));
        let open = over.filter(|(_, state)| matches!(state, CallState::Open(_)));
        let mut open: Vec<String> = open.map(|(call, _)| call).collect();
        open.sort();
        for call in open {
            let line = call_text::INTERRUPTED.to_owned();
            self.send(ChatEvent::ToolEnd { call, ok: false, line, changes: None });
        }
    }

    fn text_end(&mut self) {
        if std::mem::take(&mut self.in_text) {
            self.send(ChatEvent::TextEnd);
        }
    }

    fn send(&self, event: ChatEvent) {
        // The receiver is gone while the host closes.
        drop(self.say.send(event));
    }
}
