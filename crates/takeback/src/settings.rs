//! Settings: the environment over the project's file over the user's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use takeback_core::retention::Policy;
use takeback_core::worktree::scope::ScopeOptions;
use takeback_core::{Limits, Tools};

use crate::error::{CommandError, Kind};
use crate::place::environment;

/// What can be set, as it stands in `settings.json`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    edit_capture_max_bytes: Option<u64>,
    edit_tools: Option<Vec<String>>,
    shell_tools: Option<Vec<String>>,
    read_only_tools: Option<Vec<String>>,
    precious_file_max_bytes: Option<u64>,
    precious_total_bytes: Option<u64>,
    derived_folders: Option<Vec<String>>,
    hook_deadline_ms: Option<u64>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    user: File,
    project: File,
}

impl Settings {
    pub(crate) fn load(root: &Path, home: &Path) -> Result<Self, CommandError> {
        let mut user = read(&home.join("settings.json"))?;
        for (name, slot) in [
            ("TAKEBACK_EDIT_CAPTURE_MAX_BYTES", &mut user.edit_capture_max_bytes),
            ("TAKEBACK_PRECIOUS_FILE_MAX_BYTES", &mut user.precious_file_max_bytes),
            ("TAKEBACK_PRECIOUS_TOTAL_BYTES", &mut user.precious_total_bytes),
            ("TAKEBACK_HOOK_DEADLINE_MS", &mut user.hook_deadline_ms),
        ] {
            if let Some(value) = environment(name) {
                let number = value.to_str().and_then(|value| value.parse().ok());
                *slot = Some(number.ok_or_else(|| {
                    CommandError::new(Kind::Usage, format!("{name} is not a number"))
                })?);
            }
        }
        Ok(Self { user, project: read(&root.join(".takeback").join("settings.json"))? })
    }

    /// Which tools write what. A project may name more tools that write, never ones that do not.
    pub(crate) fn tools(&self) -> Tools {
        let mut tools = Tools::default();
        for (list, user, project) in [
            (&mut tools.edit, &self.user.edit_tools, &self.project.edit_tools),
            (&mut tools.shell, &self.user.shell_tools, &self.project.shell_tools),
            (&mut tools.read_only, &self.user.read_only_tools, &None),
        ] {
            if let Some(user) = user {
                list.clone_from(user);
            }
            list.extend(project.iter().flatten().cloned());
        }
        tools
    }

    /// A project may widen what is kept, never narrow it.
    pub(crate) fn scope(&self) -> ScopeOptions {
        let defaults = ScopeOptions::default();
        let widest = |user: Option<u64>, project: Option<u64>, default: u64| {
            user.unwrap_or(default).max(project.unwrap_or(0))
        };
        ScopeOptions {
            derived_folders: self.user.derived_folders.clone().unwrap_or_default(),
            precious_file_max: widest(
                self.user.precious_file_max_bytes,
                self.project.precious_file_max_bytes,
                defaults.precious_file_max,
            ),
            precious_total_max: widest(
                self.user.precious_total_bytes,
                self.project.precious_total_bytes,
                defaults.precious_total_max,
            ),
            nested_workspaces: Vec::new(),
        }
    }

    /// How much is kept.
    pub(crate) fn retention(&self) -> Policy {
        Policy::default()
    }

    pub(crate) fn limits(&self) -> Limits {
        let defaults = Limits::default();
        Limits {
            edit_capture_max: self
                .user
                .edit_capture_max_bytes
                .unwrap_or(defaults.edit_capture_max)
                .max(self.project.edit_capture_max_bytes.unwrap_or(0)),
            recorder_patience: self
                .user
                .hook_deadline_ms
                .map_or(defaults.recorder_patience, Duration::from_millis),
            ..defaults
        }
    }
}

fn read(path: &PathBuf) -> Result<File, CommandError> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(File::default()),
        Err(error) => {
            return Err(CommandError::new(Kind::Error, format!("{}: {error}", path.display())));
        }
    };
    serde_json::from_slice(&text).map_err(|error| {
        CommandError::new(Kind::Usage, format!("{} is not valid: {error}", path.display()))
            .hint("Mend it or move it aside.")
    })
}
