//! Scripts in prompts: `<<LAB [[{"name":"Write","input":{…}}], "final text"] LAB>>`.
//!
//! A script is a list of steps: a list of tool calls and texts, which form one message, or a text, which
//! ends the turn. The current step is the number of the model's turns after the last prompt with a
//! script, so the server needs no state. A script that contains another one is in a file:
//! `<<LABFILE script.json FILE>>`. Prompts without a script get `ok`; after the last step comes `done`.

use serde_json::Value;

use super::Block;
use super::format::{Format, Turn};

/// The next message of a conversation.
pub(super) fn step(format: Format, body: &Value) -> Result<Vec<Block>, String> {
    let turns = format.conversation(body);
    let mut found = None;
    for (at, turn) in turns.iter().enumerate() {
        let Turn::User(texts) = turn else { continue };
        for text in texts {
            if let Some(path) = last_between(text, "<<LABFILE ", " FILE>>") {
                let script = std::fs::read_to_string(path);
                found = Some((at, script.map_err(|error| format!("{path}: {error}"))?));
            }
            if let Some(script) = last_between(text, "<<LAB ", " LAB>>") {
                found = Some((at, script.to_owned()));
            }
        }
    }
    let Some((at, script)) = found else { return Ok(vec![Block::text("ok")]) };
    let script: Vec<Value> = serde_json::from_str(&script)
        .map_err(|error| format!("the script is not a list of steps: {error}"))?;
    let played = turns[at + 1..].iter().filter(|turn| **turn == Turn::Model).count();
    match script.get(played) {
        None => Ok(vec![Block::text("done")]),
        Some(Value::Array(blocks)) => blocks.iter().map(block).collect(),
        Some(single) => Ok(vec![block(single)?]),
    }
}

fn block(step: &Value) -> Result<Block, String> {
    if let Some(text) = step.as_str() {
        return Ok(Block::text(text));
    }
    let name = step["name"].as_str().ok_or_else(|| format!("{step} has no name"))?;
    let id = step["id"].as_str().map(str::to_owned);
    Ok(Block::Tool { id, name: name.to_owned(), input: step["input"].clone() })
}

fn last_between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let mut found = None;
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(begin) {
        let Some((inside, after)) = after.split_once(end) else { break };
        (found, rest) = (Some(inside), after);
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_step_follows_from_the_conversation_alone() {
        let prompt = r#"Do it. <<LAB [[{"name":"Write","input":{"a":1}},"and"],"end"] LAB>>"#;
        let mut messages = vec![
            json!({"role": "user", "content": "<<LAB [\"an older script\"] LAB>>"}),
            json!({"role": "assistant", "content": "an older script"}),
            json!({"role": "user", "content": [{"type": "text", "text": prompt}]}),
        ];
        let play = |messages: &[Value]| step(Format::Messages, &json!({"messages": messages}));
        let write = Block::tool("Write", json!({"a": 1}));
        assert_eq!(play(&messages), Ok(vec![write, Block::text("and")]));
        messages.push(json!({"role": "assistant", "content": []}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result"}]}));
        assert_eq!(play(&messages), Ok(vec![Block::text("end")]));
        messages.push(json!({"role": "assistant", "content": "end"}));
        assert_eq!(play(&messages), Ok(vec![Block::text("done")]));
        assert_eq!(play(&[]), Ok(vec![Block::text("ok")]));
        let broken = json!({"role": "user", "content": "<<LAB [ LAB>>"});
        assert!(play(&[broken]).unwrap_err().starts_with("the script is not a list of steps"));
    }
}
