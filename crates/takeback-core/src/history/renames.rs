//! Renames: a file that went from one path and appeared at another, with the same bytes, found at the same
//! moment. Contents that differ in one byte are not compared: that is a guess.

use std::collections::HashMap;

use takeback_store::{Change, Digest, Entry};

/// The contents by which a renamed file is recognised. Not for empty files, which are all equal.
pub(crate) fn recognizable(entry: &Entry) -> Option<Digest> {
    match entry {
        Entry::File { digest, size, .. } if *size > 0 => Some(*digest),
        _ => None,
    }
}

/// A renamed file: which change took it from its old path, and which put it at the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rename {
    pub(super) departure: usize,
    pub(super) arrival: usize,
}

/// The renames among changes, which must be oldest first. Only changes with the same key belong together, and
/// each belongs to one rename at most.
pub(super) fn renames<K: PartialEq>(
    changes: &[&Change],
    key: impl Fn(&Change) -> K,
) -> Vec<Rename> {
    let mut found = Vec::new();
    let mut start = 0;
    for moment in changes.chunk_by(|a, b| a.time == b.time) {
        let rename = |(departure, arrival): (usize, usize)| Rename {
            departure: start + departure,
            arrival: start + arrival,
        };
        found.extend(within_moment(moment, &key).into_iter().map(rename));
        start += moment.len();
    }
    found
}

fn within_moment<K: PartialEq>(
    moment: &[&Change],
    key: impl Fn(&Change) -> K,
) -> Vec<(usize, usize)> {
    let mut departures: HashMap<Digest, Vec<usize>> = HashMap::new();
    let mut arrivals: Vec<(usize, Digest)> = Vec::new();
    for (at, change) in moment.iter().enumerate() {
        match (&change.before, &change.after) {
            (before, Entry::Absent) => {
                if let Some(digest) = recognizable(before) {
                    departures.entry(digest).or_default().push(at);
                }
            }
            (Entry::Absent, after) => {
                arrivals.extend(recognizable(after).map(|digest| (at, digest)));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    // Of equal files, those that kept their name belong together.
    for must_keep_name in [true, false] {
        arrivals.retain(|(arrival, digest)| {
            let new = moment[*arrival];
            let Some(candidates) = departures.get_mut(digest) else { return false };
            let is_its = |at: &usize| {
                let old = moment[*at];
                let keeps_name = old.path.file_name() == new.path.file_name();
                old.path != new.path && (keeps_name || !must_keep_name) && key(old) == key(new)
            };
            let Some(at) = candidates.iter().position(is_its) else { return true };
            found.push((candidates.remove(at), *arrival));
            false
        });
    }
    found
}
