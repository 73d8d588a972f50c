//! A message in the format of the Anthropic Messages API.

use serde_json::{Value, json};

use super::{Block, Reply, halves};

pub(super) fn reply(
    body: &Value,
    blocks: &[Block],
    name: &mut impl FnMut(&str) -> String,
) -> Reply {
    let content: Vec<Value> = blocks
        .iter()
        .map(|block| match block {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::Tool { id, name: tool, input } => {
                let id = id.clone().unwrap_or_else(|| name("toolu"));
                json!({"type": "tool_use", "id": id, "name": tool, "input": input})
            }
        })
        .collect();
    let calls = blocks.iter().any(|block| matches!(block, Block::Tool { .. }));
    let stop = if calls { "tool_use" } else { "end_turn" };
    let usage = json!({
        "input_tokens": 10, "output_tokens": 10,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    });
    let model = if body["model"].is_string() { body["model"].clone() } else { json!("m") };
    let mut whole = json!({
        "id": name("msg"), "type": "message", "role": "assistant", "model": model,
        "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage,
    });
    let events = events(&whole, &content, stop);
    whole["content"] = Value::Array(content);
    Reply { whole, events }
}

fn events(whole: &Value, content: &[Value], stop: &str) -> Vec<String> {
    let mut start = whole.clone();
    (start["content"], start["stop_reason"]) = (json!([]), Value::Null);
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in content.iter().enumerate() {
        let mut started = block.clone();
        let (kind, field, text) = if block["type"] == "text" {
            started["text"] = json!("");
            ("text_delta", "text", block["text"].as_str().unwrap_or_default().to_owned())
        } else {
            started["input"] = json!({});
            ("input_json_delta", "partial_json", block["input"].to_string())
        };
        events
            .push(json!({"type": "content_block_start", "index": index, "content_block": started}));
        for half in halves(&text) {
            let delta = json!({"type": kind, field: half});
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}}));
    events.push(json!({"type": "message_stop"}));
    let wire = |event: &Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    events.iter().map(wire).collect()
}
