//! Whether an agent runs something else than Takeback after an edit: a formatter, as a rule.
//!
//! Reads the settings of the user and of the project, and nothing else: neither hooks of plugins and
//! extensions nor those that an administrator has set are seen. What cannot be read counts as empty.

mod matcher;

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use memchr::memmem;
use serde_json::Value;

use self::matcher::can_match;
use super::Plugged;
use crate::install::value_of;

/// Beyond this a settings file is not read.
const LIMIT: u64 = 1 << 20;

/// Whether the settings of an agent name a hook after a tool that is not Takeback's and may run after an
/// edit.
///
/// `home`: the agent's folder, from [`home_of`](crate::install::home_of). `cwd`: where the agent works; the
/// folders above it are looked at, too. `is_ours`: whether a command line is a hook of Takeback's.
#[must_use]
pub fn has_other_post_edit_hook(
    agent: Plugged,
    home: &Path,
    cwd: &Path,
    is_ours: &dyn Fn(&str) -> bool,
) -> bool {
    let Some(kind) = Kind::of(agent) else { return false };
    files(agent, home, cwd).iter().any(|file| has_other(&kind, file, is_ours))
}

/// How an agent's settings name hooks after tools.
struct Kind {
    events: &'static [&'static str],
    /// Its tools that edit files.
    tools: &'static [&'static str],
}

impl Kind {
    fn of(agent: Plugged) -> Option<Self> {
        let (events, tools): (&[&str], &[&str]) = match agent {
            Plugged::Claude => {
                (&["PostToolUse", "PostToolBatch"], &["Edit", "MultiEdit", "NotebookEdit", "Write"])
            }
            Plugged::Codex => (&["PostToolUse"], &["Edit", "Write", "apply_patch"]),
            Plugged::Gemini => (&["AfterTool"], &["replace", "write_file"]),
            Plugged::Qwen => {
                (&["PostToolUse", "PostToolBatch"], &["edit", "notebook_edit", "write_file"])
            }
            Plugged::Copilot => (
                &["postToolUse", "PostToolUse"],
                &["Edit", "Write", "apply_patch", "create", "edit"],
            ),
            // Its plugins are programs: what they do after an edit is not written down.
            Plugged::Opencode => return None,
        };
        Some(Self { events, tools })
    }
}

fn files(agent: Plugged, home: &Path, cwd: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let in_projects = |names: &[&str], files: &mut Vec<PathBuf>| {
        for folder in cwd.ancestors() {
            files.extend(names.iter().map(|name| folder.join(name)));
        }
    };
    match agent {
        Plugged::Claude => {
            files.push(home.join("settings.json"));
            in_projects(&[".claude/settings.json", ".claude/settings.local.json"], &mut files);
        }
        Plugged::Codex => {
            files.extend([home.join("hooks.json"), home.join("config.toml")]);
            in_projects(&[".codex/hooks.json", ".codex/config.toml"], &mut files);
        }
        Plugged::Gemini | Plugged::Qwen => {
            files.push(home.join("settings.json"));
            in_projects(&[&format!(".{}/settings.json", agent.name())], &mut files);
        }
        Plugged::Copilot => {
            files.extend(listed(&home.join("hooks")));
            for folder in cwd.ancestors() {
                files.extend(listed(&folder.join(".github/hooks")));
            }
            // In folders that it trusts it runs Claude Code's.
            in_projects(&[".claude/settings.json", ".claude/settings.local.json"], &mut files);
        }
        Plugged::Opencode => {}
    }
    files
}

/// The files of hooks in a folder.
fn listed(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|end| end == "json")).take(32).collect()
}

fn has_other(kind: &Kind, file: &Path, is_ours: &dyn Fn(&str) -> bool) -> bool {
    let Some(contents) = contents(file) else { return false };
    let is_named = |event: &str| memmem::find(&contents, event.as_bytes()).is_some();
    if !kind.events.iter().any(|event| is_named(event)) {
        return false;
    }
    if file.extension().is_some_and(|end| end == "toml") {
        return std::str::from_utf8(&contents).is_ok_and(|text| in_toml(kind, text, is_ours));
    }
    let Ok(settings) = value_of(&contents) else { return false };
    let groups = kind.events.iter().filter_map(|event| settings["hooks"][event].as_array());
    groups.flatten().any(|group| is_other(kind, group, is_ours))
}

fn contents(file: &Path) -> Option<Vec<u8>> {
    let mut contents = Vec::new();
    File::open(file).ok()?.take(LIMIT).read_to_end(&mut contents).ok()?;
    Some(contents)
}

/// A group has a matcher and its hooks. Copilot CLI has no groups, and a command for each kind of shell.
fn is_other(kind: &Kind, group: &Value, is_ours: &dyn Fn(&str) -> bool) -> bool {
    let matcher = group["matcher"].as_str();
    if !kind.tools.iter().any(|tool| can_match(matcher, tool)) {
        return false;
    }
    let alone = std::slice::from_ref(group);
    let hooks = group["hooks"].as_array().map_or(alone, Vec::as_slice);
    hooks.iter().any(|hook| {
        let mut commands = ["command", "bash"].iter().filter_map(|key| hook[*key].as_str());
        commands.any(|command| !is_ours(command))
    })
}

/// Codex's `[[hooks.PostToolUse]]`, with `[[hooks.PostToolUse.hooks]]` in it: a matcher is for the commands
/// that follow.
fn in_toml(kind: &Kind, text: &str, is_ours: &dyn Fn(&str) -> bool) -> bool {
    let (mut is_after, mut matches) = (false, true);
    text.lines().map(str::trim).any(|line| {
        if let Some(table) = line.strip_prefix('[') {
            let name = table.trim_matches(['[', ']', ' ']);
            let inside = kind
                .events
                .iter()
                .find_map(|event| name.strip_prefix("hooks.")?.strip_prefix(event));
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
                matches = kind.tools.iter().any(|tool| can_match(Some(&value), tool));
                false
            }
            "command" => is_after && matches && !is_ours(&value),
            _ => false,
        }
    })
}
