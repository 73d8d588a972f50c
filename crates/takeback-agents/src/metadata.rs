//! A session's checkpoints as a file for other programs:
//! `<sessions>/<session>/checkpoints/metadata.json`.
//!
//! The file is a copy; a rewind never needs it. It is replaced atomically, so readers never see
//! half a file, and the last of two concurrent writers wins. A file that cannot be parsed is
//! renamed, never overwritten, and filled again from the log.

use std::cmp::Reverse;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use takeback_core::record::describe;
use takeback_store::file_name_part;
use takeback_store::{PointKind, SessionId, Store, StoreError, Timestamp, disk};

/// A prompt of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// The message's UUID.
    pub id: String,
    /// The time in the log.
    #[serde(serialize_with = "iso", deserialize_with = "from_iso")]
    pub timestamp: Timestamp,
    /// One line; see [`checkpoint_description`].
    pub description: String,
    /// The agent's id of the conversation.
    pub session_id: String,
}

/// The checkpoints of one session, and their file.
#[derive(Debug)]
pub struct Metadata {
    path: PathBuf,
    keep: usize,
    checkpoints: Vec<Checkpoint>,
}

/// A file that could not be parsed, and its new name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedMetadata {
    /// Where it is now.
    pub path: PathBuf,
    /// Why it could not be parsed.
    pub why: String,
}

/// Why the file of a session cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The session's name is empty, so it has no folder.
    #[error("the session has no name")]
    NoSession,
    /// An operation failed.
    #[error("{path} cannot be used ({doing})")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operation.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl Metadata {
    /// Creates the folder for its owner alone, and reads the file if there is one. `session` is the
    /// host's id; any text names one folder directly below `sessions`.
    pub fn open(
        sessions: &Path,
        session: &str,
        keep: usize,
    ) -> Result<(Self, Option<DamagedMetadata>), MetadataError> {
        if session.is_empty() {
            return Err(MetadataError::NoSession);
        }
        let folder = session_folder(sessions, session).join("checkpoints");
        disk::make_private_folder(&folder).map_err(failed(&folder, "make it"))?;
        let path = folder.join("metadata.json");
        let (checkpoints, set_aside) = match read(&path)? {
            Ok(checkpoints) => (checkpoints, None),
            Err(why) => {
                let aside = set_aside(&path)?;
                (Vec::new(), aside.map(|path| DamagedMetadata { path, why }))
            }
        };
        let mut metadata = Self { path, keep, checkpoints };
        metadata.checkpoints.sort_by_key(|checkpoint| Reverse(checkpoint.timestamp));
        metadata.checkpoints.truncate(keep);
        Ok((metadata, set_aside))
    }

    /// Newest first, at most the configured number.
    #[must_use]
    pub fn list(&self) -> &[Checkpoint] {
        &self.checkpoints
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a checkpoint first and replaces one with the same id; durable when this returns. After
    /// an error the list still has it, and the next successful call writes both.
    pub fn capture(&mut self, checkpoint: Checkpoint) -> Result<(), MetadataError> {
        self.checkpoints.retain(|known| known.id != checkpoint.id);
        self.checkpoints.insert(0, checkpoint);
        self.checkpoints.truncate(self.keep);
        write(&self.path, self.checkpoints.clone())
    }

    /// Fills an empty list from the log, after the file was damaged or lost. Durable when this
    /// returns. Returns the number of checkpoints.
    pub fn refill(&mut self, known: Vec<Checkpoint>) -> Result<usize, MetadataError> {
        if self.checkpoints.is_empty() && !known.is_empty() {
            self.checkpoints = known;
            self.checkpoints.sort_by_key(|checkpoint| Reverse(checkpoint.timestamp));
            self.checkpoints.truncate(self.keep);
            write(&self.path, self.checkpoints.clone())?;
        }
        Ok(self.checkpoints.len())
    }
}

/// The prompts of a session in the log. `session_id` is the agent's id of the conversation, which
/// is not in the log; `clock` formats the time of a prompt without text.
pub fn checkpoints_in_log(
    store: &dyn Store,
    session: &SessionId,
    session_id: &str,
    clock: impl Fn(Timestamp) -> String,
) -> Result<Vec<Checkpoint>, StoreError> {
    let points = store.points()?.into_iter().rev();
    let prompts = points
        .filter(|point| point.kind == PointKind::Prompt && point.session.as_ref() == Some(session));
    // A turn without a prompt has no message and is never listed.
    let listed = prompts.filter_map(|point| {
        Some(Checkpoint {
            id: point.message_ids.into_iter().next()?,
            timestamp: point.created_at,
            description: checkpoint_description(
                &point.description.into(),
                &clock(point.created_at),
            ),
            session_id: session_id.to_owned(),
        })
    });
    Ok(listed.collect())
}

/// Changes descriptions in the files of all sessions; `change` returns `None` to keep one. Files
/// that cannot be parsed are skipped.
pub fn rewrite_metadata(
    sessions: &Path,
    change: impl Fn(&str) -> Option<String>,
) -> Result<(), MetadataError> {
    let folders = match std::fs::read_dir(sessions) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        folders => folders.map_err(failed(sessions, "list it"))?,
    };
    for folder in folders {
        let folder = folder.map_err(failed(sessions, "list it"))?.path();
        let path = folder.join("checkpoints/metadata.json");
        let Ok(mut checkpoints) = read(&path)? else { continue };
        let mut is_changed = false;
        for checkpoint in &mut checkpoints {
            if let Some(description) = change(&checkpoint.description) {
                checkpoint.description = description;
                is_changed = true;
            }
        }
        if is_changed {
            write(&path, checkpoints)?;
        }
    }
    Ok(())
}

fn write(path: &Path, checkpoints: Vec<Checkpoint>) -> Result<(), MetadataError> {
    let mut text = serde_json::to_vec_pretty(&File { checkpoints }).expect("JSON can be written");
    text.push(b'\n');
    disk::replace_private_file_durably(path, &text).map_err(failed(path, "replace it"))
}

/// The folder of a session, whether it exists or not. Any text is a valid name: each session has
/// its own folder directly below `sessions`.
#[must_use]
pub fn session_folder(sessions: &Path, session: &str) -> PathBuf {
    sessions.join(file_name_part(session))
}

/// The description of a checkpoint: the start of the prompt on one line, or of its first text
/// block. A prompt without text is described by its time, `clock` (`14:03:59`).
#[must_use]
pub fn checkpoint_description(content: &Value, clock: &str) -> String {
    let text = match content {
        Value::String(text) => Some(text.as_str()),
        Value::Array(blocks) => blocks
            .iter()
            .find(|block| block["type"] == "text")
            .and_then(|block| block["text"].as_str()),
        _ => None,
    };
    match text.map(describe) {
        Some(description) if !description.is_empty() => description,
        _ => format!("Checkpoint at {clock}"),
    }
}

#[derive(Serialize, Deserialize)]
struct File {
    checkpoints: Vec<Checkpoint>,
}

/// The inner error: why the file cannot be parsed.
fn read(path: &Path) -> Result<Result<Vec<Checkpoint>, String>, MetadataError> {
    // Neither follows a link nor waits for a pipe's writer.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(Vec::new())),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Ok(Err("it is a link".to_owned()));
        }
        Err(error) => return Err(failed(path, "read it")(error)),
    };
    if !file.metadata().map_err(failed(path, "read it"))?.is_file() {
        return Ok(Err("it is not a file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed(path, "read it"))?;
    let read = serde_json::from_slice(&bytes);
    Ok(read.map(|file: File| file.checkpoints).map_err(|error| error.to_string()))
}

/// Renames a damaged file to a free name. `None`: another process was faster.
fn set_aside(path: &Path) -> Result<Option<PathBuf>, MetadataError> {
    for n in 1.. {
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".damaged-{n}"));
        let aside = PathBuf::from(aside);
        match disk::place_private_file(path, &aside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            placed => {
                placed.map_err(failed(path, "set it aside"))?;
                return Ok(Some(aside));
            }
        }
    }
    unreachable!("some number is free")
}

fn failed(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> MetadataError {
    move |source| MetadataError::Io { path: path.to_owned(), doing, source }
}

/// Always with milliseconds, so that the texts sort like the times.
fn iso<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    let end = if time.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    let time = jiff::Timestamp::from_millisecond(time.0).unwrap_or(end);
    serializer.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"))
}

fn from_iso<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    let time: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
    Ok(Timestamp(time.as_millisecond()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests lay out their own files")]

    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use takeback_store::disk::stopped;

    use super::*;

    fn checkpoint(n: i64) -> Checkpoint {
        Checkpoint {
            id: format!("uuid-{n}"),
            timestamp: Timestamp(1_700_000_000_000 + n * 1000),
            description: format!("prompt {n}"),
            session_id: "sdk".to_owned(),
        }
    }

    fn open(sessions: &Path) -> Metadata {
        let (metadata, aside) = Metadata::open(sessions, "s", 10).unwrap();
        assert_eq!(aside, None);
        metadata
    }

    fn names(folder: &Path) -> BTreeSet<String> {
        let names = fs::read_dir(folder).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn the_file_has_the_expected_format_and_is_private() {
        let sessions = tempfile::tempdir().unwrap();
        let mut metadata = open(sessions.path());
        metadata.capture(checkpoint(0)).unwrap();
        let path = sessions.path().join("s/checkpoints/metadata.json");
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            r#"{
  "checkpoints": [
    {
      "id": "uuid-0",
      "timestamp": "2023-11-14T22:13:20.000Z",
      "description": "prompt 0",
      "sessionId": "sdk"
    }
  ]
}
"#
        );
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(&sessions.path().join("s")), 0o700);
    }

    #[test]
    fn entries_of_other_programs_are_sorted_and_unknown_fields_ignored() {
        let sessions = tempfile::tempdir().unwrap();
        let path = open(sessions.path()).path().to_owned();
        let text = r#"{"version": 2, "checkpoints": [
            {"id":"a","timestamp":"2026-01-01T10:00:00Z","description":"","sessionId":"x","more":1},
            {"id":"b","timestamp":"2026-01-01T12:00:00.5+01:00","description":"","sessionId":"x"}]}"#;
        fs::write(&path, text).unwrap();
        let ids: Vec<String> =
            open(sessions.path()).list().iter().map(|one| one.id.clone()).collect();
        assert_eq!(ids, ["b", "a"]);
    }

    #[test]
    fn a_repeated_message_is_one_checkpoint_and_a_clock_set_back_hides_none() {
        let sessions = tempfile::tempdir().unwrap();
        let mut metadata = Metadata::open(sessions.path(), "s", 2).unwrap().0;
        metadata.capture(checkpoint(5)).unwrap();
        metadata.capture(checkpoint(6)).unwrap();
        let again = Checkpoint { description: "again".to_owned(), ..checkpoint(5) };
        metadata.capture(again.clone()).unwrap();
        assert_eq!(metadata.list(), [again.clone(), checkpoint(6)]);
        metadata.capture(checkpoint(1)).unwrap();
        assert_eq!(metadata.list(), [checkpoint(1), again]);
    }

    #[test]
    fn a_damaged_file_is_renamed_to_a_free_name() {
        let sessions = tempfile::tempdir().unwrap();
        let path = open(sessions.path()).path().to_owned();
        let folder = path.parent().unwrap();
        for (n, damaged) in
            ["", "{", "[]", r#"{"checkpoints":[{"id":1}]}"#, "\u{0}\u{0}"].iter().enumerate()
        {
            fs::write(&path, damaged).unwrap();
            let (mut metadata, aside) = Metadata::open(sessions.path(), "s", 10).unwrap();
            let aside = aside.unwrap();
            assert_eq!(aside.path, folder.join(format!("metadata.json.damaged-{}", n + 1)));
            assert!(!aside.why.is_empty());
            assert_eq!(fs::read_to_string(&aside.path).unwrap(), *damaged);
            assert_eq!(metadata.list(), []);
            metadata.capture(checkpoint(1)).unwrap();
            assert_eq!(open(sessions.path()).list(), [checkpoint(1)]);
        }
    }

    #[test]
    fn only_an_empty_list_is_filled_from_the_log() {
        let sessions = tempfile::tempdir().unwrap();
        let mut metadata = Metadata::open(sessions.path(), "s", 2).unwrap().0;
        assert_eq!(metadata.refill(Vec::new()).unwrap(), 0);
        assert!(!metadata.path().exists(), "there is nothing to say");
        let known = vec![checkpoint(2), checkpoint(3), checkpoint(1)];
        assert_eq!(metadata.refill(known).unwrap(), 2);
        assert_eq!(open(sessions.path()).list(), [checkpoint(3), checkpoint(2)]);
        assert_eq!(metadata.refill(vec![checkpoint(9)]).unwrap(), 2);
        assert_eq!(open(sessions.path()).list(), [checkpoint(3), checkpoint(2)]);
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let sessions = tempfile::tempdir().unwrap();
        let path = open(sessions.path()).path().to_owned();
        let theirs = sessions.path().join("theirs.json");
        fs::write(&theirs, "{}").unwrap();
        symlink(&theirs, &path).unwrap();
        let (mut metadata, aside) = Metadata::open(sessions.path(), "s", 10).unwrap();
        assert_eq!(aside.unwrap().why, "it is a link");
        metadata.capture(checkpoint(1)).unwrap();
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "{}");
    }

    #[test]
    fn no_session_name_leads_out_of_the_folder() {
        let home = tempfile::tempdir().unwrap();
        let sessions = home.path().join("sessions");
        for hostile in ["../x", "..", ".", "/etc", "a/b", "a\0b", &"x".repeat(400)] {
            let mut metadata = Metadata::open(&sessions, hostile, 10).unwrap().0;
            metadata.capture(checkpoint(1)).unwrap();
            let below = metadata.path().strip_prefix(&sessions).unwrap();
            assert_eq!(below.components().count(), 3, "{}", below.display());
        }
        assert_eq!(names(home.path()), BTreeSet::from(["sessions".to_owned()]));
        assert_eq!(names(&sessions).len(), 7);
        assert!(matches!(Metadata::open(&sessions, "", 10), Err(MetadataError::NoSession)));
    }

    #[test]
    fn after_a_crash_the_file_is_the_old_or_the_new_one() {
        for n in 1.. {
            let sessions = tempfile::tempdir().unwrap();
            open(sessions.path()).capture(checkpoint(1)).unwrap();
            let mut metadata = open(sessions.path());
            let reached = stopped(n, || metadata.capture(checkpoint(2)).unwrap());
            let found = open(sessions.path()).list().to_vec();
            let (old, new) = (vec![checkpoint(1)], vec![checkpoint(2), checkpoint(1)]);
            assert!(found == old || found == new, "{n}: {found:?}");
            // Leftovers of the crash do not prevent the next write.
            open(sessions.path()).capture(checkpoint(3)).unwrap();
            if reached.is_none() {
                assert_eq!(found, new);
                assert!(n > 3, "only {n}");
                break;
            }
        }
    }

    #[test]
    fn a_reader_never_sees_half_a_file() {
        let sessions = tempfile::tempdir().unwrap();
        open(sessions.path()).capture(checkpoint(0)).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut metadata = open(sessions.path());
                (1..60).for_each(|n| metadata.capture(checkpoint(n)).unwrap());
            });
            while !writer.is_finished() {
                assert!(!open(sessions.path()).list().is_empty());
            }
        });
    }

    #[test]
    fn descriptions_are_cut_between_characters() {
        let say = |content: Value| checkpoint_description(&content, "14:03:59");
        assert_eq!(say("é".repeat(100).into()), "é".repeat(80));
        assert_eq!(say("one\ntwo\r\nthree".into()), "one two three");
        let blocks = serde_json::json!([
            {"type": "image", "source": {}},
            {"type": "text", "text": "first\ntext"},
            {"type": "text", "text": "second"},
        ]);
        assert_eq!(say(blocks), "first text");
        let image = serde_json::json!([{"type": "image", "source": {}}]);
        for none in [Value::Null, "".into(), " \n".into(), Value::Array(Vec::new()), image] {
            assert_eq!(say(none), "Checkpoint at 14:03:59");
        }
    }
}
