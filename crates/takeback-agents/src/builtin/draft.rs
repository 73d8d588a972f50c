//! A message that is assembled from the pieces of a stream.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::conversation::Block;
use super::model::ModelOutput;

/// The parts of a message, by their number in the stream.
#[derive(Debug, Default)]
pub(super) struct Draft {
    parts: BTreeMap<u64, Part>,
    is_text_open: bool,
    /// The message is complete; the stream may continue with something else.
    pub(super) is_whole: bool,
    /// The stream has announced its end.
    pub(super) is_finished: bool,
}

#[derive(Debug)]
enum Part {
    Text(String),
    /// `input`: the input at its start, used if no pieces follow.
    Call {
        name: String,
        input: Value,
        pieces: String,
    },
}

impl Draft {
    pub(super) fn text(&mut self, part: u64, piece: &str, emit: &mut dyn FnMut(ModelOutput<'_>)) {
        let text = self.parts.entry(part).or_insert_with(|| Part::Text(String::new()));
        let Part::Text(text) = text else { return };
        if piece.is_empty() {
            return;
        }
        text.push_str(piece);
        self.is_text_open = true;
        emit(ModelOutput::Text(piece));
    }

    pub(super) fn end_text(&mut self, emit: &mut dyn FnMut(ModelOutput<'_>)) {
        if std::mem::take(&mut self.is_text_open) {
            emit(ModelOutput::TextEnd);
        }
    }

    pub(super) fn call(&mut self, part: u64, name: &str, input: Value) {
        let call = Part::Call { name: name.to_owned(), input, pieces: String::new() };
        self.parts.entry(part).or_insert(call);
    }

    pub(super) fn input(&mut self, part: u64, piece: &str) {
        if let Some(Part::Call { pieces, .. }) = self.parts.get_mut(&part) {
            pieces.push_str(piece);
        }
    }

    /// Whether some of its text was shown: then it cannot be started again.
    pub(super) fn was_shown(&self) -> bool {
        self.parts.values().any(|part| matches!(part, Part::Text(text) if !text.is_empty()))
    }

    pub(super) fn content(self) -> Vec<Block> {
        let blocks = self.parts.into_values().map(|part| match part {
            Part::Text(text) => Block::Text { text },
            Part::Call { name, input, pieces } => {
                let input = if pieces.is_empty() { input } else { parse_input(&pieces) };
                Block::ToolUse { id: String::new(), name, input }
            }
        });
        blocks.collect()
    }
}

/// An input that is not JSON is the model's mistake: the tool reports what is missing.
fn parse_input(pieces: &str) -> Value {
    match serde_json::from_str(pieces) {
        Ok(input @ Value::Object(_)) => input,
        _ => json!({ "unreadable": pieces }),
    }
}
