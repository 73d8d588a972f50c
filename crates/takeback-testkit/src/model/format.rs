//! The formats of model APIs: which one a request uses, and the conversation in it.

use serde_json::Value;

/// The format of a request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Anthropic's messages.
    Messages,
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Gemini's `generateContent`, or `streamGenerateContent`.
    Gemini,
}

/// A turn of the conversation, as far as scripts need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Turn<'a> {
    /// The texts of a user message.
    User(Vec<&'a str>),
    Model,
}

impl Format {
    /// The format of a path; `None` if the path does not request a message.
    pub(super) fn at(path: &str) -> Option<Self> {
        let ends = [
            ("/messages", Self::Messages),
            ("/chat/completions", Self::Chat),
            ("/responses", Self::Responses),
            (":generateContent", Self::Gemini),
            (STREAMED, Self::Gemini),
        ];
        ends.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, format)| format)
    }

    /// Whether the answer is a stream.
    pub(super) fn is_streamed(self, path: &str, body: &Value) -> bool {
        match self {
            Self::Gemini => path.ends_with(STREAMED),
            Self::Messages | Self::Chat | Self::Responses => body["stream"] == true,
        }
    }

    /// Whether the program asks for a routing decision as JSON, not for the next message.
    pub(super) fn is_decision(self, body: &Value) -> bool {
        let config = &body["generationConfig"];
        self == Self::Gemini
            && (config["responseMimeType"] == "application/json"
                || config.get("responseJsonSchema").is_some())
    }

    pub(super) fn conversation(self, body: &Value) -> Vec<Turn<'_>> {
        let said = match self {
            Self::Messages | Self::Chat => &body["messages"],
            Self::Responses => &body["input"],
            Self::Gemini => &body["contents"],
        };
        if let Some(prompt) = said.as_str() {
            return vec![Turn::User(vec![prompt])];
        }
        let said = said.as_array().map_or(&[][..], Vec::as_slice);
        match self {
            Self::Messages | Self::Chat => said.iter().filter_map(message).collect(),
            Self::Responses => item_turns(said),
            Self::Gemini => said.iter().filter_map(content).collect(),
        }
    }
}

const STREAMED: &str = ":streamGenerateContent";

fn message(message: &Value) -> Option<Turn<'_>> {
    match message["role"].as_str()? {
        "user" => Some(Turn::User(texts(&message["content"], "text"))),
        "assistant" => Some(Turn::Model),
        _ => None,
    }
}

/// One answer of the model has an item for each text and call: consecutive items are one turn.
fn item_turns(items: &[Value]) -> Vec<Turn<'_>> {
    let mut turns = Vec::new();
    let mut in_answer = false;
    for item in items {
        let turn = item_turn(item);
        let is_model = turn == Some(Turn::Model);
        turns.extend(turn.filter(|_| !(is_model && in_answer)));
        in_answer = is_model;
    }
    turns
}

fn item_turn(item: &Value) -> Option<Turn<'_>> {
    let kind = item["type"].as_str().unwrap_or("message");
    match (kind, item["role"].as_str()) {
        ("message", Some("user")) => Some(Turn::User(texts(&item["content"], "input_text"))),
        (_, Some("assistant")) => Some(Turn::Model),
        (_, Some(_)) => None,
        // A message from another agent counts as a prompt.
        ("agent_message", None) => {
            let content = item["content"].as_array()?.iter();
            let texts = content.filter_map(|part| {
                part["encrypted_content"].as_str().or_else(|| part["text"].as_str())
            });
            Some(Turn::User(texts.collect()))
        }
        (kind, None) => (!kind.ends_with("_output")).then_some(Turn::Model),
    }
}

fn content(content: &Value) -> Option<Turn<'_>> {
    match content["role"].as_str()? {
        "user" => {
            let parts = content["parts"].as_array()?.iter();
            Some(Turn::User(parts.filter_map(|part| part["text"].as_str()).collect()))
        }
        "model" => Some(Turn::Model),
        _ => None,
    }
}

fn texts<'a>(content: &'a Value, kind: &str) -> Vec<&'a str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == kind);
            texts.filter_map(|block| block["text"].as_str()).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_format_has_its_own_notion_of_a_turn() {
        let (does, answers) = (Turn::User(vec!["do", "it"]), Turn::User(Vec::new()));
        let asked = json!([{"type": "text", "text": "do"}, {"type": "text", "text": "it"}]);
        let body = json!({"messages": [
            {"role": "user", "content": asked},
            {"role": "assistant", "content": [{"type": "tool_use"}]},
            {"role": "user", "content": [{"type": "tool_result", "content": "out"}]},
        ]});
        let turns = [does.clone(), Turn::Model, answers.clone()];
        assert_eq!(Format::Messages.conversation(&body), turns);

        let body = json!({"messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": asked},
            {"role": "assistant", "tool_calls": []},
            {"role": "tool", "content": "out"},
        ]});
        assert_eq!(Format::Chat.conversation(&body), [does.clone(), Turn::Model]);

        let asked =
            json!([{"type": "input_text", "text": "do"}, {"type": "input_text", "text": "it"}]);
        let body = json!({"input": [
            {"type": "additional_tools", "role": "developer", "tools": []},
            {"type": "message", "role": "developer", "content": asked},
            {"type": "message", "role": "user", "content": asked},
            {"type": "reasoning"},
            {"type": "message", "role": "assistant", "content": []},
            {"type": "function_call"},
            {"type": "custom_tool_call"},
            {"type": "function_call_output", "output": "out"},
            {"type": "custom_tool_call_output", "output": "out"},
            {"type": "function_call"},
            {"type": "function_call_output", "output": "out"},
            {"type": "agent_message", "content": [
                {"type": "input_text", "text": "do"},
                {"type": "encrypted_content", "encrypted_content": "it"},
            ]},
        ]});
        let turns = [does.clone(), Turn::Model, Turn::Model, does.clone()];
        assert_eq!(Format::Responses.conversation(&body), turns);
        let body = json!({"input": "do"});
        assert_eq!(Format::Responses.conversation(&body), [Turn::User(vec!["do"])]);

        let body = json!({"contents": [
            {"role": "user", "parts": [{"text": "do"}, {"text": "it"}]},
            {"role": "model", "parts": [{"text": "so"}, {"functionCall": {}}]},
            {"role": "user", "parts": [{"functionResponse": {}}]},
        ]});
        assert_eq!(Format::Gemini.conversation(&body), [does, Turn::Model, answers]);
        assert_eq!(Format::Gemini.conversation(&json!({})), []);
    }
}
