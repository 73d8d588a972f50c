//! What differs between two entries, in lines.

use std::io::{self, Write};

use similar::{ChangeTag, TextDiff};
use takeback_core::history::PathHistory;
use takeback_store::{Entry, Seq, Store, StoreError, WorkPath};

use crate::screen::{BAD, GOOD, HINT, NAME, STRONG};

/// One path, before and after.
#[derive(Debug, Clone)]
pub(crate) struct FileDiff {
    pub(crate) path: WorkPath,
    pub(crate) before: Entry,
    pub(crate) after: Entry,
}

/// Lines that came and went; `None`: not text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) insertions: usize,
    pub(crate) deletions: usize,
}

/// What differs between the log at `from` and at `to`, given all changes after `from`. A path that
/// only came into sight did not change.
pub(crate) fn between(histories: &[PathHistory], to: Option<Seq>) -> Vec<FileDiff> {
    histories
        .iter()
        .map(|history| FileDiff {
            path: history.path.clone(),
            before: history.at_start().clone(),
            after: to.map_or_else(|| history.at_end().clone(), |to| history.at(to).clone()),
        })
        .filter(|diff| diff.before != diff.after && diff.before != Entry::Unknown)
        .collect()
}

/// Contents above this are not compared line by line.
const MOST: u64 = 4 << 20;

enum Text {
    Lines(String),
    Binary,
}

fn text(store: &dyn Store, entry: &Entry) -> Result<Text, StoreError> {
    let contents = match entry {
        Entry::File { size, .. } if *size > MOST => return Ok(Text::Binary),
        Entry::File { digest, .. } => store.contents(digest)?,
        Entry::Symlink { target } => [target.as_slice(), b"\n"].concat(),
        Entry::NotCaptured { .. } => return Ok(Text::Binary),
        Entry::Absent | Entry::Dir { .. } | Entry::Unknown => Vec::new(),
    };
    if contents.iter().take(8000).any(|byte| *byte == 0) {
        return Ok(Text::Binary);
    }
    Ok(Text::Lines(String::from_utf8_lossy(&contents).into_owned()))
}

impl FileDiff {
    pub(crate) fn lines(&self, store: &dyn Store) -> Result<Option<Lines>, StoreError> {
        let (Text::Lines(before), Text::Lines(after)) =
            (text(store, &self.before)?, text(store, &self.after)?)
        else {
            return Ok(None);
        };
        let mut lines = Lines::default();
        for change in TextDiff::from_lines(&before, &after).iter_all_changes() {
            match change.tag() {
                ChangeTag::Insert => lines.insertions += 1,
                ChangeTag::Delete => lines.deletions += 1,
                ChangeTag::Equal => {}
            }
        }
        Ok(Some(lines))
    }

    /// Whether it is only a folder that came, went or changed its mode.
    pub(crate) fn is_folder(&self) -> bool {
        let no_file = |entry: &Entry| matches!(entry, Entry::Dir { .. } | Entry::Absent);
        no_file(&self.before) && no_file(&self.after)
    }

    /// `+3 -1`, or what else there is to say.
    pub(crate) fn counts(&self, store: &dyn Store) -> Result<String, StoreError> {
        if self.is_folder() {
            return Ok(String::new());
        }
        Ok(match self.lines(store)? {
            Some(lines) => {
                format!("{GOOD}+{}{GOOD:#} {BAD}-{}{BAD:#}", lines.insertions, lines.deletions)
            }
            None => format!("{HINT}not text{HINT:#}"),
        })
    }

    /// `new`, `deleted`, `mode 644 → 755`: what lines do not show.
    pub(crate) fn what(&self) -> String {
        match (&self.before, &self.after) {
            (before, after) if before == after => "as before".to_owned(),
            (Entry::Absent, Entry::Dir { .. }) => "new folder".to_owned(),
            (Entry::Absent, Entry::Symlink { .. }) => "new link".to_owned(),
            (Entry::Absent, _) => "new".to_owned(),
            (Entry::Dir { .. }, Entry::Absent) => "folder deleted".to_owned(),
            (_, Entry::Absent) => "deleted".to_owned(),
            (Entry::NotCaptured { lack }, _) | (_, Entry::NotCaptured { lack }) => {
                format!("not kept: {}", lack.reason())
            }
            (before, after) => match (before.mode(), after.mode()) {
                (Some(old), Some(new)) if old != new => format!("mode {old:o} → {new:o}"),
                (Some(_), Some(_)) if before.is_dir() == after.is_dir() => "changed".to_owned(),
                _ if matches!((before, after), (Entry::Symlink { .. }, Entry::Symlink { .. })) => {
                    "points elsewhere".to_owned()
                }
                _ => "another kind of file".to_owned(),
            },
        }
    }

    /// As a unified diff.
    pub(crate) fn print(&self, store: &dyn Store, out: &mut dyn Write) -> Result<(), PrintError> {
        let name = self.path.display();
        writeln!(out, "{STRONG}{name}{STRONG:#}  {HINT}{}{HINT:#}", self.what())?;
        let (before, after) = (text(store, &self.before)?, text(store, &self.after)?);
        let (Text::Lines(before), Text::Lines(after)) = (before, after) else {
            writeln!(out, "{HINT}  not text{HINT:#}")?;
            return Ok(());
        };
        for hunk in
            TextDiff::from_lines(&before, &after).unified_diff().context_radius(3).iter_hunks()
        {
            writeln!(out, "{NAME}{}{NAME:#}", hunk.header())?;
            for change in hunk.iter_changes() {
                let line = change.value().trim_end_matches('\n');
                let line: String = line.chars().flat_map(shown).collect();
                match change.tag() {
                    ChangeTag::Equal => writeln!(out, " {line}")?,
                    ChangeTag::Insert => writeln!(out, "{GOOD}+{line}{GOOD:#}")?,
                    ChangeTag::Delete => writeln!(out, "{BAD}-{line}{BAD:#}")?,
                }
            }
        }
        Ok(())
    }
}

/// Control characters in a file must not reach the terminal.
fn shown(c: char) -> Vec<char> {
    if c.is_control() && c != '\t' { c.escape_default().collect() } else { vec![c] }
}

pub(crate) enum PrintError {
    Store(StoreError),
    Io(io::Error),
}

impl From<StoreError> for PrintError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for PrintError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<PrintError> for crate::error::CommandError {
    fn from(error: PrintError) -> Self {
        match error {
            PrintError::Store(error) => error.into(),
            PrintError::Io(error) => error.into(),
        }
    }
}
