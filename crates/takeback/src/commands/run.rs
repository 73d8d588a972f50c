//! `run`: any command under protection.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use takeback_core::history::by_path;
use takeback_core::{AgentEvent, Outcome, Recorded, Touches, Workspace, look_around, record};
use takeback_store::{CallId, PointId, SessionId};

use super::cleanup::when_due;
use super::diff::ToldDiff;
use super::filediff::{FileDiff, between};
use crate::args::{Options, RunArgs};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store, random, this_process};
use crate::screen::{CARE, HINT, NAME, count, name, width_of};
use crate::table::{Cell, Give, Table};
use crate::wire::WireNote;

pub(crate) fn run(options: &Options, args: &RunArgs) -> Result<u8, CommandError> {
    if let Some(refusal) = place::not_enabled(options)? {
        return run_unrecorded(options, args, &refusal);
    }
    let mut place = place::open_mended(options, Store::Create)?;
    when_due(&mut place, options);
    let workspace = &mut place.workspace;
    let session = SessionId::of_run((random() >> 32) as u32);
    let call = CallId::from("1");
    // For people: which program, not where it lies.
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
        },
    )?;
    let before = record(
        workspace,
        &AgentEvent::Prompt { session: session.clone(), message: None, text: line.clone() },
    )?;
    record(
        workspace,
        &AgentEvent::BeforeTool {
            session: session.clone(),
            call: call.clone(),
            tool: "run".to_owned(),
            touches: Touches::Anything { command: Some(line) },
        },
    )?;
    // From here on the terminal is the command's.
    let shown = workspace.ambient.watch.take();
    let status = match start(&args.command) {
        Ok(child) => watch(child, || drop(look_around(workspace)))?,
        Err(error) => {
            end(workspace, session, call, Outcome::Failed)?;
            return Err(cannot_start(args, &error));
        }
    };
    workspace.ambient.watch = shown;
    let outcome = if status.success() { Outcome::Done } else { Outcome::Failed };
    end(workspace, session.clone(), call, outcome)?;
    let code = exit_code(status);
    if options.json {
        tell_json(workspace, &before, &session, code)?;
    } else if !options.quiet {
        tell(workspace, &before)?;
    }
    Ok(code)
}

/// The user wants nothing recorded: the command runs all the same.
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
            "{CARE}takeback:{CARE:#} {}: nothing is recorded {HINT}({hint}){HINT:#}",
            refusal.source
        )?;
    }
    let child = start(&args.command).map_err(|error| cannot_start(args, &error))?;
    Ok(exit_code(watch(child, || {})?))
}

fn cannot_start(args: &RunArgs, error: &io::Error) -> CommandError {
    let program = args.command.first().map(|program| program.to_string_lossy().into_owned());
    CommandError::new(
        Kind::CannotStart,
        format!("{} cannot be started: {error}", program.unwrap_or_default()),
    )
}

fn start(command: &[OsString]) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    Command::new(program).args(arguments).spawn()
}

/// How often the tree is looked at while the command runs, at most.
const PAUSE: Duration = Duration::from_secs(3);
/// A scan may take this part of the time at most.
const SHARE: u32 = 20;

/// Waits for the command, and calls `look` now and then so that less happens unseen in between.
fn watch(mut child: Child, mut look: impl FnMut()) -> Result<ExitStatus, CommandError> {
    // Ctrl-C is for the command: it gets the signal from the terminal itself. A handler, unlike
    // ignoring, is not passed on to it.
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let pid = Pid::from_child(&child);
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let signal = if signal == SIGTERM { Signal::TERM } else { Signal::HUP };
            // Nothing to do if it has ended just now.
            kill_process(pid, signal).unwrap_or(());
        }
    });
    let (ended, end) = channel();
    std::thread::spawn(move || drop(ended.send(child.wait())));
    let mut pause = PAUSE;
    loop {
        match end.recv_timeout(pause) {
            Ok(status) => return Ok(status?),
            Err(RecvTimeoutError::Timeout) => {
                let began = Instant::now();
                // What cannot be looked at now is looked at when the command has ended.
                look();
                pause = PAUSE.max(began.elapsed() * SHARE);
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("lost sight of the command").into());
            }
        }
    }
}

fn end(
    workspace: &mut Workspace,
    session: SessionId,
    call: CallId,
    outcome: Outcome,
) -> Result<(), CommandError> {
    record(workspace, &AgentEvent::AfterTool { session: session.clone(), call, outcome })?;
    record(workspace, &AgentEvent::SessionEnd { session })?;
    Ok(())
}

/// As [`tell`], for programs. It cannot go to standard output, which is the command's.
fn tell_json(
    workspace: &Workspace,
    before: &Recorded,
    session: &SessionId,
    code: u8,
) -> Result<(), CommandError> {
    let store = &*workspace.store;
    let diffs: Vec<FileDiff> = between(&by_path(store.changes_after(before.seq)?), None);
    let mut changes = Vec::new();
    for diff in &diffs {
        changes.push(ToldDiff::new(diff, diff.lines(store)?));
    }
    let lacks = before.not_captured.iter();
    let not_captured: Vec<_> =
        lacks.map(|(path, lack)| WireNote::new(path, lack.reason())).collect();
    let told = json!({
        "point": before.point,
        "session": session,
        "exitCode": code,
        "changes": changes,
        "notCaptured": not_captured,
    });
    writeln!(io::stderr().lock(), "{told}")?;
    Ok(())
}

/// What changed, and how to take it back. On standard error: the command's output stays its own.
fn tell(workspace: &Workspace, before: &Recorded) -> Result<(), CommandError> {
    const MOST: usize = 10;
    let store = &*workspace.store;
    let diffs: Vec<FileDiff> = between(&by_path(store.changes_after(before.seq)?), None);
    let mut err = anstream::stderr().lock();
    if diffs.is_empty() {
        writeln!(err, "{HINT}takeback: no file changed{HINT:#}")?;
        return Ok(());
    }
    let files = diffs.iter().filter(|diff| !diff.is_folder()).count();
    writeln!(err, "{HINT}takeback:{HINT:#} {} changed", count(files, "file"))?;
    let mut table = Table::new(2, [Give::Start(12), Give::End(10), Give::Nothing]);
    for diff in diffs.iter().take(MOST) {
        let (path, what) = (Cell::plain(name(&diff.path)), Cell::new(HINT, diff.what()));
        table.rows.push([path, what, diff.counts(store)?]);
    }
    table.print_within(width_of(io::stderr()), &mut err)?;
    if diffs.len() > MOST {
        writeln!(err, "  {HINT}… and {} more: takeback diff --stat{HINT:#}", diffs.len() - MOST)?;
    }
    for (path, lack) in &before.not_captured {
        writeln!(err, "  {CARE}not kept:{CARE:#} {}  {HINT}{}{HINT:#}", name(path), lack.reason())?;
    }
    let point = before.point.unwrap_or(PointId(0)).to_string();
    writeln!(err, "{HINT}take it back with{HINT:#} {NAME}takeback rewind {}{NAME:#}", &point[..8])?;
    Ok(())
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(1)
}
