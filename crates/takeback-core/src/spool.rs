//! Events that came while the workspace was locked: kept in a file, recorded by whoever is next.

use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use takeback_store::{Timestamp, disk};

use crate::event::AgentEvent;

/// One line of the spool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spooled {
    pub time: Timestamp,
    #[serde(flatten)]
    pub event: AgentEvent,
}

fn file(store_dir: &Path) -> PathBuf {
    store_dir.join("spool")
}

/// Keeps an event durably, behind those that are there.
pub fn push(store_dir: &Path, spooled: &Spooled) -> io::Result<()> {
    let mut file = disk::open_private_file(&file(store_dir))?;
    file.lock()?;
    // A crash may have left half a line: it must not spoil this one.
    let mut line = vec![b'\n'];
    serde_json::to_writer(&mut line, spooled)?;
    line.push(b'\n');
    disk::append(&mut file, &line)?;
    disk::sync(&file)
}

/// Hands every spooled event to `take`, oldest first, then empties the spool. If `take` fails, or
/// the process dies, the spool stays as it is and its events are taken again. A line cut short by a
/// crash was never promised to anyone and is passed over.
pub fn drain<E: From<io::Error>>(
    store_dir: &Path,
    mut take: impl FnMut(Spooled) -> Result<(), E>,
) -> Result<usize, E> {
    let path = file(store_dir);
    if std::fs::metadata(&path).map_or(0, |spool| spool.len()) == 0 {
        return Ok(0);
    }
    let file = disk::open_private_file(&path)?;
    file.lock()?;
    let mut taken = 0;
    for line in BufReader::new(&file).split(b'\n') {
        if let Ok(spooled) = serde_json::from_slice(&line?) {
            take(spooled)?;
            taken += 1;
        }
    }
    if taken > 0 {
        disk::empty(&file)?;
    }
    Ok(taken)
}
