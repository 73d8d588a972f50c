//! `shell`: a command in a process group of its own, which ends with it.
//!
//! What a command leaves running would write when nobody records it, or after the turn was said to
//! have ended. So the whole group is killed when the command ends, when the turn is interrupted, and
//! when the time is over. Only a process that leaves the group on purpose gets away.

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
use super::limit::Kept;
use crate::builtin::endpoint::SECRET_VARIABLES;
use crate::builtin::signals::Signals;

/// How often a running command is looked at.
const GLANCE: Duration = Duration::from_millis(10);

/// How long the output of a process that left the group is waited for.
const GRACE: Duration = Duration::from_millis(500);

pub(super) fn run(
    folder: &Path,
    command: &str,
    signals: &Signals,
    limit: Duration,
) -> Result<Outcome, String> {
    let failed = |error: io::Error| format!("sh cannot be run: {error}");
    let (reader, writer) = io::pipe().map_err(failed)?;
    let (kept, end) = listen(reader).map_err(failed)?;
    let mut child = shell(folder, command)
        .stdout(writer.try_clone().map_err(failed)?)
        .stderr(writer)
        .spawn()
        .map_err(failed)?;
    let (status, why) = wait(&mut child, signals, limit).map_err(failed)?;
    // The end comes when the last writer has gone; whoever left the group may keep it open.
    let is_whole = end.recv_timeout(GRACE) != Err(mpsc::RecvTimeoutError::Timeout);
    let mut text = kept.lock().unwrap_or_else(PoisonError::into_inner).text();
    if !is_whole {
        text.push_str("\n[something that the command started goes on elsewhere]");
    }
    Ok(outcome(status, why, text, limit))
}

/// Without the keys of the endpoint: whatever the model runs could read and send them.
fn shell(folder: &Path, command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(folder).stdin(Stdio::null()).process_group(0);
    for name in SECRET_VARIABLES {
        shell.env_remove(name);
    }
    shell
}

enum Why {
    Ended,
    Interrupted,
    TooLong,
}

fn outcome(status: ExitStatus, why: Why, text: String, limit: Duration) -> Outcome {
    let last = text.trim_end().lines().next_back().unwrap_or_default().trim();
    let with = |what: String| if last.is_empty() { what } else { format!("{what}: {last}") };
    let (ok, line, ending) = match (why, status.code()) {
        (Why::Interrupted, _) => {
            let word = crate::builtin::conversation::INTERRUPTED;
            (false, word.to_owned(), Some(word.to_owned()))
        }
        (Why::TooLong, _) => {
            let ending = format!("stopped after {} s", limit.as_secs());
            (false, ending.clone(), Some(ending))
        }
        (Why::Ended, Some(0)) if last.is_empty() => (true, "done, no output".to_owned(), None),
        (Why::Ended, Some(0)) => (true, last.to_owned(), None),
        (Why::Ended, Some(code)) => {
            (false, with(format!("exit {code}")), Some(format!("exit code {code}")))
        }
        (Why::Ended, None) => {
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

/// Waits until the command has ended or has to, and ends its group.
fn wait(child: &mut Child, signals: &Signals, limit: Duration) -> io::Result<(ExitStatus, Why)> {
    let begun = Instant::now();
    let pid = Pid::from_child(child);
    let why = loop {
        // Not taken out of the process table yet: until then no other group can have its number.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        if waitid(WaitId::Pid(pid), options)?.is_some() {
            break Why::Ended;
        }
        if !signals.sleep(GLANCE) {
            break Why::Interrupted;
        }
        if begun.elapsed() > limit {
            break Why::TooLong;
        }
    };
    kill_process_group(pid, Signal::KILL)?;
    Ok((child.wait()?, why))
}

fn listen(mut reader: PipeReader) -> io::Result<(Arc<Mutex<Kept>>, Receiver<()>)> {
    let kept = Arc::new(Mutex::new(Kept::default()));
    let (end, ended) = mpsc::channel();
    let to_fill = Arc::clone(&kept);
    Builder::new().spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(read @ 1..) = reader.read(&mut buffer) {
            to_fill.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..read]);
        }
        // Dropped with this thread, which is the word that the end has come.
        drop(end);
    })?;
    Ok((kept, ended))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asked of the command, not of its output: a test does not change its own environment.
    #[test]
    fn a_command_does_not_see_the_keys() {
        let shell = shell(Path::new("/"), "env");
        let removed: Vec<_> = shell.get_envs().filter(|(_, value)| value.is_none()).collect();
        let names: Vec<_> = removed.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(names, SECRET_VARIABLES);
    }
}
