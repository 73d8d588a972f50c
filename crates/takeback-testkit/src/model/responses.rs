//! A message in the format of OpenAI's responses.

use serde_json::{Value, json};

use super::{Block, Reply, halves};

pub(super) fn reply(
    body: &Value,
    blocks: &[Block],
    name: &mut impl FnMut(&str) -> String,
) -> Reply {
    let output: Vec<Value> = blocks.iter().map(|block| item(body, block, name)).collect();
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 20,
    });
    let whole = json!({
        "id": name("resp"), "object": "response", "created_at": 1, "status": "completed",
        "model": body["model"], "output": output, "usage": usage,
    });
    let events = events(&whole, &output);
    Reply { whole, events }
}

fn item(body: &Value, block: &Block, name: &mut impl FnMut(&str) -> String) -> Value {
    match block {
        Block::Text(text) => {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            json!({
                "type": "message", "id": name("msg"), "role": "assistant", "status": "completed",
                "content": content,
            })
        }
        Block::Tool { id, name: tool, input } => {
            let call = id.clone().unwrap_or_else(|| name("call"));
            let declared = tool_kind(body, tool);
            let (kind, field, id) = if declared.is_custom {
                ("custom_tool_call", "input", name("ctc"))
            } else {
                ("function_call", "arguments", name("fc"))
            };
            let input = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
            let mut item = json!({
                "type": kind, "id": id, "call_id": call, "name": tool, "status": "completed",
                field: input,
            });
            if let Some(namespace) = declared.namespace {
                item["namespace"] = json!(namespace);
            }
            item
        }
    }
}

/// How a request declares a tool.
#[derive(Default)]
struct ToolKind<'a> {
    /// Takes plain text instead of JSON.
    is_custom: bool,
    namespace: Option<&'a str>,
}

/// Finds a tool among those of the request and of the conversation's items, also in namespaces.
fn tool_kind<'a>(body: &'a Value, tool: &str) -> ToolKind<'a> {
    let list = |tools: &'a Value| tools.as_array().map_or(&[][..], Vec::as_slice);
    let items = list(&body["input"]).iter().flat_map(|item| list(&item["tools"]));
    for known in list(&body["tools"]).iter().chain(items) {
        let (inside, namespace) = match known["type"].as_str() {
            Some("namespace") => (list(&known["tools"]), known["name"].as_str()),
            _ => (std::slice::from_ref(known), None),
        };
        if let Some(known) = inside.iter().find(|known| known["name"] == tool) {
            let namespace = namespace.filter(|namespace| *namespace != OF_THEIR_OWN);
            return ToolKind { is_custom: known["type"] == "custom", namespace };
        }
    }
    ToolKind::default()
}

/// The namespace of a tool without one.
const OF_THEIR_OWN: &str = "functions";

fn events(whole: &Value, output: &[Value]) -> Vec<String> {
    let mut started = whole.clone();
    (started["status"], started["output"], started["usage"]) =
        (json!("in_progress"), json!([]), Value::Null);
    let mut events = vec![json!({"type": "response.created", "response": started})];
    for (index, item) in output.iter().enumerate() {
        let mut started = item.clone();
        started["status"] = json!("in_progress");
        let (kind, text) = match item["type"].as_str() {
            Some("message") => {
                started["content"] = json!([]);
                ("response.output_text.delta", &item["content"][0]["text"])
            }
            Some("custom_tool_call") => {
                started["input"] = json!("");
                ("response.custom_tool_call_input.delta", &item["input"])
            }
            _ => {
                started["arguments"] = json!("");
                ("response.function_call_arguments.delta", &item["arguments"])
            }
        };
        let added = "response.output_item.added";
        events.push(json!({"type": added, "output_index": index, "item": started}));
        for half in halves(text.as_str().unwrap_or_default()) {
            events.push(json!({
                "type": kind, "item_id": item["id"], "output_index": index, "content_index": 0,
                "delta": half,
            }));
        }
        let done = "response.output_item.done";
        events.push(json!({"type": done, "output_index": index, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": whole}));
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    });
    numbered.collect()
}
