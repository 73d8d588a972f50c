//! `workspaces`, `forget` and `relocate`: the stores of this user.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use takeback_core::check_root;
use takeback_core::fork::Origin;
use takeback_store::{PointKind, StoreError, Timestamp};

use super::compare::origin_answer;
use super::disk_limits;
use crate::answers;
use crate::args::{ForgetArgs, Options, RelocateArgs};
use crate::ask;
use crate::error::{CommandError, Kind};
use crate::place::{self, user_home};
use crate::screen::{
    HINT, NAME, SUCCESS, Screen, WARNING, bytes, count, full_width, is_interactive, plain,
};
use crate::settings::Settings;
use crate::size::folder_bytes;
use crate::stores::{self, StoreFolder};
use crate::table::{Cell, Overflow, Table};
use crate::time::{ago, now};

pub(crate) fn workspaces(options: &Options, screen: &mut Screen) -> Result<u8, CommandError> {
    let home = place::home(options)?;
    stores::clear_leftovers(&home)?;
    let stores = stores::stores(&home);
    let all: Vec<StoreDetails> = stores.iter().map(|kept| StoreDetails::of(kept, &home)).collect();
    if screen.json {
        let answer: answers::WorkspacesAnswer = all.iter().map(StoreDetails::answer).collect();
        screen.json(&answer)?;
        return Ok(0);
    }
    if all.is_empty() {
        writeln!(screen.out, "{HINT}No folder is protected.{HINT:#}")?;
    }
    let time = now();
    let overflows = [
        Overflow::Start(16),
        Overflow::All(1),
        Overflow::All(2),
        Overflow::All(3),
        Overflow::Nothing,
        Overflow::All(4),
    ];
    let mut table = Table::new(0, overflows);
    for one in &all {
        let points = match &one.inside {
            Ok(inside) => Cell::plain(count(inside.points, "point")),
            Err(_) => Cell::new(WARNING, "unreadable"),
        };
        let active = one.inside.as_ref().ok().and_then(|inside| inside.last_activity);
        let there = one.exists || one.inside.is_err();
        table.rows.push([
            Cell::new(NAME, one.root()),
            points,
            Cell::plain(bytes(one.bytes)),
            Cell::new(HINT, active.map(|active| ago(active, time)).unwrap_or_default()),
            Cell::new(WARNING, if there { "" } else { "no longer exists" }),
            Cell::new(HINT, one.origin.as_ref().map(fork_of).unwrap_or_default()),
        ]);
    }
    screen.page()?;
    table.print_within(full_width(), &mut screen.out)?;
    let location = place::locate(options)?;
    let usage = disk_limits::Home::of(&home, &Settings::load(&location.root, &home)?);
    if usage.is_over() {
        writeln!(screen.out, "\n{WARNING}{}{WARNING:#}", usage.words())?;
    }
    Ok(0)
}

pub(crate) fn forget(
    options: &Options,
    args: &ForgetArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let home = place::home(options)?;
    stores::clear_leftovers(&home)?;
    let root = match &args.folder {
        Some(folder) => stores::real_path(&place::start(options)?.join(folder))?,
        None => place::locate(options)?.root,
    };
    let kept = known(&root, &home)?;
    let details = StoreDetails::of(&kept, &home);
    if unfinished(&kept) {
        let own = kept.root.join(".takeback");
        return Err(CommandError::new(
            Kind::Error,
            format!("a rewind in {} is not finished", kept.root.display()),
        )
        .hint(format!(
            "`takeback recover` finishes it; keep or remove what is then left in {}.",
            own.display()
        )));
    }
    if !args.yes && !args.dry_run && (!is_interactive() || screen.json) {
        return Err(ask::needs_confirmation("deletes what was recorded"));
    }
    let what = match &details.inside {
        Ok(inside) => format!("{}, {}", count(inside.points, "point"), bytes(details.bytes)),
        Err(_) => bytes(details.bytes),
    };
    if !args.yes && !screen.json {
        writeln!(screen.out, "Delete the history of {}: {what}.", details.root())?;
        writeln!(
            screen.out,
            "{HINT}Your files are not touched; earlier changes can no longer be taken back.{HINT:#}"
        )?;
    }
    if !args.dry_run {
        if !args.yes && !ask::confirmed(screen)? {
            writeln!(screen.out, "Nothing was changed.")?;
            return Ok(Kind::Nothing as u8);
        }
        let _alone = stores::lock_exclusively(&kept.folder)?;
        stores::remove(&kept.folder, &home)?;
    }
    if screen.json {
        screen.json(&answers::ForgetAnswer {
            workspace: details.answer(),
            forgotten: !args.dry_run,
        })?;
    } else if !args.dry_run && !screen.quiet {
        writeln!(
            screen.out,
            "{SUCCESS}Deleted the history of{SUCCESS:#} {}  {HINT}{what}{HINT:#}",
            details.root()
        )?;
    }
    Ok(0)
}

pub(crate) fn relocate(
    options: &Options,
    args: &RelocateArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let home = place::home(options)?;
    let start = place::start(options)?;
    let old = stores::real_path(&start.join(&args.old))?;
    let new = args.new.as_ref().map_or_else(|| start.clone(), |new| start.join(new));
    let kept = known(&old, &home)?;
    if old.is_dir() {
        return Err(CommandError::new(
            Kind::Usage,
            format!("{} is still there and protected", old.display()),
        )
        .hint("Only the store of a moved folder can be relocated."));
    }
    let new = check_root(
        &new,
        &stores::store_of(&stores::real_path(&new)?, &home),
        user_home().as_deref(),
    )?;
    if stores::is_protected(&new, &home) {
        return Err(CommandError::new(
            Kind::Usage,
            format!("{} has a store of its own", new.display()),
        )
        .hint("If you do not need what is in it, `takeback forget` removes it."));
    }
    if !args.dry_run {
        let _alone = stores::lock_exclusively(&kept.folder)?;
        stores::relocate(&kept.folder, &new, &home)?;
    }
    if screen.json {
        screen.json(&answers::RelocateAnswer {
            from: answers::place(&old),
            to: answers::place(&new),
            store: answers::place(&stores::store_of(&new, &home)),
            relocated: !args.dry_run,
        })?;
    } else if !screen.quiet || args.dry_run {
        let verb =
            if args.dry_run { "Would reconnect the store to" } else { "Reconnected the store to" };
        writeln!(
            screen.out,
            "{SUCCESS}{verb}{SUCCESS:#} {}  {HINT}before: {}{HINT:#}",
            plain(&new.to_string_lossy()),
            plain(&old.to_string_lossy())
        )?;
    }
    Ok(0)
}

fn known(root: &Path, home: &Path) -> Result<StoreFolder, CommandError> {
    stores::find(root, home).ok_or_else(|| {
        CommandError::new(Kind::NoStore, format!("{} is not protected", root.display()))
            .hint("`takeback workspaces` lists the folders that are.")
    })
}

/// Whether a stage may hold the user's bytes: without the store, no command could tell them from garbage.
fn unfinished(kept: &StoreFolder) -> bool {
    let staged = std::fs::read_dir(kept.root.join(".takeback")).is_ok_and(|names| {
        names
            .filter_map(Result::ok)
            .any(|name| name.file_name().as_encoded_bytes().starts_with(b"stage-"))
    });
    let open = stores::open(&kept.folder)
        .and_then(|store| store.open_rewinds())
        .is_ok_and(|rewinds| !rewinds.is_empty());
    staged || open && kept.root.is_dir()
}

/// A store and its contents.
struct StoreDetails {
    root: PathBuf,
    folder: PathBuf,
    exists: bool,
    bytes: u64,
    inside: Result<StoreContents, StoreError>,
    origin: Option<Origin>,
}

fn fork_of(origin: &Origin) -> String {
    format!("fork of {}", place::tilde_path(&origin.root))
}

struct StoreContents {
    points: usize,
    last_activity: Option<Timestamp>,
}

impl StoreDetails {
    fn of(kept: &StoreFolder, home: &Path) -> Self {
        Self {
            root: kept.root.clone(),
            folder: kept.folder.clone(),
            exists: kept.root.is_dir(),
            bytes: folder_bytes(&kept.folder)
                + folder_bytes(&stores::states_of(&kept.folder, home)),
            inside: look_inside(&kept.folder),
            origin: stores::origin_of(&kept.folder),
        }
    }

    fn root(&self) -> String {
        match self.root.to_string_lossy() {
            none if none.is_empty() => format!("not known ({})", self.folder.display()),
            root => plain(&root),
        }
    }

    fn answer(&self) -> answers::WorkspaceAnswer {
        let inside = self.inside.as_ref().ok();
        answers::WorkspaceAnswer {
            root: self.root.is_absolute().then(|| answers::place(&self.root)),
            store: answers::place(&self.folder),
            exists: self.exists,
            bytes: self.bytes,
            points: inside.map(|inside| inside.points),
            last_activity: inside.and_then(|inside| inside.last_activity).map(answers::time),
            origin: self.origin.as_ref().map(origin_answer),
        }
    }
}

/// When the store in `folder` was last used; `None`: never, or it cannot be read.
pub(crate) fn last_activity(folder: &Path) -> Option<Timestamp> {
    look_inside(folder).ok()?.last_activity
}

fn look_inside(folder: &Path) -> Result<StoreContents, StoreError> {
    let store = stores::open(folder)?;
    let points = store.points()?;
    let newest = points.iter().map(|point| point.created_at).max();
    let changed = store.change(store.head()?.seq)?.map(|change| change.time);
    Ok(StoreContents {
        points: points.iter().filter(|point| point.kind != PointKind::Safety).count(),
        last_activity: newest.into_iter().chain(changed).chain(store.last_scan()?).max(),
    })
}
