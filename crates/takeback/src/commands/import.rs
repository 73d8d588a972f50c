//! `import`: adds points to this workspace, from a bundle or from an agent's own session history.

mod claude;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use takeback_core::exchange::{
    BundleError, BundleFile, BundleLimits, ImportError, ImportMode, ImportReport, OutsidePolicy,
    import as append, would_import,
};

use crate::answers;
use crate::args::{ImportArgs, ImportFrom, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::progress;
use crate::screen::{HINT, NAME, SUCCESS, Screen, WARNING, count, plain, shorten, width};

/// The file, and what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("{file} is refused")]
struct RefusedBundle {
    file: String,
    source: BundleError,
}

pub(crate) fn import(
    options: &Options,
    args: &ImportArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    match args.from {
        Some(ImportFrom::Claude) => return claude::import(options, args, screen),
        None => {}
    }
    let Some(named) = &args.file else {
        return Err(CommandError::new(Kind::Usage, "no file given"));
    };
    let outside = if args.include_ignored { OutsidePolicy::Accept } else { OutsidePolicy::Refuse };
    let limits = BundleLimits { contents: args.max_size, outside };
    let from_input = named == Path::new("-");
    let file = if from_input { PathBuf::from("standard input") } else { named.clone() };
    let opened = if from_input { copy_stdin(&limits) } else { open_file(named) };
    let opened = opened.map_err(|error| {
        CommandError::new(Kind::Error, format!("{} cannot be read: {error}", file.display()))
    })?;
    // Checked before the store is opened: a refused file must not create one.
    let checking = progress::spinner("Checking the bundle");
    let bundle = BundleFile::read(opened, &limits).map_err(|error| refused(&file, error))?;
    drop(checking);
    let trial = if args.dry_run { ImportMode::DryRun } else { ImportMode::ForReal };
    let imported = import_bundle(options, &bundle, trial, &file)?;
    if screen.json {
        screen.json(&answer(&imported))?;
    } else if !screen.quiet {
        print_summary(&imported, trial, screen)?;
        if trial == ImportMode::ForReal {
            writeln!(
                screen.out,
                "Your files were not changed. {HINT}`takeback rewind ID --exact` restores the \
                 files of a point.{HINT:#}",
            )?;
        }
    }
    Ok(0)
}

/// Imports the bundle, or with a dry run counts what that would add. `from`: its name for messages.
fn import_bundle(
    options: &Options,
    bundle: &BundleFile,
    trial: ImportMode,
    from: &Path,
) -> Result<ImportReport, CommandError> {
    let store = if trial == ImportMode::DryRun { Store::MustExist } else { Store::Create };
    let imported = match place::open_recovered(options, store) {
        Ok(mut place) => append(&mut place.workspace, bundle, trial),
        // A dry run must not create a store.
        Err(error) if trial == ImportMode::DryRun && error.kind == Kind::NoStore => {
            would_import(bundle, &place::ambient())
        }
        Err(error) => return Err(error),
    };
    imported.map_err(|error| match error {
        ImportError::Bundle(error) => refused(from, error),
        ImportError::Locked => {
            CommandError::new(Kind::Locked, error).hint("Wait until it is done, then try again.")
        }
        ImportError::Recover(error) => error.into(),
        ImportError::Record(error) => error.into(),
        ImportError::Store(error) => error.into(),
    })
}

/// Opening a pipe may block forever.
fn open_file(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    File::open(path)
}

/// Standard input as a file without a name: a bundle is read more than once.
fn copy_stdin(limits: &BundleLimits) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    // One byte more than the limit, so that a bundle that is too long is not mistaken for one that was cut
    // off.
    let most = limits.contents.saturating_mul(2).saturating_add(1 << 30);
    io::copy(&mut io::stdin().lock().take(most), &mut file)?;
    file.rewind()?;
    Ok(file)
}

fn refused(file: &Path, error: BundleError) -> CommandError {
    let hint = match &error {
        BundleError::Newer { .. } => "Update Takeback; nothing was imported.",
        BundleError::Foreign => "`takeback export` writes bundles; nothing was imported.",
        BundleError::Cut | BundleError::Damaged | BundleError::Changed => {
            "Copy it or export it again; nothing was imported."
        }
        BundleError::Outside { .. } => {
            "If you trust the file, --include-ignored accepts such paths; nothing was imported."
        }
        BundleError::TooLarge { .. } => {
            "If you trust the file, --max-size allows more; nothing was imported."
        }
        BundleError::Io { .. } => "Nothing was imported.",
        _ => "It was not written by Takeback; nothing was imported.",
    };
    let file = file.display().to_string();
    CommandError::new(Kind::Error, RefusedBundle { file, source: error }).hint(hint)
}

fn answer(imported: &ImportReport) -> answers::ImportAnswer {
    let points = imported.points.iter().map(|point| answers::ImportedPoint {
        id: answers::Id::new(point.id),
        was: Some(answers::Id::new(point.was)),
        label: point.label.clone(),
        description: point.description.clone(),
        message_ids: None,
    });
    let sessions = imported.sessions.iter().map(|session| answers::ImportedSession {
        id: session.id.0.clone(),
        was: session.was.as_ref().map(|was| was.0.clone()),
    });
    answers::ImportAnswer {
        points: points.collect(),
        sessions: sessions.collect(),
        changes: imported.changes,
        blobs: imported.blobs,
        steps_without_state: imported.steps,
        passed_over: None,
    }
}

fn print_summary(
    imported: &ImportReport,
    trial: ImportMode,
    screen: &mut Screen,
) -> io::Result<()> {
    let did = match trial {
        ImportMode::DryRun => "Would import",
        ImportMode::ForReal => "Imported",
    };
    let out = &mut screen.out;
    writeln!(
        out,
        "{SUCCESS}{did}{SUCCESS:#} {} and {}  {HINT}{}, {}{HINT:#}",
        count(imported.points.len(), "point"),
        count(imported.sessions.len(), "session"),
        count(imported.changes, "change"),
        count(imported.blobs, "new blob"),
    )?;
    for point in &imported.points {
        let id = point.id.to_string();
        let label = point.label.as_ref().map(|label| format!("[{}]", plain(label)));
        let description = Some(plain(&point.description))
            .filter(|text| !text.is_empty() && Some(&point.description) != point.label.as_ref());
        let title: Vec<String> = [label, description].into_iter().flatten().collect();
        let title = shorten(&title.join(" "), width().saturating_sub(12).max(20));
        writeln!(out, "  {NAME}{}{NAME:#}  {title}", &id[..8])?;
        if let Some(wanted) = &point.wanted_label {
            writeln!(
                out,
                "            {HINT}the label “{}” is already used here{HINT:#}",
                plain(wanted)
            )?;
        }
    }
    if imported.steps > 0 {
        writeln!(
            out,
            "{WARNING}Agent states are not included:{WARNING:#} {} of an agent {} its files only.  \
             {HINT}`takeback state export` writes states.{HINT:#}",
            count(imported.steps, "step"),
            if imported.steps == 1 { "has" } else { "have" },
        )?;
    }
    Ok(())
}
