//! Why hooks that are in place do not run, and what to do about it.

use std::path::{Path, PathBuf};

use serde_json::Value;
use takeback_agents::codex::trust::{Trust, trust_of};
use takeback_agents::hook::Plugged;
use takeback_agents::install::{Homes, Scope, find, home_of, value_of};
use takeback_store::Timestamp;

use super::agent::Place;
use super::files;
use super::session::modified;
use crate::place::shown;
use crate::screen::count;

/// A reason that was found, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) why: String,
    pub(super) next: String,
}

/// `places`: the files with hooks in them.
pub(super) fn cause(
    agent: Plugged,
    places: &[&Place],
    homes: &Homes,
    root: &Path,
) -> Option<Cause> {
    switched_off(agent, homes, root).or_else(|| match agent {
        Plugged::Codex => untrusted_hooks(places, homes),
        Plugged::Copilot if places.iter().all(|place| place.scope == Scope::Project) => {
            untrusted_folder(homes, root)
        }
        _ => None,
    })
}

/// Why it may be, where nothing can be read that says so.
pub(super) fn likely(agent: Plugged, places: &[&Place]) -> Cause {
    let of_project = places.iter().all(|place| place.scope == Scope::Project);
    let (why, next) = match agent {
        Plugged::Gemini | Plugged::Qwen if of_project => (
            "it may not trust the folder",
            "Start it there and trust the folder, or use `takeback init` without --scope project.",
        ),
        _ => (
            "the cause is not known",
            "If it was started with settings of its own (an SDK, --settings), that is to be expected. If \
             its PATH is not the one of this shell, it may not find takeback. Otherwise start a new \
             session and look again.",
        ),
    };
    Cause { why: why.to_owned(), next: next.to_owned() }
}

/// Whether what decides over hooks was changed after a time: what was then, need not be so any more.
pub(super) fn changed_since(
    agent: Plugged,
    places: &[&Place],
    homes: &Homes,
    root: &Path,
    time: Timestamp,
) -> bool {
    let mut files = settings_of(agent, homes, root);
    files.extend(places.iter().map(|place| place.real.clone()));
    match agent {
        Plugged::Codex => files.push(home_of(agent, homes).join("config.toml")),
        Plugged::Copilot => files.push(home_of(agent, homes).join("config.json")),
        _ => {}
    }
    files.iter().filter_map(|file| modified(file)).any(|changed| changed > time)
}

fn switched_off(agent: Plugged, homes: &Homes, root: &Path) -> Option<Cause> {
    settings_of(agent, homes, root).into_iter().find_map(|file| {
        let found = find(agent, &files::read(&file).ok()?).ok()?;
        let key = found.switched_off?;
        let file = shown(&file);
        Some(Cause {
            why: format!("{key} in {file} switches hooks off"),
            next: format!("Take {key} out of {file}."),
        })
    })
}

/// Every file in which hooks can be switched off.
fn settings_of(agent: Plugged, homes: &Homes, root: &Path) -> Vec<PathBuf> {
    let own = home_of(agent, homes);
    let project = root.join(format!(".{}", agent.name()));
    match agent {
        Plugged::Claude => vec![
            own.join("settings.json"),
            project.join("settings.json"),
            project.join("settings.local.json"),
            PathBuf::from("/etc/claude-code/managed-settings.json"),
        ],
        Plugged::Gemini | Plugged::Qwen => {
            vec![own.join("settings.json"), project.join("settings.json")]
        }
        Plugged::Codex | Plugged::Opencode | Plugged::Copilot => Vec::new(),
    }
}

/// Codex passes over hooks that its user has not trusted, and says nothing.
fn untrusted_hooks(places: &[&Place], homes: &Homes) -> Option<Cause> {
    let config = home_of(Plugged::Codex, homes).join("config.toml");
    let config = files::read(&config).unwrap_or_default();
    let config = String::from_utf8_lossy(&config);
    let mut trusts = Vec::new();
    for place in places {
        let (Ok(found), Ok(bytes)) = (&place.found, files::read(&place.file)) else { continue };
        let settings = value_of(&bytes).unwrap_or_default();
        let of_file = |file: &Path, hook| trust_of(hook, (file, &settings), &config);
        trusts.extend(found.hooks.iter().map(|hook| match of_file(&place.file, hook) {
            Trust::Untrusted => of_file(&place.real, hook),
            trust => trust,
        }));
    }
    let number = |which: Trust| trusts.iter().filter(|trust| **trust == which).count();
    let (untrusted, changed) = (number(Trust::Untrusted), number(Trust::Changed));
    let off = number(Trust::SwitchedOff);
    let why = if untrusted > 0 {
        format!("{} of {} not trusted", untrusted, count(trusts.len(), "hook"))
    } else if changed > 0 {
        format!("{} of {} changed since you trusted them", changed, count(trusts.len(), "hook"))
    } else if off > 0 {
        format!("{} of {} switched off in Codex", off, count(trusts.len(), "hook"))
    } else {
        return None;
    };
    let key = if off > 0 && untrusted + changed == 0 { "switch them on" } else { "press t" };
    Some(Cause { why, next: format!("Start `codex`, enter /hooks and {key}.") })
}

/// Copilot CLI passes over the hooks of a project whose folder its user has not trusted.
fn untrusted_folder(homes: &Homes, root: &Path) -> Option<Cause> {
    let config = files::read(&home_of(Plugged::Copilot, homes).join("config.json"));
    let config = config.ok().and_then(|bytes| value_of(&bytes).ok()).unwrap_or_default();
    let folders = ["trusted_folders", "trustedFolders"]
        .into_iter()
        .filter_map(|key| config.get(key)?.as_array())
        .flatten()
        .filter_map(Value::as_str);
    let is_trusted = folders.into_iter().any(|folder| root.starts_with(folder));
    (!is_trusted).then(|| Cause {
        why: format!("Copilot CLI does not trust {}, and passes over its hooks", shown(root)),
        next: "Start `copilot` there and trust the folder, or use `takeback init` without --scope \
               project."
            .to_owned(),
    })
}
