//! The Messages API of Anthropic, streamed.

use serde_json::{Value, json};

use super::conversation::{Block, Conversation, Message};
use super::draft::Draft;
use super::endpoint::{ApiKey, Endpoint};
use super::http::{Line, Wrong};
use super::model::{Heard, Model, ModelError, Reply};
use super::signals::Signals;
use super::tools;

/// The version of the API that this is written for.
const VERSION: &str = "2023-06-01";

const MOST_TOKENS: u32 = 8192;

pub(super) struct Anthropic {
    model: String,
    system: String,
    line: Line,
}

impl Anthropic {
    pub(super) fn new(endpoint: &Endpoint, system: String) -> Self {
        let mut headers = vec![("anthropic-version", VERSION.to_owned())];
        headers
            .extend(endpoint.key.as_ref().map(|key| ("x-api-key", ApiKey::as_str(key).to_owned())));
        let line = Line::new(endpoint, "/v1/messages", headers);
        Self { model: endpoint.model.clone(), system, line }
    }

    fn request(&self, conversation: &Conversation) -> Value {
        let described = tools::descriptions().into_iter().map(
            |tool| json!({"name": tool.name, "description": tool.text, "input_schema": tool.input}),
        );
        json!({
            "model": self.model,
            "max_tokens": MOST_TOKENS,
            "system": self.system,
            "messages": messages(conversation),
            "tools": described.collect::<Vec<_>>(),
            "stream": true,
        })
    }
}

impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.model
    }

    fn next(
        &mut self,
        conversation: &Conversation,
        signals: &Signals,
        hear: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Reply, ModelError> {
        self.line.ask(&self.request(conversation), take, signals, hear)
    }

    fn discreet(&self, text: String) -> String {
        self.line.hidden(text)
    }
}

/// Roles have to take turns, so what one says in a row is one message.
fn messages(conversation: &Conversation) -> Vec<Value> {
    let mut wire: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &conversation.messages {
        let (role, content) = match message {
            Message::User { content, .. } => ("user", content),
            Message::Assistant { content } => ("assistant", content),
        };
        let blocks = content.iter().map(block);
        match wire.last_mut() {
            Some((last, said)) if *last == role => said.extend(blocks),
            _ => wire.push((role, blocks.collect())),
        }
    }
    wire.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn block(block: &Block) -> Value {
    match block {
        // The API refuses empty texts.
        Block::Text { text } if text.trim().is_empty() => json!({"type": "text", "text": "…"}),
        block => json!(block),
    }
}

fn take(draft: &mut Draft, data: &str, hear: &mut dyn FnMut(Heard<'_>)) -> Result<(), Wrong> {
    let event: Value =
        serde_json::from_str(data).map_err(|error| Wrong::Malformed(error.to_string()))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let part = event["index"].as_u64().unwrap_or(0);
    match event["type"].as_str() {
        Some("content_block_start") => {
            let begun = &event["content_block"];
            match begun["type"].as_str() {
                Some("text") => draft.text(part, &text(&begun["text"]), hear),
                Some("tool_use") => draft.call(part, &text(&begun["name"]), begun["input"].clone()),
                // Thoughts, and what is not known yet.
                _ => {}
            }
        }
        Some("content_block_delta") => {
            let delta = &event["delta"];
            match delta["type"].as_str() {
                Some("text_delta") => draft.text(part, &text(&delta["text"]), hear),
                Some("input_json_delta") => draft.input(part, &text(&delta["partial_json"])),
                _ => {}
            }
        }
        Some("content_block_stop") => draft.end_text(hear),
        Some("message_delta") if event["delta"]["stop_reason"] == "max_tokens" => {
            draft.end_text(hear);
            hear(Heard::Note("the model reached its limit for one message".to_owned()));
        }
        Some("message_stop") => draft.is_finished = true,
        Some("error") => return Err(Wrong::Reported(text(&event["error"]["message"]))),
        _ => {}
    }
    Ok(())
}
