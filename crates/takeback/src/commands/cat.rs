//! `cat POINT:PATH`: a file as it was at a point.

use std::ffi::OsStr;
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use takeback_core::Workspace;
use takeback_core::history::entry_at;
use takeback_store::{Entry, Point, WorkPath};

use super::blame::no_line;
use super::history::{PathError, never_recorded, work_path};
use crate::answers;
use crate::args::{CatArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::find_in;
use crate::screen::{Screen, name, plain_bytes};

pub(crate) fn cat(
    options: &Options,
    args: &CatArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open_caught_up(options, Store::MustExist)?;
    let bytes = contents(&place.workspace, options, &args.file)?;
    if screen.json {
        screen.json(&answer(&bytes))?;
        return Ok(0);
    }
    let mut out = screen.bare()?;
    out.write_all(&bytes)?;
    out.flush()?;
    Ok(0)
}

/// The bytes at `POINT:PATH`.
pub(crate) fn contents(
    workspace: &Workspace,
    options: &Options,
    file: &OsStr,
) -> Result<Vec<u8>, CommandError> {
    let (point, path) = file_at(workspace, options, file)?;
    contents_at(workspace, &point, &path)
}

/// The point and the path of `POINT:PATH`. A point's name may contain colons: the longest that names a point
/// counts.
pub(crate) fn file_at(
    workspace: &Workspace,
    options: &Options,
    file: &OsStr,
) -> Result<(Point, WorkPath), CommandError> {
    let file = file.as_bytes();
    let wrong = || {
        CommandError::new(Kind::Usage, format!("{} is not POINT:PATH", plain_bytes(file)))
            .hint("Write a point and a path with a colon between: `takeback cat @:src/main.rs`.")
    };
    let store = &*workspace.store;
    let colons = (1..file.len().saturating_sub(1)).filter(|at| file[*at] == b':');
    let mut first_error = None;
    for at in colons.rev() {
        // Every name of a point is UTF-8.
        let Ok(point) = std::str::from_utf8(&file[..at]) else { continue };
        let point = match find_in(store, point) {
            Ok(point) => point,
            Err(error) => {
                first_error = Some(error);
                continue;
            }
        };
        let path = Path::new(OsStr::from_bytes(&file[at + 1..]));
        return Ok((point, work_path(workspace, options, path)?));
    }
    Err(first_error.unwrap_or_else(wrong))
}

/// The bytes of a file at a point; of a link, where it leads.
pub(crate) fn contents_at(
    workspace: &Workspace,
    point: &Point,
    path: &WorkPath,
) -> Result<Vec<u8>, CommandError> {
    let store = &*workspace.store;
    let missing = |what: &str| {
        let (path, point) = (name(path), point.id.to_string()[..8].to_owned());
        let hint = format!("`takeback history {path}` lists the points that have it.");
        let error = PathError::NotAtPoint { path, what: what.to_owned(), point };
        Err(CommandError::new(Kind::Error, error).hint(hint))
    };
    match entry_at(store, path, point.seq)? {
        Some(Entry::File { digest, .. }) => match store.contents(&digest) {
            Err(error) if error.is_lost_contents() => missing("is damaged in the store"),
            contents => Ok(contents?),
        },
        Some(Entry::Symlink { target }) => Ok(target),
        Some(Entry::Dir { .. }) => missing("was a folder"),
        Some(Entry::Absent) => missing("did not exist"),
        Some(Entry::NotCaptured { reason }) => {
            missing(&format!("was not captured ({})", reason.describe()))
        }
        Some(Entry::Unknown) => missing("was not recorded yet"),
        None => Err(never_recorded(path)),
    }
}

/// Which part of a file to answer.
#[derive(Debug, Default)]
pub(crate) struct FilePart {
    /// Only these lines, from 1.
    pub(crate) lines: Option<RangeInclusive<usize>>,
    /// At most this many bytes.
    pub(crate) most: Option<usize>,
}

/// A part of a file. Text is cut between characters.
pub(crate) fn part_answer(
    point: &Point,
    path: &WorkPath,
    bytes: &[u8],
    part: &FilePart,
) -> Result<answers::CatAnswer, CommandError> {
    let mut chosen = bytes;
    if let Some(numbers) = &part.lines {
        if std::str::from_utf8(bytes).is_err() {
            let (path, point) = (name(path), point.id.to_string()[..8].to_owned());
            return Err(CommandError::new(Kind::Error, PathError::NotText { path, point }));
        }
        let lines = || bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::len);
        let from: usize = lines().take(numbers.start() - 1).sum();
        let length: usize = lines().skip(numbers.start() - 1).take(numbers.clone().count()).sum();
        if length == 0 {
            return Err(no_line(path, lines().count(), *numbers.start()));
        }
        chosen = &bytes[from..from + length];
    }
    let most = part.most.unwrap_or(usize::MAX);
    let fitting = match std::str::from_utf8(chosen) {
        Ok(text) => &chosen[..text.floor_char_boundary(most.min(text.len()))],
        Err(_) => &chosen[..most.min(chosen.len())],
    };
    let is_cut = fitting.len() < chosen.len();
    Ok(answers::CatAnswer { size: bytes.len(), cut: is_cut, ..answer(fitting) })
}

pub(crate) fn answer(bytes: &[u8]) -> answers::CatAnswer {
    use base64::Engine as _;
    let text = std::str::from_utf8(bytes).ok().map(str::to_owned);
    let base64 = text.is_none().then(|| base64::engine::general_purpose::STANDARD.encode(bytes));
    answers::CatAnswer { size: bytes.len(), text, base64, cut: false }
}
