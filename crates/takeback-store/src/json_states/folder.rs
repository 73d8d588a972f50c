//! The folders and their files: finds checkpoints and sets damaged files aside.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::documents::unencoded_document;
use super::file::{self, FileError, io_error};
use super::file_name::{self, CheckpointFileName};
use super::manifest::{Entry, FIRST_LINE, Manifest};
use super::record::StoredCheckpoint;
use super::{JsonStates, stem};
use crate::disk;
use crate::state::{
    Attempt, Category, CheckpointId, Damage, DocumentKey, ExecutionId, Record, StateError,
    StepIndex, Values,
};

pub(super) const CHECKPOINTS: &str = "checkpoint";
pub(super) const EXECUTIONS: &str = "execution";
/// How long a reader waits for the lock to set a file aside. After that it leaves the file to the
/// next reader.
const ASIDE_TIMEOUT: Duration = Duration::from_millis(200);

/// What to do with a file that turns out to be damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DamagePolicy {
    /// Set it aside; the caller holds the lock.
    SetAsideUnderLock,
    /// Take the lock and set it aside; leave it if the lock is not free in time.
    LockAndSetAside,
    /// Report it and leave it where it is.
    Leave,
}

/// A checkpoint and the file it was found in.
#[derive(Debug)]
pub(super) struct FoundCheckpoint {
    pub(super) kept: StoredCheckpoint,
    pub(super) attempt: Attempt,
    /// Whether its file has the short name, which is that of the newest attempt.
    pub(super) is_newest: bool,
    pub(super) path: PathBuf,
}

impl FoundCheckpoint {
    pub(super) fn split(self) -> (Record, Values) {
        self.kept.record(self.attempt, self.is_newest)
    }

    pub(super) fn entry(&self) -> Entry {
        let own = self.kept.own;
        Entry {
            place: (self.kept.step, self.attempt),
            line: own.map_or(FIRST_LINE, |own| own.line),
            position: own.map_or(0, |own| own.position),
            parent: self.kept.parent,
            is_named_newest: self.is_newest,
        }
    }
}

/// The files of one step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StepFiles {
    pub(super) newest: Option<PathBuf>,
    pub(super) older: BTreeMap<Attempt, PathBuf>,
    /// Names of the files that were set aside.
    pub(super) aside: Vec<String>,
}

impl StepFiles {
    pub(super) fn paths(&self, with_older: bool) -> impl Iterator<Item = &PathBuf> {
        self.newest.iter().chain(self.older.values().filter(move |_| with_older))
    }
}

pub(super) type Steps = BTreeMap<StepIndex, StepFiles>;

impl JsonStates {
    /// The path of a folder. Refuses a symlink, which would lead outside.
    pub(super) fn folder(&self, name: &str) -> Result<PathBuf, StateError> {
        let path = self.dir.join(name);
        match std::fs::symlink_metadata(&path) {
            Ok(found) if !found.is_dir() => {
                let error = io::Error::other("it is not a folder");
                Err(io_error(&path, "using it as a folder")(error))
            }
            _ => Ok(path),
        }
    }

    pub(super) fn make_folder(&self, name: &str) -> Result<PathBuf, StateError> {
        let path = self.folder(name)?;
        disk::make_private_folder(&path).map_err(io_error(&path, "making it"))?;
        self.folder(name)
    }

    /// Everything in a folder, in no order.
    pub(super) fn names(&self, folder: &str) -> Result<Vec<PathBuf>, StateError> {
        let path = self.folder(folder)?;
        let listed = match std::fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(io_error(&path, "listing it"))?,
        };
        let paths = listed.map(|entry| Ok(entry?.path()));
        paths.collect::<io::Result<_>>().map_err(io_error(&path, "listing it"))
    }

    pub(super) fn files(&self, folder: &str) -> Result<Vec<PathBuf>, StateError> {
        let mut paths = self.names(folder)?;
        paths.retain(|path| stem(path).is_some());
        Ok(paths)
    }

    pub(super) fn checkpoint_files(&self) -> Result<Vec<PathBuf>, StateError> {
        let mut paths = self.files(CHECKPOINTS)?;
        paths.retain(|path| named(path).is_some());
        Ok(paths)
    }

    /// The files of an execution's checkpoints.
    pub(super) fn steps(&self, execution: &ExecutionId) -> Result<Steps, StateError> {
        let part = file_name::file_name_part(execution.as_str());
        let paths = self.names(CHECKPOINTS)?;
        Ok(sorted(paths.into_iter().filter_map(|path| {
            let named = named(&path).filter(|named| named.part == part)?;
            Some((named, path))
        })))
    }

    /// The checkpoint files of every execution, by the execution's part of the file name. Includes
    /// executions that have a manifest but no checkpoints.
    pub(super) fn parts(&self) -> Result<BTreeMap<String, Steps>, StateError> {
        let mut parts: BTreeMap<String, Vec<(CheckpointFileName, PathBuf)>> = BTreeMap::new();
        for path in self.names(CHECKPOINTS)? {
            if let Some(named) = named(&path) {
                parts.entry(named.part.clone()).or_default().push((named, path));
            }
        }
        for path in self.files(EXECUTIONS)? {
            parts.entry(stem(&path).unwrap_or_default().to_owned()).or_default();
        }
        Ok(parts.into_iter().map(|(part, files)| (part, sorted(files.into_iter()))).collect())
    }

    /// The execution that these files belong to. A shortened name does not contain the id, so a
    /// file must be read.
    pub(super) fn execution_of(
        &self,
        part: &str,
        steps: &Steps,
    ) -> Result<Option<ExecutionId>, StateError> {
        if !file_name::is_cut(part) {
            return Ok(file_name::key_of(part).and_then(|key| ExecutionId::new(key).ok()));
        }
        let manifest = self.folder(EXECUTIONS)?.join(format!("{part}.json"));
        if let Some(manifest) = self.manifest_at(&manifest, DamagePolicy::LockAndSetAside)? {
            return Ok(Some(manifest.execution_id));
        }
        for path in steps.values().flat_map(|files| files.paths(true)) {
            if let Ok(Some(kept)) = self.kept(path, DamagePolicy::LockAndSetAside) {
                return Ok(Some(kept.execution));
            }
        }
        Ok(None)
    }

    /// When a checkpoint was last written.
    pub(super) fn last_write(steps: &Steps) -> Option<(i64, i64)> {
        let paths = steps.values().flat_map(|files| files.paths(true));
        let times = paths.filter_map(|path| std::fs::symlink_metadata(path).ok());
        times.map(|found| (found.mtime(), found.mtime_nsec())).max()
    }

    /// The number of checkpoints in these files.
    pub(super) fn count(&self, steps: &Steps) -> u64 {
        let of_step = |files: &StepFiles| {
            let newest = files.newest.as_ref().map(|path| {
                // The newest attempt can have a second name only if there are numbered files.
                let kept = match files.older.is_empty() {
                    true => None,
                    false => self.kept(path, DamagePolicy::Leave).ok().flatten(),
                };
                let own = kept.and_then(|kept| kept.own);
                u64::from(!own.is_some_and(|own| files.older.contains_key(&own.attempt)))
            });
            files.older.len() as u64 + newest.unwrap_or(0)
        };
        steps.values().map(of_step).sum()
    }

    /// The path under which Takeback writes a checkpoint.
    pub(super) fn own_path(
        &self,
        execution: &ExecutionId,
        step: StepIndex,
        attempt: Option<Attempt>,
    ) -> Result<PathBuf, StateError> {
        Ok(self.folder(CHECKPOINTS)?.join(file_name::checkpoint(execution, step, attempt)))
    }

    /// The path of an existing checkpoint file, which may have a name that another program gave it.
    pub(super) fn current_path(
        &self,
        execution: &ExecutionId,
        step: StepIndex,
        attempt: Option<Attempt>,
    ) -> Result<PathBuf, StateError> {
        let path = self.own_path(execution, step, attempt)?;
        if let Some(other) = file_name::unencoded(execution, step, attempt)
            && !exists(&path)
        {
            let other = self.folder(CHECKPOINTS)?.join(other);
            if exists(&other) {
                return Ok(other);
            }
        }
        Ok(path)
    }

    /// The checkpoint in a file; `None` if the file does not exist.
    pub(super) fn kept(
        &self,
        path: &Path,
        aside: DamagePolicy,
    ) -> Result<Option<StoredCheckpoint>, StateError> {
        self.read(path, aside, &|bytes| {
            let kept = StoredCheckpoint::from_fields(file::fields(bytes)?)
                .map_err(|field| FileError::Damaged(format!("its {field} is missing or wrong")))?;
            let attempt = named(path).and_then(|named| named.attempt);
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let StoredCheckpoint { execution, step, own, .. } = &kept;
            let plain = file_name::named(execution.as_str(), *step, attempt);
            let fits = name == file_name::checkpoint(execution, *step, attempt) || name == plain;
            let fits =
                fits && (attempt.is_none() || own.is_none_or(|own| Some(own.attempt) == attempt));
            match fits {
                true => Ok(kept),
                false => Err(FileError::Damaged("it is not what its name says".to_owned())),
            }
        })
    }

    /// The checkpoint in a file; `None` if the file does not exist or belongs to another execution.
    pub(super) fn found(
        &self,
        execution: &ExecutionId,
        path: &Path,
        manifest: Option<&Manifest>,
        aside: DamagePolicy,
    ) -> Result<Option<FoundCheckpoint>, StateError> {
        let Some(kept) = self.kept(path, aside)?.filter(|kept| kept.execution == *execution) else {
            return Ok(None);
        };
        let by_name = named(path).and_then(|named| named.attempt);
        let attempt = match (kept.own, by_name) {
            (Some(own), _) => own.attempt,
            (None, Some(attempt)) => attempt,
            // Other programs have no attempt numbers: use the highest known one, or the next free
            // one.
            (None, None) => {
                let is_free = |attempt| -> Result<bool, StateError> {
                    let number = self.own_path(execution, kept.step, Some(attempt))?;
                    Ok(!exists(&number) || is_same_file(&number, path))
                };
                let given =
                    manifest.and_then(|manifest| manifest.foreign.get(&kept.step.0)).copied();
                let known = manifest.and_then(|manifest| manifest.attempts.get(&kept.step.0));
                let mut attempt = known.copied().unwrap_or(Attempt::FIRST);
                match given {
                    Some(given) if is_free(given)? => attempt = given,
                    _ => {
                        while !is_free(attempt)? {
                            attempt = attempt.next();
                        }
                    }
                }
                attempt
            }
        };
        Ok(Some(FoundCheckpoint {
            kept,
            attempt,
            is_newest: by_name.is_none(),
            path: path.to_owned(),
        }))
    }

    /// The newest attempt of a step on the current line.
    pub(super) fn newest(
        &self,
        execution: &ExecutionId,
        step: StepIndex,
        manifest: Option<&Manifest>,
        aside: DamagePolicy,
    ) -> Result<Option<FoundCheckpoint>, StateError> {
        self.found(execution, &self.current_path(execution, step, None)?, manifest, aside)
    }

    /// The checkpoint with this id. Fails if its file was set aside, until that file is removed.
    pub(super) fn find_stored(
        &self,
        id: &CheckpointId,
        manifest: Option<&Manifest>,
        aside: DamagePolicy,
    ) -> Result<Option<FoundCheckpoint>, StateError> {
        let CheckpointId { execution, step, attempt } = id;
        let newest = self.newest(execution, *step, manifest, aside);
        let Some(attempt) = *attempt else {
            let newest = newest?;
            if newest.is_none() {
                self.check_aside(&self.own_path(execution, *step, None)?)?;
            }
            return Ok(newest);
        };
        if let Ok(Some(found)) = &newest
            && found.attempt == attempt
        {
            return newest;
        }
        let path = self.own_path(execution, *step, Some(attempt))?;
        if let Some(found) = self.found(execution, &path, manifest, aside)? {
            return Ok(Some(found));
        }
        self.check_aside(&path)?;
        // The damaged file may have been this attempt: its short name does not contain the number.
        let newest = newest?;
        let known = manifest.and_then(|manifest| manifest.attempts.get(&step.0)).copied();
        let highest = known.max(newest.map(|found| found.attempt)).unwrap_or(Attempt::FIRST);
        if attempt <= highest {
            self.check_aside(&self.own_path(execution, *step, None)?)?;
        }
        Ok(None)
    }

    fn check_aside(&self, path: &Path) -> Result<(), StateError> {
        let aside = aside_path(path, 1);
        match exists(&aside) {
            false => Ok(()),
            true => {
                let Damage { what, why } = self.set_aside_before(
                    CHECKPOINTS,
                    aside.file_name().and_then(|name| name.to_str()).unwrap_or_default(),
                );
                Err(StateError::Damaged { what, why })
            }
        }
    }

    /// Describes a file that was set aside earlier.
    pub(super) fn set_aside_before(&self, folder: &str, name: &str) -> Damage {
        let original = file_name::original(name).unwrap_or(name);
        let what = self.dir.join(folder).join(original).display().to_string();
        Damage { what, why: format!("it was set aside as {name}") }
    }

    /// The highest attempt that a step ever had, according to the manifest and the existing files.
    pub(super) fn highest(
        &self,
        execution: &ExecutionId,
        step: StepIndex,
        manifest: &Manifest,
        newest: Option<&FoundCheckpoint>,
    ) -> Result<Option<Attempt>, StateError> {
        let known = manifest.attempts.get(&step.0).copied();
        let known = known.max(newest.map(|found| found.attempt));
        if known.is_some() {
            return Ok(known);
        }
        let first = self.own_path(execution, step, Some(Attempt::FIRST))?;
        let only = self.own_path(execution, step, None)?;
        let was_there =
            exists(&first) || exists(&aside_path(&first, 1)) || exists(&aside_path(&only, 1));
        Ok(was_there.then_some(Attempt::FIRST))
    }

    /// The key, if the file has it inside, and the document.
    pub(super) fn read_stored_document(
        &self,
        path: &Path,
        aside: DamagePolicy,
    ) -> Result<Option<(Option<String>, Value)>, StateError> {
        let is_cut = stem(path).is_some_and(file_name::is_cut);
        self.read(path, aside, &|bytes| {
            if !is_cut {
                return Ok((None, file::json(bytes)?));
            }
            let mut fields = file::fields(bytes)?;
            match (fields.remove("key"), fields.remove("document")) {
                (Some(Value::String(key)), Some(document)) => Ok((Some(key), document)),
                _ => Err(FileError::Damaged("its key or its document is missing".to_owned())),
            }
        })
    }

    /// The path of a document; `None` if it does not exist. Fails if its file was set aside.
    pub(super) fn document_path(
        &self,
        category: Category,
        key: &DocumentKey,
    ) -> Result<Option<PathBuf>, StateError> {
        let folder = self.folder(category.name())?;
        let path = folder.join(format!("{}.json", file_name::file_name_part(key.as_str())));
        if exists(&path) {
            return Ok(Some(path));
        }
        if let Some(other) = unencoded_document(&folder, key).filter(|other| exists(other)) {
            return Ok(Some(other));
        }
        let aside = aside_path(&path, 1);
        match exists(&aside) {
            false => Ok(None),
            true => Err(StateError::Damaged {
                what: path.display().to_string(),
                why: format!("it was set aside as {}", aside.display()),
            }),
        }
    }

    /// Reads a file. Sets it aside if it is damaged and is still the same file when the lock is
    /// held.
    pub(super) fn read<T>(
        &self,
        path: &Path,
        aside: DamagePolicy,
        parse: &dyn Fn(&[u8]) -> Result<T, FileError>,
    ) -> Result<Option<T>, StateError> {
        let Some(read) = file::bytes(path)? else {
            return Ok(None);
        };
        let (unusable, bytes) = match read {
            Ok(bytes) => match parse(&bytes) {
                Ok(parsed) => return Ok(Some(parsed)),
                Err(unusable) => (unusable, Some(bytes)),
            },
            Err(unusable) => (unusable, None),
        };
        let what = path.display().to_string();
        let why = match unusable {
            FileError::Newer(found) => {
                return Err(StateError::Newer { what, found, known: file::FORMAT });
            }
            FileError::Damaged(why) => why,
        };
        let _held = match aside {
            DamagePolicy::Leave => return Err(StateError::Damaged { what, why }),
            DamagePolicy::SetAsideUnderLock => None,
            DamagePolicy::LockAndSetAside => {
                match file::lock(&self.writer_of(path)?, ASIDE_TIMEOUT.min(self.lock_timeout)) {
                    Ok(held) => Some(held),
                    // Leave the file where it is; it is still reported as damaged.
                    Err(_) => return Err(StateError::Damaged { what, why }),
                }
            }
        };
        let still = match file::bytes(path)? {
            None => false,
            Some(Ok(present)) => bytes.is_some_and(|bytes| bytes == present),
            Some(Err(_)) => bytes.is_none(),
        };
        if !still {
            return Err(StateError::Damaged { what, why });
        }
        let place = |number| {
            let to = aside_path(path, number);
            (disk::place_private_file(path, &to), to)
        };
        let placed = (1..=9999).map(place).find(|(placed, _)| {
            !placed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists)
        });
        let why = match placed {
            Some((Ok(()), to)) => {
                self.sync(path)?;
                let name = to.file_name().unwrap_or_default().display().to_string();
                format!("{why}; it was set aside as {name}")
            }
            _ => why,
        };
        Err(StateError::Damaged { what, why })
    }

    /// The file whose lock a writer of `path` holds.
    fn writer_of(&self, path: &Path) -> Result<PathBuf, StateError> {
        match named(path).filter(|_| path.parent() == Some(&self.dir.join(CHECKPOINTS))) {
            None => Ok(path.to_owned()),
            Some(named) => Ok(self.make_folder(EXECUTIONS)?.join(format!("{}.json", named.part))),
        }
    }

    /// Makes the names in the folder of a file durable.
    pub(super) fn sync(&self, path: &Path) -> Result<(), StateError> {
        let folder = path.parent().unwrap_or(&self.dir);
        disk::sync_folder(folder).map_err(io_error(folder, "making it durable"))
    }
}

fn sorted(files: impl Iterator<Item = (CheckpointFileName, PathBuf)>) -> Steps {
    let mut steps = Steps::new();
    for (named, path) in files {
        let files = steps.entry(named.step).or_default();
        match (named.aside, named.attempt) {
            (true, _) => {
                let name = path.file_name().unwrap_or_default().display().to_string();
                files.aside.push(name);
            }
            (false, None) => files.newest = Some(path),
            (false, Some(attempt)) => {
                files.older.insert(attempt, path);
            }
        }
    }
    steps.values_mut().for_each(|files| files.aside.sort());
    steps
}

fn named(path: &Path) -> Option<CheckpointFileName> {
    file_name::parse(path.file_name()?.to_str()?)
}

pub(super) fn aside_path(path: &Path, number: u32) -> PathBuf {
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".damaged-{number}"));
    aside.into()
}

/// The number of files with this name that were set aside.
pub(super) fn asides(path: &Path) -> u32 {
    (1..).take_while(|number| exists(&aside_path(path, *number))).last().unwrap_or(0)
}

pub(super) fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

pub(super) fn is_same_file(a: &Path, b: &Path) -> bool {
    let id = |path| std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino())).ok();
    id(a).is_some() && id(a) == id(b)
}
