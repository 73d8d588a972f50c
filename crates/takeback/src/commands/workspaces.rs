//! `workspaces`, `forget` and `relocate`: the stores of this user.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use takeback_core::workspace::check_root;
use takeback_store::{PointKind, RewindState, SqliteStore, Store as _, StoreError, Timestamp};

use super::room;
use crate::args::{ForgetArgs, Options, RelocateArgs};
use crate::ask;
use crate::error::{CommandError, Kind};
use crate::place::{self, user_home};
use crate::screen::{
    CARE, GOOD, HINT, NAME, Screen, bytes, count, full_width, is_interactive, plain,
};
use crate::settings::Settings;
use crate::size::folder_bytes;
use crate::stores::{self, Kept};
use crate::table::{Cell, Give, Table};
use crate::time::{ago, iso, now};

pub(crate) fn workspaces(options: &Options, screen: &mut Screen) -> Result<u8, CommandError> {
    let home = place::home(options)?;
    stores::clear_leftovers(&home)?;
    let told: Vec<Told> = stores::stores(&home).iter().map(|kept| Told::of(kept, &home)).collect();
    if screen.json {
        screen.json(&told.iter().map(Told::to_json).collect::<Vec<_>>())?;
        return Ok(0);
    }
    if told.is_empty() {
        writeln!(screen.out, "{HINT}No folder is protected.{HINT:#}")?;
    }
    let time = now();
    let gives = [Give::Start(16), Give::All(1), Give::All(2), Give::All(3), Give::Nothing];
    let mut table = Table::new(0, gives);
    for one in &told {
        let points = match &one.inside {
            Ok(inside) => Cell::plain(count(inside.points, "point")),
            Err(_) => Cell::new(CARE, "unreadable"),
        };
        let active = one.inside.as_ref().ok().and_then(|inside| inside.last_activity);
        let there = one.exists || one.inside.is_err();
        table.rows.push([
            Cell::new(NAME, one.root()),
            points,
            Cell::plain(bytes(one.bytes)),
            Cell::new(HINT, active.map(|active| ago(active, time)).unwrap_or_default()),
            Cell::new(CARE, if there { "" } else { "not there any more" }),
        ]);
    }
    screen.page()?;
    table.print_within(full_width(), &mut screen.out)?;
    let here = place::here(options)?;
    let all = room::Home::of(&home, &Settings::load(&here.root, &home)?);
    if all.is_over() {
        writeln!(screen.out, "\n{CARE}{}{CARE:#}", all.words())?;
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
        Some(folder) => stores::real(&place::start(options)?.join(folder))?,
        None => place::here(options)?.root,
    };
    let kept = known(&root, &home)?;
    let told = Told::of(&kept, &home);
    if unfinished(&kept) {
        let own = kept.root.join(".takeback");
        return Err(CommandError::new(
            Kind::Error,
            format!("a rewind in {} is not finished", kept.root.display()),
        )
        .hint(format!(
            "`takeback recover` finishes it; what is in {} after it is yours to keep or remove.",
            own.display()
        )));
    }
    if !args.yes && !args.dry_run && (!is_interactive() || screen.json) {
        return Err(ask::nobody("deletes what was recorded"));
    }
    let what = match &told.inside {
        Ok(inside) => format!("{}, {}", count(inside.points, "point"), bytes(told.bytes)),
        Err(_) => bytes(told.bytes),
    };
    if !args.yes && !screen.json {
        writeln!(screen.out, "Forget what was recorded in {}: {what}.", told.root())?;
        writeln!(
            screen.out,
            "{HINT}Your files stay as they are; what was done to them cannot be taken back any \
             more.{HINT:#}"
        )?;
    }
    if !args.dry_run {
        if !args.yes && !ask::confirmed(screen)? {
            writeln!(screen.out, "Nothing was changed.")?;
            return Ok(Kind::Nothing as u8);
        }
        let _alone = stores::hold_alone(&kept.folder)?;
        stores::remove(&kept.folder, &home)?;
    }
    if screen.json {
        let mut value = told.to_json();
        value["forgotten"] = json!(!args.dry_run);
        screen.json(&value)?;
    } else if !args.dry_run && !screen.quiet {
        writeln!(screen.out, "{GOOD}Forgotten:{GOOD:#} {}  {HINT}{what}{HINT:#}", told.root())?;
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
    let old = stores::real(&start.join(&args.old))?;
    let new = args.new.as_ref().map_or_else(|| start.clone(), |new| start.join(new));
    let kept = known(&old, &home)?;
    if old.is_dir() {
        return Err(CommandError::new(
            Kind::Usage,
            format!("{} is still there and protected", old.display()),
        )
        .hint("Only the store of a folder that has moved can follow it."));
    }
    let new =
        check_root(&new, &stores::store_of(&stores::real(&new)?, &home), user_home().as_deref())?;
    if stores::is_protected(&new, &home) {
        return Err(CommandError::new(
            Kind::Usage,
            format!("{} has a store of its own", new.display()),
        )
        .hint("If you do not need what is in it, `takeback forget` removes it."));
    }
    if !args.dry_run {
        let _alone = stores::hold_alone(&kept.folder)?;
        stores::relocate(&kept.folder, &new, &home)?;
    }
    if screen.json {
        screen.json(&json!({
            "from": old.to_string_lossy(),
            "to": new.to_string_lossy(),
            "store": stores::store_of(&new, &home).to_string_lossy(),
            "relocated": !args.dry_run,
        }))?;
    } else if !screen.quiet || args.dry_run {
        let verb = if args.dry_run { "Would be the store of" } else { "Now the store of" };
        writeln!(
            screen.out,
            "{GOOD}{verb}{GOOD:#} {}  {HINT}before: {}{HINT:#}",
            plain(&new.to_string_lossy()),
            plain(&old.to_string_lossy())
        )?;
    }
    Ok(0)
}

fn known(root: &Path, home: &Path) -> Result<Kept, CommandError> {
    stores::find(root, home).ok_or_else(|| {
        CommandError::new(Kind::NoStore, format!("{} is not protected", root.display()))
            .hint("`takeback workspaces` lists the folders that are.")
    })
}

/// Whether bytes of the user may be waiting in a stage, which without its store nobody could tell
/// from rubbish.
fn unfinished(kept: &Kept) -> bool {
    let staged = std::fs::read_dir(kept.root.join(".takeback")).is_ok_and(|names| {
        names
            .filter_map(Result::ok)
            .any(|name| name.file_name().as_encoded_bytes().starts_with(b"stage-"))
    });
    let open = SqliteStore::open(&kept.folder)
        .and_then(|store| store.rewinds())
        .is_ok_and(|rewinds| rewinds.iter().any(|rewind| rewind.state == RewindState::Open));
    staged || open && kept.root.is_dir()
}

/// What is told of a store.
struct Told {
    root: PathBuf,
    folder: PathBuf,
    exists: bool,
    bytes: u64,
    inside: Result<Inside, StoreError>,
}

struct Inside {
    points: usize,
    last_activity: Option<Timestamp>,
}

impl Told {
    fn of(kept: &Kept, home: &Path) -> Self {
        Self {
            root: kept.root.clone(),
            folder: kept.folder.clone(),
            exists: kept.root.is_dir(),
            bytes: folder_bytes(&kept.folder)
                + folder_bytes(&stores::states_of(&kept.folder, home)),
            inside: look_inside(&kept.folder),
        }
    }

    fn root(&self) -> String {
        match self.root.to_string_lossy() {
            none if none.is_empty() => format!("not known ({})", self.folder.display()),
            root => plain(&root),
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let inside = self.inside.as_ref().ok();
        json!({
            "root": self.root.is_absolute().then(|| self.root.to_string_lossy()),
            "store": self.folder.to_string_lossy(),
            "exists": self.exists,
            "bytes": self.bytes,
            "points": inside.map(|inside| inside.points),
            "lastActivity": inside.and_then(|inside| inside.last_activity).map(iso),
        })
    }
}

/// When the store in `folder` was last used; `None`: it cannot be read, or it never was.
pub(crate) fn last_activity(folder: &Path) -> Option<Timestamp> {
    look_inside(folder).ok()?.last_activity
}

fn look_inside(folder: &Path) -> Result<Inside, StoreError> {
    let store = SqliteStore::open(folder)?;
    let points = store.points()?;
    let newest = points.iter().map(|point| point.created_at).max();
    let changed = store.change(store.head()?.seq)?.map(|change| change.time);
    Ok(Inside {
        points: points.iter().filter(|point| point.kind != PointKind::Safety).count(),
        last_activity: newest.into_iter().chain(changed).chain(store.last_scan()?).max(),
    })
}
