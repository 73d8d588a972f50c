//! `status --line`: one short line for shell prompts and status bars, which run it very often.
//!
//! Reads only the store, in a few milliseconds. It reads no files, writes and repairs nothing, and never
//! waits. Without a store the line is empty, so that a status bar shows nothing.

use std::io::Write as _;

use takeback_core::process::is_alive;
use takeback_store::{LastPoint, StoreError, StoreSummary, Timestamp};

use crate::answers;
use crate::args::Options;
use crate::error::{CommandError, Kind};
use crate::place;
use crate::screen::{Screen, columns, count, plain, shorten, width};
use crate::stores;
use crate::time::now;

/// The longest line.
const LONGEST: usize = 60;

pub(crate) fn line(options: &Options, screen: &mut Screen) -> Result<u8, CommandError> {
    let seen = match place::locate(options) {
        Ok(location) => stores::summarize(&stores::store_of(&location.root, &location.home)),
        // A shell's current folder may have been deleted.
        Err(_) if options.directory.is_none() => return nothing(screen),
        Err(error) => return Err(error),
    };
    let mut seen = match seen {
        Ok(seen) => seen,
        Err(StoreError::Missing { .. }) => return nothing(screen),
        Err(error) if screen.json => return Err(error.into()),
        Err(_) => {
            writeln!(screen.out, "takeback: the store cannot be read")?;
            return Ok(Kind::Error as u8);
        }
    };
    seen.active_sessions.retain(|session| session.owner.is_none_or(is_alive));
    if screen.json {
        screen.json(&answer(&seen))?;
    } else {
        writeln!(screen.out, "{}", text(&seen, now(), room()))?;
    }
    Ok(0)
}

fn nothing(screen: &mut Screen) -> Result<u8, CommandError> {
    if screen.json {
        screen.json(&None::<answers::StatusLineAnswer>)?;
    } else {
        writeln!(screen.out)?;
    }
    Ok(0)
}

/// The available columns. A status bar is not a terminal, but may set `COLUMNS`.
fn room() -> usize {
    let columns = place::environment("COLUMNS").and_then(|text| text.to_str()?.parse().ok());
    columns.unwrap_or_else(width).min(LONGEST)
}

fn answer(seen: &StoreSummary) -> answers::StatusLineAnswer {
    let at_work = seen.active_sessions.iter().map(|one| answers::WorkingSession {
        session: one.session.0.clone(),
        agent: one.agent.clone(),
    });
    answers::StatusLineAnswer {
        points: seen.points,
        last_point: seen.last.as_ref().map(|last| answers::LastPoint {
            id: answers::Id::new(last.id),
            label: last.label.clone(),
            description: last.description.clone(),
            created_at: answers::time(last.created_at),
        }),
        at_work: at_work.collect(),
        open_rewind: seen.open_rewind,
    }
}

/// `3 points · last 4m ago: fix the parser · claude at work`; with fewer words in fewer columns.
fn text(seen: &StoreSummary, now: Timestamp, room: usize) -> String {
    let points = usize::try_from(seen.points).unwrap_or(usize::MAX);
    let agent = |agent: &Option<String>| plain(agent.as_deref().unwrap_or("agent"));
    let at_work = match seen.active_sessions.as_slice() {
        [] => None,
        [one] => Some(shorten(&agent(&one.agent), 12)),
        more => Some(more.len().to_string()),
    };
    let age = seen.last.as_ref().map(|last| age(last.created_at, now));
    let wide = Words {
        points: count(points, "point"),
        age: age.as_ref().map(|age| format!("last {age} ago")),
        at_work: at_work.as_ref().map(|who| format!("{who} at work")),
        rewind: seen.open_rewind.then_some("rewind unfinished"),
    };
    // In fewer columns, the title is left out.
    const TITLE: usize = 12;
    let title = seen.last.as_ref().map(title).unwrap_or_default();
    let needed = wide.columns() + if title.is_empty() { 0 } else { columns(&title).min(TITLE) + 2 };
    if needed <= room {
        return wide.with(&title, room);
    }
    let narrow = Words {
        points: points.to_string(),
        age,
        at_work: at_work.map(|who| format!("{who} works")),
        rewind: seen.open_rewind.then_some("rewind!"),
    };
    shorten(&narrow.with(&title, room), room)
}

/// The parts of the line, without the point's title.
struct Words {
    points: String,
    age: Option<String>,
    at_work: Option<String>,
    rewind: Option<&'static str>,
}

impl Words {
    fn columns(&self) -> usize {
        columns(&self.with("", 0))
    }

    fn with(&self, title: &str, room: usize) -> String {
        /// A shorter part of a title is noise.
        const LEAST: usize = 4;
        let left = if title.is_empty() { 0 } else { room.saturating_sub(self.columns() + 2) };
        let title =
            if left < LEAST { String::new() } else { format!(": {}", shorten(title, left)) };
        let age = self.age.as_ref().map(|age| format!("{age}{title}"));
        let rewind = self.rewind.map(str::to_owned);
        let parts = [rewind, Some(self.points.clone()), age, self.at_work.clone()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

fn title(last: &LastPoint) -> String {
    let called = last.label.as_deref().unwrap_or(&last.description);
    plain(called.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim())
}

/// `40s`, `4m`, `3h`, `2d`.
fn age(time: Timestamp, now: Timestamp) -> String {
    let seconds = (now.0 - time.0).max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use takeback_store::{ActiveSession, PointId, SessionId};

    use super::*;

    fn seen(description: &str, at_work: &[&str]) -> StoreSummary {
        let last = LastPoint {
            id: PointId(1),
            description: description.to_owned(),
            label: None,
            created_at: Timestamp(0),
        };
        let session = |agent: &&str| ActiveSession {
            session: SessionId::from("s"),
            agent: Some((*agent).to_owned()),
            owner: None,
        };
        let active_sessions = at_work.iter().map(session).collect();
        StoreSummary { points: 3, last: Some(last), active_sessions, open_rewind: false }
    }

    #[test]
    fn it_fits_in_the_columns_there_are() {
        let now = Timestamp(4 * 60_000);
        let one = seen("\n  fix the parser of the long description\nand more", &["claude"]);
        let line_of = |seen: &StoreSummary, room| text(seen, now, room);
        for (room, expected) in [
            (80, "3 points · last 4m ago: fix the parser of the long description · claude at work"),
            (60, "3 points · last 4m ago: fix the parser of … · claude at work"),
            (40, "3 · 4m: fix the parser o… · claude works"),
            (28, "3 · 4m: fix … · claude works"),
            (24, "3 · 4m · claude works"),
            (20, "3 · 4m · claude wor…"),
            (4, "3 ·…"),
        ] {
            let line = line_of(&one, room);
            assert!(columns(&line) <= room, "{room}: {line}");
            assert_eq!(line, expected, "{room}");
        }
        assert_eq!(line_of(&seen("go", &[]), 40), "3 points · last 4m ago: go");
        assert_eq!(
            line_of(&seen("go", &["claude", "codex"]), 60),
            "3 points · last 4m ago: go · 2 at work"
        );
        let bare =
            StoreSummary { points: 0, last: None, active_sessions: Vec::new(), open_rewind: true };
        assert_eq!(line_of(&bare, 60), "rewind unfinished · 0 points");
    }

    #[test]
    fn an_age_has_one_number() {
        let now = Timestamp(10_000_000_000);
        let ages = [-5, 0, 59, 60, 3_599, 3_600, 86_399, 86_400, 9_000_000];
        let texts = ages.map(|seconds| age(Timestamp(now.0 - seconds * 1000), now));
        assert_eq!(texts, ["0s", "0s", "59s", "1m", "59m", "1h", "23h", "1d", "104d"]);
    }
}
