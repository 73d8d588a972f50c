//! `resolve`: settles the conflicts that the last operation left.

mod merge_tool;

use std::io::Write as _;
use std::sync::Arc;

use takeback_core::Workspace;
use takeback_core::rewind::{
    Choice, Incoming, IncomingChange, OpenConflict, PathFilter, RewindRequest, Target,
    open_conflicts,
};
use takeback_store::{Entry, RewindKind};

use super::hunk_view::{HunkView, key};
use super::rewind::{TitledRequest, active_sessions, from_root, run_request};
use crate::answers;
use crate::args::{ApplyArgs, Options, ResolveArgs, Side};
use crate::editor::run_editor;
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::screen::{FAILURE, HINT, Screen, count, is_interactive, name};

pub(crate) fn resolve(
    options: &Options,
    args: &ResolveArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let workspace = &mut place.workspace;
    let filter = PathFilter::new(&from_root(workspace, options, &args.paths)?)?;
    let mut open = open_conflicts(workspace)?;
    open.retain(|conflict| filter.includes(&conflict.path));
    if open.is_empty() && !args.list {
        return Err(no_conflicts());
    }
    if args.list {
        return list(&open, screen);
    }
    let asks = args.take.is_none() && !args.tool;
    if asks && (!is_interactive() || screen.json) {
        return Err(CommandError::new(
            Kind::Usage,
            "resolve asks about each conflict in a terminal",
        )
        .hint("--take mine or --take before settles all of them; --list shows them."));
    }
    let changes = decide(workspace, &open, args, screen)?;
    if changes.is_empty() {
        writeln!(screen.out, "Nothing was settled.")?;
        return Ok(Kind::Nothing as u8);
    }
    let titled = request(&open, changes)?;
    // Each choice was the user's word already, but it did not name the agents at work.
    let is_answered = asks
        && !args.doing.dry_run
        && active_sessions(&*workspace.store, &titled.request)?.is_empty();
    let yes = args.doing.yes || is_answered;
    let doing = ApplyArgs { yes, ..args.doing.clone() };
    run_request(workspace, options, titled, &doing, screen)
}

/// The request that makes these changes.
pub(crate) fn request(
    open: &[OpenConflict],
    changes: Vec<IncomingChange>,
) -> Result<TitledRequest, CommandError> {
    let of = open.first().map(|conflict| conflict.operation).ok_or_else(no_conflicts)?;
    let what = match changes.as_slice() {
        [change] => name(&change.path),
        changes => count(changes.len(), "file"),
    };
    let kind = RewindKind::Resolve { of };
    let incoming = Incoming { kind, changes, settles: true };
    let mut request = RewindRequest::new(Target::Incoming(Arc::new(incoming)));
    request.title = Some(format!("resolve of {what}"));
    Ok(TitledRequest { title: format!("Resolve {what}"), request })
}

pub(crate) fn no_conflicts() -> CommandError {
    CommandError::new(Kind::Nothing, "the last operation left no conflicts")
}

/// Prints the open conflicts.
fn list(open: &[OpenConflict], screen: &mut Screen) -> Result<u8, CommandError> {
    if screen.json {
        screen.json(&open.iter().map(answers::open_conflict).collect::<Vec<_>>())?;
        return Ok(0);
    }
    if open.is_empty() {
        writeln!(screen.out, "The last operation left no conflicts.")?;
    }
    for conflict in open {
        let lines: Vec<String> =
            conflict.lines.iter().map(|place| format!("line {}", place.line)).collect();
        let lines =
            if lines.is_empty() { String::new() } else { format!(": {}", lines.join(", ")) };
        let path = name(&conflict.path);
        writeln!(
            screen.out,
            "{FAILURE}conflict{FAILURE:#}  {path}  {HINT}{}{lines}{HINT:#}",
            conflict.reason
        )?;
    }
    Ok(0)
}

/// The changes that settle what was decided.
fn decide(
    workspace: &mut Workspace,
    open: &[OpenConflict],
    args: &ResolveArgs,
    screen: &mut Screen,
) -> Result<Vec<IncomingChange>, CommandError> {
    let mut changes = Vec::new();
    for conflict in open {
        let places = conflict.lines.len().max(1);
        let decision = match args.take {
            Some(Side::Mine) => Decision::Places(vec![Some(Choice::Mine); places]),
            Some(Side::Before) => Decision::Places(vec![Some(Choice::Before); places]),
            None if args.tool => merge_tool::run(workspace, conflict)?,
            None => ask(workspace, conflict, screen)?,
        };
        match decision {
            Decision::Places(choices) => {
                changes.extend(conflict.settle(&mut *workspace.store, &choices)?);
            }
            Decision::Whole(text) => {
                changes.extend(conflict.settle_as(&mut *workspace.store, text)?);
            }
            Decision::Quit => break,
        }
    }
    Ok(changes)
}

/// What was decided about a file.
enum Decision {
    /// One choice for each place, or for the file.
    Places(Vec<Option<Choice>>),
    /// The whole text.
    Whole(Vec<u8>),
    /// Nothing more, about any file.
    Quit,
}

const KEYS: &[(char, &str)] = &[
    ('m', "mine: keep what is there now (the lines with -)"),
    ('b', "before: what was there before (the lines with +)"),
    ('e', "edit both versions"),
    ('s', "skip: decide later"),
    ('q', "quit: settle what was decided so far"),
];

/// A conflict about a file as a whole has no lines to edit.
const FILE_KEYS: &[(char, &str)] = &[
    ('m', "mine: keep the file as it is"),
    ('b', "before: the file as it would be without the change"),
    ('s', "skip: decide later"),
    ('q', "quit: settle what was decided so far"),
];

fn ask(
    workspace: &Workspace,
    conflict: &OpenConflict,
    screen: &mut Screen,
) -> Result<Decision, CommandError> {
    let path = name(&conflict.path);
    if conflict.lines.is_empty() {
        writeln!(screen.out, "\n{FAILURE}conflict{FAILURE:#}  {path}: {}", conflict.reason)?;
        return Ok(match key("Keep mine, or take it back?", FILE_KEYS, screen)? {
            'm' => Decision::Places(vec![Some(Choice::Mine)]),
            'b' => Decision::Places(vec![Some(Choice::Before)]),
            'q' => Decision::Quit,
            _ => Decision::Places(vec![None]),
        });
    }
    let Entry::File { digest, .. } = &conflict.left else {
        return Ok(Decision::Places(vec![None; conflict.lines.len()]));
    };
    let text = workspace.store.contents(digest)?;
    let now: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let mut choices = vec![None; conflict.lines.len()];
    for (at, place) in conflict.lines.iter().enumerate() {
        let start = (place.line - 1).min(now.len());
        let lines = start..(start + place.count).min(now.len());
        let then: Vec<&[u8]> = place.before.0.split_inclusive(|&byte| byte == b'\n').collect();
        let heading = format!("{path} · conflict {} of {}", at + 1, conflict.lines.len());
        HunkView { now: &now, lines, then: &then }.print(&heading, screen)?;
        choices[at] = match key("Keep mine, or take it back?", KEYS, screen)? {
            'm' => Some(Choice::Mine),
            'b' => Some(Choice::Before),
            'e' => Some(Choice::Text(edited(&place.mine.0, &place.before.0)?)),
            'q' if at == 0 => return Ok(Decision::Quit),
            'q' => break,
            _ => None,
        };
    }
    Ok(Decision::Places(choices))
}

/// Both versions in the user's editor, between markers; what is left when it ends.
fn edited(mine: &[u8], before: &[u8]) -> Result<Vec<u8>, CommandError> {
    let draft = tempfile::Builder::new().prefix("takeback-conflict-").tempfile()?;
    let marked = |text: &[u8]| match text.last() {
        Some(b'\n') | None => text.to_vec(),
        Some(_) => [text, b"\n"].concat(),
    };
    let parts: [&[u8]; 5] =
        [b"<<<<<<< now\n", &marked(mine), b"=======\n", &marked(before), b">>>>>>> before\n"];
    draft.as_file().write_all(&parts.concat())?;
    run_editor(draft.path())?;
    let text = std::fs::read(draft.path())?;
    if text.starts_with(b"<<<<<<< ") || text.windows(9).any(|some| some == b"\n>>>>>>> ") {
        return Err(CommandError::new(Kind::Usage, "there are conflict markers left")
            .hint("Nothing was changed."));
    }
    Ok(text)
}
