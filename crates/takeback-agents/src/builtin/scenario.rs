//! A model that plays a script from a file: for tests, demonstrations and the tour.
//!
//! ```json
//! {
//!   "model": "scripted",
//!   "turns": [
//!     { "steps": [
//!       { "say": "I make the file." },
//!       { "tool": "write_file", "input": { "path": "a.txt", "content": "one\n" } },
//!       { "pauseMs": 200 },
//!       { "say": "Done." }
//!     ] },
//!     { "when": "delete", "steps": [ { "tool": "shell", "input": { "command": "rm a.txt" } } ] }
//!   ],
//!   "over": "That was all."
//! }
//! ```
//!
//! A prompt that contains the `when` of a turn always gets that turn. Any other prompt gets the next turn
//! without `when`. Only the prompts in the conversation decide which one, so after a rewind the same turn
//! is played again. After the last turn the answer is `over`, or a default sentence. `model`, `over` and a
//! tool's `input` are optional.
//!
//! Texts are sent in pieces, `pauseMs` waits; both end at once when the turn is interrupted. Consecutive
//! tool calls are made together.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::conversation::{Block, Conversation};
use super::model::{Model, ModelError, ModelOutput, Reply};
use super::signals::Signals;
use super::tools;

/// A parsed scenario file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    #[serde(default = "default_model")]
    model: String,
    turns: Vec<Turn>,
    #[serde(default = "default_over")]
    over: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    #[serde(default)]
    when: Option<String>,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "WireStep")]
enum Step {
    Say(String),
    Tool { name: String, input: Value },
    Pause(Duration),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireStep {
    say: Option<String>,
    tool: Option<String>,
    input: Option<Value>,
    #[serde(rename = "pauseMs")]
    pause_ms: Option<u64>,
}

fn default_model() -> String {
    "scripted".to_owned()
}

fn default_over() -> String {
    "The scenario is over: all of its turns have been played. Rewind to play them again.".to_owned()
}

/// An error in a scenario file, and its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct ScenarioError {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
    /// What the parser says.
    pub what: String,
}

impl Scenario {
    /// Parses the text of a scenario file.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let whole = error.to_string();
            let place = format!(" at line {line} column {column}");
            let what = whole.strip_suffix(&place).unwrap_or(&whole).to_owned();
            ScenarioError { line, column, what }
        })
    }

    fn turn_for(&self, prompts: &[(&str, &str)]) -> Option<&Turn> {
        let called = |text: &str| {
            let is_called =
                |turn: &&Turn| turn.when.as_deref().is_some_and(|when| text.contains(when));
            self.turns.iter().find(is_called)
        };
        let (_, last) = prompts.last()?;
        if let Some(turn) = called(last) {
            return Some(turn);
        }
        let in_order = prompts.iter().filter(|(_, text)| called(text).is_none()).count();
        self.turns.iter().filter(|turn| turn.when.is_none()).nth(in_order.checked_sub(1)?)
    }
}

impl TryFrom<WireStep> for Step {
    type Error = String;

    fn try_from(wire: WireStep) -> Result<Self, String> {
        match wire {
            WireStep { say: Some(text), tool: None, input: None, pause_ms: None } => {
                Ok(Self::Say(text))
            }
            WireStep { say: None, tool: Some(name), input, pause_ms: None } => {
                let input = input.unwrap_or_else(|| json!({}));
                tools::Call::parse(&name, &input)?;
                Ok(Self::Tool { name, input })
            }
            WireStep { say: None, tool: None, input: None, pause_ms: Some(time) } => {
                Ok(Self::Pause(Duration::from_millis(time)))
            }
            _ => Err("a step is one of `say`, `tool` with `input`, or `pauseMs`".to_owned()),
        }
    }
}

impl Model for Scenario {
    fn name(&self) -> &str {
        &self.model
    }

    fn next(
        &mut self,
        conversation: &Conversation,
        signals: &Signals,
        emit: &mut dyn FnMut(ModelOutput<'_>),
    ) -> Result<Reply, ModelError> {
        let played = conversation.messages_since_prompt();
        let over = [Step::Say(self.over.clone())];
        let steps = match self.turn_for(&conversation.prompts()) {
            Some(turn) => &turn.steps[..],
            None => &over,
        };
        let mut reply = Reply::default();
        for step in messages(steps).get(played).copied().unwrap_or_default() {
            let whole = match step {
                Step::Say(text) => {
                    let (spoken, whole) = say(text, signals, emit);
                    reply.content.push(Block::Text { text: spoken });
                    whole
                }
                Step::Pause(time) => signals.sleep(*time),
                Step::Tool { name, input } => {
                    let (name, input) = (name.clone(), input.clone());
                    reply.content.push(Block::ToolUse { id: String::new(), name, input });
                    true
                }
            };
            if !whole {
                reply.is_interrupted = true;
                break;
            }
        }
        Ok(reply)
    }
}

/// A turn's steps as messages. Each ends with its tool calls, because their results precede what follows.
fn messages(steps: &[Step]) -> Vec<&[Step]> {
    let is_call = |step: &Step| matches!(step, Step::Tool { .. });
    steps.chunk_by(|step, next| !is_call(step) || is_call(next)).collect()
}

/// Sends a text word by word: a few milliseconds for each, less in long texts. Returns what was sent, and
/// whether that is everything.
fn say(text: &str, signals: &Signals, emit: &mut dyn FnMut(ModelOutput<'_>)) -> (String, bool) {
    const A_WORD: Duration = Duration::from_millis(5);
    const IN_ALL: Duration = Duration::from_millis(300);
    let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    let pause = A_WORD.min(IN_ALL / u32::try_from(words.len().max(1)).unwrap_or(u32::MAX));
    let mut spoken = String::new();
    for word in words {
        if !signals.sleep(pause) {
            break;
        }
        emit(ModelOutput::Text(word));
        spoken.push_str(word);
    }
    emit(ModelOutput::TextEnd);
    let whole = spoken.len() == text.len();
    (spoken, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Scenario::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn an_error_has_a_position_and_a_reason() {
        assert_eq!(error("{"), "line 1, column 1: EOF while parsing an object");
        assert_eq!(
            error("{\n \"model\": 3,\n"),
            "line 2, column 11: invalid type: integer `3`, expected a string"
        );
        assert_eq!(
            error(r#"{"turns":[{"step":[]}]}"#),
            "line 1, column 17: unknown field `step`, expected `when` or `steps`"
        );
        assert_eq!(error("{}"), "line 1, column 2: missing field `turns`");
        let step = |step: &str| error(&format!("{{\"turns\":[{{\"steps\":[\n{step}]}}]}}"));
        let shape = "a step is one of `say`, `tool` with `input`, or `pauseMs`";
        assert_eq!(step(r#"{"say":"a","pauseMs":1}"#), format!("line 2, column 24: {shape}"));
        assert_eq!(step(r#"{"input":{}}"#), format!("line 2, column 13: {shape}"));
        let known = "the tools are read_file, write_file, edit_file, list_files, shell";
        assert_eq!(
            step(r#"{"tool":"Write"}"#),
            format!("line 2, column 17: there is no tool Write; {known}")
        );
        assert_eq!(
            step(r#"{"tool":"shell"}"#),
            "line 2, column 17: the input of shell is invalid: missing field `command`"
        );
    }

    #[test]
    fn only_the_prompts_decide_the_turn() {
        let text = r#"{"turns":[
            {"steps":[{"say":"first"}]},
            {"when":"please","steps":[{"say":"called"}]},
            {"steps":[{"say":"second"}]}
        ]}"#;
        let scenario = Scenario::parse(text).unwrap();
        let answer_to = |prompts: &[&str]| {
            let prompts: Vec<(&str, &str)> = prompts.iter().map(|text| ("id", *text)).collect();
            scenario.turn_for(&prompts).map(|turn| match &turn.steps[0] {
                Step::Say(text) => text.clone(),
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(answer_to(&["a"]).as_deref(), Some("first"));
        assert_eq!(answer_to(&["a", "b"]).as_deref(), Some("second"));
        assert_eq!(answer_to(&["a", "oh please"]).as_deref(), Some("called"));
        assert_eq!(answer_to(&["please", "b"]).as_deref(), Some("first"));
        assert_eq!(answer_to(&["a", "b", "c"]), None);
    }

    #[test]
    fn a_message_ends_with_its_calls() {
        let say = || Step::Say(String::new());
        let call = || Step::Tool { name: "shell".to_owned(), input: Value::Null };
        let steps = [say(), call(), call(), say(), call(), Step::Pause(Duration::ZERO), call()];
        let lengths: Vec<usize> = messages(&steps).iter().map(|message| message.len()).collect();
        assert_eq!(lengths, [3, 2, 2]);
    }
}
