//! The scripted tour for a machine without an agent: a few turns that do not depend on the prompts.
//!
//! It works in its own folder below the workspace, and never in one that it did not create.

use std::path::Path;

use super::conversation::{Block, Conversation, Message};
use super::scenario::Scenario;

const SCRIPT: &str = include_str!("tour.json");

const FOLDER: &str = "takeback-tour";

/// A resumed tour, one with a `conversation`, stays in its folder.
pub(crate) fn scenario(root: &Path, conversation: &Conversation) -> Scenario {
    let folder = folder_of(conversation).unwrap_or_else(|| free_folder(root));
    let script = SCRIPT.replace("{folder}", &folder);
    Scenario::parse(&script).expect("the script is part of the program, and a test parses it")
}

fn folder_of(conversation: &Conversation) -> Option<String> {
    conversation.messages.iter().find_map(|message| {
        let Message::Assistant { content } = message else { return None };
        content.iter().find_map(|block| match block {
            Block::ToolUse { input, .. } => {
                let (folder, _) = input["path"].as_str()?.split_once('/')?;
                folder.starts_with(FOLDER).then(|| folder.to_owned())
            }
            _ => None,
        })
    })
}

fn free_folder(root: &Path) -> String {
    let names = (1_u32..).map(|number| match number {
        1 => FOLDER.to_owned(),
        _ => format!("{FOLDER}-{number}"),
    });
    let mut free = names.filter(|name| std::fs::symlink_metadata(root.join(name)).is_err());
    free.next().expect("no folder has that many entries")
}
