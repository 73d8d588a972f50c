//! `run`: runs any command with a point before it.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use takeback_core::history::by_path;
use takeback_core::rewind::first_seen;
use takeback_core::{
    AgentEvent, CallTargets, Outcome, RecordOutcome, Workspace, look_around, record, system_random,
};
use takeback_store::{CallId, SessionId};

use super::cleanup::clean_up_if_due;
use super::diff::diff_answer;
use super::filediff::{Contents, FileDiff, between, count_cell, path_name};
use super::receipt::first_seen_name;
use super::state::save::SESSION_VARIABLE;
use super::unreadable;
use crate::answers;
use crate::args::{Options, RunArgs};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store, environment, this_process};
use crate::screen::{HINT, NAME, WARNING, count, width_of};
use crate::table::{Cell, Overflow, Table};

pub(crate) fn run(options: &Options, args: &RunArgs) -> Result<u8, CommandError> {
    // Checked first: a command that cannot be started must not make a point.
    startable(&args.command).map_err(|error| cannot_start(args, &error))?;
    if let Some(refusal) = place::not_enabled(options).map_err(unprotected)? {
        return run_unrecorded(options, args, &refusal);
    }
    let mut place = place::open_recovered(options, Store::Create).map_err(unprotected)?;
    clean_up_if_due(&mut place, options);
    let workspace = &mut place.workspace;
    let begun = begin(workspace, args).map_err(unprotected)?;
    // From here on, the terminal belongs to the command.
    let shown = workspace.ambient.watch.take();
    let signals = listen()?;
    let status = match start(&args.command, Some(&begun.session)) {
        Ok(child) => watch(child, signals, || drop(look_around(workspace)))?,
        Err(error) => {
            end(workspace, &begun, Outcome::Failed)?;
            return Err(cannot_start(args, &error));
        }
    };
    workspace.ambient.watch = shown;
    let outcome = if status.success() { Outcome::Done } else { Outcome::Failed };
    let code = exit_code(status);
    let reported = end(workspace, &begun, outcome).and_then(|after| match options {
        Options { json: true, .. } => report_json(workspace, &begun, &after, code),
        Options { quiet: true, .. } => Ok(()),
        _ => report(workspace, &begun.before, &after),
    });
    // Return the command's exit code even if recording failed.
    if let Err(error) = reported {
        error.report(options.json);
    }
    let root = workspace.root.path();
    if !root.exists() {
        let root = place::quoted(root);
        place::print_warnings(
            options,
            &[format!(
                "the folder is gone; `mkdir {root} && takeback -C {root} rewind @` brings it back"
            )],
        )?;
    }
    Ok(code)
}

/// What is recorded before the command starts.
struct RunStart {
    session: SessionId,
    call: CallId,
    before: RecordOutcome,
}

fn begin(workspace: &mut Workspace, args: &RunArgs) -> Result<RunStart, CommandError> {
    let session = SessionId::of_run((system_random() >> 32) as u32);
    let call = CallId::from("1");
    // For display: the program's name, not its path.
    let program =
        args.command.first().map(|program| Path::new(program).file_name().unwrap_or(program));
    let words = program.into_iter().chain(args.command.iter().skip(1).map(OsString::as_os_str));
    let line = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let agent = program.map(|program| program.to_string_lossy().into_owned());
    record(
        workspace,
        &AgentEvent::SessionStart {
            session: session.clone(),
            agent,
            parent: None,
            owner: this_process(),
            model: None,
        },
    )?;
    let before = record(
        workspace,
        &AgentEvent::Prompt {
            session: session.clone(),
            message: None,
            text: line.clone(),
            model: None,
        },
    )?;
    record(
        workspace,
        &AgentEvent::BeforeTool {
            session: session.clone(),
            call: call.clone(),
            tool: "run".to_owned(),
            touches: CallTargets::anything(Some(line)),
        },
    )?;
    Ok(RunStart { session, call, before })
}

/// Recording could not start, so the command must not run.
fn unprotected(error: CommandError) -> CommandError {
    CommandError { kind: Kind::CannotStart, ..error }.hint("The command was not started.")
}

/// Recording is off: runs the command anyway.
fn run_unrecorded(
    options: &Options,
    args: &RunArgs,
    refusal: &CommandError,
) -> Result<u8, CommandError> {
    if !options.quiet {
        let hint = refusal.hints.join(" ");
        let mut err = anstream::stderr().lock();
        writeln!(
            err,
            "{WARNING}takeback:{WARNING:#} {}: nothing is recorded {HINT}({hint}){HINT:#}",
            refusal.source
        )?;
    }
    let signals = listen()?;
    let child = start(&args.command, None).map_err(|error| cannot_start(args, &error))?;
    Ok(exit_code(watch(child, signals, || {})?))
}

fn cannot_start(args: &RunArgs, error: &io::Error) -> CommandError {
    let program = args.command.first().map(|program| program.to_string_lossy().into_owned());
    CommandError::new(
        Kind::CannotStart,
        format!("{} cannot be started: {error}", program.unwrap_or_default()),
    )
}

/// Finds the program as `execvp` does.
fn startable(command: &[OsString]) -> io::Result<()> {
    let program = Path::new(command.first().ok_or(io::ErrorKind::InvalidInput)?);
    let candidates = if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        vec![program.to_owned()]
    } else {
        let folders = environment("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        std::env::split_paths(&folders).map(|folder| folder.join(program)).collect()
    };
    let mut error = Errno::NOENT;
    for candidate in candidates {
        match rustix::fs::access(&candidate, Access::EXEC_OK) {
            Ok(()) if candidate.is_file() => return Ok(()),
            Ok(()) | Err(Errno::ACCESS) => error = Errno::ACCESS,
            Err(_) => {}
        }
    }
    Err(error.into())
}

/// `session`: owns the agent states that the command saves.
fn start(command: &[OsString], session: Option<&SessionId>) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    match session {
        Some(session) => command.env(SESSION_VARIABLE, &session.0),
        // States saved here must not be attributed to an outer `takeback run`.
        None => command.env_remove(SESSION_VARIABLE),
    };
    command.args(arguments).spawn()
}

/// The minimum time between scans while the command runs.
const PAUSE: Duration = Duration::from_secs(3);
/// Scans may take at most this share of the time.
const SHARE: u32 = 20;

/// From here on, no signal ends this process. Called before the command starts, which may be interrupted
/// immediately.
fn listen() -> io::Result<Signals> {
    // Ctrl-C is for the command, which gets the signal from the terminal. A handler, unlike an ignored
    // signal, is not inherited by it.
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Signals::new([SIGTERM, SIGHUP])
}

/// How often to check whether the command has ended.
const SHORTEST: Duration = Duration::from_micros(500);
const LONGEST: Duration = Duration::from_millis(25);

/// Waits for the command, and calls `look` now and then so that fewer intermediate states are missed.
fn watch(
    mut child: Child,
    mut signals: Signals,
    mut look: impl FnMut(),
) -> Result<ExitStatus, CommandError> {
    let pid = Pid::from_child(&child);
    let (begun, mut looked, mut pause) = (Instant::now(), Instant::now(), PAUSE);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        for signal in signals.pending() {
            let signal = if signal == SIGTERM { Signal::TERM } else { Signal::HUP };
            // The command may have just ended.
            kill_process(pid, signal).unwrap_or(());
        }
        if looked.elapsed() >= pause {
            let began = Instant::now();
            // A scan that fails now is repeated when the command has ended.
            look();
            pause = PAUSE.max(began.elapsed() * SHARE);
            looked = Instant::now();
        }
        // Wait briefly at first and longer later: short commands end promptly, long ones cost little.
        std::thread::sleep((begun.elapsed() / 50).clamp(SHORTEST, LONGEST));
    }
}

/// Records the end of the command and what it changed.
fn end(
    workspace: &mut Workspace,
    begun: &RunStart,
    outcome: Outcome,
) -> Result<RecordOutcome, CommandError> {
    let (session, call) = (begun.session.clone(), begun.call.clone());
    let after = record(
        workspace,
        &AgentEvent::AfterTool {
            session: session.clone(),
            call,
            outcome,
            report: takeback_core::CallReport::default(),
        },
    )?;
    record(workspace, &AgentEvent::SessionEnd { session, model: None })?;
    Ok(after)
}

/// Like [`report`], as JSON. On standard error: standard output belongs to the command.
fn report_json(
    workspace: &Workspace,
    begun: &RunStart,
    after: &RecordOutcome,
    code: u8,
) -> Result<(), CommandError> {
    let RunStart { session, before, .. } = begun;
    let store = &*workspace.store;
    let histories = by_path(store.changes_after(before.seq)?);
    let diffs: Vec<FileDiff> = between(&histories, None);
    let answer = answers::RunAnswer {
        point: before.point.map(answers::Id::new),
        session: session.0.clone(),
        exit_code: code,
        changes: diff_answer(&diffs, Contents::of(store))?,
        not_captured: answers::not_captured(&before.not_captured),
        first_seen: answers::first_seen(&first_seen::of_changes(&histories)),
        unreadable: answers::unreadable(&after.unreadable),
    };
    writeln!(io::stderr().lock(), "{}", serde_json::to_string(&answer)?)?;
    Ok(())
}

/// Prints what changed and how to take it back. On standard error: standard output belongs to the command.
fn report(
    workspace: &Workspace,
    before: &RecordOutcome,
    after: &RecordOutcome,
) -> Result<(), CommandError> {
    const MOST: usize = 10;
    let store = &*workspace.store;
    let histories = by_path(store.changes_after(before.seq)?);
    let diffs: Vec<FileDiff> = between(&histories, None);
    let first_seen = first_seen::of_changes(&histories);
    let mut err = anstream::stderr().lock();
    if diffs.is_empty() && first_seen.is_empty() && after.unreadable.is_empty() {
        writeln!(err, "{HINT}takeback: no file changed{HINT:#}")?;
        return Ok(());
    }
    let files = diffs.iter().filter(|diff| !diff.is_folder()).count();
    writeln!(err, "{HINT}takeback:{HINT:#} {} changed", count(files, "file"))?;
    let mut table = Table::new(2, [Overflow::Start(12), Overflow::End(10), Overflow::Nothing]);
    for diff in diffs.iter().take(MOST) {
        let (path, what) = (Cell::plain(path_name(diff)), Cell::new(HINT, diff.what()));
        table.rows.push([path, what, count_cell(diff, store)?]);
    }
    table.print_within(width_of(io::stderr()), &mut err)?;
    if diffs.len() > MOST {
        writeln!(err, "  {HINT}… and {} more: takeback diff --stat{HINT:#}", diffs.len() - MOST)?;
    }
    for seen in first_seen.iter().take(MOST) {
        let (name, files) = (first_seen_name(seen), count(seen.names, "file"));
        writeln!(
            err,
            "  first seen: {name}  {HINT}{files}; a rewind keeps what is new there{HINT:#}"
        )?;
    }
    let of_after = RecordOutcome { not_captured: before.not_captured.clone(), ..after.clone() };
    for (what, name, why) in unreadable::lines(&of_after) {
        writeln!(err, "  {WARNING}{what}:{WARNING:#} {name}  {HINT}{why}{HINT:#}")?;
    }
    if let Some(point) = before.point {
        let point = &point.to_string()[..8];
        writeln!(err, "{HINT}take it back with{HINT:#} {NAME}takeback rewind {point}{NAME:#}")?;
    }
    Ok(())
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(1)
}
