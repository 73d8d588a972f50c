//! `/save`, `/load`, `/conversations` and `/delete`.

use takeback_store::state::{Category, DocumentKey};

use super::Worker;
use crate::commands::chat::conversation::{self, Conversation};
use crate::error::{CommandError, Kind};
use crate::screen::{count, shorten};
use crate::time::{ago, iso, now, parse_iso};

impl Worker {
    pub(super) fn save(
        &self,
        name: Option<String>,
        conversation: &Conversation,
    ) -> Result<String, CommandError> {
        let name = name.unwrap_or_else(|| iso(now()));
        let states = &*self.place.workspace.states;
        conversation::put(states, Category::Conversation, &name, conversation)?;
        Ok(format!("Saved as {name}"))
    }

    pub(super) fn load(&self, name: &str) -> Result<Conversation, CommandError> {
        let states = &*self.place.workspace.states;
        let conversation = conversation::get(states, Category::Conversation, name)?;
        let conversation = conversation.ok_or_else(|| not_found(name))?;
        let loaded = self.agent.load(&conversation.memory);
        loaded.map_err(|error| CommandError::new(Kind::Error, error))?;
        Ok(conversation)
    }

    pub(super) fn conversations(&self) -> Result<String, CommandError> {
        let found = conversation::list(&*self.place.workspace.states, Category::Conversation)?;
        if found.is_empty() {
            return Ok("No saved conversations. /save NAME saves this one.".to_owned());
        }
        let time = now();
        let lines = found.iter().map(|(name, one)| {
            let age = parse_iso(&one.updated_at).map_or_else(String::new, |at| ago(at, time));
            let prompts = count(one.prompts(), "prompt");
            format!("{name}  {age}  {}  {prompts}  {}", one.agent, shorten(one.title(), 50))
        });
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    pub(super) fn delete(&self, name: &str) -> Result<String, CommandError> {
        let key = DocumentKey::new(name).map_err(|error| CommandError::new(Kind::Usage, error))?;
        if self.place.workspace.states.delete_document(Category::Conversation, &key)? {
            Ok(format!("Deleted {name}"))
        } else {
            Err(not_found(name))
        }
    }
}

fn not_found(name: &str) -> CommandError {
    let what = format!("there is no conversation {name}; /conversations lists them");
    CommandError::new(Kind::Error, what)
}
