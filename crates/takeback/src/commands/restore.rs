//! `restore`: brings paths back as they were at a point, whoever changed them since.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;

use takeback_core::Workspace;
use takeback_core::rewind::{
    FileHunks, Incoming, IncomingChange, Preview, RewindRequest, Target, preview,
};
use takeback_store::{Digest, Entry, PackedBlob, Point};

use super::hunk_view::{HunkView, key};
use super::rewind::{TitledRequest, active_sessions, called, from_root, name_of, run_request};
use crate::args::{ApplyArgs, Options, RestoreArgs};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::find_in;
use crate::screen::{HINT, Screen, is_interactive, name, plain, shorten};

pub(crate) fn restore(
    options: &Options,
    args: &RestoreArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let workspace = &mut place.workspace;
    let point = find_in(&*workspace.store, &args.from)?;
    let request = request(workspace, options, args, &point)?;
    if args.hunk {
        return restore_hunks(workspace, options, &request, screen);
    }
    let what = shorten(&plain(&args.paths.join(", ")), 60);
    let titled =
        TitledRequest { title: format!("Restore {what} from {}", name_of(&point)), request };
    run_request(workspace, options, titled, &args.doing, screen)
}

/// The request for whole paths.
pub(crate) fn request(
    workspace: &Workspace,
    options: &Options,
    args: &RestoreArgs,
    point: &Point,
) -> Result<RewindRequest, CommandError> {
    Ok(request_for(point, &args.paths, from_root(workspace, options, &args.paths)?))
}

/// [`request`] for these globs from the root; `paths`: as the user named them.
pub(crate) fn request_for(point: &Point, paths: &[String], globs: Vec<String>) -> RewindRequest {
    let mut request = RewindRequest::new(Target::Restore(point.id));
    request.paths = globs;
    let what = shorten(&plain(&paths.join(", ")), 60);
    request.title = Some(format!("restore of {what} from {}", called(point)));
    request
}

/// Asks about each hunk of each file, then restores those that were chosen.
fn restore_hunks(
    workspace: &mut Workspace,
    options: &Options,
    request: &RewindRequest,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    if !is_interactive() || screen.json {
        return Err(CommandError::new(Kind::Usage, "--hunk asks about each hunk in a terminal")
            .hint("Without --hunk, whole files are restored."));
    }
    let shown = preview(workspace, request)?;
    if shown.plan.leaves_files() {
        writeln!(screen.out, "Nothing to restore: these files are as they were.")?;
        return Ok(Kind::Nothing as u8);
    }
    let changes = choose_hunks(workspace, &shown, screen)?;
    if changes.is_empty() {
        writeln!(screen.out, "Nothing was changed.")?;
        return Ok(Kind::Nothing as u8);
    }
    let kind = shown.kind;
    let incoming = Incoming { kind, changes, settles: false };
    let title = request.title.clone().unwrap_or_default().replacen("restore of", "hunks of", 1);
    let mut chosen = RewindRequest::new(Target::Incoming(Arc::new(incoming)));
    chosen.title = Some(title.clone());
    // Each choice was the user's word already, but it did not name the agents at work.
    let yes = active_sessions(&*workspace.store, &chosen)?.is_empty();
    let doing = ApplyArgs { yes, ..ApplyArgs::default() };
    let titled = TitledRequest { title: format!("Restore {title}"), request: chosen };
    run_request(workspace, options, titled, &doing, screen)
}

/// What was decided about the rest of a file, or about all files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    Ask,
    Take,
    Leave,
    Quit,
}

const KEYS: &[(char, &str)] = &[
    ('y', "restore this hunk"),
    ('n', "leave it as it is"),
    ('a', "restore this hunk and all later ones in this file"),
    ('d', "leave this hunk and all later ones in this file"),
    ('q', "leave this hunk and everything after it"),
];

fn choose_hunks(
    workspace: &mut Workspace,
    shown: &Preview,
    screen: &mut Screen,
) -> Result<Vec<IncomingChange>, CommandError> {
    let mut changes = Vec::new();
    let mut rest = Rest::Ask;
    for step in shown.plan.actions() {
        if rest == Rest::Quit {
            break;
        }
        rest = Rest::Ask;
        let Some(goal) = step.goal() else { continue };
        let (Entry::File { digest: now, .. }, Entry::File { digest: then, mode, .. }) =
            (&step.present, &goal)
        else {
            writeln!(
                screen.out,
                "{HINT}{} is restored as a whole or not at all: leave out --hunk.{HINT:#}",
                name(&step.path)
            )?;
            continue;
        };
        let (now, then) = (workspace.store.contents(now)?, workspace.store.contents(then)?);
        if [&now, &then].iter().any(|text| text.contains(&0)) {
            let path = name(&step.path);
            writeln!(screen.out, "{HINT}{path} is binary: it has no hunks.{HINT:#}")?;
            continue;
        }
        let hunks = FileHunks::new(&now, &then);
        let mut chosen = BTreeSet::new();
        for (at, hunk) in hunks.hunks().iter().enumerate() {
            let key = match rest {
                Rest::Take => 'y',
                Rest::Leave | Rest::Quit => 'n',
                Rest::Ask => {
                    let count = hunks.hunks().len();
                    let heading = format!("{} · hunk {} of {count}", name(&step.path), at + 1);
                    let then = &hunks.then()[hunk.after.clone()];
                    let lines = hunk.before.clone();
                    HunkView { now: hunks.now(), lines, then }.print(&heading, screen)?;
                    key("Restore this hunk?", KEYS, screen)?
                }
            };
            match key {
                'a' => rest = Rest::Take,
                'd' => rest = Rest::Leave,
                'q' => rest = Rest::Quit,
                _ => {}
            }
            if matches!(key, 'y' | 'a') {
                chosen.insert(at);
            }
        }
        if !chosen.is_empty() {
            let text = hunks.take_back(|at| chosen.contains(&at));
            let digest = Digest::of(&text);
            let entry = Entry::File { digest, size: text.len() as u64, mode: *mode };
            workspace.store.put(PackedBlob::new(text))?;
            changes.push(IncomingChange {
                path: step.path.clone(),
                base: step.present.clone(),
                entry,
                cancels: Vec::new(),
                lines: Vec::new(),
            });
        }
    }
    Ok(changes)
}
