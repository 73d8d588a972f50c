//! `cat POINT:PATH`: a file as it was at a point.

use std::io::Write as _;

use takeback_core::Workspace;
use takeback_core::history::entry_at;
use takeback_store::{Entry, WorkPath};

use super::rewind::from_root;
use crate::answers;
use crate::args::{CatArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::find_in;
use crate::screen::{Screen, name, plain};

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

/// The bytes at `POINT:PATH`. A point's name may contain colons: the longest that names a point counts.
pub(crate) fn contents(
    workspace: &Workspace,
    options: &Options,
    file: &str,
) -> Result<Vec<u8>, CommandError> {
    let wrong = || {
        CommandError::new(Kind::Usage, format!("{} is not POINT:PATH", plain(file)))
            .hint("Write a point and a path with a colon between: `takeback cat @:src/main.rs`.")
    };
    let store = &*workspace.store;
    let colons: Vec<usize> = file.match_indices(':').map(|(at, _)| at).collect();
    let mut first_error = None;
    for at in colons.into_iter().rev().filter(|at| *at > 0 && at + 1 < file.len()) {
        let point = match find_in(store, &file[..at]) {
            Ok(point) => point,
            Err(error) => {
                first_error = Some(error);
                continue;
            }
        };
        let patterns = from_root(workspace, options, &[file[at + 1..].to_owned()])?;
        let path =
            WorkPath::new(patterns[0].trim_end_matches('/')).map_err(|_not_a_path| wrong())?;
        let entry = entry_at(store, &path, point.seq)?;
        let missing = |what: &str| {
            let shown = name(&path);
            let id = &point.id.to_string()[..8];
            Err(CommandError::new(Kind::Error, format!("{shown} {what} at point {id}"))
                .hint(format!("`takeback history {shown}` lists the points that have it.")))
        };
        return match entry {
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
            None => missing("was never recorded; nothing is known of it"),
        };
    }
    Err(first_error.unwrap_or_else(wrong))
}

pub(crate) fn answer(bytes: &[u8]) -> answers::CatAnswer {
    use base64::Engine as _;
    let text = std::str::from_utf8(bytes).ok().map(str::to_owned);
    let base64 = text.is_none().then(|| base64::engine::general_purpose::STANDARD.encode(bytes));
    answers::CatAnswer { size: bytes.len(), text, base64 }
}
