//! Whether an agent runs something other than Takeback after an edit: usually a formatter.
//!
//! Reads only the settings of the user and of the project, not the hooks of plugins, extensions and
//! administrators. A file that cannot be read counts as empty.

mod matcher;

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde_json::Value;

use self::matcher::can_match;
use crate::install::parse_settings;
use crate::kind::AgentKind;

/// Larger settings files are not read.
const LIMIT: u64 = 1 << 20;
/// How many files of a folder are read.
const MOST_FILES: usize = 32;

/// Whether the settings of an agent name a hook after a tool that is not Takeback's and may run after an
/// edit.
///
/// `home`: the agent's folder. `cwd`: where the agent works; settings in folders above it count, too.
/// `is_ours`: whether a command line is a hook of Takeback's.
#[must_use]
pub fn has_other_post_edit_hook(
    agent: &AgentKind,
    home: &Path,
    cwd: &Path,
    is_ours: &dyn Fn(&str) -> bool,
) -> bool {
    let user = agent.settings.user.iter().flat_map(|name| files(home, name));
    let project = cwd
        .ancestors()
        .flat_map(|folder| agent.settings.project.iter().flat_map(|name| files(folder, name)));
    user.chain(project).any(|file| has_other(agent, &file, is_ours))
}

/// The files of a name in [`SettingsFiles`](crate::kind::SettingsFiles).
fn files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let path = folder.join(name);
    let Some(folder) = path.parent().filter(|_| path.ends_with("*.json")) else {
        return vec![path];
    };
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_json = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    paths.filter(is_json).take(MOST_FILES).collect()
}

fn has_other(agent: &AgentKind, file: &Path, is_ours: &dyn Fn(&str) -> bool) -> bool {
    let Some(contents) = contents(file) else { return false };
    let is_named = |event: &str| memmem::find(&contents, event.as_bytes()).is_some();
    if !agent.post_tool_events.iter().any(|event| is_named(event)) {
        return false;
    }
    if file.extension().is_some_and(|end| end == "toml") {
        return std::str::from_utf8(&contents).is_ok_and(|text| in_toml(agent, text, is_ours));
    }
    let Ok(settings) = parse_settings(&contents) else { return false };
    let groups =
        agent.post_tool_events.iter().filter_map(|event| settings["hooks"][event].as_array());
    groups.flatten().any(|group| is_other(agent, group, is_ours))
}

fn contents(file: &Path) -> Option<Vec<u8>> {
    let mut contents = Vec::new();
    File::open(file).ok()?.take(LIMIT).read_to_end(&mut contents).ok()?;
    Some(contents)
}

/// A group has a matcher and hooks. Copilot CLI has no groups, and one command for each kind of shell.
fn is_other(agent: &AgentKind, group: &Value, is_ours: &dyn Fn(&str) -> bool) -> bool {
    let matcher = group["matcher"].as_str();
    if !agent.tools.edit.iter().any(|tool| can_match(matcher, tool)) {
        return false;
    }
    let alone = std::slice::from_ref(group);
    let hooks = group["hooks"].as_array().map_or(alone, Vec::as_slice);
    hooks.iter().any(|hook| {
        let mut commands = ["command", "bash"].iter().filter_map(|key| hook[*key].as_str());
        commands.any(|command| !is_ours(command))
    })
}

/// Codex's `[[hooks.PostToolUse]]`, with `[[hooks.PostToolUse.hooks]]` in it: a matcher applies to the
/// commands after it.
fn in_toml(agent: &AgentKind, text: &str, is_ours: &dyn Fn(&str) -> bool) -> bool {
    let (mut is_after, mut matches) = (false, true);
    text.lines().map(str::trim).any(|line| {
        if let Some(table) = line.strip_prefix('[') {
            let name = table.trim_matches(['[', ']', ' ']);
            let mut events = agent.post_tool_events.iter();
            let inside = events.find_map(|event| name.strip_prefix("hooks.")?.strip_prefix(event));
            is_after = matches!(inside, Some("" | ".hooks"));
            matches |= inside == Some("");
            return false;
        }
        let Some((key, value)) = line.split_once('=') else { return false };
        let value = value.trim();
        let value = serde_json::from_str::<String>(value)
            .unwrap_or_else(|_| value.trim_matches(['\'', '"']).to_owned());
        match key.trim() {
            "matcher" if is_after => {
                matches = agent.tools.edit.iter().any(|tool| can_match(Some(&value), tool));
                false
            }
            "command" => is_after && matches && !is_ours(&value),
            _ => false,
        }
    })
}
