//! What the user should know about hooks that go in, before they do.

use std::path::Path;

use takeback_agents::{HookInFile, HookScope, find_hooks};

use super::plan::{After, Direction, Planned, Site};
use crate::foreign_file::ForeignFile;
use crate::place::shown;

/// One line for each doubt.
pub(super) fn doubts(planned: &[Planned], direction: Direction, site: &Site<'_>) -> Vec<String> {
    if direction == Direction::Out {
        return Vec::new();
    }
    let mut doubts = Vec::new();
    let is_absolute = |hook: &HookInFile| Path::new(&hook.command.program).is_absolute();
    let is_bound = |one: &Planned| hooks_after(one).iter().any(is_absolute);
    if site.scope == HookScope::Project && planned.iter().any(is_bound) {
        doubts.push(
            "The hooks name this machine's takeback by its path: others who use this project need takeback at the same path. Put it on PATH and run \
             init again."
                .to_owned(),
        );
    }
    doubts.extend(planned.iter().filter_map(|one| twice(one, site)));
    doubts
}

/// Hooks of both scopes run, unless the agent runs equal ones once.
fn twice(one: &Planned, site: &Site<'_>) -> Option<String> {
    let own = hooks_after(one);
    if own.is_empty() {
        return None;
    }
    let (scope, option) = match site.scope {
        HookScope::User => (HookScope::Project, " --scope project"),
        HookScope::Project => (HookScope::User, ""),
    };
    let path = one.agent.hooks_file(scope, site.homes, site.root);
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
        shown(&path),
    ))
}

/// The hooks that stand in the file once all is done.
fn hooks_after(one: &Planned) -> Vec<HookInFile> {
    let bytes = match &one.after {
        Ok(After::Bytes(bytes)) => Some(bytes),
        Ok(After::AsItIs) => one.before(),
        Ok(After::Gone) | Err(_) => None,
    };
    bytes
        .and_then(|bytes| find_hooks(one.agent, bytes).ok())
        .map_or_else(Vec::new, |found| found.hooks)
}
