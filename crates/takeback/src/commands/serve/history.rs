//! `history:*`: questions about files over time.

use std::ffi::OsString;
use std::path::Path;

use takeback_core::{look_around, look_around_if_changed};
use takeback_ipc::{NamedParams, Outcome, Outlet};

use super::client::{Client, result};
use super::fault::{self, MOST_BYTES, fault};
use crate::answers;
use crate::args::{BisectArgs, LogArgs};
use crate::commands::{bisect, blame, cat, history, stats, why};
use crate::error::CommandError;
use crate::place::Store;

pub(super) fn blame(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let path: String = params.required("path")?;
    let lines: Option<String> = params.optional("lines")?;
    let at = client.mended(params, Store::MustExist)?;
    let workspace = &mut at.handle.place.workspace;
    let found = blame::lines_of(workspace, &at.options, Path::new(&path), lines.as_deref())?;
    let lines = found.lines.iter().map(blame::answer).collect();
    result(&answers::BlameReport { lines, problems: found.problems })
}

pub(super) fn why(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let line: String = params.required("line")?;
    let at = client.mended(params, Store::MustExist)?;
    let workspace = &mut at.handle.place.workspace;
    let found = why::line_at(workspace, &at.options, line.as_ref())?;
    result(&why::answer(&*workspace.store, &found)?)
}

pub(super) fn bisect(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let command: Vec<String> = params.required("command")?;
    let args = BisectArgs {
        good: params.optional("good")?,
        bad: params.optional("bad")?,
        with: params.optional("with")?.unwrap_or_default(),
        command: command.into_iter().map(OsString::from).collect(),
    };
    let at = client.mended(params, Store::MustExist)?;
    let workspace = &mut at.handle.place.workspace;
    let query = bisect::query(workspace, &args)?;
    result(&bisect::answer(&bisect::run(workspace, &query)?))
}

pub(super) fn path(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let path: String = params.required("path")?;
    let limit = params.optional("limit")?.unwrap_or(LogArgs::LIMIT);
    let at = client.mended(params, Store::MustExist)?;
    let workspace = &mut at.handle.place.workspace;
    let looked_at = history::work_path(workspace, &at.options, Path::new(&path))?;
    look_around_if_changed(workspace, &looked_at).map_err(CommandError::from)?;
    result(&history::answer(&history::rows_of(workspace, &looked_at, limit)?))
}

pub(super) fn file(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let file: String = params.required("file")?;
    let lines: Option<String> = params.optional("lines")?;
    let lines = lines.as_deref().map(blame::line_numbers).transpose()?;
    let part = cat::FilePart { lines, most: params.optional("maxBytes")? };
    let at = client.at(params, Store::MustExist)?;
    let workspace = &at.handle.place.workspace;
    let (point, path) = cat::file_at(workspace, &at.options, file.as_ref())?;
    let bytes = cat::contents_at(workspace, &point, &path)?;
    let answer = cat::part_answer(&point, &path, &bytes, &part)?;
    let length = answer.text.as_ref().or(answer.base64.as_ref()).map_or(0, String::len);
    if length > MOST_BYTES {
        let why = format!("the contents have {length} bytes; an answer has at most {MOST_BYTES}");
        return Err(fault(fault::ANSWER_TOO_LARGE, why)
            .with("limit", MOST_BYTES)
            .with("hint", "Ask for a part of it with lines or maxBytes."));
    }
    result(&answer)
}

pub(super) fn counts(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let range: Option<String> = params.optional("range")?;
    let since: Option<String> = params.optional("since")?;
    let at = client.mended(params, Store::MustExist)?;
    let workspace = &mut at.handle.place.workspace;
    look_around(workspace).map_err(CommandError::from)?;
    let counted = stats::counted_in(workspace, range.as_deref(), since.as_deref())?;
    let sessions = workspace.store.sessions().map_err(CommandError::from)?;
    result(&stats::answer(&counted, &sessions))
}
