//! `export --patch` and `export --git`: turns as patches for `git am`, or as commits on a new branch.

use std::io::{self, Write};
use std::path::Path;

use takeback_agents::agent_named;
use takeback_core::exchange::{
    CommitNames, IgnoredPaths, Overwrite, Selection, SeriesError, SeriesOptions, SeriesReport,
    export_branch, export_patches, write_file,
};
use takeback_core::{GitError, Workspace, look_around};

use super::sessions::find_session;
use crate::answers;
use crate::args::{ExportArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::find_in;
use crate::progress;
use crate::screen::{HINT, SUCCESS, Screen, WARNING, count, name, plain};

const NAMES: CommitNames = CommitNames { agent: |name| agent_named(name).map(|agent| agent.title) };

/// What the command line asks for.
fn series_options(workspace: &Workspace, args: &ExportArgs) -> Result<SeriesOptions, CommandError> {
    let selection = match (&args.point, &args.session) {
        (Some(_), Some(_)) => {
            let usage = CommandError::new(Kind::Usage, "POINT and --session cannot be combined");
            return Err(usage.hint("Choose the turn of one point, or those of one session."));
        }
        (Some(point), None) => Selection::Point(find_in(&*workspace.store, point)?.id),
        (None, Some(session)) => Selection::Session(find_session(workspace, session)?),
        (None, None) => Selection::Everything,
    };
    let ignored = if args.include_ignored { IgnoredPaths::Include } else { IgnoredPaths::LeaveOut };
    Ok(SeriesOptions { selection, ignored })
}

pub(crate) fn export_commits(
    options: &Options,
    args: &ExportArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let Some(branch) = args.file.to_str() else {
        return Err(CommandError::new(Kind::Usage, "the name of a branch must be UTF-8"));
    };
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let wanted = series_options(&place.workspace, args)?;
    look_around(&mut place.workspace)?;
    let writing = progress::spinner("Writing commits");
    let scratch = tempfile::Builder::new().prefix("takeback-export-").tempdir()?;
    let report = export_branch(&mut place.workspace, &wanted, NAMES, branch, scratch.path())?;
    drop(writing);
    let mut out = std::mem::replace(&mut screen.out, Box::new(io::sink()));
    let what = format!("{} on branch {}", count(report.commits, "commit"), plain(branch));
    let hint = format!("`git log -p {}` shows them", plain(branch));
    let printed = print_summary(&mut out, args, &report, screen, (&what, &hint));
    screen.out = out;
    printed
}

pub(crate) fn export_patch_series(
    options: &Options,
    args: &ExportArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let wanted = series_options(&place.workspace, args)?;
    look_around(&mut place.workspace)?;
    let writing = progress::spinner("Writing patches");
    let scratch = tempfile::Builder::new().prefix("takeback-export-").tempdir()?;
    let (patches, report) = export_patches(&mut place.workspace, &wanted, NAMES, scratch.path())?;
    drop(writing);
    let patches_in = if report.commits == 1 { "patch" } else { "patches" };
    let what = format!("{} {patches_in} in {}", report.commits, args.file.display());
    let hint = format!("`git am --keep-cr {}` applies them", args.file.display());
    if args.file == Path::new("-") {
        io::stdout().lock().write_all(&patches)?;
        // Standard output carries the patches.
        return print_summary(
            &mut anstream::stderr().lock(),
            args,
            &report,
            screen,
            (&what, "`git am --keep-cr` applies them"),
        );
    }
    let overwrite = if args.force { Overwrite::Yes } else { Overwrite::No };
    write_file(&args.file, overwrite, |sink| -> Result<(), CommandError> {
        Ok(sink.write_all(&patches)?)
    })?;
    let mut out = std::mem::replace(&mut screen.out, Box::new(io::sink()));
    let printed = print_summary(&mut out, args, &report, screen, (&what, &hint));
    screen.out = out;
    printed
}

fn print_summary(
    out: &mut dyn Write,
    args: &ExportArgs,
    report: &SeriesReport,
    screen: &Screen,
    (what, hint): (&str, &str),
) -> Result<u8, CommandError> {
    if screen.json {
        let answer = answers::SeriesExportAnswer {
            file: args.patch.then(|| answers::place(&args.file)),
            branch: args.git.then(|| args.file.to_string_lossy().into_owned()),
            commits: report.commits,
            tip: report.tip.clone(),
            parent: report.parent.clone(),
            left_out: report.left_out,
            not_captured: report
                .gaps
                .iter()
                .map(|(path, reason)| answers::note(path, reason))
                .collect(),
        };
        writeln!(out, "{}", serde_json::to_string(&answer)?)?;
    } else {
        if !screen.quiet {
            writeln!(out, "{SUCCESS}Exported{SUCCESS:#} {what}  {HINT}{hint}{HINT:#}")?;
            if report.left_out > 0 {
                writeln!(
                    out,
                    "{} left out: ignored, outside the workspace, or in a repository of their own.",
                    count(report.left_out, "path"),
                )?;
            }
        }
        for (path, reason) in &report.gaps {
            writeln!(
                out,
                "{WARNING}not captured{WARNING:#}  {}  {HINT}{}{HINT:#}",
                name(path),
                plain(reason)
            )?;
        }
    }
    Ok(if report.gaps.is_empty() { 0 } else { Kind::Conflicts as u8 })
}

impl From<SeriesError> for CommandError {
    fn from(error: SeriesError) -> Self {
        match error {
            SeriesError::Export(error) => error.into(),
            SeriesError::Git(GitError::NotInstalled) => {
                Self::new(Kind::Error, GitError::NotInstalled)
                    .hint("Install git, or export a bundle: `takeback export FILE`.")
            }
            SeriesError::Git(_) => Self::new(Kind::Error, error),
            SeriesError::NoRepository => Self::new(Kind::Error, error)
                .hint("`takeback export --patch FILE` needs no repository; `git init` makes one."),
            SeriesError::BadName(_) => Self::new(Kind::Usage, error).hint("Choose another name."),
            SeriesError::BranchTaken(_) => Self::new(Kind::Usage, error)
                .hint("Choose another name: an existing branch is never changed."),
            SeriesError::NoChanges => {
                Self::new(Kind::Error, error).hint("`takeback log` shows what each point changed.")
            }
        }
    }
}
