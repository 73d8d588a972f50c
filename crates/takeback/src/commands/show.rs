//! `show`: one point and the changes after it, with their authors.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use anstyle::Style;
use takeback_core::Workspace;
use takeback_core::exchange::is_detour;
use takeback_core::history::{
    Comparison, Contents, FileDiff, Lines, PathHistory, by_path, changes_until, next_point, spans,
};
use takeback_core::record::describe;
use takeback_store::{
    Author, Call, CallId, CallKind, Change, Entry, Evidence, Point, PointBasis, PointKind,
    SessionId, StoreError, Turn, WorkPath,
};

use super::filediff::path_name;
use super::log::{git_state, point_answer, title};
use super::patch::print_all;
use crate::answers;
use crate::args::{Options, ShowArgs};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::point::find_in;
use crate::screen::{HEADING, HINT, NAME, Reader, Screen, count, plain, width, wrap};
use crate::session_name::SessionNames;
use crate::table::{Cell, Overflow, Table};
use crate::time::{ago, clock, now};

pub(crate) fn show(
    options: &Options,
    args: &ShowArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_caught_up(options, Store::MustExist)?;
    look_if_newest(&mut place.workspace, &args.point)?;
    let store = &*place.workspace.store;
    let time = now();
    let PointDetails { point, mut changes, calls, answer } =
        details(&place.workspace, &args.point)?;
    if screen.json {
        screen.json(&answer)?;
        return Ok(0);
    }
    let point = &point;
    screen.page()?;
    let out = &mut screen.out;
    for line in wrap(&title(point), width()) {
        writeln!(out, "{HEADING}{line}{HEADING:#}")?;
    }
    detail(out, "point", NAME, &point.id.to_string())?;
    let made = format!("{} ({})", clock(point.created_at), ago(point.created_at, time));
    detail(out, "made", PLAIN, &made)?;
    if let Some(session) = &point.session {
        detail(out, "session", PLAIN, &plain(&session.0))?;
    }
    if let Some(model) = &answer.model {
        detail(out, "model", PLAIN, &plain(model))?;
    }
    for message in &point.message_ids {
        detail(out, "message", PLAIN, &plain(message))?;
    }
    if let Some(prompt) = answer.prompt.as_ref().filter(|prompt| **prompt != point.description) {
        for (at, line) in prompt.lines().enumerate() {
            detail(out, if at == 0 { "prompt" } else { "" }, PLAIN, &plain(line))?;
        }
    }
    if let Some(git) = &point.git {
        let branch = git.branch.as_deref().unwrap_or("detached");
        let head = git.head.as_deref().map_or("no commit", |head| head.get(..12).unwrap_or(head));
        detail(out, "git", PLAIN, &format!("{} {}", plain(branch), plain(head)))?;
    }
    if screen.verbose {
        let vouched = match point.basis {
            PointBasis::Scan => "by a scan",
            PointBasis::Watch => "by the watcher, since the last full scan",
        };
        detail(out, "known", PLAIN, vouched)?;
    }
    if let Some(git) = &answer.point.git_moved {
        detail(out, "", HINT, &format!("moved after it: {}", plain(&git.describe())))?;
    }
    writeln!(out)?;
    let names = SessionNames::of(&store.sessions()?);
    print_calls(&calls, out)?;
    let mut histories = by_path(std::mem::take(&mut changes));
    histories.iter_mut().for_each(skip_first_sight);
    histories.retain(|history| !is_detour(history));
    let mut changes: Vec<Change> =
        histories.into_iter().flat_map(|history| history.changes).collect();
    changes.sort_by_key(|change| change.seq);
    if changes.is_empty() {
        writeln!(out, "{HINT}Nothing changed after it.{HINT:#}")?;
    }
    let by_author = spans(&changes, |change| author(change, &names));
    let files: Vec<FileDiff> = spans(&changes, |_| ()).into_iter().map(|((), diff)| diff).collect();
    if args.patch {
        return print_patches(&files, &by_author, store, screen);
    }
    let mut table = Table::new(2, [Overflow::Start(12), Overflow::End(10), Overflow::End(10)]);
    for diff in &files {
        let what = match &diff.before {
            Entry::Unknown => "first seen".to_owned(),
            _ => diff.what(),
        };
        table.rows.push([
            Cell::plain(path_name(diff)),
            Cell::new(HINT, what),
            Cell::plain(authors(&parts(diff, &files, &by_author), store)?),
        ]);
    }
    table.print(out)?;
    Ok(0)
}

/// The calls of the turn, with the commands of shell calls.
fn print_calls(calls: &[ListedCall], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(2, [Overflow::Nothing, Overflow::End(8), Overflow::End(20)]);
    for listed in calls {
        let ListedCall { number, call, files } = listed;
        let Some(number) = number else { continue };
        let what = match (listed.command(), &files[..]) {
            (Some(command), _) => plain(command),
            (None, []) => "changed nothing".to_owned(),
            (None, [file]) => path_name(file),
            (None, files) => count(files.len(), "file"),
        };
        let style = if files.is_empty() { HINT } else { PLAIN };
        table.rows.push([
            Cell::new(HINT, format!(".{number}")),
            Cell::new(style, plain(&call.tool)),
            Cell::new(style, what),
        ]);
    }
    if table.rows.is_empty() {
        return Ok(());
    }
    table.print(out)?;
    writeln!(out)
}

/// What each author did to a file, one after the other, under all the paths that it had. `files` and
/// `by_author`: by path.
fn parts<'p>(
    file: &'p FileDiff,
    files: &'p [FileDiff],
    by_author: &'p [(String, FileDiff)],
) -> Vec<&'p (String, FileDiff)> {
    let mut parts = Vec::new();
    let mut path = Some(&file.path);
    while let Some(at) = path.take() {
        let first = by_author.partition_point(|(_, part)| part.path < *at);
        let of_path = by_author[first..].iter().take_while(|(_, part)| part.path == *at);
        let has_own_row =
            |old: &WorkPath| files.binary_search_by(|file| file.path.cmp(old)).is_ok();
        let mut origins = of_path.clone().filter_map(|(_, part)| part.renamed_from.as_ref());
        path = origins.next().filter(|old| !has_own_row(old));
        parts.splice(0..0, of_path);
    }
    parts
}

/// Who changed a file, one after the other, and how much.
fn authors(
    parts: &[&(String, FileDiff)],
    store: &dyn takeback_store::Store,
) -> Result<String, CommandError> {
    let mut authors = Vec::new();
    for (author, part) in parts {
        if part.before == Entry::Unknown {
            continue;
        }
        let lines = match part.compare(store)? {
            Comparison::Lines(Lines { insertions, deletions }) if !part.is_folder() => {
                let part =
                    |sign, n: usize| if n > 0 { format!(" {sign}{n}") } else { String::new() };
                part('+', insertions) + &part('-', deletions)
            }
            _ => String::new(),
        };
        authors.push(author.to_owned() + &lines);
    }
    Ok(authors.join(", then "))
}

/// The patch, split by author. As a program reads it, the parts of a file follow each other.
fn print_patches(
    files: &[FileDiff],
    by_author: &[(String, FileDiff)],
    store: &dyn takeback_store::Store,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut damaged = 0;
    for file in files {
        for (author, part) in parts(file, files, by_author) {
            if part.before == Entry::Unknown || !part.differs() {
                continue;
            }
            let mark = if screen.reader() == Reader::Program { "# " } else { "" };
            writeln!(screen.out, "{mark}{HINT}{author}{HINT:#}")?;
            damaged += print_all(std::slice::from_ref(part), Contents::of(store), screen)?;
            if mark.is_empty() {
                writeln!(screen.out)?;
            }
        }
    }
    Ok(super::diff::exit_code(damaged))
}

/// A path outside the workspace is first read when a call names it. Its earlier contents are unknown, so that
/// is not a change and has no author.
fn skip_first_sight(history: &mut PathHistory) {
    if history.changes.len() > 1 && *history.at_start() == Entry::Unknown {
        history.changes.remove(0);
    }
}

/// A point and the changes between it and the next one.
pub(crate) struct PointDetails {
    point: Point,
    /// With the authors known now.
    changes: Vec<Change>,
    calls: Vec<ListedCall>,
    pub(crate) answer: answers::ShowAnswer,
}

/// What follows the newest point is not over: edits since the last event are recorded first.
fn look_if_newest(workspace: &mut Workspace, name: &str) -> Result<(), CommandError> {
    let point = find_in(&*workspace.store, name)?;
    if next_point(&*workspace.store, &point)?.is_none() {
        takeback_core::look_around(workspace)?;
    }
    Ok(())
}

pub(crate) fn details(workspace: &Workspace, name: &str) -> Result<PointDetails, CommandError> {
    let store = &*workspace.store;
    let point = find_in(store, name)?;
    let changes = changes_until(store, &point, next_point(store, &point)?.as_ref())?;
    let turn = turn_of(store, &point, &changes)?;
    let calls = calls_of(store, turn.as_ref(), &changes)?;
    let answer = answers::ShowAnswer {
        point: point_answer(workspace, point.clone())?,
        prompt: turn.as_ref().map(|turn| turn.prompt.trim().to_owned()),
        model: turn.as_ref().and_then(|turn| turn.model.clone()),
        git: point.git.clone().map(git_state),
        changes: changes.iter().map(answers::change).collect(),
        calls: calls.iter().map(ListedCall::answer).collect(),
    };
    Ok(PointDetails { point, changes, calls, answer })
}

/// A call and the files that it changed.
struct ListedCall {
    /// Its place in the turn, from 1; `None`: of another turn.
    number: Option<usize>,
    call: Call,
    files: Vec<FileDiff>,
}

impl ListedCall {
    /// The command line of a shell call.
    fn command(&self) -> Option<&str> {
        match &self.call.kind {
            CallKind::Shell { command, .. } => command.as_deref(),
            CallKind::Edit { .. } => None,
        }
    }

    fn answer(&self) -> answers::Call {
        answers::Call {
            session: self.call.session.0.clone(),
            id: self.call.id.0.clone(),
            tool: self.call.tool.clone(),
            command: self.command().map(str::to_owned),
            number: self.number,
            files: self.files.len(),
        }
    }
}

/// The calls of the point's turn in order, numbered; then the other calls that the authors of the changes
/// name.
fn calls_of(
    store: &dyn takeback_store::Store,
    turn: Option<&Turn>,
    changes: &[Change],
) -> Result<Vec<ListedCall>, StoreError> {
    let mut calls: Vec<(Option<usize>, Call)> = Vec::new();
    if let Some(turn) = turn {
        let of_turn = store.calls_since(turn.opened_at)?.into_iter();
        let of_turn = of_turn.filter(|call| call.turn == turn.id);
        calls.extend((1..).map(Some).zip(of_turn));
    }
    let author = |change: &Change| match &change.author {
        Author::Agent { session, call, .. } => Some((session.clone(), call.clone())),
        _ => None,
    };
    for (session, call) in changes.iter().filter_map(author) {
        if calls.iter().any(|(_, one)| one.session == session && one.id == call) {
            continue;
        }
        calls.extend(store.call(&session, &call)?.map(|call| (None, call)));
    }
    let mut files: HashMap<(SessionId, CallId), BTreeMap<WorkPath, FileDiff>> = HashMap::new();
    for (author, diff) in spans(changes, author) {
        if let Some(author) = author {
            files.entry(author).or_default().entry(diff.path.clone()).or_insert(diff);
        }
    }
    let listed = calls.into_iter().map(|(number, call)| {
        let files = files.remove(&(call.session.clone(), call.id.clone())).unwrap_or_default();
        ListedCall { number, call, files: files.into_values().collect() }
    });
    Ok(listed.collect())
}

/// The turn of a prompt's point.
fn turn_of(
    store: &dyn takeback_store::Store,
    point: &Point,
    changes: &[Change],
) -> Result<Option<Turn>, StoreError> {
    let Some(session) = point.session.as_ref().filter(|_| point.kind == PointKind::Prompt) else {
        return Ok(None);
    };
    let of_point = |turn: &Turn| {
        let is_its = turn.opened_at == point.created_at
            || turn.message.as_ref().is_some_and(|message| point.message_ids.contains(message));
        turn.session == *session && is_its && describe(&turn.prompt) == point.description
    };
    let changed = changes.iter().filter_map(|change| match &change.author {
        Author::Agent { session: author, turn, .. } if author == session => Some(*turn),
        _ => None,
    });
    let under_way = store.session(session)?.and_then(|session| session.open_turn);
    for turn in under_way.into_iter().chain(changed.take(1)) {
        if let Some(turn) = store.turn(turn)?.filter(of_point) {
            return Ok(Some(turn));
        }
    }
    Ok(store.turns()?.into_iter().find(of_point))
}

pub(crate) const PLAIN: Style = Style::new();

/// Prints a labelled text, wrapped if it is long.
pub(crate) fn detail(
    out: &mut dyn Write,
    label: &str,
    style: Style,
    value: &str,
) -> io::Result<()> {
    const COLUMN: usize = 9;
    for (at, line) in wrap(value, width().saturating_sub(COLUMN)).iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        writeln!(out, "{HINT}{label:<COLUMN$}{HINT:#}{style}{line}{style:#}")?;
    }
    Ok(())
}

/// Who made a change, and how that is known.
pub(crate) fn author(change: &Change, names: &SessionNames) -> String {
    match &change.author {
        Author::Agent { session, tool, .. } => {
            let (session, tool) = (names.get(session), plain(tool));
            match change.evidence {
                _ if change.correction.is_some() => format!("{session} (corrected by you)"),
                Evidence::Named => format!("{session} with {tool}"),
                Evidence::AfterEdit => format!("{session} right after {tool}"),
                // `takeback run`: the session is the command.
                Evidence::Window if tool == "run" => format!("while {session} ran"),
                Evidence::Window => format!("{session} while {tool} ran"),
                Evidence::OpenWindow => format!("unclear: you, or {session} after {tool} began"),
            }
        }
        Author::Human if change.correction.is_some() => "you (corrected by you)".to_owned(),
        Author::Human => "you".to_owned(),
        Author::Ambiguous { sessions } => {
            let sessions: Vec<String> = sessions.iter().map(|session| names.get(session)).collect();
            format!("unclear: you or {}", sessions.join(", "))
        }
        Author::Rewind { .. } => "a rewind".to_owned(),
        Author::Deleted => "a deleted session".to_owned(),
        Author::Import => "an import".to_owned(),
    }
}
