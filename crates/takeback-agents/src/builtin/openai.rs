//! Chat completions of OpenAI and compatible servers, streamed.

use serde_json::{Value, json};

use super::conversation::{Block, Conversation, Message};
use super::draft::Draft;
use super::endpoint::{ApiKey, Endpoint};
use super::http::{HttpModel, Route, StreamError};
use super::model::ModelOutput;
use super::tools;

pub(super) fn model(endpoint: &Endpoint, system: String) -> HttpModel {
    let bearer = |key: &ApiKey| ("authorization", format!("Bearer {}", key.as_str()));
    let headers = endpoint.key.as_ref().map(bearer).into_iter().collect();
    let route = Route::new(endpoint, "/chat/completions", headers, decode_event);
    HttpModel { model: endpoint.model.clone(), system, route, request }
}

fn request(model: &HttpModel, conversation: &Conversation) -> Value {
    let described = tools::descriptions().into_iter().map(|tool| {
        let function =
            json!({"name": tool.name, "description": tool.text, "parameters": tool.input});
        json!({"type": "function", "function": function})
    });
    let mut messages = vec![json!({"role": "system", "content": model.system})];
    messages.extend(conversation.messages.iter().flat_map(wire));
    json!({
        "model": model.model,
        "messages": messages,
        "tools": described.collect::<Vec<_>>(),
        "stream": true,
    })
}

/// Each tool result is a separate message.
fn wire(message: &Message) -> Vec<Value> {
    let (Message::User { content, .. } | Message::Assistant { content }) = message;
    let texts = content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n\n");
    match message {
        Message::User { id: Some(_), .. } => vec![json!({"role": "user", "content": text})],
        Message::User { id: None, .. } => {
            let results = content.iter().filter_map(|block| match block {
                Block::ToolResult { tool_use_id, content, .. } => {
                    Some(json!({"role": "tool", "tool_call_id": tool_use_id, "content": content}))
                }
                _ => None,
            });
            results.collect()
        }
        Message::Assistant { .. } => {
            let calls = content.iter().filter_map(|block| match block {
                Block::ToolUse { id, name, input } => {
                    let function = json!({"name": name, "arguments": input.to_string()});
                    Some(json!({"id": id, "type": "function", "function": function}))
                }
                _ => None,
            });
            let calls: Vec<Value> = calls.collect();
            let mut answer = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                answer["tool_calls"] = json!(calls);
                if text.is_empty() {
                    answer["content"] = Value::Null;
                }
            }
            vec![answer]
        }
    }
}

/// The text of a message is its first part, the calls follow.
const TEXT: u64 = 0;

fn decode_event(
    draft: &mut Draft,
    data: &str,
    emit: &mut dyn FnMut(ModelOutput<'_>),
) -> Result<(), StreamError> {
    if data.trim() == "[DONE]" {
        draft.is_finished = true;
        return Ok(());
    }
    let chunk: Value =
        serde_json::from_str(data).map_err(|error| StreamError::Malformed(error.to_string()))?;
    if !chunk["error"].is_null() {
        let error = &chunk["error"];
        let words = error["message"].as_str().map(str::to_owned);
        return Err(StreamError::Reported(words.unwrap_or_else(|| error.to_string())));
    }
    let choice = &chunk["choices"][0];
    let delta = &choice["delta"];
    if let Some(piece) = delta["content"].as_str() {
        draft.text(TEXT, piece, emit);
    }
    for (place, call) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
        draft.end_text(emit);
        let index = call["index"].as_u64().unwrap_or(place as u64);
        let (part, function) = (TEXT + 1 + index, &call["function"]);
        if let Some(name) = function["name"].as_str().filter(|name| !name.is_empty()) {
            draft.call(part, name, json!({}));
        }
        match &function["arguments"] {
            Value::String(piece) => draft.input(part, piece),
            // Some servers send all arguments at once, as an object.
            Value::Object(_) => draft.input(part, &function["arguments"].to_string()),
            _ => {}
        }
    }
    draft.is_whole |= choice["finish_reason"].is_string();
    if choice["finish_reason"] == "length" {
        draft.end_text(emit);
        emit(ModelOutput::Note("the model reached its limit for one message".to_owned()));
    }
    Ok(())
}
