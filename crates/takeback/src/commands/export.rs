//! `export`: points and the changes between them, in one file.

use std::io::{self, IsTerminal as _, Write};
use std::path::Path;

use takeback_core::exchange::{
    ExportError, ExportOptions, ExportReport, FileError, IgnoredPaths, Overwrite, Selection,
    export as pack, write_file,
};
use takeback_core::find_point;

use super::filediff::DAMAGED;
use super::sessions::find_session;
use crate::answers;
use crate::args::{ExportArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::progress;
use crate::screen::{HINT, SUCCESS, Screen, WARNING, bytes, count, name};
use crate::time::{now, parse};

pub(crate) fn export(
    options: &Options,
    args: &ExportArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    if args.point.is_some() && args.session.is_some() {
        let usage = CommandError::new(Kind::Usage, "POINT and --session cannot be combined");
        return Err(usage.hint("A bundle has one point, or the points of one session."));
    }
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let points = place.workspace.store.points()?;
    let time = now();
    let selection = match (&args.point, &args.session) {
        (Some(point), _) => {
            Selection::Point(find_point(&points, point, &|text| parse(text, time))?.id)
        }
        (None, Some(session)) => Selection::Session(find_session(&place.workspace, session)?),
        (None, None) => Selection::Everything,
    };
    let ignored = if args.include_ignored { IgnoredPaths::Include } else { IgnoredPaths::LeaveOut };
    let options = ExportOptions { selection, ignored };
    let workspace = &mut place.workspace;
    let writing = progress::spinner("Writing the bundle");
    if args.file == Path::new("-") {
        let mut out = io::stdout().lock();
        if out.is_terminal() {
            let usage = CommandError::new(
                Kind::Usage,
                "a bundle is binary and is not written to a terminal",
            );
            return Err(usage.hint("Name a file, or pipe the output."));
        }
        let exported = pack(workspace, &options, &mut out)?;
        drop(writing);
        // Standard output carries the bundle.
        return print_summary(&mut anstream::stderr().lock(), args, &exported, screen);
    }
    let overwrite = if args.force { Overwrite::Yes } else { Overwrite::No };
    let exported: ExportReport =
        write_file(&args.file, overwrite, |sink| pack(workspace, &options, sink))?;
    drop(writing);
    let mut out = std::mem::replace(&mut screen.out, Box::new(io::sink()));
    let printed = print_summary(&mut out, args, &exported, screen);
    screen.out = out;
    printed
}

fn print_summary(
    out: &mut dyn Write,
    args: &ExportArgs,
    exported: &ExportReport,
    screen: &Screen,
) -> Result<u8, CommandError> {
    if screen.json {
        let answer = answers::ExportAnswer {
            file: answers::place(&args.file),
            points: exported.points,
            changes: exported.changes,
            blobs: exported.blobs,
            bytes: exported.bytes,
            left_out: exported.left_out,
            damaged: exported.damaged.iter().map(answers::path).collect(),
            states_left_out: exported.states.map(|states| states.checkpoints),
        };
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
    } else if !screen.quiet {
        writeln!(
            out,
            "{SUCCESS}Exported{SUCCESS:#} {} and {}  {HINT}{} in {}{HINT:#}",
            count(exported.points, "point"),
            count(exported.changes, "change"),
            bytes(exported.bytes),
            args.file.display(),
        )?;
        if exported.left_out > 0 {
            writeln!(
                out,
                "{} left out: ignored, outside the workspace, or Takeback's own.{}",
                count(exported.left_out, "path"),
                if args.include_ignored {
                    String::new()
                } else {
                    format!(" {HINT}--include-ignored includes the first two.{HINT:#}")
                },
            )?;
        }
        tell_states(out, exported)?;
    }
    if exported.damaged.is_empty() {
        return Ok(0);
    }
    if !screen.json {
        for path in &exported.damaged {
            writeln!(out, "{WARNING}missing{WARNING:#}  {}  {HINT}{DAMAGED}{HINT:#}", name(path))?;
        }
        writeln!(out, "{HINT}`takeback verify` shows what is damaged.{HINT:#}")?;
    }
    Ok(Kind::Conflicts as u8)
}

/// A bundle has no agent states, only files.
fn tell_states(out: &mut dyn Write, exported: &ExportReport) -> io::Result<()> {
    const NOT: &str = "Agent states are not included";
    match exported.states {
        Some(states) if states.checkpoints == 0 => Ok(()),
        Some(states) => writeln!(
            out,
            "{WARNING}{NOT}:{WARNING:#} {} of {} left out.  \
             {HINT}`takeback state export EXECUTION` writes them.{HINT:#}",
            count(usize::try_from(states.checkpoints).unwrap_or(usize::MAX), "checkpoint"),
            count(states.executions, "execution"),
        ),
        None => writeln!(
            out,
            "{WARNING}{NOT},{WARNING:#} and they cannot be read.  \
             {HINT}`takeback verify` shows what is damaged.{HINT:#}",
        ),
    }
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Taken { .. } => Self::new(Kind::Usage, error)
                .hint("Choose another name, or replace it with --force."),
            FileError::NotAFile { .. } => {
                Self::new(Kind::Usage, error).hint("Choose another name.")
            }
            FileError::Io { .. } => Self::new(Kind::Error, error),
        }
    }
}

impl From<ExportError> for CommandError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Store(error) => error.into(),
            ExportError::Record(error) => error.into(),
            ExportError::File(error) => error.into(),
            ExportError::Locked => {
                Self::new(Kind::Locked, error).hint("Wait until it is done, then try again.")
            }
            ExportError::NoPoint(_) | ExportError::NoSession(_) => {
                Self::new(Kind::Error, error).hint("`takeback log` lists points and sessions.")
            }
            ExportError::SafetyPoint(_) => {
                Self::new(Kind::Usage, error).hint("Choose a point that `takeback log` lists.")
            }
            ExportError::NoPoints => {
                Self::new(Kind::Error, error).hint("`takeback checkpoint` makes one.")
            }
            ExportError::Inconsistent { .. } => {
                Self::new(Kind::Error, error).hint("`takeback verify` shows what is damaged.")
            }
            ExportError::RecordTooLarge { .. } | ExportError::Sink { .. } => {
                Self::new(Kind::Error, error)
            }
        }
    }
}
