//! A conversation as it is kept between two runs of `takeback chat`, and conversations saved by name.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use takeback_store::state::{Category, DocumentKey};
use takeback_store::{SessionId, StateStore};
use takeback_tui::transcript::{Item, ToolEnd};

use crate::error::{CommandError, Kind};
use crate::screen::plain;
use crate::time::{iso, now};

/// What stands in the document of a session or of a saved conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    /// The session it belongs, or belonged, to.
    pub(super) session: String,
    pub(super) agent: String,
    pub(super) updated_at: String,
    /// What the agent needs to go on.
    pub(super) memory: Value,
    pub(super) transcript: Vec<Line>,
}

/// A line of the transcript, as far as it is worth keeping.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "who", rename_all = "camelCase")]
pub(super) enum Line {
    Person { text: String, message: Option<String> },
    Agent { text: String },
    Tool { title: String, ok: bool, line: String, insertions: usize, deletions: usize },
}

impl Kept {
    pub(super) fn new(
        session: &SessionId,
        agent: &str,
        memory: Value,
        transcript: Vec<Line>,
    ) -> Self {
        let updated_at = iso(now());
        Self { session: session.0.clone(), agent: agent.to_owned(), updated_at, memory, transcript }
    }

    /// What the agent calls the conversation.
    pub(super) fn session_of_agent(&self) -> &str {
        self.memory["session"].as_str().unwrap_or(&self.session)
    }

    /// The first thing that was asked.
    pub(super) fn title(&self) -> &str {
        let asked = self.transcript.iter().find_map(|line| match line {
            Line::Person { text, .. } => Some(text.as_str()),
            _ => None,
        });
        asked.unwrap_or_default()
    }
}

impl Line {
    /// `message`: of a prompt, by which it is known.
    pub(super) fn of(item: &Item, message: Option<&str>) -> Option<Self> {
        match item {
            Item::Person(text) => {
                Some(Self::Person { text: text.clone(), message: message.map(str::to_owned) })
            }
            Item::Agent(text) => Some(Self::Agent { text: text.clone() }),
            Item::Tool { title, end: Some(end), .. } => Some(Self::Tool {
                title: title.clone(),
                ok: end.ok,
                line: end.line.clone(),
                insertions: end.insertions,
                deletions: end.deletions,
            }),
            Item::Tool { .. } | Item::Diff(_) | Item::Word(..) => None,
        }
    }

    pub(super) fn to_item(&self) -> Item {
        match self {
            Self::Person { text, .. } => Item::Person(text.clone()),
            Self::Agent { text } => Item::Agent(text.clone()),
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
    states: &dyn StateStore,
    category: Category,
    name: &str,
    kept: &Kept,
) -> Result<(), CommandError> {
    Ok(states.put_document(category, &key(name)?, &serde_json::to_value(kept)?)?)
}

pub(super) fn get(
    states: &dyn StateStore,
    category: Category,
    name: &str,
) -> Result<Option<Kept>, CommandError> {
    let document = states.document(category, &key(name)?)?;
    Ok(document.map(serde_json::from_value).transpose()?)
}

/// All of a category, newest first. What is no conversation is not listed.
pub(super) fn all(
    states: &dyn StateStore,
    category: Category,
) -> Result<Vec<(String, Kept)>, CommandError> {
    let mut found = Vec::new();
    for key in states.documents(category)? {
        let document = states.document(category, &key)?;
        if let Some(Ok(kept)) = document.map(serde_json::from_value::<Kept>) {
            found.push((key.as_str().to_owned(), kept));
        }
    }
    found.sort_by(|(_, a), (_, b)| b.updated_at.cmp(&a.updated_at));
    Ok(found)
}

fn key(name: &str) -> Result<DocumentKey, CommandError> {
    DocumentKey::new(name).map_err(|error| CommandError::new(Kind::Usage, error))
}

/// The conversation to go on with: the newest, or the one whose session begins like `id`.
pub(super) fn to_continue(states: &dyn StateStore, id: Option<&str>) -> Result<Kept, CommandError> {
    let found = all(states, Category::Session)?;
    let Some(id) = id else {
        return found.into_iter().next().map(|(_, kept)| kept).ok_or_else(|| {
            CommandError::new(Kind::Error, "there is no conversation to continue here")
                .hint("`takeback chat` begins one.")
        });
    };
    let mut fits: Vec<Kept> = found
        .into_iter()
        .map(|(_, kept)| kept)
        .filter(|kept| kept.session.starts_with(id) && !id.is_empty())
        .collect();
    match fits.len() {
        1 => Ok(fits.remove(0)),
        0 => Err(CommandError::new(
            Kind::Error,
            format!("there is no conversation {}", plain(id)),
        )
        .hint("`takeback sessions` lists the sessions; `takeback chat --continue` takes the last.")),
        _ => {
            if let Some(at) = fits.iter().position(|kept| kept.session == id) {
                return Ok(fits.remove(at));
            }
            let names: Vec<&str> = fits.iter().map(|kept| kept.session.as_str()).collect();
            Err(CommandError::new(
                Kind::Usage,
                format!("{} may be {}", plain(id), names.join(" or ")),
            ))
        }
    }
}

/// How many lines that were entered are remembered.
const MOST_ENTERED: usize = 200;

fn entered_key() -> Result<DocumentKey, CommandError> {
    key("entered")
}

/// What was entered in this folder before, oldest first.
pub(super) fn entered(states: &dyn StateStore) -> Result<Vec<String>, CommandError> {
    let document = states.document(Category::History, &entered_key()?)?;
    // What somebody else keeps under that name is not ours.
    Ok(document.and_then(|lines| serde_json::from_value(lines).ok()).unwrap_or_default())
}

pub(super) fn remember(states: &dyn StateStore, lines: &[String]) -> Result<(), CommandError> {
    let mut all = entered(states)?;
    all.extend_from_slice(lines);
    let newest = &all[all.len().saturating_sub(MOST_ENTERED)..];
    Ok(states.put_document(Category::History, &entered_key()?, &serde_json::json!(newest))?)
}
