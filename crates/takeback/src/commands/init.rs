//! `init` and `uninstall`: install Takeback's hooks in the settings of the agents on this machine, and remove
//! them.

mod apply;
mod warnings;
mod plan;

use std::io::Write as _;

use takeback_agents::{AGENTS, AgentKind, Homes, HookScope, agent_named, agent_names};
use takeback_store::{Entry, MemoryStore, PackedBlob, WorkPath};

use self::plan::{Direction, NewContents, SettingsChange};
use super::filediff::{Contents, FileDiff};
use super::patch;
use crate::answers;
use crate::args::{InitArgs, Options, ScopeName};
use crate::ask;
use crate::error::{CommandError, Kind};
use crate::install_record;
use crate::installed_agents;
use crate::marker::Markers;
use crate::place;
use crate::screen::{
    FAILURE, HEADING, HINT, SUCCESS, Screen, WARNING, is_interactive, plain, width, wrap,
};

pub(crate) fn init(
    options: &Options,
    args: &InitArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    run(options, args, Direction::In, screen)
}

pub(crate) fn uninstall(
    options: &Options,
    args: &InitArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    run(options, args, Direction::Out, screen)
}

fn run(
    options: &Options,
    args: &InitArgs,
    direction: Direction,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let homes = installed_agents::homes()?;
    let location = place::locate(options)?;
    let scope = match args.scope {
        ScopeName::User => HookScope::User,
        ScopeName::Project => HookScope::Project,
    };
    if scope == HookScope::Project
        && std::fs::canonicalize(&homes.user).is_ok_and(|h| h == location.root)
    {
        return Err(CommandError::new(Kind::Usage, "your home folder is not a project")
            .hint("Change to a project's folder, or leave --scope out."));
    }
    let agents = agents(args, direction, &homes)?;
    let context =
        plan::InitContext { homes: &homes, root: &location.root, home: &location.home, scope };
    let mut planned: Vec<SettingsChange> =
        agents.iter().map(|agent| plan::plan(agent, direction, &context)).collect();
    let is_change =
        |one: &SettingsChange| matches!(&one.after, Ok(after) if *after != NewContents::Unchanged);
    let changes = planned.iter().filter(|one| is_change(one)).count();
    if changes > 0 && !args.yes && !args.dry_run && (!is_interactive() || screen.json) {
        return Err(ask::needs_confirmation("changes settings of your agents"));
    }
    let warnings = warnings::warnings(&planned, direction, &context);
    if !screen.json {
        for one in &planned {
            show(one, direction, screen)?;
        }
        for line in warnings.iter().flat_map(|line| wrap(line, width().saturating_sub(2))) {
            writeln!(screen.out, "{WARNING}{line}{WARNING:#}")?;
        }
    }
    let mut done = false;
    if changes > 0 && !args.dry_run {
        if !args.yes && !ask::confirmed(screen)? {
            writeln!(screen.out, "Nothing was changed.")?;
            return Ok(Kind::Nothing as u8);
        }
        apply::apply(&mut planned, direction, &location.home)?;
        done = true;
    } else if !args.dry_run && install_record::has_any(&location.home) {
        apply::apply(&mut planned, direction, &location.home)?;
    }
    let failed = planned.iter().any(|one| one.after.is_err());
    // Without hooks there is no session to report a lost history in.
    let is_all = args.agents.is_empty() && scope == HookScope::User && !failed && !args.dry_run;
    if let Some(markers) = Markers::of_user().filter(|_| is_all && direction == Direction::Out) {
        markers.remove_all(&location.home)?;
    }
    let next = next(&planned, direction, scope);
    if screen.json {
        screen.json(&answers::InitAnswer {
            scope: answers::scope(scope),
            done,
            agents: planned.iter().map(SettingsChange::answer).collect(),
            next: warnings.into_iter().chain(next).collect(),
        })?;
    } else if !args.dry_run {
        print_results(&planned, direction, screen)?;
        if !screen.quiet {
            for line in next.iter().flat_map(|line| wrap(line, width().saturating_sub(2))) {
                writeln!(screen.out, "{HINT}{line}{HINT:#}")?;
            }
        }
    }
    Ok(if failed { Kind::Partly as u8 } else { 0 })
}

/// The agents that were named, or all installed ones.
fn agents(
    args: &InitArgs,
    direction: Direction,
    homes: &Homes,
) -> Result<Vec<&'static AgentKind>, CommandError> {
    if args.agents.is_empty() {
        let is_meant = |agent: &&AgentKind| {
            direction == Direction::Out || installed_agents::is_here(agent, homes)
        };
        let location: Vec<_> = AGENTS.iter().copied().filter(is_meant).collect();
        if location.is_empty() {
            return Err(CommandError::new(Kind::Error, "no agent was found")
                .hint(format!(
                    "Looked for {}: programs on PATH, and folders in your home.",
                    agent_names()
                ))
                .hint("--agent NAME installs the hooks anyway."));
        }
        return Ok(location);
    }
    for name in &args.agents {
        if agent_named(name).is_none() {
            return Err(CommandError::new(Kind::Usage, format!("there is no agent {name}"))
                .hint(format!("Known agents: {}.", agent_names())));
        }
    }
    let is_named = |agent: &&AgentKind| args.agents.iter().any(|name| name == agent.name);
    Ok(AGENTS.iter().copied().filter(is_named).collect())
}

/// The change to one file, as a diff.
fn show(
    one: &SettingsChange,
    direction: Direction,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    let title = one.agent.title;
    let after = match &one.after {
        Err(_) => return Ok(()),
        Ok(NewContents::Unchanged) => {
            let state = match direction {
                Direction::In => "hooks installed",
                Direction::Out => return Ok(()),
            };
            if !screen.quiet {
                writeln!(
                    screen.out,
                    "{HEADING}{title}{HEADING:#}  {HINT}{}: {state}{HINT:#}",
                    one.tilde_path()
                )?;
            }
            return Ok(());
        }
        Ok(NewContents::Bytes(bytes)) => Some(bytes.clone()),
        Ok(NewContents::Removed) => None,
    };
    writeln!(screen.out, "{HEADING}{title}{HEADING:#}")?;
    let blobs: Vec<PackedBlob> = [one.before(), after.as_ref()]
        .into_iter()
        .flatten()
        .cloned()
        .map(PackedBlob::new)
        .collect();
    let entry = |bytes: Option<&Vec<u8>>| {
        bytes.map_or(Entry::Absent, |bytes| Entry::File {
            digest: takeback_store::Digest::of(bytes),
            size: bytes.len() as u64,
            mode: 0o600,
        })
    };
    let path =
        WorkPath::new(one.tilde_path()).map_err(|error| CommandError::new(Kind::Error, error))?;
    let diff = FileDiff::new(path, entry(one.before()), entry(after.as_ref()));
    let store = MemoryStore::new();
    patch::for_people(&diff, Contents { store: &store, made: &blobs }, &mut screen.out)?;
    writeln!(screen.out)?;
    Ok(())
}

/// Prints what was done.
fn print_results(
    planned: &[SettingsChange],
    direction: Direction,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    let mut changed = 0;
    for one in planned {
        let (title, file) = (one.agent.title, one.tilde_path());
        match &one.after {
            Ok(NewContents::Unchanged) => continue,
            Ok(_) if screen.quiet => {}
            Ok(NewContents::Bytes(_)) if direction == Direction::In => {
                let backup =
                    one.backup.as_ref().map(|backup| format!("  before: {}", plain(backup)));
                let backup = backup.unwrap_or_default();
                writeln!(
                    screen.out,
                    "{SUCCESS}Installed {title}'s hooks in{SUCCESS:#} {file}{HINT}{backup}{HINT:#}"
                )?;
            }
            Ok(NewContents::Bytes(_)) => {
                writeln!(screen.out, "{SUCCESS}Removed {title}'s hooks from{SUCCESS:#} {file}")?;
            }
            Ok(NewContents::Removed) => {
                writeln!(
                    screen.out,
                    "{SUCCESS}Removed {title}'s hooks and the file{SUCCESS:#} {file}"
                )?;
            }
            Err(error) => {
                let line = plain(&error.what());
                writeln!(screen.out, "{FAILURE}{title}:{FAILURE:#} {line}")?;
                for hint in &error.hints {
                    writeln!(screen.out, "  {HINT}{}{HINT:#}", plain(hint))?;
                }
            }
        }
        changed += 1;
    }
    if changed == 0 && !screen.quiet {
        let text = match direction {
            Direction::In => "Nothing to do: all hooks are installed.",
            Direction::Out => "Nothing to do: no Takeback hooks are installed.",
        };
        writeln!(screen.out, "{HINT}{text}{HINT:#}")?;
    }
    Ok(())
}

/// What to do next.
fn next(planned: &[SettingsChange], direction: Direction, scope: HookScope) -> Vec<String> {
    let mut next = Vec::new();
    let is_changed = |one: &&SettingsChange| {
        matches!(one.after, Ok(NewContents::Bytes(_) | NewContents::Removed))
    };
    let changed: Vec<&SettingsChange> = planned.iter().filter(is_changed).collect();
    if changed.is_empty() {
        return next;
    }
    if direction == Direction::Out {
        next.push(
            "Recorded history is kept: `takeback workspaces` lists it, `takeback forget` deletes it."
                .to_owned(),
        );
        return next;
    }
    let notes = changed.iter().filter_map(|one| (one.agent.install_note)(scope));
    next.extend(notes.map(str::to_owned));
    next.push(
        "Restart running sessions: they do not have the hooks yet. After the next prompt, \
         `takeback doctor` shows whether the hooks ran."
            .to_owned(),
    );
    next
}
