//! What the agent asks of a model: the next message of a conversation, told as it comes.

use super::conversation::{Block, Conversation};
use super::signals::Signals;

/// An endpoint of either style, or a scenario.
pub(crate) trait Model: Send {
    fn name(&self) -> &str;

    /// The assistant's next message; an empty one ends the turn. Looks at `signals` often enough to
    /// come back at once when the turn is to end.
    fn next(
        &mut self,
        conversation: &Conversation,
        signals: &Signals,
        hear: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Reply, ModelError>;

    /// A text that may hold a secret of the model's, without it.
    fn discreet(&self, text: String) -> String {
        text
    }
}

pub(crate) enum Heard<'a> {
    Text(&'a str),
    TextEnd,
    Note(String),
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reply {
    pub(crate) content: Vec<Block>,
    /// Only what was said until then is in it.
    pub(crate) is_interrupted: bool,
}

/// Why there is no next message, in one line for people. Never with the key in it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelError {
    #[error("{host} cannot be reached: {why}")]
    Unreachable { host: String, why: String },
    #[error("{host} does not accept the key ({status}): {why}")]
    BadKey { host: String, status: u16, why: String },
    #[error("{host} answered {status}: {why}")]
    Refused { host: String, status: u16, why: String },
    #[error("{host} reported an error: {why}")]
    Reported { host: String, why: String },
    #[error("the answer of {host} broke off: {why}")]
    BrokeOff { host: String, why: String },
    #[error("the answer of {host} cannot be understood: {why}")]
    Malformed { host: String, why: String },
}
