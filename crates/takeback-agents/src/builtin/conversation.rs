//! A conversation with a model in one neutral form, which each endpoint converts to its own.
//!
//! A prompt has the id by which the host knows it. Every call has a result:
//! [`Conversation::close_open_calls`] adds one for a call that was interrupted.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(crate) enum Message {
    /// A prompt if it has an id, else the results of calls.
    User {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        content: Vec<Block>,
    },
    Assistant {
        content: Vec<Block>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block {
    Text { text: String },
    ToolUse { id: String, name: String, input: Value },
    ToolResult { tool_use_id: String, content: String, is_error: bool },
}

/// The result of a call that did not end.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// As JSON, the state that is saved at each step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
}

/// What the host keeps of a conversation, and the agent that it is for.
#[derive(Serialize, Deserialize)]
struct Memory {
    agent: String,
    #[serde(flatten)]
    conversation: Conversation,
}

impl Conversation {
    pub(crate) fn prompt(&mut self, id: &str, text: &str) {
        self.close_open_calls();
        let content = vec![Block::Text { text: text.to_owned() }];
        self.messages.push(Message::User { id: Some(id.to_owned()), content });
    }

    pub(crate) fn answer(&mut self, content: Vec<Block>) {
        if !content.is_empty() {
            self.messages.push(Message::Assistant { content });
        }
    }

    pub(crate) fn result(&mut self, call: &str, content: String, is_error: bool) {
        let result = Block::ToolResult { tool_use_id: call.to_owned(), content, is_error };
        match self.messages.last_mut() {
            Some(Message::User { id: None, content }) => content.push(result),
            _ => self.messages.push(Message::User { id: None, content: vec![result] }),
        }
    }

    /// Adds the result [`INTERRUPTED`] for every call that has none.
    pub(crate) fn close_open_calls(&mut self) {
        let mut answered: HashSet<String> = HashSet::new();
        for message in &self.messages {
            let (Message::User { content, .. } | Message::Assistant { content }) = message;
            answered.extend(content.iter().filter_map(|block| match block {
                Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.clone()),
                _ => None,
            }));
        }
        let mut at = 0;
        while at < self.messages.len() {
            let missing: Vec<Block> = match &self.messages[at] {
                Message::Assistant { content } => content
                    .iter()
                    .filter_map(|block| match block {
                        Block::ToolUse { id, .. } if !answered.contains(id) => {
                            Some(interrupted_result(id))
                        }
                        _ => None,
                    })
                    .collect(),
                Message::User { .. } => Vec::new(),
            };
            at += 1;
            if missing.is_empty() {
                continue;
            }
            match self.messages.get_mut(at) {
                Some(Message::User { id: None, content }) => content.extend(missing),
                _ => self.messages.insert(at, Message::User { id: None, content: missing }),
            }
        }
    }

    /// The prompts, in order: id and text.
    pub(crate) fn prompts(&self) -> Vec<(&str, &str)> {
        let prompts = self.messages.iter().filter_map(|message| match message {
            Message::User { id: Some(id), content } => Some((id.as_str(), text_of(content))),
            _ => None,
        });
        prompts.collect()
    }

    /// The number of the assistant's messages since the last prompt.
    pub(crate) fn messages_since_prompt(&self) -> usize {
        let since = self.messages.iter().rev();
        since
            .take_while(|message| !matches!(message, Message::User { id: Some(_), .. }))
            .filter(|message| matches!(message, Message::Assistant { .. }))
            .count()
    }

    /// Everything before a prompt; `None` if there is no such prompt.
    pub(crate) fn before(&self, prompt: &str) -> Option<Self> {
        let is_it = |message: &Message| matches!(message, Message::User { id: Some(id), .. } if id == prompt);
        let at = self.messages.iter().position(is_it)?;
        Some(Self { messages: self.messages[..at].to_vec() })
    }

    pub(crate) fn state(&self) -> Value {
        json!(self)
    }

    /// `None`: it is not a saved conversation.
    pub(crate) fn from_state(state: &Value) -> Option<Self> {
        let mut conversation = Self::deserialize(state).ok()?;
        conversation.close_open_calls();
        Some(conversation)
    }

    pub(crate) fn memory(&self) -> Value {
        let mut conversation = self.clone();
        conversation.close_open_calls();
        json!(Memory { agent: super::NAME.to_owned(), conversation })
    }

    /// `null` is an empty conversation. `None`: it is another agent's.
    pub(crate) fn from_memory(memory: &Value) -> Option<Self> {
        if memory.is_null() {
            return Some(Self::default());
        }
        let Memory { agent, mut conversation } = Memory::deserialize(memory).ok()?;
        conversation.close_open_calls();
        (agent == super::NAME).then_some(conversation)
    }
}

fn interrupted_result(call: &str) -> Block {
    Block::ToolResult {
        tool_use_id: call.to_owned(),
        content: INTERRUPTED.to_owned(),
        is_error: true,
    }
}

pub(crate) fn text_of(content: &[Block]) -> &str {
    let mut texts = content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Block {
        Block::ToolUse { id: id.to_owned(), name: "shell".to_owned(), input: json!({}) }
    }

    #[test]
    fn an_interrupted_call_gets_a_result_in_the_right_place() {
        let mut broken = Conversation::default();
        broken.prompt("m1", "go");
        broken.answer(vec![call("a"), call("b")]);
        broken.result("a", "fine".to_owned(), false);
        broken.prompt("m2", "on");
        broken.answer(vec![call("c")]);
        broken.close_open_calls();
        let result = |id: &str, content: &str, is_error| Block::ToolResult {
            tool_use_id: id.to_owned(),
            content: content.to_owned(),
            is_error,
        };
        let text = |text: &str| vec![Block::Text { text: text.to_owned() }];
        let expected = vec![
            Message::User { id: Some("m1".to_owned()), content: text("go") },
            Message::Assistant { content: vec![call("a"), call("b")] },
            Message::User {
                id: None,
                content: vec![result("a", "fine", false), result("b", INTERRUPTED, true)],
            },
            Message::User { id: Some("m2".to_owned()), content: text("on") },
            Message::Assistant { content: vec![call("c")] },
            Message::User { id: None, content: vec![result("c", INTERRUPTED, true)] },
        ];
        assert_eq!(broken.messages, expected);
        assert_eq!(Conversation::from_memory(&broken.memory()), Some(broken));
    }

    #[test]
    fn another_agents_memory_is_refused() {
        for foreign in [
            json!({"agent": "claude", "messages": []}),
            json!({"messages": []}),
            json!({"agent": "builtin"}),
            json!({"agent": "builtin", "messages": [{"role": "wizard"}]}),
            json!("text"),
        ] {
            assert_eq!(Conversation::from_memory(&foreign), None, "{foreign}");
        }
        assert_eq!(Conversation::from_memory(&Value::Null), Some(Conversation::default()));
    }
}
