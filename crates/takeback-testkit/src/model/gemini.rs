//! A message in the format of Gemini's `generateContent`.

use serde_json::{Value, json};

use super::{Block, Reply, halves};

pub(super) fn reply(blocks: &[Block], name: &mut impl FnMut(&str) -> String) -> Reply {
    let parts: Vec<Value> = blocks.iter().map(part).collect();
    let id = name("response");
    let whole = response(&id, &parts, true);
    let mut pieces = Vec::new();
    for part in &parts {
        match part["text"].as_str() {
            Some(text) => pieces.extend(halves(text).map(|half| json!({"text": half}))),
            None => pieces.push(part.clone()),
        }
    }
    let last = pieces.len().saturating_sub(1);
    let pieces = pieces.into_iter().enumerate();
    let events = pieces.map(|(at, piece)| event(&response(&id, &[piece], at == last)));
    Reply { whole, events: events.collect() }
}

/// An answer that fits every routing decision.
pub(super) fn decision() -> Value {
    let answer = json!({
        "reasoning": "scripted", "model_choice": "flash", "complexity_score": 10,
        "complexity_reasoning": "scripted", "next_speaker": "user",
    });
    response("decision", &[json!({"text": answer.to_string()})], true)
}

pub(super) fn event(response: &Value) -> String {
    format!("data: {response}\r\n\r\n")
}

fn part(block: &Block) -> Value {
    match block {
        Block::Text(text) => json!({"text": text}),
        Block::Tool { id: None, name, input } => {
            json!({"functionCall": {"name": name, "args": input}})
        }
        Block::Tool { id: Some(id), name, input } => {
            json!({"functionCall": {"id": id, "name": name, "args": input}})
        }
    }
}

fn response(id: &str, parts: &[Value], is_last: bool) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if is_last {
        candidate["finishReason"] = json!("STOP");
    }
    json!({
        "responseId": id, "candidates": [candidate],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20},
    })
}
