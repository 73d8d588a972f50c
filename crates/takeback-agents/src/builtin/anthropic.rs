//! The Messages API of Anthropic, streamed.

use serde_json::{Value, json};

use super::conversation::{Block, Conversation, Message};
use super::draft::Draft;
use super::endpoint::Endpoint;
use super::http::{HttpModel, Route, StreamError};
use super::model::ModelOutput;
use super::tools;

/// The version of the API.
const VERSION: &str = "2023-06-01";

const MOST_TOKENS: u32 = 8192;

pub(super) fn model(endpoint: &Endpoint, system: String) -> HttpModel {
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    headers.extend(endpoint.key.as_ref().map(|key| ("x-api-key", key.as_str().to_owned())));
    let route = Route::new(endpoint, "/v1/messages", headers, decode_event);
    HttpModel { model: endpoint.model.clone(), system, route, request }
}

fn request(model: &HttpModel, conversation: &Conversation) -> Value {
    let described = tools::descriptions().into_iter().map(
        |tool| json!({"name": tool.name, "description": tool.text, "input_schema": tool.input}),
    );
    json!({
        "model": model.model,
        "max_tokens": MOST_TOKENS,
        "system": model.system,
        "messages": messages(conversation),
        "tools": described.collect::<Vec<_>>(),
        "stream": true,
    })
}

/// Roles have to alternate, so consecutive messages of one role are merged.
fn messages(conversation: &Conversation) -> Vec<Value> {
    let mut wire: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &conversation.messages {
        let (role, content) = match message {
            Message::User { content, .. } => ("user", content),
            Message::Assistant { content } => ("assistant", content),
        };
        let blocks = content.iter().map(block);
        match wire.last_mut() {
            Some((last, earlier)) if *last == role => earlier.extend(blocks),
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

fn decode_event(
    draft: &mut Draft,
    data: &str,
    emit: &mut dyn FnMut(ModelOutput<'_>),
) -> Result<(), StreamError> {
    let event: Value =
        serde_json::from_str(data).map_err(|error| StreamError::Malformed(error.to_string()))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let part = event["index"].as_u64().unwrap_or(0);
    match event["type"].as_str() {
        Some("content_block_start") => {
            let begun = &event["content_block"];
            match begun["type"].as_str() {
                Some("text") => draft.text(part, &text(&begun["text"]), emit),
                Some("tool_use") => draft.call(part, &text(&begun["name"]), begun["input"].clone()),
                // Thinking blocks, and unknown ones.
                _ => {}
            }
        }
        Some("content_block_delta") => {
            let delta = &event["delta"];
            match delta["type"].as_str() {
                Some("text_delta") => draft.text(part, &text(&delta["text"]), emit),
                Some("input_json_delta") => draft.input(part, &text(&delta["partial_json"])),
                _ => {}
            }
        }
        Some("content_block_stop") => draft.end_text(emit),
        Some("message_delta") if event["delta"]["stop_reason"] == "max_tokens" => {
            draft.end_text(emit);
            emit(ModelOutput::Note("the model reached its limit for one message".to_owned()));
        }
        Some("message_stop") => draft.is_finished = true,
        Some("error") => return Err(StreamError::Reported(text(&event["error"]["message"]))),
        _ => {}
    }
    Ok(())
}
