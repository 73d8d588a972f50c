//! The log of interactive sessions: `<home>/logs/chat.log`, one line per entry, readable only by its owner.
//!
//! Input is text for people or from an agent. Output has no recognizable secrets and no control characters.
//! Several processes write to one file: each line is one append. Errors while writing the log are ignored.

mod redact;

use std::fs::{File, symlink_metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use takeback_store::{Timestamp, disk};

use self::redact::redacted;
use crate::time::iso;

/// Variables whose values are never logged.
const SECRET_VARIABLES: [&str; 4] =
    ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY"];

/// The file is rotated before it grows beyond this.
const LONGEST_FILE: u64 = 1 << 20;
/// Longer entries are cut: an agent's message may be of any length.
const LONGEST_ENTRY: usize = 16 << 10;
/// Rotated files are `chat.log.1` (newest) up to this number.
const OLDER: u32 = 3;

#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    secrets: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Error,
    Info,
}

impl LogFile {
    /// `variable` reads the environment: the API keys in it must never be logged.
    pub(crate) fn new(home: &Path, variable: impl Fn(&str) -> Option<String>) -> Self {
        let mut secrets: Vec<String> = SECRET_VARIABLES
            .iter()
            .filter_map(|name| variable(name))
            .map(|secret| secret.trim().to_owned())
            .filter(|secret| !secret.is_empty())
            .collect();
        // One may be a prefix of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { path: home.join("logs").join("chat.log"), secrets }
    }

    /// The log for hooks, which have no terminal: `<home>/logs/hooks.log`.
    pub(crate) fn of_hooks(home: &Path, variable: impl Fn(&str) -> Option<String>) -> Self {
        Self { path: home.join("logs").join("hooks.log"), ..Self::new(home, variable) }
    }

    /// Adds an entry. Errors are ignored.
    pub(crate) fn add(&self, now: Timestamp, level: Level, text: &str) {
        drop(self.try_add(&self.line(now, level, text)));
    }

    fn line(&self, now: Timestamp, level: Level, text: &str) -> String {
        let level = match level {
            Level::Error => "ERROR",
            Level::Info => "INFO",
        };
        let seconds = Timestamp(now.0.div_euclid(1000) * 1000);
        let text = redacted(text.trim_end(), &self.secrets);
        let mut line = format!("{} {level} ", iso(seconds));
        let mut rest = text.chars();
        for c in rest.by_ref().take(LONGEST_ENTRY) {
            if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
                line.extend(c.escape_default());
            } else {
                line.push(c);
            }
        }
        if rest.next().is_some() {
            line.push('…');
        }
        line.push('\n');
        line
    }

    fn try_add(&self, line: &str) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            disk::make_private_folder(folder)?;
        }
        let mut file = self.open()?;
        let length = file.metadata()?.len();
        if length > 0 && length + line.len() as u64 > LONGEST_FILE {
            self.rotate(&file)?;
            file = self.open()?;
        }
        disk::append(&mut file, line.as_bytes())
    }

    fn open(&self) -> io::Result<File> {
        let file = disk::open_private_file(&self.path)?;
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other("it is not a regular file"))
        }
    }

    /// Rotates the files. Only the process that locks the current file does it; others append, even if the
    /// file becomes a little longer.
    fn rotate(&self, file: &File) -> io::Result<()> {
        if file.try_lock().is_err() {
            return Ok(());
        }
        let (held, named) = (file.metadata()?, symlink_metadata(&self.path)?);
        if (held.dev(), held.ino()) != (named.dev(), named.ino()) {
            return Ok(());
        }
        for n in (1..OLDER).rev() {
            match disk::rename_private_file(&self.older(n), &self.older(n + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        disk::rename_private_file(&self.path, &self.older(1))
    }

    fn older(&self, n: u32) -> PathBuf {
        let mut older = self.path.as_os_str().to_owned();
        older.push(format!(".{n}"));
        older.into()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    const NOW: Timestamp = Timestamp(1_794_765_600_999);

    fn lines(path: &Path) -> Vec<String> {
        fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn an_entry_is_a_line_in_a_private_file() {
        let home = tempfile::tempdir().unwrap();
        let log = LogFile::new(home.path(), |_| None);
        log.add(NOW, Level::Error, "restore failed: no space left\n");
        log.add(NOW, Level::Info, "two\r\nlines \u{1b}[31mred\u{1b}[0m \u{2028} äöü 好");
        log.add(NOW, Level::Info, "");
        let path = home.path().join("logs/chat.log");
        assert_eq!(
            lines(&path),
            [
                "2026-11-15T18:00:00Z ERROR restore failed: no space left",
                r"2026-11-15T18:00:00Z INFO two\r\nlines \u{1b}[31mred\u{1b}[0m \u{2028} äöü 好",
                "2026-11-15T18:00:00Z INFO ",
            ]
        );
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&home.path().join("logs")), 0o700);
    }

    #[test]
    fn no_key_comes_into_it() {
        let home = tempfile::tempdir().unwrap();
        let log = LogFile::new(home.path(), |name| match name {
            "ANTHROPIC_API_KEY" => Some("key".to_owned()),
            "OPENAI_API_KEY" => Some("key-and-more".to_owned()),
            "ANTHROPIC_AUTH_TOKEN" => Some(String::new()),
            "CLAUDE_CODE_OAUTH_TOKEN" => Some(" in spaces ".to_owned()),
            _ => None,
        });
        log.add(NOW, Level::Error, "key-and-more, key, in spaces; Bearer abc.def");
        let path = home.path().join("logs/chat.log");
        let hidden = "[redacted], [redacted], [redacted]; Bearer [redacted]";
        assert_eq!(lines(&path), [format!("2026-11-15T18:00:00Z ERROR {hidden}")]);
    }

    #[test]
    fn a_long_file_gets_another_name_and_the_oldest_goes() {
        let home = tempfile::tempdir().unwrap();
        let log = LogFile::new(home.path(), |_| None);
        let text = "x".repeat(LONGEST_ENTRY);
        // Six files of it.
        let count = 6 * LONGEST_FILE / (text.len() as u64 + 28);
        for n in 0..count {
            log.add(NOW, Level::Info, &format!("{n} {text}"));
        }
        let folder = home.path().join("logs");
        let mut names: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["chat.log", "chat.log.1", "chat.log.2", "chat.log.3"]);
        let number = |line: &String| line.split(' ').nth(2).unwrap().parse::<u64>().unwrap();
        let mut numbers = Vec::new();
        for name in names.iter().rev() {
            let path = folder.join(name);
            assert!(fs::metadata(&path).unwrap().len() <= LONGEST_FILE, "{name}");
            numbers.extend(lines(&path).iter().map(number));
        }
        let first = numbers[0];
        assert!(first > 0, "the oldest are gone");
        assert_eq!(numbers, (first..count).collect::<Vec<_>>(), "in order, without a gap");
    }

    #[test]
    fn an_endless_entry_is_cut_at_a_character() {
        let log = LogFile::new(Path::new("nowhere"), |_| None);
        let line = log.line(NOW, Level::Info, &"é".repeat(LONGEST_ENTRY + 1));
        assert!(line.ends_with("é…\n"));
        assert_eq!(line.matches('é').count(), LONGEST_ENTRY);
    }

    /// Writes more than one file, so that writers also rotate at the same time.
    #[test]
    fn many_writers_tear_no_line() {
        let home = tempfile::tempdir().unwrap();
        let text = "y".repeat(4000);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (home, text) = (home.path(), &text);
                scope.spawn(move || {
                    let log = LogFile::new(home, |_| None);
                    (0..150)
                        .for_each(|n| log.add(NOW, Level::Info, &format!("{writer} {n} {text}")));
                });
            }
        });
        let mut all = Vec::new();
        for entry in fs::read_dir(home.path().join("logs")).unwrap() {
            all.extend(lines(&entry.unwrap().path()));
        }
        assert_eq!(all.len(), 600, "none is lost");
        let ending = format!(" {text}");
        assert!(all.iter().all(|line| line.ends_with(&ending) && line.starts_with("2026-11-15T")));
    }

    #[test]
    fn a_log_that_cannot_be_written_is_no_failure() {
        let home = tempfile::tempdir().unwrap();
        let theirs = home.path().join("theirs");
        fs::write(&theirs, "theirs\n").unwrap();
        fs::create_dir(home.path().join("logs")).unwrap();
        symlink(&theirs, home.path().join("logs/chat.log")).unwrap();
        LogFile::new(home.path(), |_| None).add(NOW, Level::Error, "through a link");
        LogFile::new(&theirs, |_| None).add(NOW, Level::Error, "below a file");
        LogFile::new(Path::new("/proc"), |_| None).add(NOW, Level::Error, "nowhere");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs\n");
    }
}
