//! `purge`: removes a path from the store.

use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

use takeback_agents::rewrite_metadata;
use takeback_core::{PurgeError, PurgeReport, Scrubber, Workspace, purge as take_out, would_purge};
use takeback_store::WorkPath;

use crate::answers;
use crate::args::{Options, PurgeArgs};
use crate::ask;
use crate::error::{CommandError, Kind, locked};
use crate::place::{self, Store};
use crate::progress;
use crate::screen::{HEADING, HINT, NAME, SUCCESS, Screen, bytes, count, is_interactive, name};

pub(crate) fn purge(
    options: &Options,
    args: &PurgeArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let path = path_of(&place.workspace, options, &args.path)?;
    let would = would_purge(&place.workspace, &path)?;
    if !args.yes && !args.dry_run && (!is_interactive() || screen.json) {
        return Err(ask::needs_confirmation("removes history"));
    }
    let on_disk = place.workspace.absolute(&path).symlink_metadata().is_ok();
    if args.dry_run || !args.yes {
        if args.dry_run && screen.json {
            screen.json(&answer(&path, &would, on_disk, false))?;
            return Ok(0);
        }
        writeln!(screen.out, "{HEADING}Purge {}{HEADING:#}\n", name(&path))?;
        print_result(&path, &would, on_disk, "would be removed from the store", screen)?;
        if args.dry_run {
            return Ok(0);
        }
        if !ask::confirmed(screen)? {
            writeln!(screen.out, "Nothing was changed.")?;
            return Ok(Kind::Nothing as u8);
        }
    }
    let spinner = progress::spinner("Purging");
    let done = take_out(&mut place.workspace, &path);
    drop(spinner);
    let (purged, scrubber) = done?;
    clean_metadata(options, &scrubber)?;
    if screen.json {
        screen.json(&answer(&path, &purged, on_disk, true))?;
    } else if !screen.quiet {
        writeln!(screen.out, "{SUCCESS}Purged{SUCCESS:#} {NAME}{}{NAME:#}", name(&path))?;
        print_result(&path, &purged, on_disk, "removed from the store", screen)?;
    }
    Ok(0)
}

/// Relative to the current folder. Links are not followed, since a link has its own history.
fn path_of(
    workspace: &Workspace,
    options: &Options,
    path: &Path,
) -> Result<WorkPath, CommandError> {
    let mut plain = PathBuf::new();
    for part in place::start(options)?.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    use std::os::unix::ffi::OsStrExt as _;
    let inside = plain.strip_prefix(workspace.root.path()).unwrap_or(&plain);
    WorkPath::new(inside.as_os_str().as_bytes()).map_err(|_no_name| {
        let whole = format!("{} is the whole workspace", path.display());
        CommandError::new(Kind::Usage, whole).hint("`takeback forget` deletes its store.")
    })
}

fn answer(
    path: &WorkPath,
    purged: &PurgeReport,
    on_disk: bool,
    is_done: bool,
) -> answers::PurgeAnswer {
    let PurgeReport { paths, versions, bytes, shared, points } = purged;
    answers::PurgeAnswer {
        path: answers::path(path),
        purged: is_done,
        paths: paths.len(),
        versions: *versions,
        bytes: *bytes,
        shared: *shared,
        points: *points,
        on_disk,
    }
}

fn print_result(
    path: &WorkPath,
    purged: &PurgeReport,
    on_disk: bool,
    what: &str,
    screen: &mut Screen,
) -> std::io::Result<()> {
    let out = &mut screen.out;
    let (paths, versions) = (count(purged.paths.len(), "path"), count(purged.versions, "version"));
    writeln!(out, "  {paths} with {versions} ({}) {what}", bytes(purged.bytes))?;
    if purged.shared > 0 {
        let shared = count(purged.shared, "version");
        writeln!(out, "  {HINT}{shared} stay: other files have the same contents{HINT:#}")?;
    }
    if purged.points > 0 {
        let points = count(purged.points, "point");
        writeln!(out, "  {HINT}{points} will report it as missing (purged){HINT:#}")?;
    }
    if on_disk {
        let name = name(path);
        writeln!(out, "  {HINT}{name} stays on disk; the next scan records it again{HINT:#}")?;
        writeln!(out, "  {HINT}unless a line in .takebackignore excludes it{HINT:#}")?;
    }
    Ok(())
}

/// Cleans the prompts that `takeback chat` writes for other programs.
fn clean_metadata(options: &Options, scrubber: &Scrubber) -> Result<(), CommandError> {
    let sessions = place::home(options)?.join("sessions");
    rewrite_metadata(&sessions, |text| scrubber.text(text))
        .map_err(|error| CommandError::new(Kind::Error, error))
}

impl From<PurgeError> for CommandError {
    fn from(error: PurgeError) -> Self {
        match error {
            PurgeError::Unknown { .. } => Self::new(Kind::Nothing, error)
                .hint("Paths are relative to the current folder. `takeback du` lists paths."),
            PurgeError::Locked => locked(error),
            PurgeError::Record(error) => error.into(),
            PurgeError::Rewind(error) => error.into(),
            PurgeError::Store(error) => error.into(),
            PurgeError::Stage(_) | PurgeError::Remove { .. } => Self::new(Kind::Error, error),
        }
    }
}
