//! What the user should know before hooks are installed.

use std::path::Path;

use takeback_agents::{HookInFile, HookScope, find_hooks};

use super::plan::{Direction, InitContext, NewContents, SettingsChange};
use crate::foreign_file::ForeignFile;
use crate::place::tilde_path;

/// One line for each warning.
pub(super) fn warnings(
    planned: &[SettingsChange],
    direction: Direction,
    context: &InitContext<'_>,
) -> Vec<String> {
    if direction == Direction::Out {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    let is_absolute = |hook: &HookInFile| Path::new(&hook.command.program).is_absolute();
    let is_bound = |one: &SettingsChange| hooks_after(one).iter().any(is_absolute);
    if context.scope == HookScope::Project && planned.iter().any(is_bound) {
        warnings.push(
            "The hooks name this machine's takeback by its path: others who use this project need takeback at the same path. Put it on PATH and run \
             init again."
                .to_owned(),
        );
    }
    warnings.extend(planned.iter().filter_map(|one| twice(one, context)));
    warnings
}

/// Agents run the hooks of both scopes, unless they run identical ones only once.
fn twice(one: &SettingsChange, context: &InitContext<'_>) -> Option<String> {
    let own = hooks_after(one);
    if own.is_empty() {
        return None;
    }
    let (scope, option) = match context.scope {
        HookScope::User => (HookScope::Project, " --scope project"),
        HookScope::Project => (HookScope::User, ""),
    };
    let path = one.agent.hooks_file(scope, context.homes, context.root);
    let other = ForeignFile::read(&path, 0o600).ok()?;
    if one.file.as_ref().is_some_and(|file| file.path == other.path) {
        return None;
    }
    let others = find_hooks(one.agent, &other.bytes?).ok()?.hooks;
    let is_same = |hook: &HookInFile| {
        own.iter().any(|own| (&own.event, &own.command) == (&hook.event, &hook.command))
    };
    if others.is_empty() || (one.agent.runs_equal_hooks_once && others.iter().all(is_same)) {
        return None;
    }
    let name = one.agent.name;
    Some(format!(
        "{} has hooks in {} too: each prompt would be recorded twice. `takeback uninstall --agent \
         {name}{option}` removes them there.",
        one.agent.title,
        tilde_path(&path),
    ))
}

/// The hooks in the file after the change.
fn hooks_after(one: &SettingsChange) -> Vec<HookInFile> {
    let bytes = match &one.after {
        Ok(NewContents::Bytes(bytes)) => Some(bytes),
        Ok(NewContents::Unchanged) => one.before(),
        Ok(NewContents::Removed) | Err(_) => None,
    };
    bytes
        .and_then(|bytes| find_hooks(one.agent, bytes).ok())
        .map_or_else(Vec::new, |found| found.hooks)
}
