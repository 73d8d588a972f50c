//! `bisect -- COMMAND`: the prompt, and then the tool call, after which a command fails.

mod scratch;
mod search;

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use takeback_core::Workspace;
use takeback_store::PointId;

pub use self::search::{BisectQuery, BisectResult, BisectStep};
use self::search::{BisectRequest, CommandOutput, search};
use super::log::described;
use super::show;
use crate::answers;
use crate::args::{BisectArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::find_in;
use crate::screen::{HEADING, HINT, NAME, Screen, name, plain};
use crate::session_name::SessionNames;
use crate::time::{ago, now};

pub(crate) fn bisect(
    options: &Options,
    args: &BisectArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, interrupted.clone())?;
    }
    let folder = place::start(options)?;
    let is_silent = screen.json || screen.quiet;
    let mut report = |text: &str| {
        if !is_silent {
            // Progress is not the answer.
            drop(writeln!(anstream::stderr().lock(), "{text}"));
        }
    };
    let output = if screen.verbose { CommandOutput::Shown } else { CommandOutput::Hidden };
    let query = query(&place.workspace, args)?;
    let request =
        BisectRequest { query: &query, folder: &folder, output, interrupted: &interrupted };
    let found = search(&mut place.workspace, &request, &mut report)?;
    if screen.json {
        screen.json(&answer(&found))?;
    } else {
        let names = SessionNames::of(&place.workspace.store.sessions()?);
        print(&found, &names, screen)?;
    }
    Ok(if found.steps.len() == 1 { 0 } else { Kind::Partly as u8 })
}

/// What the arguments ask for, with the points that they name.
pub(crate) fn query(workspace: &Workspace, args: &BisectArgs) -> Result<BisectQuery, CommandError> {
    let BisectArgs { good, bad, with, command } = args;
    let id = |name: &Option<String>| -> Result<Option<PointId>, CommandError> {
        name.as_deref().map(|name| Ok(find_in(&*workspace.store, name)?.id)).transpose()
    };
    let (good, bad) = (id(good)?, id(bad)?);
    Ok(BisectQuery { good, bad, with: with.clone(), ..BisectQuery::of(command) })
}

/// Searches for a program: nothing is printed, and the command runs at the root.
pub(crate) fn run(
    workspace: &mut Workspace,
    query: &BisectQuery,
) -> Result<BisectResult, CommandError> {
    let folder = workspace.root.path().to_owned();
    let interrupted = AtomicBool::new(false);
    let output = CommandOutput::Hidden;
    let request = BisectRequest { query, folder: &folder, output, interrupted: &interrupted };
    search(workspace, &request, &mut |_| {})
}

pub(crate) fn answer(result: &BisectResult) -> answers::BisectAnswer {
    let step = result.newest();
    let change = &step.changes[0];
    let is_agents = !change.author.sessions().is_empty();
    answers::BisectAnswer {
        turn: result.turn.as_ref().map(|point| answers::Id::new(point.id)),
        call: result.call.as_ref().map(|call| call.id.0.clone()),
        prompt: result.turn.as_ref().map(|point| point.description.clone()),
        author: answers::author(&change.author),
        evidence: is_agents.then(|| answers::evidence(change.evidence)),
        command: result.shell_command().map(str::to_owned),
        good: result.good.as_ref().map(|point| answers::Id::new(point.id)),
        files: step.files().into_iter().map(answers::path).collect(),
        candidates: result.steps.len(),
        runs: result.runs,
        skipped: result.skipped,
    }
}

fn print(
    result: &BisectResult,
    names: &SessionNames,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    let step = result.newest();
    let out = &mut screen.out;
    match result.steps.len() {
        1 => writeln!(out, "{HEADING}The first failure came with this step{HEADING:#}")?,
        steps => writeln!(
            out,
            "{HEADING}The first failure came with one of {steps} steps{HEADING:#}  {HINT}the others could not \
             be tested; the newest:{HINT:#}"
        )?,
    }
    let who = show::author(&step.changes[0], names);
    show::detail(out, "by", show::PLAIN, &who)?;
    if let Some(point) = &result.turn {
        let title = plain(&described(point));
        let id = &point.id.to_string()[..8];
        show::detail(out, "prompt", show::PLAIN, &format!("{id} {title}"))?;
        show::detail(out, "when", show::PLAIN, &ago(point.created_at, now()))?;
    }
    if let Some(command) = result.shell_command() {
        for (at, line) in command.lines().enumerate() {
            show::detail(out, if at == 0 { "command" } else { "" }, show::PLAIN, &plain(line))?;
        }
    }
    let files = step.files();
    for (at, path) in files.iter().take(10).enumerate() {
        show::detail(out, if at == 0 { "files" } else { "" }, show::PLAIN, &name(path))?;
    }
    if files.len() > 10 {
        show::detail(out, "", HINT, &format!("… and {} more", files.len() - 10))?;
    }
    writeln!(out)?;
    match (&result.turn, &result.good) {
        (Some(point), _) => {
            let id = &point.id.to_string()[..8];
            writeln!(
                out,
                "{NAME}takeback diff {id}!{NAME:#}    {HINT}what the prompt changed{HINT:#}"
            )?;
            writeln!(
                out,
                "{NAME}takeback rewind {id}{NAME:#}   {HINT}take it back, with all that its session did later{HINT:#}"
            )?;
        }
        (None, Some(point)) => {
            let id = &point.id.to_string()[..8];
            writeln!(
                out,
                "{NAME}takeback diff {id}{NAME:#}    {HINT}what changed since it was good{HINT:#}"
            )?;
        }
        (None, None) => {}
    }
    Ok(())
}
