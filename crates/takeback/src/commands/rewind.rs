//! `rewind`, `undo` and `redo`: preview, confirm, apply, verify.

mod batch;
mod active_sessions;
mod author_questions;
mod follow_up;
pub(crate) mod scope_line;
mod undo;

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use takeback_agents::Cut;
use takeback_core::Workspace;
use takeback_core::record::look_around;
use takeback_core::rewind::{
    self, AmbiguousPolicy, ConflictPolicy, Exactness, Preview, Receipt, RewindError, RewindRequest,
    RewindScope, Target, UNCONFIRMED, Window, preview,
};
use takeback_store::{Point, SessionId, WorkPath};
use takeback_tui::{Menu, MenuAction, MenuCoverage, MenuOptions, MenuScope};

use self::active_sessions::ActiveSession;
pub(crate) use self::active_sessions::active_sessions;
pub(crate) use self::batch::{apply_marked, preview_marked, run_unattended};
use self::batch::{is_already_there, receipt_of, tense_of, windows_of};
pub(crate) use self::follow_up::{after_rewind, before_rewind};
use self::scope_line::Hints;
pub(crate) use self::undo::{find_operation, redo, undo};
use super::choose::choose;
use super::cleanup::enforce_point_cap;
use super::conversation::{self, cut_of};
use super::filediff::{Contents, DAMAGED, FileDiff, LineCounts};
use super::log::described;
use super::menu;
use super::patch::print_all;
use super::receipt::{self, Tense};
use super::sessions::find_session;
use crate::answers;
use crate::args::{Ambiguous, ApplyArgs, Conflicts, Options, RewindArgs};
use crate::ask;
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::find_in;
use crate::screen::{
    FAILURE, HEADING, HINT, SUCCESS, Screen, WARNING, columns, count, is_interactive, plain,
    shorten, width, wrap,
};
use crate::session_name::SessionNames;
use crate::time::{ago, now};

pub(crate) fn rewind(
    options: &Options,
    args: &RewindArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    if args.point.is_none() && (!is_interactive() || screen.json) {
        return Err(CommandError::new(Kind::Usage, "no point given")
            .hint("`takeback log` lists them; on a terminal there is a menu."));
    }
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let Some(name) = &args.point else {
        return rewind_from_menu(&mut place, options, args, screen);
    };
    let workspace = &mut place.workspace;
    let point = find_in(&*workspace.store, name)?;
    let request = request(workspace, options, args, &point)?;
    let titled = TitledRequest { title: format!("Rewind to {}", name_of(&point)), request };
    run_request(workspace, options, titled, &args.doing, screen)
}

pub(crate) fn request(
    workspace: &Workspace,
    options: &Options,
    args: &RewindArgs,
    point: &Point,
) -> Result<RewindRequest, CommandError> {
    let mut request = RewindRequest::new(Target::Point(point.id));
    if args.all_agents {
        request.scope = Some(RewindScope::AllAgents);
    } else if !args.session.is_empty() {
        request.scope = Some(RewindScope::Sessions(known_sessions(workspace, &args.session)?));
    }
    if args.exact {
        request.exactness = Exactness::Exact;
    }
    request.paths = from_root(workspace, options, &args.paths)?;
    request.ambiguous = args.ambiguous.into();
    request.conflicts = args.conflicts.into();
    request.take = from_root(workspace, options, &args.take)?;
    request.mine = from_root(workspace, options, &args.mine)?;
    Ok(request)
}

impl From<Ambiguous> for AmbiguousPolicy {
    fn from(policy: Ambiguous) -> Self {
        match policy {
            Ambiguous::Leave => Self::Leave,
            Ambiguous::Take => Self::Take,
        }
    }
}

impl From<Conflicts> for ConflictPolicy {
    fn from(policy: Conflicts) -> Self {
        match policy {
            Conflicts::Keep => Self::Keep,
            Conflicts::File => Self::File,
            Conflicts::Take => Self::Take,
            Conflicts::Markers => Self::Markers,
        }
    }
}

/// Lets the user choose from a menu. The menu has shown the preview, so the user is not asked again.
fn rewind_from_menu(
    place: &mut place::Place,
    options: &Options,
    args: &RewindArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    enforce_point_cap(place);
    let keep = place.settings.checkpoint_keep_count();
    let workspace = &mut place.workspace;
    let points = workspace.store.points()?;
    let rows = menu::point_rows(workspace, None, None, &mut LineCounts::default())?;
    let operations = menu::operation_rows(workspace, &rows)?;
    let executions = menu::execution_rows(workspace)?;
    if rows.is_empty() && executions.is_empty() {
        writeln!(screen.out, "No checkpoints found.")?;
        return Ok(Kind::Nothing as u8);
    }
    // Once for all previews.
    if let Some(point) = points.last() {
        catch_up(workspace, &RewindRequest::new(Target::Point(point.id)))?;
    }
    // Progress is shown inside the menu.
    let shown = workspace.ambient.watch.take();
    let of = |id: &str| points.iter().find(|point| point.id.to_string() == id);
    let menu_options = MenuOptions {
        keep,
        scope: MenuScope::Folder,
        conversation: false,
        can_undo: !workspace.store.rewind_headers()?.is_empty(),
        coverage: match (args.exact, args.all_agents) {
            (true, _) => MenuCoverage::Everyone,
            (false, true) => MenuCoverage::AllAgents,
            (false, false) => MenuCoverage::Session,
        },
    };
    let menu = Menu::new(rows, executions, menu_options).with_operations(operations);
    let mut source = menu::MenuSource { workspace, points: &points, options, args };
    let action = choose(menu, &mut source)?;
    let workspace = source.workspace;
    workspace.ambient.watch = shown;
    let mut doing = ApplyArgs { yes: !args.doing.dry_run, ..args.doing.clone() };
    match action {
        MenuAction::Restore(choice) => {
            let point = of(&choice.point)
                .ok_or_else(|| CommandError::new(Kind::Error, "the point is gone"))?;
            let request = request(workspace, options, args, point)?;
            let mut titled = menu::covered(workspace, request, point, choice.coverage)?;
            menu::select_files(workspace, &mut titled.request, &choice.files)?;
            // Files may have changed since the menu showed them.
            doing.yes &=
                args.doing.yes || active_sessions(&*workspace.store, &titled.request)?.is_empty();
            run_request(workspace, options, titled, &doing, screen)
        }
        MenuAction::RestoreExecution(execution) => {
            super::state::rollback_execution(workspace, options, &execution, &doing, screen)
        }
        MenuAction::Undo => {
            let request = RewindRequest::new(Target::Undo);
            let titled = TitledRequest { title: "Undo the last rewind".to_owned(), request };
            run_request(workspace, options, titled, &doing, screen)
        }
        MenuAction::Cancel | MenuAction::Stay | MenuAction::Preview(_) | MenuAction::Ask(_) => {
            writeln!(screen.out, "Exited checkpoint selection.")?;
            Ok(Kind::Nothing as u8)
        }
    }
}

/// Records the latest changes, so that the preview lists them as kept.
///
/// An undo lists only what its rewind changed. If a turn or call is open, with `--exact`, and for state and
/// files together, the rewind itself scans the tree.
fn catch_up(workspace: &mut Workspace, request: &RewindRequest) -> Result<(), CommandError> {
    let goes_back = matches!(
        request.target,
        Target::Point(_) | Target::Changes(_) | Target::Restore(_) | Target::Incoming(_)
    );
    let is_scanned = request.exactness == Exactness::Exact
        || request.rollback.is_some()
        || !workspace.store.live_calls()?.is_empty()
        || workspace.store.sessions()?.iter().any(|session| session.open_turn.is_some());
    if goes_back && !is_scanned {
        look_around(workspace)?;
    }
    Ok(())
}

/// A request, and the title of its preview.
pub(crate) struct TitledRequest {
    pub(crate) title: String,
    pub(crate) request: RewindRequest,
}

/// Previews a request on a terminal, asks if confirmation is needed, applies it, and prints the receipt.
pub(crate) fn run_request(
    workspace: &mut Workspace,
    options: &Options,
    titled: TitledRequest,
    args: &ApplyArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let TitledRequest { title, mut request } = titled;
    let busy = active_sessions(&*workspace.store, &request)?;
    if screen.json && (args.yes || args.dry_run) {
        let (answer, code) = run_unattended(workspace, options, request, args)?;
        let at_work = busy.iter().map(ActiveSession::answer).collect();
        screen.json(&answers::Receipt { at_work, ..answer })?;
        return Ok(code);
    }
    request.outside = args.outside;
    request.discard = discarded(workspace, options, &args.discard)?;
    catch_up(workspace, &request)?;
    let ask = !args.yes;
    // With -y no preview is shown, so none is made.
    let look_first = ask || args.dry_run || args.diff || is_already_there(workspace, &request)?;
    let mut shown = if look_first { Some(preview(workspace, &request)?) } else { None };
    if ask && !args.dry_run && (!is_interactive() || screen.json) {
        let what = match request.target {
            Target::State(_) => "changes an agent's state",
            _ => "changes files",
        };
        return Err(ask::needs_confirmation(what));
    }
    if args.dry_run {
        screen.page()?;
    }
    let silent = args.yes && !args.dry_run && !args.diff;
    let mut may_ask_authors =
        ask && !args.dry_run && request.rollback.is_none() && takes_back_agents(&request.target);
    let mut only_remembers = false;
    loop {
        let is_there = match &shown {
            Some(shown) => shown.plan.leaves_files() && is_already_there(workspace, &request)?,
            None => false,
        };
        if let Some(seen) = shown.as_ref().filter(|_| is_there || !silent) {
            let names = SessionNames::of(&workspace.store.sessions()?);
            show_preview(seen, is_there, &title, &names, screen)?;
            say_if_unmatched(&seen.receipt(), &request.paths, screen)?;
            follow_up::print(&before_rewind(workspace, seen)?, screen)?;
            if std::mem::take(&mut may_ask_authors) {
                let plan = &seen.plan;
                if author_questions::ask_authors(&*workspace.store, plan, &mut request, screen)? {
                    shown = Some(preview(workspace, &request)?);
                    continue;
                }
            }
            if args.diff && !seen.plan.does_nothing() {
                writeln!(screen.out)?;
                show_diffs(&*workspace.store, seen, screen)?;
                if !(ask || args.dry_run) {
                    writeln!(screen.out)?;
                }
            }
            if seen.is_refused() {
                say_refused(if args.dry_run { Tense::WouldNot } else { Tense::Did }, screen)?;
            }
            // No file would change, but the user's decisions are recorded: no confirmation needed.
            only_remembers =
                seen.plan.does_nothing() && !seen.plan.corrections.is_empty() && !seen.is_refused();
            let ends =
                is_there || seen.is_refused() || (seen.plan.does_nothing() && !only_remembers);
            if args.dry_run || (ask && !ends) {
                print_active_sessions(&busy, Tense::Would, workspace, screen)?;
            }
            if args.dry_run || ends {
                return Ok(receipt::exit_code(&receipt_of(seen, is_there), tense_of(seen)));
            }
            if ask && !only_remembers && !ask::confirmed_as(&question(&seen.receipt()), screen)? {
                writeln!(screen.out, "Nothing was changed.")?;
                return Ok(Kind::Nothing as u8);
            }
        }
        match rewind::rewind(workspace, &request, shown.as_ref().filter(|_| ask)) {
            Err(RewindError::Changed(again)) => {
                writeln!(
                    screen.out,
                    "\nSomething changed in the meantime. This is what it would do now:\n"
                )?;
                shown = Some(*again);
            }
            done => {
                let done = done?;
                if only_remembers {
                    let message = "Your choice for these files is remembered.";
                    writeln!(screen.out, "{HINT}{message}{HINT:#}")?;
                    return Ok(receipt::exit_code(&done, Tense::Did));
                }
                let has_changed = done.changed_something();
                let title = (shown.is_none() || silent).then_some(title.as_str());
                let code = report(workspace, &request, done, title, screen)?;
                if !ask && !screen.quiet && has_changed {
                    print_active_sessions(&busy, Tense::Did, workspace, screen)?;
                }
                return Ok(code);
            }
        }
    }
}

/// The question, with what must not be overlooked.
fn question(planned: &Receipt) -> String {
    let conflicts = match planned.conflicts.len() {
        0 => String::new(),
        n => format!("{} will stay. ", count(n, "conflict")),
    };
    format!("{conflicts}Proceed? [y/N]")
}

fn takes_back_agents(target: &Target) -> bool {
    matches!(target, Target::Point(_) | Target::Changes(_))
}

/// What is printed about a rewind besides its receipt.
struct Remarks<'a> {
    windows: Vec<Window>,
    cut: Option<Cut>,
    follow_up: answers::FollowUp,
    /// `None`: a preview already said it, and named the windows.
    title: Option<&'a str>,
}

/// Prints what was done, with all that there is to say about it, and returns the exit code.
fn report(
    workspace: &Workspace,
    request: &RewindRequest,
    done: Receipt,
    title: Option<&str>,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let windows = windows_of(&*workspace.store, &done)?;
    let refused = receipt::is_refused(&done, Tense::Did);
    let cut = if refused { None } else { cut_of(workspace, request)? };
    let follow_up = after_rewind(workspace, &done)?;
    let done = SessionNames::of(&workspace.store.sessions()?).in_receipt(done);
    print_outcome(&done, request, &Remarks { windows, cut, follow_up, title }, screen)
}

/// Prints what was done and returns the exit code.
fn print_outcome(
    done: &Receipt,
    request: &RewindRequest,
    remarks: &Remarks<'_>,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let Remarks { windows, cut, follow_up, title } = remarks;
    if !screen.quiet || !done.success {
        let windows = if title.is_some() { windows.as_slice() } else { &[] };
        if let Some(title) = title {
            print_title(title, screen)?;
            writeln!(screen.out)?;
        }
        receipt::print(&mut screen.out, done, windows, Tense::Did, screen.verbose)?;
        say_if_unmatched(done, &request.paths, screen)?;
        if receipt::is_refused(done, Tense::Did) {
            say_refused(Tense::Did, screen)?;
        } else if done.changed_something() {
            let verdict = if done.success {
                "Done and verified on disk."
            } else {
                "Done as far as possible."
            };
            let is_undo = matches!(request.target, Target::Undo | Target::Operation(_));
            let inverse = if is_undo { "redo" } else { "undo" };
            let hint = format!("`takeback {inverse}` takes it back.");
            let fits = columns(verdict) + 1 + columns(&hint) <= width();
            let between = if fits { ' ' } else { '\n' };
            writeln!(screen.out, "{SUCCESS}{verdict}{SUCCESS:#}{between}{HINT}{hint}{HINT:#}")?;
        }
        if !done.conflicts.is_empty() && done.state.is_none() {
            say_how_to_settle(done, screen)?;
        }
        if done.errors.iter().any(|problem| problem.error.contains(UNCONFIRMED)) {
            let message =
                "The files are as listed, but may not survive a power loss: check the disk.";
            for line in wrap(message, width()) {
                writeln!(screen.out, "{FAILURE}{line}{FAILURE:#}")?;
            }
        }
        if done.not_captured.iter().any(|note| note.reason.contains(DAMAGED)) {
            writeln!(screen.out, "{HINT}`takeback verify` shows what is damaged.{HINT:#}")?;
        }
        follow_up::print(follow_up, screen)?;
        if let Some(cut) = cut {
            conversation::say(cut, screen.verbose, &mut screen.out)?;
        }
    }
    Ok(receipt::exit_code(done, Tense::Did))
}

/// Names the ways on from a conflict.
fn say_how_to_settle(done: &Receipt, screen: &mut Screen) -> io::Result<()> {
    let hint = match done.changed_something() {
        true => "`takeback resolve` settles the conflicts.",
        false => {
            "--conflicts take takes back conflicting changes too; the undo keeps your version."
        }
    };
    for line in wrap(hint, width()) {
        writeln!(screen.out, "{HINT}{line}{HINT:#}")?;
    }
    Ok(())
}

/// Warns that agents are working on the files.
fn print_active_sessions(
    busy: &[ActiveSession],
    tense: Tense,
    workspace: &Workspace,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    if busy.is_empty() {
        return Ok(());
    }
    let names = SessionNames::of(&workspace.store.sessions()?);
    writeln!(screen.out)?;
    for one in busy {
        for line in wrap(&one.describe(&names, tense), width()) {
            writeln!(screen.out, "{WARNING}{line}{WARNING:#}")?;
        }
    }
    Ok(())
}

/// Prints why nothing is done, and what to try instead.
fn say_refused(tense: Tense, screen: &mut Screen) -> io::Result<()> {
    let message = match tense {
        Tense::Would | Tense::WouldNot => {
            "Nothing would be changed: state and files are restored together or not at all."
        }
        Tense::Did => "Nothing was changed: state and files are restored together or not at all.",
    };
    let hint = "--partial skips those files, --exact overwrites them, --state-only restores no \
                files.";
    for line in wrap(message, width()) {
        writeln!(screen.out, "{FAILURE}{line}{FAILURE:#}")?;
    }
    for line in wrap(hint, width()) {
        writeln!(screen.out, "{HINT}{line}{HINT:#}")?;
    }
    Ok(())
}

fn show_preview(
    shown: &Preview,
    is_there: bool,
    title: &str,
    names: &SessionNames,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    let receipt = names.in_receipt(receipt_of(shown, is_there));
    print_title(title, screen)?;
    let hints = match shown.plan.state {
        Some(_) => Hints::None,
        None => Hints::Options,
    };
    scope_line::print(&shown.coverage, names, hints, screen)?;
    let tense = tense_of(shown);
    let windows = if tense == Tense::Would { shown.windows.as_slice() } else { &[] };
    receipt::print(&mut screen.out, &receipt, windows, tense, screen.verbose)?;
    Ok(())
}

/// Warns that nothing matches the given paths: one may be misspelled.
fn say_if_unmatched(receipt: &Receipt, paths: &[String], screen: &mut Screen) -> io::Result<()> {
    let named_nothing = *receipt
        == Receipt { success: receipt.success, point: receipt.point, ..Receipt::default() };
    if named_nothing && !paths.is_empty() {
        let message = format!("No change since then matches {}.", plain(&paths.join(", ")));
        writeln!(screen.out, "{HINT}{message}{HINT:#}")?;
    }
    Ok(())
}

fn print_title(title: &str, screen: &mut Screen) -> io::Result<()> {
    for line in wrap(title, width()) {
        writeln!(screen.out, "{HEADING}{line}{HEADING:#}")?;
    }
    Ok(())
}

/// Prints how the files would change.
fn show_diffs(
    store: &dyn takeback_store::Store,
    shown: &Preview,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    let diffs: Vec<FileDiff> = shown
        .plan
        .actions()
        .filter_map(|step| {
            let (path, before) = (step.path.clone(), step.present.clone());
            Some(FileDiff::new(path, before, step.goal()?))
        })
        .collect();
    print_all(&diffs, Contents { store, made: &shown.plan.merged }, screen)?;
    Ok(())
}

pub(crate) fn name_of(point: &Point) -> String {
    format!("{} ({})", called(point), ago(point.created_at, now()))
}

/// The id and what it is called.
pub(crate) fn called(point: &Point) -> String {
    let id = &point.id.to_string()[..8];
    // Fits next to `Rewind to`, the id and the age.
    let room = width().saturating_sub(40).clamp(20, 80);
    let called = shorten(&plain(&point.label.clone().unwrap_or_else(|| described(point))), room);
    if called.is_empty() { id.to_owned() } else { format!("{id} “{called}”") }
}

pub(crate) fn known_sessions(
    workspace: &Workspace,
    names: &[String],
) -> Result<BTreeSet<SessionId>, CommandError> {
    names.iter().map(|name| find_session(workspace, name)).collect()
}

/// Turns the user's patterns, relative to the current folder, into patterns from the root.
pub(crate) fn from_root(
    workspace: &Workspace,
    options: &Options,
    patterns: &[String],
) -> Result<Vec<String>, CommandError> {
    let location = place::start(options)?;
    patterns
        .iter()
        .map(|pattern| {
            let path = path_from_root(workspace, &location, Path::new(pattern));
            match path.to_str() {
                Some("") => Ok("**".to_owned()),
                Some(pattern) => Ok(pattern.to_owned()),
                None => Err(CommandError::new(Kind::Usage, format!("{pattern} is not UTF-8"))
                    .hint("Name its folder, or use a glob.")),
            }
        })
        .collect()
}

/// Turns the user's path, relative to the folder `location`, into one from the root. Does not read the disk.
pub(crate) fn path_from_root(workspace: &Workspace, location: &Path, path: &Path) -> PathBuf {
    let root = workspace.root.path();
    let joined = match path.strip_prefix(root) {
        Ok(inside) => inside.to_owned(),
        Err(_) => location.strip_prefix(root).unwrap_or(Path::new("")).join(path),
    };
    let mut plain = PathBuf::new();
    for part in joined.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

fn discarded(
    workspace: &Workspace,
    options: &Options,
    paths: &[PathBuf],
) -> Result<BTreeSet<WorkPath>, CommandError> {
    let location = place::start(options)?;
    paths
        .iter()
        .map(|path| {
            workspace.resolve(&location.join(path)).ok_or_else(|| {
                CommandError::new(
                    Kind::Usage,
                    format!("{} is not part of the workspace", path.display()),
                )
            })
        })
        .collect()
}
