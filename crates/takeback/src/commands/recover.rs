//! `recover`: finishes what a crash interrupted.

use std::io::Write as _;

use takeback_core::rewind;
use takeback_core::rewind::needs_recovery;
use takeback_store::RewindId;

use super::receipt::{self, Tense};
use crate::answers;
use crate::args::{Options, RecoverArgs};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{HINT, SUCCESS, Screen, count};
use crate::stores;

pub(crate) fn recover(
    options: &Options,
    args: &RecoverArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open(options, Store::MustExist)?;
    if args.dry_run {
        let open = needs_recovery(&place.workspace)?;
        if screen.json {
            screen.json(&answers::RecoverPreview { interrupted_rewind: open })?;
        } else {
            let text = if open { "A rewind was interrupted." } else { "Nothing was interrupted." };
            writeln!(screen.out, "{text}")?;
        }
        return Ok(0);
    }
    let workspace = &mut place.workspace;
    let is_mended = stores::fix_root(&workspace.store_dir, workspace.root.path())?;
    let recovered = rewind::recover(workspace)?;
    let code = recovered
        .finished
        .iter()
        .map(|receipt| receipt::exit_code(receipt, Tense::Did))
        .find(|code| matches!(code, 1 | 3 | 4))
        .unwrap_or(0);
    if screen.json {
        screen.json(&answers::RecoverAnswer {
            finished: recovered.finished.iter().map(answers::receipt).collect(),
            cleared_stages: recovered.cleared.len(),
            left_stages: recovered.left.iter().map(place_of).collect(),
            drained_events: recovered.drained,
            mended_root: is_mended,
        })?;
        return Ok(code);
    }
    for receipt in &recovered.finished {
        writeln!(screen.out, "{SUCCESS}Finished{SUCCESS:#} an interrupted rewind:\n")?;
        receipt::print(&mut screen.out, receipt, &[], Tense::Did, screen.verbose)?;
    }
    if recovered.drained > 0 {
        writeln!(screen.out, "Recorded {}.", count(recovered.drained, "waiting event"))?;
    }
    if is_mended {
        writeln!(screen.out, "Restored the folder's path in the store.")?;
    } else if recovered.finished.is_empty()
        && recovered.cleared.is_empty()
        && recovered.drained == 0
    {
        writeln!(screen.out, "{HINT}Nothing was interrupted.{HINT:#}")?;
    } else if !recovered.cleared.is_empty() {
        writeln!(screen.out, "Removed a rewind that had not started.")?;
    }
    for id in &recovered.left {
        let place = place_of(id);
        let why = "which this store did not make or no longer knows";
        writeln!(screen.out, "Left alone: {place}, {why}")?;
    }
    Ok(code)
}

fn place_of(stage: &RewindId) -> String {
    format!(".takeback/stage-{stage}")
}
