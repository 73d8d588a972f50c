//! `fork`: the workspace as it was at a point, in new folders.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use takeback_agents::ConversationCopy;
use takeback_core::fork::{
    FolderState, ForkExtent, ForkPlace, ForkReport, ForkRequest, ForkTarget, LeftOut, copy_states,
    fork as write_forks,
};
use takeback_core::{Mark, checkpoint, mark};
use takeback_store::state::ExecutionId;
use takeback_store::{Point, PointId, PointQuery, WorkPath};

use super::conversation::copy_at;
use super::log::title;
use crate::answers;
use crate::args::{ForkPointArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Place, Store, quoted};
use crate::point::find_in;
use crate::screen::{
    HINT, NAME, SUCCESS, Screen, WARNING, bytes, count, name, plain, shorten, width, wrap,
};
use crate::stores;

/// The name of the files as they are.
const NOW: &str = "now";

pub(crate) fn fork(
    options: &Options,
    args: &ForkPointArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let store = if args.point == NOW { Store::Create } else { Store::MustExist };
    let mut place = place::open_recovered(options, store)?;
    let start = place::start(options)?;
    let folders = folders(&start.join(&args.folder), args.count);
    let extent = if args.all { ForkExtent::All } else { ForkExtent::Covered };
    let point = point_to_fork(&mut place, &args.point)?;
    let made = fork_into(&mut place, &point, &folders, extent)?;
    let copy = copy_at(&place.workspace, &made.point)?;
    if screen.json {
        screen.json(&answer(&made, copy.as_ref()))?;
    } else {
        print(&made, copy.as_ref(), &start, screen)?;
    }
    Ok(if made.report.missing.is_empty() { 0 } else { Kind::Conflicts as u8 })
}

/// DIR, or DIR-1 to DIR-N.
pub(crate) fn folders(folder: &Path, count: Option<u16>) -> Vec<PathBuf> {
    let Some(count) = count else { return vec![folder.to_owned()] };
    let numbered = |number: u16| {
        // Without a slash at its end.
        let mut name: OsString = folder.components().as_path().as_os_str().to_owned();
        name.push(format!("-{number}"));
        PathBuf::from(name)
    };
    (1..=count).map(numbered).collect()
}

/// The point with this name. `now` makes one, unless it is some point's label.
pub(crate) fn point_to_fork(place: &mut Place, name: &str) -> Result<Point, CommandError> {
    let store = &*place.workspace.store;
    let labelled = store.find_points(PointQuery::Name(name))?;
    if name != NOW || labelled.iter().any(|point| point.label.as_deref() == Some(NOW)) {
        return find_in(store, name);
    }
    let made = checkpoint(&mut place.workspace, None)?.point;
    point_with(place, made.expect("a checkpoint makes a point"))
}

pub(crate) fn point_with(place: &Place, id: PointId) -> Result<Point, CommandError> {
    let found = place.workspace.store.find_points(PointQuery::Id(id))?.pop();
    found.ok_or_else(|| CommandError::new(Kind::Error, format!("there is no point {id}")))
}

/// Forks that were made.
pub(crate) struct NewForks {
    pub(crate) point: Point,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) report: ForkReport,
    /// Executions whose state was copied.
    pub(crate) executions: Vec<ExecutionId>,
}

/// Pins the point, makes the stores of the forks, and writes the forks.
pub(crate) fn fork_into(
    place: &mut Place,
    point: &Point,
    folders: &[PathBuf],
    extent: ForkExtent,
) -> Result<NewForks, CommandError> {
    let home = place.home.clone();
    let mut found = Vec::new();
    for folder in folders {
        let at = ForkPlace::find(&place.workspace, folder, &home)?;
        if at.state == FolderState::Empty && stores::is_protected(&at.path, &home) {
            let text = format!("{} has the history of an earlier folder", at.path.display());
            return Err(CommandError::new(Kind::Usage, text).hint(format!(
                "`takeback forget {}` deletes its history, or choose another folder.",
                quoted(&at.path)
            )));
        }
        found.push(at);
    }
    let point = if point.may_expire() {
        mark(&mut place.workspace, point.id, Mark::Pin)?
    } else {
        point.clone()
    };
    let mut targets = Vec::new();
    for at in &found {
        let store_dir = stores::store_of(&at.path, &home);
        let target = ForkTarget::claim(&place.workspace, at, store_dir.clone())?;
        drop(stores::create(&store_dir, target.path())?);
        targets.push(target);
    }
    let store_id = stores::id_of(&place.workspace.store_dir)?.map(|id| id.id);
    let request = ForkRequest { point: &point, extent, store_id };
    let report = write_forks(&place.workspace, &request, targets)?;
    let mut executions = Vec::new();
    for at in &found {
        let store_dir = stores::store_of(&at.path, &home);
        let states = stores::open_states(&store_dir, &home, &place.settings.states_medium());
        executions = copy_states(&*place.workspace.states, &*states, point.id)?;
    }
    let folders = found.into_iter().map(|at| at.path).collect();
    Ok(NewForks { point, folders, report, executions })
}

pub(crate) fn answer(made: &NewForks, copy: Option<&ConversationCopy>) -> answers::ForkAnswer {
    let NewForks { point, folders, report, executions } = made;
    let missing = report.missing.iter().map(|(path, why)| answers::note(path, why.describe()));
    let left_out = report.left_out.iter().map(|(path, why)| answers::note(path, why.describe()));
    answers::ForkAnswer {
        point: answers::Id::new(point.id),
        seq: point.seq.0,
        forks: folders.iter().map(|folder| answers::place(folder)).collect(),
        files: report.files,
        bytes: report.bytes,
        from_disk: report.from_disk,
        extra_files: report.extra_files,
        missing: missing.collect(),
        unknown: report.unknown.iter().map(answers::path).collect(),
        left_out: left_out.collect(),
        executions: executions.iter().map(ToString::to_string).collect(),
        conversation: copy.map(|copy| conversation(copy, folders)),
    }
}

fn conversation(copy: &ConversationCopy, folders: &[PathBuf]) -> answers::ForkedConversation {
    let in_each =
        |command: &str| folders.iter().map(|folder| command_in(folder, command)).collect();
    answers::ForkedConversation {
        agent: copy.agent.to_owned(),
        session: copy.session.clone(),
        commands: in_each(&copy.command),
        keys: copy.keys.clone(),
        headless: copy.headless.as_deref().map(in_each).unwrap_or_default(),
    }
}

/// A command line that runs a command in a folder.
fn command_in(folder: &Path, command: &str) -> String {
    format!("cd {} && {command}", quoted(folder))
}

fn print(
    made: &NewForks,
    copy: Option<&ConversationCopy>,
    start: &Path,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    let NewForks { point, folders, report, executions } = made;
    let out = &mut screen.out;
    let shown = |folder: &PathBuf| quoted(&from(start, folder));
    if !screen.quiet {
        let id = &point.id.to_string()[..8];
        let what = shorten(&title(&Point { pinned: false, ..point.clone() }), 60);
        writeln!(out, "{SUCCESS}Forked{SUCCESS:#} {NAME}{id}{NAME:#}  {what}")?;
        for folder in folders {
            writeln!(out, "  {}", plain(&shown(folder)))?;
        }
        let each = if folders.len() > 1 { " in each" } else { "" };
        let mut text = format!("{}{each}, {}", count(report.files, "file"), bytes(report.bytes));
        if report.extra_files > 0 {
            text += &format!("; {} not recorded", count(report.extra_files, "more file"));
        }
        writeln!(out, "  {HINT}{text}{HINT:#}")?;
        if !report.left_out.is_empty() {
            print_left_out(report, out)?;
        }
        if !report.unknown.is_empty() {
            let names = listed(report.unknown.iter());
            let text = format!("not recorded yet at that point, and not in it: {names}");
            print_hint(&text, out)?;
        }
        if !executions.is_empty() {
            let names: Vec<String> = executions.iter().map(|one| plain(one.as_str())).collect();
            let text = format!("agent state at that point: `takeback state resume {}`", names[0]);
            print_hint(&text, out)?;
        }
        match copy {
            Some(copy) => print_copy(copy, &from(start, &folders[0]), screen.verbose, out)?,
            // Agents find conversations by the folder that they ran in.
            None if point.session.is_some() => {
                print_hint("an agent begins a new conversation there", out)?;
            }
            None => {}
        }
    }
    for (path, why) in &report.missing {
        writeln!(
            out,
            "  {WARNING}missing{WARNING:#}  {}  {HINT}{}{HINT:#}",
            name(path),
            why.describe()
        )?;
    }
    if !screen.quiet {
        let all: Vec<String> = folders.iter().map(shown).collect();
        let compare = format!("takeback compare {}", all.join(" "));
        writeln!(out)?;
        writeln!(out, "{NAME}{}{NAME:#}  {HINT}what changed there{HINT:#}", plain(&compare))?;
    }
    Ok(())
}

/// How the conversation continues in the first fork. Commands are not wrapped, so that they can be copied.
fn print_copy(
    copy: &ConversationCopy,
    folder: &Path,
    all: bool,
    out: &mut dyn std::io::Write,
) -> Result<(), CommandError> {
    let from = if copy.keys.is_some() { ", from before that prompt" } else { "" };
    print_hint(&format!("to continue {}'s conversation in a copy{from}:", copy.title), out)?;
    writeln!(out, "    {}", plain(&command_in(folder, &copy.command)))?;
    if let Some(keys) = &copy.keys {
        print_hint(&format!("then {}", plain(keys)), out)?;
    }
    if let Some(headless) = copy.headless.as_ref().filter(|_| all) {
        print_hint("or without its screen:", out)?;
        writeln!(out, "    {} PROMPT", plain(&command_in(folder, headless)))?;
    }
    Ok(())
}

fn print_left_out(report: &ForkReport, out: &mut dyn std::io::Write) -> Result<(), CommandError> {
    let can_be_copied = report.extra_files == 0
        && report.left_out.iter().any(|(_, why)| *why != LeftOut::LinkedRepository);
    let names = listed(report.left_out.iter().map(|(path, _)| path));
    let more = if can_be_copied { " (--all copies them as they are now)" } else { "" };
    print_hint(&format!("not copied: {names}{more}"), out)
}

fn print_hint(text: &str, out: &mut dyn std::io::Write) -> Result<(), CommandError> {
    for line in wrap(text, width().saturating_sub(2)) {
        writeln!(out, "  {HINT}{line}{HINT:#}")?;
    }
    Ok(())
}

/// The first few names.
fn listed<'p>(paths: impl Iterator<Item = &'p WorkPath>) -> String {
    const MOST: usize = 8;
    let names: Vec<String> = paths.map(name).collect();
    match names.len().checked_sub(MOST) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..MOST].join(", ")),
    }
}

/// A folder beside the current one, as `../NAME`.
pub(super) fn from(start: &Path, folder: &Path) -> PathBuf {
    let beside = start.parent().and_then(|above| folder.strip_prefix(above).ok());
    match (folder.strip_prefix(start), beside) {
        (Ok(below), _) => below.to_owned(),
        (_, Some(beside)) => Path::new("..").join(beside),
        _ => folder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_folders_name() {
        let of = |folder, count| folders(Path::new(folder), count);
        assert_eq!(of("/a/try", None), [PathBuf::from("/a/try")]);
        assert_eq!(of("/a/try/", Some(2)), [PathBuf::from("/a/try-1"), PathBuf::from("/a/try-2")]);
    }

    #[test]
    fn folders_are_shown_from_where_the_user_is() {
        let shown = |folder| from(Path::new("/home/u/work"), Path::new(folder));
        assert_eq!(shown("/home/u/try"), Path::new("../try"));
        assert_eq!(shown("/home/u/work/x"), Path::new("x"));
        assert_eq!(shown("/tmp/try"), Path::new("/tmp/try"));
    }
}
