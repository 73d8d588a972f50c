//! The command that `compare` runs in each fork.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use takeback_store::map_in_parallel;

use crate::answers;
use crate::error::{CommandError, Kind};
use crate::place::quoted;
use crate::screen::{HINT, Screen};

/// How the command ended in one fork.
#[derive(Debug, Clone)]
pub(crate) struct CommandResult {
    /// `None`: a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) time: Duration,
    /// The last line that it printed and that is not empty.
    pub(crate) last_line: Option<String>,
}

impl CommandResult {
    pub(crate) fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    pub(crate) fn describe(&self) -> String {
        match self.code {
            Some(code) => format!("exit {code}"),
            None => "killed".to_owned(),
        }
    }

    pub(crate) fn answer(&self) -> answers::CommandResult {
        answers::CommandResult {
            exit_code: self.code,
            milliseconds: u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
            last_line: self.last_line.clone(),
        }
    }
}

/// Runs the command in each folder, `jobs` at once.
pub(super) fn run_in_all(
    command: &[OsString],
    folders: &[&Path],
    jobs: u16,
    screen: &Screen,
) -> Result<Vec<CommandResult>, CommandError> {
    let is_silent = screen.json || screen.quiet;
    let shows_output = screen.verbose;
    let mut results = Vec::new();
    for group in folders.chunks(usize::from(jobs.max(1))) {
        if !is_silent {
            let names: Vec<String> = group.iter().map(|folder| quoted(folder)).collect();
            // Progress is not the answer.
            drop(writeln!(anstream::stderr(), "{HINT}running in {}{HINT:#}", names.join(", ")));
        }
        for (folder, ran) in
            group.iter().zip(map_in_parallel(group, group.len(), |folder| run(command, folder)))
        {
            let (result, output) = ran.map_err(|error| cannot_start(command, folder, &error))?;
            if shows_output {
                drop(anstream::stderr().write_all(&output));
            }
            results.push(result);
        }
    }
    Ok(results)
}

fn cannot_start(command: &[OsString], folder: &Path, error: &io::Error) -> CommandError {
    let program = quoted(Path::new(&command[0]));
    let text = format!("{program} could not run in {}: {error}", folder.display());
    CommandError::new(Kind::Error, text).hint("Use `sh -c '…'` for shell syntax.")
}

/// The result, and what the command printed at the end.
fn run(command: &[OsString], folder: &Path) -> io::Result<(CommandResult, Vec<u8>)> {
    // Both streams go into one file, so that their lines stay in order.
    let mut output = tempfile::tempfile()?;
    let began = Instant::now();
    let status = Command::new(&command[0])
        .args(&command[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .status()?;
    let time = began.elapsed();
    let printed = end_of(&mut output)?;
    let last_line = last_line(&printed);
    Ok((CommandResult { code: status.code(), time, last_line }, printed))
}

/// The last part of a file.
fn end_of(file: &mut File) -> io::Result<Vec<u8>> {
    const MOST: u64 = 64 << 10;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    Ok(end)
}

fn last_line(printed: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(printed);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.to_owned())
}
