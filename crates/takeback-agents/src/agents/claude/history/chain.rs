//! The order of a transcript's messages: the current conversation and its abandoned branches.

use std::collections::HashMap;
use std::io::{self, BufRead};

use super::lines::each_line;
use super::wire;

#[derive(Debug, Default)]
pub(crate) struct Chain {
    messages: HashMap<String, Message>,
    /// The user's prompts, by their own id and by the id that hooks receive.
    prompts: HashMap<String, String>,
    last: Option<String>,
}

#[derive(Debug)]
struct Message {
    before: Option<String>,
    /// A message of the conversation, not a note of the program.
    is_said: bool,
}

impl Chain {
    pub(crate) fn read(input: impl BufRead) -> io::Result<Self> {
        let mut chain = Self::default();
        each_line(input, |bytes| {
            // A damaged line breaks the chain, which then has no answer.
            if let Some(link) = bytes.and_then(wire::link) {
                chain.add(link);
            }
        })?;
        Ok(chain)
    }

    fn add(&mut self, link: wire::WireLink) {
        let is_prompt = link.is_prompt();
        let Some(uuid) = link.uuid.filter(|_| !link.is_sidechain) else { return };
        let is_said = matches!(link.kind.as_str(), "user" | "assistant");
        if is_prompt {
            // A fork gives the prompts that it copies the id of its own first prompt, which comes
            // last.
            self.prompts.extend(link.prompt_id.map(|id| (id, uuid.clone())));
            self.prompts.insert(uuid.clone(), uuid.clone());
        }
        if is_said {
            self.last = Some(uuid.clone());
        }
        self.messages.insert(uuid, Message { before: link.parent_uuid, is_said });
    }

    /// The message that one of these ids names.
    pub(crate) fn message(&self, ids: &[String]) -> Option<&str> {
        ids.iter().find_map(|id| self.prompts.get(id)).map(String::as_str)
    }

    /// Whether the current conversation has more after this message.
    pub(crate) fn continues_after(&self, message: &str) -> bool {
        let Some(last) = &self.last else { return false };
        last != message && self.back_from(last).any(|before| before == message)
    }

    /// The last message before this one; `None`: it is the first.
    pub(crate) fn before(&self, message: &str) -> Option<&str> {
        self.back_from(message).find(|id| self.messages.get(*id).is_some_and(|m| m.is_said))
    }

    fn back_from(&self, message: &str) -> impl Iterator<Item = &str> {
        let before = |id: &str| self.messages.get(id)?.before.as_deref();
        // Bounded, since damaged transcripts may have cycles.
        std::iter::successors(before(message), move |id| before(id)).take(self.messages.len())
    }
}
