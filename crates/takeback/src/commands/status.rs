//! `status`: what is protected, what is not, and which agents are working.

mod gaps;
mod ignored_files;
mod line;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anstyle::Style;
use takeback_core::record::{ScanReport, Unreadable};
use takeback_core::worktree::{OutReason, ScanStats};
use takeback_core::{ScanProgress, Workspace, look_around};
use takeback_store::{Loss, PointKind, Session, StoreError, WorkPath};

use self::gaps::Gaps;
use self::ignored_files::IgnoredFiles;
pub(crate) use self::line::line;
use super::compare::{origin_answer, origin_line};
use super::sessions::may_be_at_work;
use super::{disk_limits, unreadable};
use crate::answers;
use crate::args::Options;
use crate::error::{CommandError, Kind};
use crate::marker::LostHistory;
use crate::place::{self, Place, Store};
use crate::probe::WriteFailure;
use crate::screen::{
    HEADING, HINT, NAME, Screen, WARNING, bytes, count, name, plain, plain_bytes, width, wrap,
};
use crate::session_name::SessionNames;
use crate::settings::Settings;
use crate::size::{Budget, Size, folder_bytes, sizes};
use crate::stores;
use crate::time::{ago, now};

/// The time and number of names to spend on measuring what is not covered.
const NAMES: usize = 20_000;
const TIME: Duration = Duration::from_millis(200);

/// `status` does not wait for a running rewind.
const PATIENCE: Duration = Duration::from_millis(100);

pub(crate) fn status(options: &Options, screen: &mut Screen) -> Result<u8, CommandError> {
    let location = place::locate(options)?;
    let gaps = Gaps::of(&location);
    let mut place = place::open(options, Store::MustExist)?;
    let going = place.workspace.inbox().scan_progress()?;
    // Not while another process scans, nor if the result could not be recorded.
    let is_looked_at = going.is_none() && gaps.not_writable.is_none();
    let scanned = if is_looked_at { look(&mut place)? } else { None };
    let mut lines = gaps.warnings(&place);
    let workspace = &mut place.workspace;
    let rewinding = scanned.is_none() && !workspace.store.open_rewinds()?.is_empty();
    let points = workspace.store.points()?;
    let sessions = workspace.store.sessions()?;
    let calls = workspace.store.live_calls()?;
    let listed = points.iter().filter(|point| point.kind != PointKind::Safety).count();
    let size = folder_bytes(&workspace.store_dir);
    let precious = IgnoredFiles::of(workspace)?;
    let losses = workspace.store.losses()?;
    let over = disk_limits::over(&*workspace.store, size, &place.settings)?;
    let (stats, left_out, unreadable) = match scanned {
        Some(ScanReport { recorded, skipped }) => {
            let left_out = measure(workspace, skipped);
            (Some(recorded.stats), Some(left_out), Some(recorded.unreadable))
        }
        None => (None, None, None),
    };
    if screen.json {
        screen.json(&answers::StatusAnswer {
            root: answers::place(workspace.root.path()),
            origin: stores::origin_of(&workspace.store_dir).as_ref().map(origin_answer),
            store: answers::place(&workspace.store_dir),
            store_bytes: size,
            recording: place.settings.is_enabled(),
            not_writable: gaps.not_writable.as_ref().map(WriteFailure::answer),
            history_gone: place.gone.as_ref().map(LostHistory::answer),
            too_old: gaps.too_old(),
            locked: stats.is_none() && is_looked_at,
            background_scan: going.map(|going| answers::BackgroundScan {
                read_bytes: going.read,
                of_bytes: going.of,
            }),
            files: stats.map(|stats| stats.files),
            folders: stats.map(|stats| stats.folders),
            points: listed,
            seq: workspace.store.head()?.seq.0,
            sessions: sessions.len(),
            open_turns: sessions.iter().filter(|session| session.open_turn.is_some()).count(),
            open_calls: calls.len(),
            points_per_session: place.settings.points_per_session(),
            archive_days: place.settings.archive_days(),
            max_store_bytes: place.settings.max_store_bytes(),
            over: over.as_ref().map(disk_limits::answer),
            losses: losses.iter().map(ToString::to_string).collect(),
            precious: answers::PreciousFiles {
                files: precious.files,
                bytes: precious.bytes,
                file_max: workspace.scope.precious_file_max,
                total_max: workspace.scope.precious_total_max,
            },
            ignored_folders: precious.answer(),
            unreadable: unreadable.as_deref().map(answers::unreadable),
            not_covered: left_out.map(|all| all.iter().map(UncoveredPath::answer).collect()),
        })?;
        return Ok(0);
    }
    screen.page()?;
    let root = plain_bytes(workspace.root.path().as_os_str().as_bytes());
    writeln!(screen.out, "{HEADING}{root}{HEADING:#}")?;
    if let Some(origin) = stores::origin_of(&workspace.store_dir) {
        print_wrapped(&mut screen.out, HINT, &origin_line(&origin))?;
    }
    let most = match place.settings.max_store_bytes() {
        0 => String::new(),
        most => format!(" of at most {}", bytes(most)),
    };
    let kept = format!("{}{most} kept in {}", bytes(size), count(listed, "point"));
    let why = match (&gaps.not_writable, rewinding) {
        (Some(_), _) => "Nothing can be recorded",
        (None, true) => "A rewind is running",
        (None, false) => "Another command has it locked",
    };
    lines.extend(describe_scan(stats, going, why, kept));
    if let Some(over) = &over {
        lines.push((WARNING, format!("It is {}", disk_limits::words(over))));
    }
    lines.extend(losses.iter().map(lost));
    lines
        .extend(precious.line(workspace.scope.precious_total_max).map(|line| (Style::new(), line)));
    lines.extend(at_work(&*workspace.store, &sessions)?);
    for (style, text) in lines {
        print_wrapped(&mut screen.out, style, &text)?;
    }
    print_unread(&mut screen.out, &unreadable.unwrap_or_default())?;
    precious.print(&mut screen.out, screen.verbose)?;
    print_left_out(&mut screen.out, &left_out.unwrap_or_default(), screen.verbose)?;
    print_refused(&mut screen.out, &place.settings)?;
    Ok(0)
}

/// The sessions with an open turn.
fn at_work(
    store: &dyn takeback_store::Store,
    sessions: &[Session],
) -> Result<Vec<(Style, String)>, StoreError> {
    let (time, names) = (now(), SessionNames::of(sessions));
    let mut lines = Vec::new();
    for session in sessions.iter().filter(|session| may_be_at_work(session)) {
        let Some(turn) = session.open_turn.map(|turn| store.turn(turn)).transpose()?.flatten()
        else {
            continue;
        };
        let name = names.shortened(&session.id).map(str::to_owned).unwrap_or_else(|| {
            let agent = plain(session.agent.as_deref().unwrap_or("agent"));
            format!("{agent} {}", plain(&session.id.0))
        });
        // Without a known process, all that is known is that the turn has not ended.
        let verb = if session.owner.is_some() { "is" } else { "may be" };
        let since = ago(turn.opened_at, time);
        // A turn without a prompt was opened by another event.
        let what = if turn.prompt.is_empty() { "turn began" } else { "last prompt" };
        lines.push((NAME, format!("{name} {verb} at work ({what} {since})")));
    }
    Ok(lines)
}

fn lost(loss: &Loss) -> (Style, String) {
    (WARNING, format!("History is damaged: {loss}; {}", place::LOSS))
}

fn print_refused(out: &mut dyn std::io::Write, settings: &Settings) -> std::io::Result<()> {
    let refused = settings.all.iter().filter(|setting| setting.refused.is_some());
    let refused: Vec<&str> = refused.map(|setting| setting.name).collect();
    if !refused.is_empty() {
        writeln!(out, "\n{WARNING}Ignored project settings:{WARNING:#}")?;
        let refused = format!("{} (`takeback config` shows why)", refused.join(", "));
        print_wrapped(out, Style::new(), &refused)?;
    }
    Ok(())
}

/// Lists what could not be read.
fn print_unread(out: &mut dyn std::io::Write, unreadable: &[Unreadable]) -> std::io::Result<()> {
    const MOST: usize = 20;
    if unreadable.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{WARNING}Could not be read:{WARNING:#}")?;
    for one in unreadable.iter().take(MOST) {
        let (_, name, why) = unreadable::line(one);
        writeln!(out, "  {name}  {HINT}{why}{HINT:#}")?;
    }
    if unreadable.len() > MOST {
        writeln!(out, "  {HINT}and {} more{HINT:#}", unreadable.len() - MOST)?;
    }
    let what = "Make it readable (chmod u+rwX): the next scan records it.";
    print_wrapped(out, HINT, what)
}

/// Describes the last scan of the files and what is recorded.
fn describe_scan(
    stats: Option<ScanStats>,
    going: Option<ScanProgress>,
    why: &str,
    kept: String,
) -> Vec<(Style, String)> {
    let care = match (stats, going) {
        (Some(stats), _) => {
            let files = count(usize::try_from(stats.files).unwrap_or(usize::MAX), "file");
            let folders = count(usize::try_from(stats.folders).unwrap_or(usize::MAX), "folder");
            return vec![(Style::new(), format!("{files} in {folders} protected, {kept}"))];
        }
        (None, Some(going)) => {
            format!("Files are being read in the background: {}", describe_progress(going))
        }
        (None, None) => format!("{why}: the files were not scanned"),
    };
    vec![(WARNING, care), (Style::new(), kept)]
}

fn describe_progress(going: ScanProgress) -> String {
    match going.read.saturating_mul(100).checked_div(going.of) {
        Some(percent) => format!("{} % of {}", percent.min(99), bytes(going.of)),
        None => format!("{} so far", bytes(going.read)),
    }
}

/// `None`: another command has the workspace locked.
fn look(place: &mut Place) -> Result<Option<ScanReport>, CommandError> {
    place.workspace.limits.rewind_patience = PATIENCE;
    let looked = place::finish_rewind(&mut place.workspace).and_then(|()| {
        place.check_missed_events();
        Ok(look_around(&mut place.workspace)?)
    });
    match looked {
        Err(error) if error.kind == Kind::Locked => Ok(None),
        looked => looked.map(Some),
    }
}

fn print_wrapped(out: &mut dyn std::io::Write, style: Style, text: &str) -> std::io::Result<()> {
    for line in wrap(text, width().saturating_sub(2)) {
        writeln!(out, "  {style}{line}{style:#}")?;
    }
    Ok(())
}

/// A file or folder that is not covered.
struct UncoveredPath {
    path: WorkPath,
    reason: OutReason,
    size: Option<Size>,
}

fn measure(workspace: &Workspace, skipped: Vec<(WorkPath, OutReason)>) -> Vec<UncoveredPath> {
    let places: Vec<Option<PathBuf>> = skipped
        .iter()
        .map(|(path, reason)| match reason {
            // A network file system may never answer; devices and pipes have no size.
            OutReason::OtherFileSystem | OutReason::Special => None,
            _ => Some(workspace.absolute(path)),
        })
        .collect();
    let sizes = sizes(places.iter().map(Option::as_deref), Budget::new(NAMES, TIME));
    let left_out = skipped.into_iter().zip(sizes);
    left_out.map(|((path, reason), size)| UncoveredPath { path, reason, size }).collect()
}

impl UncoveredPath {
    fn answer(&self) -> answers::CoverageGap {
        let (size, at_least) = match self.size {
            Some(Size::Exactly(size)) => (Some(size), false),
            Some(Size::AtLeast(size)) => (Some(size), true),
            None => (None, false),
        };
        let path = answers::path(&self.path);
        answers::CoverageGap { path, reason: reason(self.reason), size, at_least }
    }

    fn line(&self) -> String {
        let name = name(&self.path);
        match self.size {
            Some(Size::Exactly(size)) => format!("{name} ({})", bytes(size)),
            Some(Size::AtLeast(size)) => format!("{name} (at least {})", bytes(size)),
            None => name,
        }
    }
}

fn reason(reason: OutReason) -> answers::CoverageGapReason {
    use answers::CoverageGapReason as Reason;
    match reason {
        OutReason::Derived => Reason::Derived,
        OutReason::IgnoredFolder => Reason::IgnoredFolder,
        OutReason::IgnoredFile => Reason::IgnoredFile,
        OutReason::OverBudget => Reason::OverBudget,
        OutReason::TooMany => Reason::TooMany,
        OutReason::Reserved => Reason::Reserved,
        OutReason::Excluded => Reason::Excluded,
        OutReason::NestedWorkspace => Reason::NestedWorkspace,
        OutReason::OtherFileSystem => Reason::OtherFileSystem,
        OutReason::Special => Reason::Special,
        OutReason::Unreachable => Reason::Unreachable,
    }
}

fn print_left_out(
    out: &mut dyn std::io::Write,
    left_out: &[UncoveredPath],
    all: bool,
) -> std::io::Result<()> {
    const MOST: usize = 5;
    if left_out.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nNot covered:")?;
    let mut by_reason: BTreeMap<OutReason, Vec<&UncoveredPath>> = BTreeMap::new();
    for one in left_out {
        by_reason.entry(one.reason).or_default().push(one);
    }
    for (reason, of_it) in by_reason {
        let most = if all { of_it.len() } else { MOST };
        let mut names: Vec<String> = of_it.iter().take(most).map(|one| one.line()).collect();
        if of_it.len() > most {
            names.push(format!("and {} more (-v shows all)", of_it.len() - most));
        }
        writeln!(out, "  {HINT}{}:{HINT:#}", reason.reason())?;
        for line in wrap(&names.join(", "), width().saturating_sub(4)) {
            writeln!(out, "    {line}")?;
        }
    }
    Ok(())
}
