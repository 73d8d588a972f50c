//! Stored conversations: the one of each session, and those that `/save` named. Also the input history.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use takeback_store::state::{Category, DocumentKey};
use takeback_store::{SessionId, States};
use takeback_tui::{Item, ToolEnd};

use crate::error::{CommandError, Kind};
use crate::screen::plain;
use crate::time::{iso, now};

/// The document of a session or of a saved conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Conversation {
    /// The session it belongs to.
    pub(super) session: String,
    pub(super) agent: String,
    pub(super) updated_at: String,
    /// What the agent needs to continue.
    pub(super) memory: Value,
    pub(super) transcript: Vec<Line>,
}

/// The part of an agent's memory that all agents share.
#[derive(Deserialize)]
struct AgentMemory<'a> {
    /// The agent's own name for the conversation, if it has one.
    session: Option<&'a str>,
}

/// An item of the transcript, as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "who", rename_all = "camelCase")]
pub(super) enum Line {
    Person { text: String, message: Option<String> },
    Agent { text: String },
    Tool { title: String, ok: bool, line: String, insertions: usize, deletions: usize },
}

impl Conversation {
    pub(super) fn new(
        session: &SessionId,
        agent: &str,
        memory: Value,
        transcript: Vec<Line>,
    ) -> Self {
        let updated_at = iso(now());
        Self { session: session.0.clone(), agent: agent.to_owned(), updated_at, memory, transcript }
    }

    /// The agent's own name for the conversation.
    pub(super) fn agent_session(&self) -> &str {
        AgentMemory::deserialize(&self.memory)
            .ok()
            .and_then(|memory| memory.session)
            .unwrap_or(&self.session)
    }

    /// The first prompt.
    pub(super) fn title(&self) -> &str {
        let prompt = self.transcript.iter().find_map(|line| match line {
            Line::Person { text, .. } => Some(text.as_str()),
            _ => None,
        });
        prompt.unwrap_or_default()
    }

    /// The number of prompts.
    pub(super) fn prompts(&self) -> usize {
        self.transcript.iter().filter(|line| matches!(line, Line::Person { .. })).count()
    }
}

impl Line {
    /// `None` for items that are not stored. `message`: the id of a prompt.
    pub(super) fn from_item(item: &Item, message: Option<&str>) -> Option<Self> {
        match item {
            Item::Prompt(text) => {
                Some(Self::Person { text: text.clone(), message: message.map(str::to_owned) })
            }
            Item::Text(text) => Some(Self::Agent { text: text.clone() }),
            Item::Tool { title, end: Some(end), .. } => Some(Self::Tool {
                title: title.clone(),
                ok: end.ok,
                line: end.line.clone(),
                insertions: end.insertions,
                deletions: end.deletions,
            }),
            Item::Tool { .. } | Item::Diff(_) | Item::Message(..) => None,
        }
    }

    pub(super) fn to_item(&self) -> Item {
        match self {
            Self::Person { text, .. } => Item::Prompt(text.clone()),
            Self::Agent { text } => Item::Text(text.clone()),
            Self::Tool { title, ok, line, insertions, deletions } => Item::Tool {
                call: String::new(),
                title: title.clone(),
                end: Some(ToolEnd {
                    ok: *ok,
                    line: line.clone(),
                    insertions: *insertions,
                    deletions: *deletions,
                    diff: Vec::new(),
                }),
            },
        }
    }
}

pub(super) fn put(
    states: &dyn States,
    category: Category,
    name: &str,
    conversation: &Conversation,
) -> Result<(), CommandError> {
    Ok(states.put_document(category, &key(name)?, &serde_json::to_value(conversation)?)?)
}

pub(super) fn get(
    states: &dyn States,
    category: Category,
    name: &str,
) -> Result<Option<Conversation>, CommandError> {
    let document = states.document(category, &key(name)?)?;
    Ok(document.map(serde_json::from_value).transpose()?)
}

/// The conversations of a category, newest first; other documents are skipped.
pub(super) fn list(
    states: &dyn States,
    category: Category,
) -> Result<Vec<(String, Conversation)>, CommandError> {
    let mut found = Vec::new();
    for key in states.documents(category)? {
        let document = states.document(category, &key)?;
        if let Some(Ok(conversation)) = document.map(serde_json::from_value::<Conversation>) {
            found.push((key.as_str().to_owned(), conversation));
        }
    }
    found.sort_by(|(_, a), (_, b)| b.updated_at.cmp(&a.updated_at));
    Ok(found)
}

fn key(name: &str) -> Result<DocumentKey, CommandError> {
    DocumentKey::new(name).map_err(|error| CommandError::new(Kind::Usage, error))
}

/// The conversation to continue: the newest, or the one whose session id starts with `id`.
pub(super) fn find(states: &dyn States, id: Option<&str>) -> Result<Conversation, CommandError> {
    let found = list(states, Category::Session)?;
    let Some(id) = id else {
        return found.into_iter().next().map(|(_, conversation)| conversation).ok_or_else(|| {
            CommandError::new(Kind::Error, "there is no conversation to continue here")
                .hint("`takeback chat` starts one.")
        });
    };
    let mut fits: Vec<Conversation> = found
        .into_iter()
        .map(|(_, conversation)| conversation)
        .filter(|conversation| !id.is_empty() && conversation.session.starts_with(id))
        .collect();
    match fits.len() {
        1 => Ok(fits.remove(0)),
        0 => Err(CommandError::new(
            Kind::Error,
            format!("there is no conversation {}", plain(id)),
        )
        .hint("`takeback sessions` lists the sessions; `takeback chat --continue` continues the last one.")),
        _ => {
            if let Some(at) = fits.iter().position(|one| one.session == id) {
                return Ok(fits.remove(at));
            }
            let names: Vec<&str> = fits.iter().map(|one| one.session.as_str()).collect();
            Err(CommandError::new(
                Kind::Usage,
                format!("{} is ambiguous: {}", plain(id), names.join(", ")),
            ))
        }
    }
}

/// How many prompts the history keeps.
const HISTORY_MAX: usize = 200;

fn history_key() -> Result<DocumentKey, CommandError> {
    key("entered")
}

/// Earlier prompts of this workspace, oldest first.
pub(super) fn history(states: &dyn States) -> Result<Vec<String>, CommandError> {
    let document = states.document(Category::History, &history_key()?)?;
    // Another program may have stored something else under this name.
    Ok(document.and_then(|lines| serde_json::from_value(lines).ok()).unwrap_or_default())
}

pub(super) fn add_to_history(states: &dyn States, lines: &[String]) -> Result<(), CommandError> {
    let mut all = history(states)?;
    all.extend_from_slice(lines);
    let newest = &all[all.len().saturating_sub(HISTORY_MAX)..];
    Ok(states.put_document(Category::History, &history_key()?, &serde_json::json!(newest))?)
}
