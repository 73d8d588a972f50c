//! A transcript: prompts and edits of a session, in the order of its lines.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, BufRead};
use std::path::PathBuf;

use takeback_core::CallTargets;
use takeback_core::exchange::Edit;
use takeback_store::{CallId, Timestamp};

use super::edited_text::EditedText;
use super::lines::each_line;
use super::wire::{
    self, WireAssistant, WireBackup, WireBlock, WireContent, WireLine, WireToolResult, WireUser,
};
use crate::tools::default_tools;

/// A longer prompt, such as one with a pasted file, is cut.
const TEXT_MAX: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Transcript {
    /// The first working folder of the session, which its relative paths start from.
    pub(super) folder: Option<PathBuf>,
    pub(super) prompts: Vec<Prompt>,
    /// Copies of files, by prompt.
    pub(super) backups: HashMap<String, BTreeMap<String, WireBackup>>,
    /// The time of the last message.
    pub(super) last_at: Option<Timestamp>,
    /// Lines that cannot be parsed.
    pub(super) damaged: usize,
}

#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) uuid: String,
    pub(super) prompt_id: Option<String>,
    pub(super) text: String,
    pub(super) at: Timestamp,
    /// In order, without those that failed.
    pub(super) edits: Vec<(PathBuf, Edit)>,
    pub(super) ran_commands: bool,
    /// The text of each file after its last edit.
    pub(super) edited: BTreeMap<PathBuf, EditedText>,
}

impl Transcript {
    pub(super) fn read(input: impl BufRead) -> io::Result<Self> {
        let mut transcript = Self::default();
        each_line(input, |bytes| {
            let understood = bytes.and_then(|bytes| transcript.line(bytes));
            transcript.damaged += usize::from(understood.is_none());
        })?;
        Ok(transcript)
    }

    /// A fork gives the prompts that it copies the id of its own first prompt, which comes last.
    pub(super) fn forget_shared_ids(&mut self) {
        let mut seen = HashSet::new();
        for prompt in self.prompts.iter_mut().rev() {
            prompt.prompt_id = prompt.prompt_id.take().filter(|id| seen.insert(id.clone()));
        }
    }

    /// `None`: the line is damaged.
    fn line(&mut self, bytes: &[u8]) -> Option<()> {
        match wire::line(bytes)? {
            WireLine::User(user) => self.user(*user)?,
            WireLine::Assistant(assistant) => self.assistant(assistant)?,
            WireLine::Snapshot(line) => {
                let snapshot = line.snapshot;
                // An update repeats what is known and adds to it.
                let files = self.backups.entry(snapshot.message_id).or_default();
                files.extend(snapshot.tracked_file_backups);
            }
            WireLine::Delta(delta) => {
                let files = self.backups.entry(delta.snapshot_message_id).or_default();
                // The first copy is from before the first edit.
                files.entry(delta.tracking_path).or_insert(delta.backup);
            }
            WireLine::Other => {}
        }
        Some(())
    }

    fn user(&mut self, user: WireUser) -> Option<()> {
        let at = time(&user.timestamp)?;
        self.last_at = self.last_at.max(Some(at));
        if self.folder.is_none() {
            self.folder = user.cwd.map(PathBuf::from);
        }
        match text(&user.message.content) {
            None => self.results(&user.message.content, user.tool_use_result),
            Some(text) if !(user.is_meta || user.is_sidechain || user.is_compact_summary) => {
                self.prompts.push(Prompt {
                    uuid: user.uuid,
                    prompt_id: user.prompt_id,
                    text,
                    at,
                    edits: Vec::new(),
                    ran_commands: false,
                    edited: BTreeMap::new(),
                });
            }
            Some(_) => {}
        }
        Some(())
    }

    fn assistant(&mut self, assistant: WireAssistant) -> Option<()> {
        let at = time(&assistant.timestamp)?;
        self.last_at = self.last_at.max(Some(at));
        let Some(prompt) = self.prompts.last_mut() else { return Some(()) };
        let WireContent::Blocks(blocks) = assistant.message.content else { return Some(()) };
        for block in blocks {
            let WireBlock::ToolUse { id, name, input } = block else { continue };
            let paths = match input {
                wire::WireInput::Named { file_path } => vec![PathBuf::from(file_path)],
                wire::WireInput::Other(_) => Vec::new(),
            };
            match default_tools().touches(&name, paths, None) {
                CallTargets::Nothing => {}
                CallTargets::Anything { .. } => prompt.ran_commands = true,
                CallTargets::Paths(paths) => {
                    let edit = Edit { call: CallId(id), tool: name };
                    prompt.edits.extend(paths.into_iter().map(|path| (path, edit.clone())));
                }
            }
        }
        Some(())
    }

    /// Results of tools. A call that failed wrote nothing.
    fn results(&mut self, content: &WireContent, result: Option<WireToolResult>) {
        let Some(prompt) = self.prompts.last_mut() else { return };
        if let WireContent::Blocks(blocks) = content {
            for block in blocks {
                if let WireBlock::ToolResult { tool_use_id, is_error: Some(true) } = block {
                    prompt.edits.retain(|(_, edit)| edit.call.0 != *tool_use_id);
                }
            }
        }
        if let Some((path, edited)) = result.and_then(EditedText::of) {
            prompt.edited.insert(path, edited);
        }
    }
}

/// The text of a prompt; `None`: the content is tool results.
fn text(content: &WireContent) -> Option<String> {
    let mut text = String::new();
    match content {
        WireContent::Text(words) => text.push_str(words),
        WireContent::Blocks(blocks) => {
            for block in blocks {
                match block {
                    WireBlock::ToolResult { .. } => return None,
                    WireBlock::Text { text: words } => {
                        if !text.is_empty() {
                            text.push('\n');
                        }
                        text.push_str(words);
                    }
                    WireBlock::ToolUse { .. } | WireBlock::Other => {}
                }
            }
        }
    }
    let cut = (0..=TEXT_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(cut.unwrap_or(0));
    Some(text)
}

fn time(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    // The program did not exist before 1970.
    Some(Timestamp(time.as_millisecond())).filter(|time| time.0 >= 0)
}
