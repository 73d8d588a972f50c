//! A message as OpenAI's responses say it: whole, or as events.

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
            let offered = offered(body, tool);
            let (kind, field, id) = if offered.is_custom {
                ("custom_tool_call", "input", name("ctc"))
            } else {
                ("function_call", "arguments", name("fc"))
            };
            let input = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
            let mut item = json!({
                "type": kind, "id": id, "call_id": call, "name": tool, "status": "completed",
                field: input,
            });
            if let Some(namespace) = offered.namespace {
                item["namespace"] = json!(namespace);
            }
            item
        }
    }
}

/// How a request offers a tool.
#[derive(Default)]
struct Offered<'a> {
    /// It takes a text of its own, not JSON.
    is_custom: bool,
    namespace: Option<&'a str>,
}

/// Tools stand in the request itself, or in an item of the conversation; those in a namespace below it.
fn offered<'a>(body: &'a Value, tool: &str) -> Offered<'a> {
    let list = |tools: &'a Value| tools.as_array().map_or(&[][..], Vec::as_slice);
    let items = list(&body["input"]).iter().flat_map(|item| list(&item["tools"]));
    for known in list(&body["tools"]).iter().chain(items) {
        let (inside, namespace) = match known["type"].as_str() {
            Some("namespace") => (list(&known["tools"]), known["name"].as_str()),
            _ => (std::slice::from_ref(known), None),
        };
        if let Some(known) = inside.iter().find(|known| known["name"] == tool) {
            let namespace = namespace.filter(|namespace| *namespace != OF_THEIR_OWN);
            return Offered { is_custom: known["type"] == "custom", namespace };
        }
    }
    Offered::default()
}

/// The namespace that is meant where none is named.
const OF_THEIR_OWN: &str = "functions";

fn events(whole: &Value, output: &[Value]) -> Vec<String> {
    let mut begun = whole.clone();
    (begun["status"], begun["output"], begun["usage"]) =
        (json!("in_progress"), json!([]), Value::Null);
    let mut events = vec![json!({"type": "response.created", "response": begun})];
    for (index, item) in output.iter().enumerate() {
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        let (kind, text) = match item["type"].as_str() {
            Some("message") => {
                begun["content"] = json!([]);
                ("response.output_text.delta", &item["content"][0]["text"])
            }
            Some("custom_tool_call") => {
                begun["input"] = json!("");
                ("response.custom_tool_call_input.delta", &item["input"])
            }
            _ => {
                begun["arguments"] = json!("");
                ("response.function_call_arguments.delta", &item["arguments"])
            }
        };
        let added = "response.output_item.added";
        events.push(json!({"type": added, "output_index": index, "item": begun}));
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
