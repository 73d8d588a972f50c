//! The interface of a model: it writes the next message of a conversation, streamed as it arrives.

use super::conversation::{Block, Conversation};
use super::signals::Signals;

/// An endpoint of either style, or a scenario file.
pub(crate) trait Model: Send {
    fn name(&self) -> &str;

    /// The assistant's next message; an empty one ends the turn. Checks `signals` often enough to
    /// return at once when the turn is interrupted.
    fn next(
        &mut self,
        conversation: &Conversation,
        signals: &Signals,
        emit: &mut dyn FnMut(ModelOutput<'_>),
    ) -> Result<Reply, ModelError>;

    /// Removes the model's secrets from a text.
    fn redact(&self, text: String) -> String {
        text
    }
}

/// A piece of a message, or a note for the user.
pub(crate) enum ModelOutput<'a> {
    Text(&'a str),
    TextEnd,
    Note(String),
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reply {
    pub(crate) content: Vec<Block>,
    /// It was interrupted: the content is incomplete.
    pub(crate) is_interrupted: bool,
}

/// Why there is no next message, in one line for people. Never contains the key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelError {
    #[error("cannot reach {host}: {why}")]
    Unreachable { host: String, why: String },
    #[error("{host} does not accept the key ({status}): {why}")]
    BadKey { host: String, status: u16, why: String },
    #[error("{host} answered {status}: {why}")]
    Refused { host: String, status: u16, why: String },
    #[error("{host} reported an error: {why}")]
    Reported { host: String, why: String },
    #[error("the response of {host} broke off: {why}")]
    BrokeOff { host: String, why: String },
    #[error("cannot parse the response of {host}: {why}")]
    Malformed { host: String, why: String },
}
