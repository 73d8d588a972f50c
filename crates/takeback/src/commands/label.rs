//! `label`, `pin`, `unpin`: marks on points.

use std::io::Write as _;

use takeback_core::{Mark, mark};
use takeback_store::Point;

use super::log::{point_answer, title};
use crate::args::{LabelArgs, Options, PointArgs};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::point::{check_label, find};
use crate::screen::{HINT, NAME, SUCCESS, Screen, plain, shorten, width};

pub(crate) fn label(
    options: &Options,
    args: &LabelArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    match &args.label {
        Some(label) => {
            check_label(label)?;
            set_mark(options, &args.point, Mark::Label(label), screen)
        }
        None => set_mark(options, &args.point, Mark::NoLabel, screen),
    }
}

pub(crate) fn pin(
    options: &Options,
    args: &PointArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    set_mark(options, &args.point, Mark::Pin, screen)
}

pub(crate) fn unpin(
    options: &Options,
    args: &PointArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    set_mark(options, &args.point, Mark::NoPin, screen)
}

fn set_mark(
    options: &Options,
    name: &str,
    what: Mark<'_>,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_caught_up(options, Store::MustExist)?;
    let points = place.workspace.store.points()?;
    let before = find(&points, name)?;
    let point = mark(&mut place.workspace, before.id, what)?;
    if screen.json {
        screen.json(&point_answer(&place.workspace, point)?)?;
    } else if !screen.quiet {
        let short = &point.id.to_string()[..8];
        let (done, why) = describe(before, &point, what);
        writeln!(
            screen.out,
            "{SUCCESS}{done}{SUCCESS:#} {NAME}{short}{NAME:#}  {}  {HINT}{why}{HINT:#}",
            shorten(&title(&point), width().saturating_sub(64).clamp(12, 60)),
        )?;
    }
    Ok(0)
}

/// What was done, and what keeps the point from expiring now: a pin or a label, independently.
fn describe(before: &Point, point: &Point, what: Mark<'_>) -> (String, &'static str) {
    let was_kept = before.pinned || before.label.is_some();
    let stays = match (point.pinned, &point.label) {
        (true, Some(_)) => "kept until it is unpinned and the label is removed",
        (true, None) => "kept until it is unpinned",
        (false, Some(_)) => "kept until the label is removed",
        (false, None) if was_kept => "normal retention applies again",
        (false, None) => "normal retention applies",
    };
    let done = match what {
        Mark::Pin => "Pinned".to_owned(),
        Mark::NoPin if !before.pinned => "Was not pinned".to_owned(),
        Mark::NoPin => "No longer pinned".to_owned(),
        Mark::Label(label) => match before.label.as_deref().filter(|old| *old != label) {
            Some(old) => format!("Labelled “{}” instead of “{}”", plain(label), plain(old)),
            None => format!("Labelled “{}”", plain(label)),
        },
        Mark::NoLabel => "No longer labelled".to_owned(),
    };
    (done, stays)
}
