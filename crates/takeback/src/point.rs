//! Finds the point that the user names, or explains why there is none.

use takeback_core::{PointNameError, find_point, find_stored_point};
use takeback_store::{Point, PointKind, Store, Timestamp};

use crate::error::{CommandError, Kind};
use crate::time::{ago, looks_like_time, now, parse};

pub(crate) fn find<'a>(points: &'a [Point], name: &str) -> Result<&'a Point, CommandError> {
    let time = now();
    find_point(points, name, &|text| parse(text, time))
        .map_err(|error| explain_missing(error, points, name, time))
}

/// Like [`find`], but reads all points only if the name requires it.
pub(crate) fn find_in(store: &dyn Store, name: &str) -> Result<Point, CommandError> {
    let time = now();
    find_stored_point(store, name, &|text| parse(text, time), |error, points| {
        explain_missing(error, points, name, time)
    })
}

/// Checks a label: it must not look like a time or an id, since those also name points.
pub(crate) fn check_label(label: &str) -> Result<(), CommandError> {
    takeback_core::check_label(label)?;
    let reads_as = if parse(label, now()).is_some() || looks_like_time(label) {
        "a time"
    } else if reads_as_id(label) {
        "an id"
    } else {
        return Ok(());
    };
    Err(CommandError::new(Kind::Usage, format!("the label {label:?} looks like {reads_as}"))
        .hint("Choose another label: times and ids name points, too."))
}

/// Whether it looks like a prefix of a point's id, or like a message's UUID. A short word of the letters a to
/// f (`cafe`) does not.
fn reads_as_id(label: &str) -> bool {
    const SHOWN: usize = 8;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let uuid = [8, 4, 4, 4, 12];
    let is_uuid = label.split('-').map(str::len).eq(uuid) && label.split('-').all(is_hex);
    let is_beginning = label.len() >= 4
        && is_hex(label)
        && (label.len() >= SHOWN || label.bytes().any(|byte| byte.is_ascii_digit()));
    is_uuid || is_beginning
}

fn explain_missing(
    error: PointNameError,
    points: &[Point],
    name: &str,
    now: Timestamp,
) -> CommandError {
    match error {
        PointNameError::NotFound { .. } => {
            not_at_that_time(points, name, now).unwrap_or_else(|| error.into())
        }
        error => error.into(),
    }
}

/// `None`: the name is not a time.
fn not_at_that_time(points: &[Point], name: &str, now: Timestamp) -> Option<CommandError> {
    let Some(time) = parse(name, now) else {
        return looks_like_time(name).then(|| {
            CommandError::new(Kind::Usage, format!("{name} is not a time"))
                .hint("Write 14:00 or 14:00:30, or how long ago: 10m, 2h, 3d.")
        });
    };
    let mut listed = points.iter().filter(|point| point.kind != PointKind::Safety);
    let oldest = listed.find(|point| point.created_at > time)?;
    let (id, age) = (&oldest.id.to_string()[..8], ago(oldest.created_at, now));
    Some(
        CommandError::new(Kind::Error, TooFarBackError { oldest: format!("{id} ({age})") })
            .hint("`takeback log` lists the points."),
    )
}

#[derive(Debug, thiserror::Error)]
#[error("no point is that old; the oldest is {oldest}")]
pub(crate) struct TooFarBackError {
    oldest: String,
}
