//! Which of the program's texts and calls the host sees: text as it arrives, each call once from
//! start to end.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::Sender;

use serde_json::Value;
use takeback_store::Seq;

use super::wire::{WireBlock, WireContent, WireDelta, WireEvent, WireMessage};
use super::words;
use crate::chat_agent::{ChatEvent, TurnResult};

pub(super) struct Show {
    say: Sender<ChatEvent>,
    folder: PathBuf,
    /// The message whose text was streamed; it is not repeated when it arrives whole.
    streamed: Option<String>,
    in_text: bool,
    calls: HashMap<String, CallState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    Open(Whose),
    Ended,
}

/// The maker of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Agents,
    Subagents,
}

impl Show {
    pub(super) fn new(say: Sender<ChatEvent>, folder: PathBuf) -> Self {
        Self { say, folder, streamed: None, in_text: false, calls: HashMap::new() }
    }

    pub(super) fn event(&mut self, event: WireEvent) {
        match event {
            WireEvent::MessageStart { message } => self.streamed = message.id,
            WireEvent::ContentBlockDelta { delta: WireDelta::TextDelta { text } } => {
                self.in_text = true;
                self.tell(ChatEvent::Text(text));
            }
            WireEvent::ContentBlockStop {} => self.text_end(),
            WireEvent::ContentBlockDelta { .. } | WireEvent::Other => {}
        }
    }

    /// A message of the model, whose text may have been shown already.
    pub(super) fn message(&mut self, message: &WireMessage) {
        let is_subagents = message.parent_tool_use_id.is_some();
        let whose = if is_subagents { Whose::Subagents } else { Whose::Agents };
        let is_shown = message.message.id.is_some() && message.message.id == self.streamed;
        let blocks = match &message.message.content {
            WireContent::Blocks(blocks) => blocks.as_slice(),
            WireContent::Text(_) => &[],
        };
        for block in blocks {
            match block {
                WireBlock::Text { text } if !is_subagents && !is_shown => {
                    self.text_end();
                    self.tell(ChatEvent::Text(text.clone()));
                    self.tell(ChatEvent::TextEnd);
                }
                WireBlock::ToolUse { id, name, input } => self.call(id, name, input, whose),
                WireBlock::Text { .. } | WireBlock::ToolResult { .. } | WireBlock::Other => {}
            }
        }
    }

    /// A call, reported by its message or by its hook, whichever comes first.
    pub(super) fn call(&mut self, call: &str, tool: &str, input: &Value, whose: Whose) {
        if self.calls.contains_key(call) {
            return;
        }
        self.calls.insert(call.to_owned(), CallState::Open(whose));
        let title = words::title(tool, input, &self.folder);
        self.tell(ChatEvent::Tool { call: call.to_owned(), title });
    }

    pub(super) fn is_open(&self, call: &str) -> bool {
        matches!(self.calls.get(call), Some(CallState::Open(_)))
    }

    pub(super) fn ended(
        &mut self,
        call: &str,
        ok: bool,
        line: String,
        changes: Option<(Seq, Seq)>,
    ) {
        let before = self.calls.insert(call.to_owned(), CallState::Ended);
        if matches!(before, Some(CallState::Open(_))) {
            self.tell(ChatEvent::ToolEnd { call: call.to_owned(), ok, line, changes });
        }
    }

    /// Closes the open calls as interrupted. A subagent that has an open call when a turn is done
    /// runs in the background, and continues.
    pub(super) fn turn_end(&mut self, ending: &TurnResult) {
        self.text_end();
        self.streamed = None;
        let goes_on = |state: &CallState| {
            *ending == TurnResult::Done && *state == CallState::Open(Whose::Subagents)
        };
        let over = self.calls.extract_if(|_, state| !goes_on(state));
        let open = over.filter(|(_, state)| matches!(state, CallState::Open(_)));
        let mut open: Vec<String> = open.map(|(call, _)| call).collect();
        open.sort();
        for call in open {
            let line = words::INTERRUPTED.to_owned();
            self.tell(ChatEvent::ToolEnd { call, ok: false, line, changes: None });
        }
    }

    fn text_end(&mut self) {
        if std::mem::take(&mut self.in_text) {
            self.tell(ChatEvent::TextEnd);
        }
    }

    fn tell(&self, said: ChatEvent) {
        // The receiver is gone while the host closes.
        drop(self.say.send(said));
    }
}
