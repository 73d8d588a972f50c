//! The messages of a conversation, as far as a cut needs them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat_agent::AgentError;

/// A session of the program up to one of its messages, and the position of each prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Conversation {
    /// The program's id of the session; `None`: there are no messages yet.
    pub(super) session: Option<String>,
    /// The last message that counts.
    pub(super) up_to: Option<String>,
    pub(super) prompts: Vec<Prompt>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Prompt {
    pub(super) message: String,
    /// The message before it.
    pub(super) after: Option<String>,
}

/// The stored form.
#[derive(Serialize, Deserialize)]
struct Memory {
    agent: String,
    #[serde(flatten)]
    conversation: Conversation,
}

impl Conversation {
    pub(super) fn add_prompt(&mut self, message: &str) {
        let after = self.up_to.clone();
        self.prompts.push(Prompt { message: message.to_owned(), after });
    }

    /// Notes a message.
    pub(super) fn add_message(&mut self, session: &str, message: &str) {
        self.session = Some(session.to_owned());
        self.up_to = Some(message.to_owned());
    }

    /// The conversation without `message` and everything after it.
    pub(super) fn before(&self, message: &str) -> Option<Self> {
        let at = self.prompts.iter().position(|prompt| prompt.message == message)?;
        let up_to = self.prompts[at].after.clone();
        let session = self.session.clone().filter(|_| up_to.is_some());
        Some(Self { session, up_to, prompts: self.prompts[..at].to_vec() })
    }

    /// The conversation to resume if the last turn was not written to the transcript. Its prompt
    /// can still be cut, and so can later prompts that the program did not accept.
    pub(super) fn without_last_turn(&self) -> Option<Self> {
        let at = self.prompts.iter().rposition(|prompt| prompt.after != self.up_to)?;
        let mut left = self.before(&self.prompts[at].message)?;
        for lost in &self.prompts[at..] {
            left.add_prompt(&lost.message);
        }
        Some(left)
    }

    pub(super) fn memory(&self) -> Value {
        let memory = Memory { agent: super::NAME.to_owned(), conversation: self.clone() };
        serde_json::to_value(memory).expect("plain texts and lists")
    }

    pub(super) fn from_memory(memory: &Value) -> Result<Self, AgentError> {
        if memory.is_null() {
            return Ok(Self::default());
        }
        match Memory::deserialize(memory) {
            Ok(memory) if memory.agent == super::NAME => Ok(memory.conversation),
            _ => Err(AgentError::ForeignMemory(super::NAME)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn two_turns() -> Conversation {
        let mut conversation = Conversation::default();
        conversation.add_prompt("p1");
        conversation.add_message("S", "p1");
        conversation.add_message("S", "a1");
        conversation.add_prompt("p2");
        conversation.add_message("S", "p2");
        conversation.add_message("S", "a2");
        conversation
    }

    #[test]
    fn a_cut_removes_the_prompt_and_everything_after() {
        let conversation = two_turns();
        assert_eq!(conversation.before("p1"), Some(Conversation::default()));
        let expected = Conversation {
            session: Some("S".to_owned()),
            up_to: Some("a1".to_owned()),
            prompts: vec![Prompt { message: "p1".to_owned(), after: None }],
        };
        assert_eq!(conversation.before("p2"), Some(expected));
        assert_eq!(conversation.before("a1"), None);
    }

    #[test]
    fn an_unwritten_turn_can_still_be_cut() {
        let mut conversation = two_turns();
        let kept = conversation.before("p2");
        let left = conversation.without_last_turn().unwrap();
        assert_eq!(left.up_to, Some("a1".to_owned()));
        assert_eq!(left.before("p2"), kept);
        conversation.add_prompt("p3");
        let left = conversation.without_last_turn().unwrap();
        assert_eq!(left.up_to, Some("a1".to_owned()));
        assert_eq!(left.before("p2"), kept);
        assert_eq!(left.before("p3").unwrap().prompts, conversation.prompts[..2]);
        assert_eq!(left.without_last_turn().unwrap().up_to, None);
        assert_eq!(Conversation::default().without_last_turn(), None);
    }

    #[test]
    fn memory_survives_a_round_trip() {
        let conversation = two_turns();
        let memory = conversation.memory();
        let expected = json!({
            "agent": "claude",
            "session": "S",
            "upTo": "a2",
            "prompts": [{ "message": "p1", "after": null }, { "message": "p2", "after": "a1" }],
        });
        assert_eq!(memory, expected);
        assert_eq!(Conversation::from_memory(&memory).unwrap(), conversation);
        assert_eq!(Conversation::from_memory(&Value::Null).unwrap(), Conversation::default());
        for foreign in [json!({ "agent": "builtin", "messages": [] }), json!(3), json!({})] {
            assert!(matches!(
                Conversation::from_memory(&foreign),
                Err(AgentError::ForeignMemory("claude"))
            ));
        }
    }
}
