//! `show`: one point, and what was changed after it, by whom.

use std::io::Write as _;

use serde::Serialize;
use serde_json::json;
use takeback_core::exchange::{is_detour, same_story};
use takeback_core::history::by_path;
use takeback_core::point_name::find_point;
use takeback_store::{Author, Change, Entry, Evidence, PointKind};

use super::filediff::FileDiff;
use super::log::{tell, title};
use crate::args::{Options, ShowArgs};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{HINT, NAME, STRONG, Screen, plain};
use crate::time::{ago, clock, iso, now, parse};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldChange<'a> {
    seq: u64,
    file_path: String,
    before: &'a Entry,
    after: &'a Entry,
    author: &'a Author,
    evidence: Evidence,
    time: String,
}

pub(crate) fn show(
    options: &Options,
    args: &ShowArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open(options, Store::MustExist)?;
    let store = &*place.workspace.store;
    let points = store.points()?;
    let time = now();
    let point = find_point(&points, &args.point, &|text| parse(text, time))?;
    let next = points
        .iter()
        .filter(|other| other.kind != PointKind::Safety && other.id != point.id)
        .filter(|other| same_story(point, other))
        .find(|other| other.seq >= point.seq && other.created_at > point.created_at)
        .map(|other| other.seq);
    let mut changes = store.changes_after(point.seq)?;
    changes.retain(|change| next.is_none_or(|next| change.seq <= next));
    let told = tell(store, point, next)?;
    if screen.json {
        let changes: Vec<ToldChange<'_>> = changes
            .iter()
            .map(|change| ToldChange {
                seq: change.seq.0,
                file_path: String::from_utf8_lossy(change.path.as_bytes()).into_owned(),
                before: &change.before,
                after: &change.after,
                author: &change.author,
                evidence: change.evidence,
                time: iso(change.time),
            })
            .collect();
        let mut value = serde_json::to_value(&told)?;
        value["git"] = json!(point.git);
        value["changes"] = json!(changes);
        screen.json(&value)?;
        return Ok(0);
    }
    let out = &mut screen.out;
    writeln!(out, "{STRONG}{}{STRONG:#}", title(point))?;
    writeln!(out, "{HINT}point{HINT:#}    {NAME}{}{NAME:#}", told.id)?;
    writeln!(
        out,
        "{HINT}made{HINT:#}     {} ({})",
        clock(point.created_at),
        ago(point.created_at, time)
    )?;
    if let Some(session) = &told.session {
        writeln!(out, "{HINT}session{HINT:#}  {}", plain(session))?;
    }
    for message in &point.message_ids {
        writeln!(out, "{HINT}message{HINT:#}  {}", plain(message))?;
    }
    if let Some(git) = &point.git {
        let branch = git.branch.as_deref().unwrap_or("detached");
        let head = git.head.as_deref().map_or("no commit", |head| head.get(..12).unwrap_or(head));
        writeln!(out, "{HINT}git{HINT:#}      {} {HINT}{head}{HINT:#}", plain(branch))?;
    }
    writeln!(out)?;
    let mut histories = by_path(changes);
    histories.retain(|history| !is_detour(history));
    if histories.is_empty() {
        writeln!(out, "{HINT}Nothing was changed after it.{HINT:#}")?;
    }
    for history in histories {
        let diff = FileDiff {
            path: history.path.clone(),
            before: history.at_start().clone(),
            after: history.at_end().clone(),
        };
        let mut authors: Vec<String> = history.changes.iter().map(author).collect();
        authors.dedup();
        writeln!(
            out,
            "  {}  {HINT}{}{HINT:#}  {}",
            diff.path.display(),
            if diff.before == Entry::Unknown { "first seen".to_owned() } else { diff.what() },
            authors.join(", then "),
        )?;
    }
    Ok(0)
}

fn author(change: &Change) -> String {
    match &change.author {
        Author::Agent { session, tool, .. } => {
            let how = match change.evidence {
                Evidence::Tool => "by",
                Evidence::Window => "while",
            };
            let tool = plain(tool);
            let session = plain(&session.0);
            if how == "by" {
                format!("{session} with {tool}")
            } else {
                format!("{session} while {tool} ran")
            }
        }
        Author::Human => "you".to_owned(),
        Author::Ambiguous { sessions } => {
            let sessions: Vec<String> = sessions.iter().map(|session| plain(&session.0)).collect();
            format!("unclear: you or {}", sessions.join(", "))
        }
        Author::Rewind { .. } => "a rewind".to_owned(),
        Author::Deleted => "a deleted session".to_owned(),
        Author::Import => "an import".to_owned(),
    }
}
