//! `shell`: a command in its own process group, which is killed when the command ends.
//!
//! Processes that a command leaves running could write while nothing is recorded, or after the end of the
//! turn was reported. So the whole group is killed when the command ends, when the turn is interrupted, and
//! at the time limit. Only a process that leaves the group on purpose survives.

use std::io::{self, PipeReader, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::Outcome;
use super::limit::BoundedOutput;
use crate::builtin::endpoint::SECRET_VARIABLES;
use crate::builtin::signals::Signals;

/// How often to check a running command.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How long to wait for the output of a process that left the group.
const GRACE: Duration = Duration::from_millis(500);

pub(super) fn run(
    folder: &Path,
    command: &str,
    signals: &Signals,
    limit: Duration,
) -> Result<Outcome, String> {
    let failed = |error: io::Error| format!("cannot run sh: {error}");
    let (reader, writer) = io::pipe().map_err(failed)?;
    let (output, end) = collect_output(reader).map_err(failed)?;
    let mut child = shell(folder, command)
        .stdout(writer.try_clone().map_err(failed)?)
        .stderr(writer)
        .spawn()
        .map_err(failed)?;
    let (status, why) = wait(&mut child, signals, limit).map_err(failed)?;
    // Output ends with its last writer; a process that left the group may keep the pipe open.
    let is_whole = end.recv_timeout(GRACE) != Err(mpsc::RecvTimeoutError::Timeout);
    let mut text = output.lock().unwrap_or_else(PoisonError::into_inner).text();
    if !is_whole {
        text.push_str("\n[a process that the command started is still running]");
    }
    Ok(outcome(status, why, text, limit))
}

/// Without the keys of the endpoint, which a command of the model could read and send.
fn shell(folder: &Path, command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(folder).stdin(Stdio::null()).process_group(0);
    for name in SECRET_VARIABLES {
        shell.env_remove(name);
    }
    shell
}

/// Why a command was no longer waited for.
enum StopReason {
    Ended,
    Interrupted,
    TooLong,
}

fn outcome(status: ExitStatus, why: StopReason, text: String, limit: Duration) -> Outcome {
    let last = text.trim_end().lines().next_back().unwrap_or_default().trim();
    let with = |what: String| if last.is_empty() { what } else { format!("{what}: {last}") };
    let (ok, line, ending) = match (why, status.code()) {
        (StopReason::Interrupted, _) => {
            let word = crate::builtin::conversation::INTERRUPTED;
            (false, word.to_owned(), Some(word.to_owned()))
        }
        (StopReason::TooLong, _) => {
            let ending = format!("stopped after {} s", limit.as_secs());
            (false, ending.clone(), Some(ending))
        }
        (StopReason::Ended, Some(0)) if last.is_empty() => {
            (true, "done, no output".to_owned(), None)
        }
        (StopReason::Ended, Some(0)) => (true, last.to_owned(), None),
        (StopReason::Ended, Some(code)) => {
            (false, with(format!("exit {code}")), Some(format!("exit code {code}")))
        }
        (StopReason::Ended, None) => {
            let ending = format!("ended by signal {}", status.signal().unwrap_or_default());
            (false, with(ending.clone()), Some(ending))
        }
    };
    let text = match ending {
        Some(ending) => format!("{}\n[{ending}]", text.trim_end()).trim_start().to_owned(),
        None if text.is_empty() => "[no output]".to_owned(),
        None => text,
    };
    Outcome { ok, line, text }
}

/// Waits until the command ends, is interrupted or reaches its limit, and kills its group.
fn wait(
    child: &mut Child,
    signals: &Signals,
    limit: Duration,
) -> io::Result<(ExitStatus, StopReason)> {
    let begun = Instant::now();
    let pid = Pid::from_child(child);
    let why = loop {
        // It stays in the process table for now, so that no other group can get its number.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if waitid(WaitId::Pid(pid), options)?.is_some() {
            break StopReason::Ended;
        }
        if !signals.sleep(POLL_INTERVAL) {
            break StopReason::Interrupted;
        }
        if begun.elapsed() > limit {
            break StopReason::TooLong;
        }
    };
    kill_process_group(pid, Signal::KILL)?;
    Ok((child.wait()?, why))
}

fn collect_output(mut reader: PipeReader) -> io::Result<(Arc<Mutex<BoundedOutput>>, Receiver<()>)> {
    let output = Arc::new(Mutex::new(BoundedOutput::default()));
    let (end, ended) = mpsc::channel();
    let to_fill = Arc::clone(&output);
    Builder::new().spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(read @ 1..) = reader.read(&mut buffer) {
            to_fill.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..read]);
        }
        // Signals the end of the output.
        drop(end);
    })?;
    Ok((output, ended))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the prepared command, not its output: a test cannot change its own environment.
    #[test]
    fn a_command_does_not_see_the_keys() {
        let shell = shell(Path::new("/"), "env");
        let removed: Vec<_> = shell.get_envs().filter(|(_, value)| value.is_none()).collect();
        let names: Vec<_> = removed.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(names, SECRET_VARIABLES);
    }
}
