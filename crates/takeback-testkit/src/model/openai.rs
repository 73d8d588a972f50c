//! A message in the format of OpenAI's chat completions.

use serde_json::{Value, json};

use super::{Block, Reply, halves};

pub(super) fn reply(
    body: &Value,
    blocks: &[Block],
    name: &mut impl FnMut(&str) -> String,
) -> Reply {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            Block::Tool { .. } => None,
        })
        .collect();
    let text = texts.join("\n");
    let calls: Vec<Value> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(_) => None,
            Block::Tool { id, name: tool, input } => {
                let id = id.clone().unwrap_or_else(|| name("call"));
                let function = json!({"name": tool, "arguments": input.to_string()});
                Some(json!({"id": id, "type": "function", "function": function}))
            }
        })
        .collect();
    let stop = if calls.is_empty() { "stop" } else { "tool_calls" };
    let mut message = json!({"role": "assistant", "content": null});
    if !text.is_empty() {
        message["content"] = json!(text);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let id = name("chatcmpl");
    let choice = json!({"index": 0, "message": message, "finish_reason": stop});
    let whole = json!({
        "id": id, "object": "chat.completion", "model": body["model"], "choices": [choice],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    });
    Reply { whole, events: events(&id, &body["model"], &text, &calls, stop) }
}

fn events(id: &str, model: &Value, text: &str, calls: &[Value], stop: &str) -> Vec<String> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    if !text.is_empty() {
        deltas.extend(halves(text).map(|half| json!({"content": half})));
    }
    for (index, call) in calls.iter().enumerate() {
        let function = &call["function"];
        deltas.push(json!({"tool_calls": [{
            "index": index, "id": call["id"], "type": "function",
            "function": {"name": function["name"], "arguments": ""},
        }]}));
        let arguments = function["arguments"].as_str().unwrap_or_default();
        deltas.extend(halves(arguments).map(
            |half| json!({"tool_calls": [{"index": index, "function": {"arguments": half}}]}),
        ));
    }
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({
            "id": id, "object": "chat.completion.chunk", "model": model, "choices": [choice],
        });
        format!("data: {chunk}\n\n")
    };
    let mut events: Vec<String> =
        deltas.into_iter().map(|delta| chunk(delta, Value::Null)).collect();
    events.push(chunk(json!({}), json!(stop)));
    events.push("data: [DONE]\n\n".to_owned());
    events
}
