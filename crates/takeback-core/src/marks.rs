//! Labels and pins: a person sets them so that a point can be found and is not dropped.

use takeback_store::{Point, PointId, PointKind, PointQuery, StoreError, Write};

use crate::point_name::is_message;
use crate::workspace::Workspace;

/// Why a mark was not set. The point is unchanged.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum MarkError {
    #[error("there is no point {0}")]
    NoPoint(PointId),
    #[error("point {0} belongs to a rewind and is dropped when that can no longer be undone")]
    Safety(PointId),
    #[error("the label {label:?} is taken by point {point}")]
    LabelTaken { label: String, point: PointId },
    #[error("a label cannot be empty, begin with `@` or hold control characters: {label:?}")]
    NotALabel { label: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What to set on a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark<'a> {
    /// Retention keeps the point.
    Pin,
    /// Retention may drop the point, unless it has a label.
    NoPin,
    /// This name for the point, which keeps it too.
    Label(&'a str),
    /// The point has no name.
    NoLabel,
}

/// Sets a mark and returns the changed point.
pub fn mark(workspace: &mut Workspace, id: PointId, mark: Mark<'_>) -> Result<Point, MarkError> {
    loop {
        let head = workspace.store.head()?;
        let point = workspace.store.find_points(PointQuery::Id(id))?.pop();
        let mut point = point.ok_or(MarkError::NoPoint(id))?;
        if point.kind == PointKind::Safety {
            return Err(MarkError::Safety(id));
        }
        match mark {
            Mark::Pin => point.pinned = true,
            Mark::NoPin => point.pinned = false,
            Mark::NoLabel => point.label = None,
            Mark::Label(label) => {
                check_label(label)?;
                let has_it = |other: &&Point| other.id != id && is_called(other, label);
                let called = workspace.store.find_points(PointQuery::Name(label))?;
                if let Some(other) = called.iter().find(has_it) {
                    let label = label.to_owned();
                    return Err(MarkError::LabelTaken { label, point: other.id });
                }
                point.label = Some(label.to_owned());
            }
        }
        match workspace.store.commit(head, &[Write::Point(point.clone())]) {
            Err(StoreError::Moved) => {}
            done => return Ok(done.map(|_| point)?),
        }
    }
}

/// Whether a point has this label or message id.
pub(crate) fn is_called(point: &Point, label: &str) -> bool {
    point.label.as_deref() == Some(label) || is_message(point, label)
}

/// Checks that a point can be found by this label.
pub fn check_label(label: &str) -> Result<(), MarkError> {
    let odd = label.trim().is_empty() || label.starts_with('@') || label.contains(char::is_control);
    if odd { Err(MarkError::NotALabel { label: label.to_owned() }) } else { Ok(()) }
}
