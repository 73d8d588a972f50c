//! `export --agent-trace`: who wrote which lines, as Agent Trace records.

use std::io::{self, Write};
use std::path::Path;

use takeback_core::attribution::{TraceReport, TraceRequest, traces};
use takeback_core::exchange::{IgnoredPaths, Overwrite, write_file};
use takeback_core::look_around;

use super::sessions::find_session;
use crate::answers;
use crate::args::{ExportArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::find_in;
use crate::screen::{HINT, SUCCESS, Screen, WARNING, count, name, plain};
use crate::time::{iso, now};

pub(crate) fn export_trace(
    options: &Options,
    args: &ExportArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    look_around(&mut place.workspace)?;
    let workspace = &place.workspace;
    let session =
        args.session.as_ref().map(|session| find_session(workspace, session)).transpose()?;
    let point = args.point.as_ref().map(|point| find_in(&*workspace.store, point)).transpose()?;
    let written_at = iso(now());
    let report = traces(
        workspace,
        &TraceRequest {
            session: session.as_ref(),
            point: point.as_ref(),
            ignored: if args.include_ignored {
                IgnoredPaths::Include
            } else {
                IgnoredPaths::LeaveOut
            },
            written_at: &written_at,
        },
    )?;
    if args.file == Path::new("-") {
        write_records(&report, &mut io::stdout().lock())?;
        return print_summary(&mut anstream::stderr().lock(), args, &report, screen);
    }
    let overwrite = if args.force { Overwrite::Yes } else { Overwrite::No };
    write_file(&args.file, overwrite, |sink| write_records(&report, sink))?;
    let mut out = std::mem::replace(&mut screen.out, Box::new(io::sink()));
    let printed = print_summary(&mut out, args, &report, screen);
    screen.out = out;
    printed
}

/// One record on each line.
fn write_records(report: &TraceReport, out: &mut dyn Write) -> Result<(), CommandError> {
    for record in &report.records {
        writeln!(out, "{}", serde_json::to_string(record)?)?;
    }
    out.flush()?;
    Ok(())
}

fn print_summary(
    out: &mut dyn Write,
    args: &ExportArgs,
    report: &TraceReport,
    screen: &Screen,
) -> Result<u8, CommandError> {
    if screen.json {
        let answer = answers::TraceExportAnswer {
            file: answers::place(&args.file),
            records: report.records.len(),
            files: report.files,
            ai_lines: report.ai,
            doubtful_lines: report.doubtful,
            human_lines: report.human,
            unknown_lines: report.unknown,
            not_followed: report
                .not_followed
                .iter()
                .map(|path| answers::path(path).file_path)
                .collect(),
            problems: report.problems.iter().cloned().collect(),
        };
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
    } else if !screen.quiet {
        let doubt = match report.doubtful {
            0 => String::new(),
            doubtful => format!(" ({doubtful} doubtful)"),
        };
        writeln!(
            out,
            "{SUCCESS}Exported{SUCCESS:#} {} of {}: {} by agents{doubt}, {} by you, {} unknown  \
             {HINT}{} in {}{HINT:#}",
            count(report.ai + report.human + report.unknown, "line"),
            count(report.files, "file"),
            report.ai,
            report.human,
            report.unknown,
            count(report.records.len(), "record"),
            args.file.display(),
        )?;
        for path in &report.not_followed {
            writeln!(
                out,
                "{WARNING}left out{WARNING:#}  {}  {HINT}its lines cannot be followed{HINT:#}",
                name(path)
            )?;
        }
        for problem in &report.problems {
            writeln!(out, "{WARNING}not asked:{WARNING:#} {}", plain(problem))?;
        }
    }
    Ok(if report.not_followed.is_empty() { 0 } else { Kind::Conflicts as u8 })
}
