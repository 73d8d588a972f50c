//! Why hooks that are installed do not run, and what to do about it.

use std::path::{Path, PathBuf};

use takeback_agents::{
    AgentKind, Homes, HookProblem, HookScope, InstalledFile, TrustSite, find_hooks,
};
use takeback_store::Timestamp;

use super::agent::SettingsFile;
use super::files;
use super::session::modified;
use crate::place::tilde_path;

/// `places`: the files with hooks in them.
pub(super) fn cause(
    agent: &AgentKind,
    places: &[&SettingsFile],
    homes: &Homes,
    root: &Path,
) -> Option<HookProblem> {
    switched_off(agent, homes, root).or_else(|| distrust(agent, places, homes, root))
}

/// The likely cause, if no file states it.
pub(super) fn likely(agent: &AgentKind, places: &[&SettingsFile]) -> HookProblem {
    let of_project = places.iter().all(|place| place.scope == HookScope::Project);
    let (why, next) = match of_project && agent.ignores_untrusted_projects {
        true => (
            "it may not trust the folder",
            "Start it there and trust the folder, or use `takeback init` without --scope project.",
        ),
        false => (
            "the cause is unknown",
            "This is expected if it was started with its own settings (an SDK, --settings). If its \
             PATH differs from this shell's, it may not find takeback. Otherwise start a new \
             session and check again.",
        ),
    };
    HookProblem { why: why.to_owned(), next: next.to_owned() }
}

/// Whether the files that control hooks changed after a time, so that an earlier failure may no longer apply.
pub(super) fn changed_since(
    agent: &AgentKind,
    places: &[&SettingsFile],
    homes: &Homes,
    root: &Path,
    time: Timestamp,
) -> bool {
    let mut files = settings_of(agent, homes, root);
    files.extend(places.iter().map(|place| place.real.clone()));
    files.extend(agent.trust.map(|trust| agent.home.path(homes).join(trust.file)));
    files.iter().filter_map(|file| modified(file)).any(|changed| changed > time)
}

fn switched_off(agent: &AgentKind, homes: &Homes, root: &Path) -> Option<HookProblem> {
    settings_of(agent, homes, root).into_iter().find_map(|file| {
        let found = find_hooks(agent, &files::read(&file).ok()?).ok()?;
        let key = found.switched_off?;
        let file = tilde_path(&file);
        Some(HookProblem {
            why: format!("{key} in {file} turns hooks off"),
            next: format!("Remove {key} from {file}."),
        })
    })
}

/// Every file that can turn hooks off.
fn settings_of(agent: &AgentKind, homes: &Homes, root: &Path) -> Vec<PathBuf> {
    let files = &agent.settings;
    let own = agent.home.path(homes);
    let user = files.user.iter().map(|name| own.join(name));
    let project = files.project.iter().map(|name| root.join(name));
    user.chain(project).chain(files.system.iter().map(PathBuf::from)).collect()
}

/// Some agents silently ignore hooks that their user has not trusted.
fn distrust(
    agent: &AgentKind,
    places: &[&SettingsFile],
    homes: &Homes,
    root: &Path,
) -> Option<HookProblem> {
    let trust = agent.trust?;
    let config = files::read(&agent.home.path(homes).join(trust.file)).unwrap_or_default();
    let contents: Vec<Vec<u8>> =
        places.iter().map(|place| files::read(&place.file).unwrap_or_default()).collect();
    let installed: Vec<InstalledFile<'_>> = places
        .iter()
        .zip(&contents)
        .map(|(place, contents)| InstalledFile {
            scope: place.scope,
            path: &place.file,
            real_path: &place.real,
            contents,
            hooks: place.found.as_ref().map_or(&[], |found| &found.hooks),
        })
        .collect();
    (trust.problem)(&TrustSite { config: &config, files: &installed, root })
}
