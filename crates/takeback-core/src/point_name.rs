//! Finds the point that a name means.

use takeback_store::{Point, PointFilter, PointKind, PointQuery, Store, StoreError, Timestamp};

use crate::exchange::imported::is_imported_point;

/// Why a name means no point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PointNameError {
    #[error("there are no points yet")]
    NoPoints,
    #[error("no point is called {name:?}")]
    NotFound { name: String, nearest: Option<String> },
    #[error("{name:?} may mean {first} or {second}")]
    Several { name: String, first: String, second: String },
}

/// Finds the point that `name` means: `@` (the newest), `@~N` (N before it), an id, a label, a
/// message id, `SESSION:MESSAGE`, the unique beginning of an id, or a time, which means the newest
/// point that is not younger. `time_of` reads times. `points` are oldest first; safety points are
/// found by id alone. Unless there are no others, imported points are found neither by counting nor
/// by time, and by label or message only if the name means nothing else: a bundle may call its
/// points anything.
pub fn find_point<'a>(
    points: &'a [Point],
    name: &str,
    time_of: &dyn Fn(&str) -> Option<Timestamp>,
) -> Result<&'a Point, PointNameError> {
    let listed = || points.iter().filter(|point| point.kind != PointKind::Safety);
    if points.is_empty() {
        return Err(PointNameError::NoPoints);
    }
    let not_found =
        || PointNameError::NotFound { name: name.to_owned(), nearest: nearest(points, name) };
    let only_imported = listed().all(is_imported_point);
    let own = || listed().filter(|point| only_imported || !is_imported_point(point));
    if let Some(back) = steps_back(name) {
        return own().rev().nth(back).ok_or_else(not_found);
    }
    let by = |matches: &dyn Fn(&Point) -> bool, points: &mut dyn Iterator<Item = &'a Point>| {
        let mut hits = points.filter(|point| matches(point));
        match (hits.next(), hits.next()) {
            (None, _) => Ok(None),
            (Some(point), None) => Ok(Some(point)),
            (Some(first), Some(second)) => Err(PointNameError::Several {
                name: name.to_owned(),
                first: first.id.to_string(),
                second: second.id.to_string(),
            }),
        }
    };
    if let Some(point) = by(&|point| point.id.to_string() == name, &mut points.iter())? {
        return Ok(point);
    }
    let labelled = |point: &Point| point.label.as_deref() == Some(name);
    let messaged = |point: &Point| is_message(point, name);
    if let Some(point) = by(&labelled, &mut own())? {
        return Ok(point);
    }
    if let Some(point) = by(&messaged, &mut own())? {
        return Ok(point);
    }
    let hex = name.len() >= 4 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let prefix =
        |point: &Point| hex && point.id.to_string().starts_with(&name.to_ascii_lowercase());
    if let Some(point) = by(&prefix, &mut points.iter())? {
        return Ok(point);
    }
    if let Some(time) = time_of(name) {
        return own().rev().find(|point| point.created_at <= time).ok_or_else(not_found);
    }
    if let Some(point) = by(&labelled, &mut listed())? {
        return Ok(point);
    }
    by(&messaged, &mut listed())?.ok_or_else(not_found)
}

/// As [`find_point`] among all points of a store, but reads only those that the name may mean. All are
/// read only for a time, a name that no point has, or one of an import. `missed` makes the error from all
/// points if none is found.
pub fn find_stored_point<E: From<StoreError>>(
    store: &dyn Store,
    name: &str,
    time_of: &dyn Fn(&str) -> Option<Timestamp>,
    missed: impl FnOnce(PointNameError, &[Point]) -> E,
) -> Result<Point, E> {
    let near = match steps_back(name) {
        Some(back) => newest_but(store, back)?,
        None => {
            let called = store.find_points(PointQuery::Name(name))?;
            let own = !called.iter().any(is_imported_point);
            if own { find_point(&called, name, &|_| None).ok().cloned() } else { None }
        }
    };
    if let Some(point) = near {
        return Ok(point);
    }
    let points = store.points()?;
    match find_point(&points, name, time_of) {
        Ok(point) => Ok(point.clone()),
        Err(error) => Err(missed(error, &points)),
    }
}

/// The point `back` before the newest, without counting imported ones. `None`: there are not that many.
fn newest_but(store: &dyn Store, back: usize) -> Result<Option<Point>, StoreError> {
    let mut most = back.saturating_add(1);
    loop {
        let mut newest =
            store.find_points(PointQuery::Newest { filter: PointFilter::WithoutSafety, most })?;
        let all = newest.len() < most;
        newest.retain(|point| !is_imported_point(point));
        if newest.len() > back {
            return Ok(Some(newest.swap_remove(newest.len() - 1 - back)));
        }
        if all {
            return Ok(None);
        }
        most = most.saturating_mul(4);
    }
}

fn steps_back(name: &str) -> Option<usize> {
    match name.strip_prefix('@')? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// Whether the point has this message id.
pub(crate) fn is_message(point: &Point, name: &str) -> bool {
    point.message_ids.iter().any(|message| {
        message == name
            || point.session.as_ref().is_some_and(|session| {
                name.strip_prefix(session.0.as_str()).and_then(|rest| rest.strip_prefix(':'))
                    == Some(message)
            })
    })
}

/// The label or id most similar to `name`, if any is close. If a label equal to `name` was skipped, its
/// point is suggested by id.
fn nearest(points: &[Point], name: &str) -> Option<String> {
    let names = points.iter().filter(|point| point.kind != PointKind::Safety).flat_map(|point| {
        let id = point.id.to_string();
        let label = point.label.as_ref().map(|label| {
            let shown = if label == name { id.clone() } else { label.clone() };
            (edit_distance(label, name), shown)
        });
        label.into_iter().chain([(edit_distance(&id, name), id)])
    });
    names
        .filter(|(distance, candidate)| *distance <= candidate.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many characters differ (Levenshtein).
#[must_use]
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}
