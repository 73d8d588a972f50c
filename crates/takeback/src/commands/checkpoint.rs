//! `checkpoint`: a point by hand.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use takeback_core::RecordOutcome;

use super::cleanup::clean_up_if_due;
use super::unreadable;
use crate::answers;
use crate::args::{CheckpointArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::check_label;
use crate::screen::{HINT, NAME, SUCCESS, Screen, count, plain, plain_bytes};

pub(crate) fn checkpoint(
    options: &Options,
    args: &CheckpointArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    if let Some(refused) = place::not_enabled(options)? {
        return Err(refused);
    }
    if let Some(label) = &args.label {
        check_label(label)?;
    }
    let mut place = place::open_recovered(options, Store::Create)?;
    clean_up_if_due(&mut place, options);
    let recorded = takeback_core::checkpoint(&mut place.workspace, args.label.as_deref())?;
    let id = id_of(&recorded);
    if screen.json {
        screen.json(&answer(&recorded, args.label.as_deref()))?;
    } else if !screen.quiet {
        let label =
            args.label.as_deref().map(|label| format!(" “{}”", plain(label))).unwrap_or_default();
        writeln!(
            screen.out,
            "{SUCCESS}Point{SUCCESS:#} {NAME}{}{NAME:#}{label}  {HINT}{} in {}{HINT:#}",
            &id.0[..8],
            count(usize::try_from(recorded.stats.files).unwrap_or(usize::MAX), "file"),
            plain_bytes(place.workspace.root.path().as_os_str().as_bytes()),
        )?;
        for (what, name, why) in unreadable::lines(&recorded) {
            writeln!(screen.out, "  {what}: {name}  {HINT}{why}{HINT:#}")?;
        }
    }
    Ok(if recorded.unreadable.is_empty() { 0 } else { Kind::Partly as u8 })
}

fn id_of(recorded: &RecordOutcome) -> answers::Id {
    answers::Id(recorded.point.map(|point| point.to_string()).unwrap_or_default())
}

pub(crate) fn answer(recorded: &RecordOutcome, label: Option<&str>) -> answers::CheckpointAnswer {
    answers::CheckpointAnswer {
        id: id_of(recorded),
        seq: recorded.seq.0,
        label: label.map(str::to_owned),
        changes: recorded.changes,
        not_captured: recorded.not_captured.len(),
        unreadable: answers::unreadable(&recorded.unreadable),
    }
}
