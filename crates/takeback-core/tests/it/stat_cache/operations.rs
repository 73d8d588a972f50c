//! Operations on files between two scans.

use std::fs::{self, FileTimes};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use proptest::prelude::*;
use proptest::sample::select;
use rustix::fs::{CWD, RenameFlags};
use takeback_core::look_around;
use takeback_testkit::MemoryMap;

use super::Run;
use crate::recording::settle;

#[derive(Debug, Clone)]
pub(super) enum Operation {
    Settle,
    Look,
    Prompt,
    AgentWrites(&'static str),
    RewindToTheFirst,
    Write(&'static str, usize),
    /// The same size, scanned in between: only the clock distinguishes the two.
    WriteTwiceAtOnce(&'static str),
    /// A name comes into a folder right after it was scanned.
    MakeAtOnce(&'static str),
    /// `touch -r`: the same size, the same modification time.
    WriteAndTouchBack(&'static str),
    /// `cp -p`, onto what is there.
    CopyWithTimes(&'static str, &'static str),
    /// Deleted and made again, with the same size and modification time.
    MakeAgain(&'static str),
    Rename(&'static str, &'static str),
    /// Two names change places.
    Exchange(&'static str, &'static str),
    /// A folder like it, with the same names, sizes and times, takes its place.
    ReplaceFolder(&'static str),
    Remove(&'static str),
    Chmod(&'static str, u32),
    Link(&'static str, &'static str),
    Folder(&'static str),
    HardLink(&'static str, &'static str),
    Ignore(&'static str, &'static str),
    NoLongerIgnore(&'static str),
    StoreThroughMap(&'static str),
    /// The map stays while the tree is scanned.
    StoreThroughOneMapTwice(&'static str),
    /// Names appear in a folder, and one file changes, while it is scanned.
    WorkWhileScanned(&'static str),
}

const FOLDERS: [&str; 6] = ["a", "b", "a/x", "tmp", "tmp/deep", "b/tmp"];
const FILES: [&str; 14] = [
    "f",
    "g",
    "a/f",
    "a/g",
    "a/x/f",
    "a/x/g",
    "b/f",
    "b/g",
    "tmp/f",
    "tmp/deep/g",
    "b/tmp/f",
    "a/n.log",
    "secret",
    "b/secret",
];
const RULES: [(&str, &str); 5] = [
    (".gitignore", "tmp/\n"),
    (".gitignore", "*.log\n"),
    (".gitignore", "tmp/\n*.log\n"),
    ("a/.gitignore", "x/\n"),
    (".takebackignore", "secret\n"),
];

pub(super) fn any_operation() -> impl Strategy<Value = Operation> {
    let file = || select(FILES.as_slice());
    let folder = || select(FOLDERS.as_slice());
    let any = || prop_oneof![3 => file(), 1 => folder()];
    prop_oneof![
        3 => Just(Operation::Settle),
        3 => Just(Operation::Look),
        1 => Just(Operation::Prompt),
        1 => file().prop_map(Operation::AgentWrites),
        1 => Just(Operation::RewindToTheFirst),
        3 => (file(), 0..9_usize).prop_map(|(file, size)| Operation::Write(file, size)),
        2 => file().prop_map(Operation::WriteTwiceAtOnce),
        2 => any().prop_map(Operation::MakeAtOnce),
        2 => file().prop_map(Operation::WriteAndTouchBack),
        2 => (file(), file()).prop_map(|(from, to)| Operation::CopyWithTimes(from, to)),
        2 => file().prop_map(Operation::MakeAgain),
        2 => (any(), any()).prop_map(|(from, to)| Operation::Rename(from, to)),
        2 => (any(), any()).prop_map(|(one, other)| Operation::Exchange(one, other)),
        2 => folder().prop_map(Operation::ReplaceFolder),
        1 => any().prop_map(Operation::Remove),
        1 => (any(), select(vec![0o700, 0o750, 0o755])).prop_map(|(at, mode)| Operation::Chmod(at, mode)),
        1 => (any(), select(vec!["f", "../b", "nowhere"]))
            .prop_map(|(at, target)| Operation::Link(at, target)),
        1 => any().prop_map(Operation::Folder),
        2 => (file(), file()).prop_map(|(from, to)| Operation::HardLink(from, to)),
        2 => select(RULES.as_slice()).prop_map(|(file, lines)| Operation::Ignore(file, lines)),
        1 => select(RULES.as_slice()).prop_map(|(file, _)| Operation::NoLongerIgnore(file)),
        1 => file().prop_map(Operation::StoreThroughMap),
        1 => file().prop_map(Operation::StoreThroughOneMapTwice),
        1 => folder().prop_map(Operation::WorkWhileScanned),
    ]
}

impl Run {
    pub(super) fn act(&mut self, operation: &Operation) -> Result<(), String> {
        match *operation {
            Operation::Settle => settle(),
            Operation::Look => self.look()?,
            Operation::Prompt => {
                self.sandbox.prompt("s", "go on");
                self.compare()?;
            }
            Operation::AgentWrites(file) => {
                let path = self.make_way(file);
                self.writes += 1;
                let bytes = bytes_like(&path, self.writes);
                self.sandbox.agent_writes("s", file, bytes);
            }
            Operation::RewindToTheFirst => {
                self.sandbox.rewind_to(self.first);
                self.look()?;
            }
            Operation::WriteTwiceAtOnce(file) => {
                self.rewrite(file);
                self.look()?;
                self.rewrite(file);
                self.look()?;
            }
            Operation::MakeAtOnce(file) => {
                let path = self.make_way(file);
                take_away(&path);
                self.look()?;
                fs::write(path, [1]).unwrap();
                self.look()?;
            }
            Operation::StoreThroughOneMapTwice(file) => self.store_twice(file)?,
            Operation::WorkWhileScanned(folder) => self.work_while_scanned(folder)?,
            // A watcher does not report a change under a name that is gone before the next look.
            Operation::HardLink(..) if self.sandbox.workspace.watched.is_some() => {
                self.change(operation);
                self.look()?;
            }
            _ => self.change(operation),
        }
        Ok(())
    }

    /// The operations without a look.
    fn change(&mut self, operation: &Operation) {
        match *operation {
            Operation::Write(file, size) => {
                let path = self.make_way(file);
                self.writes += 1;
                fs::write(path, vec![self.writes; size]).unwrap();
            }
            Operation::WriteAndTouchBack(file) => {
                let path = self.existing(file);
                let time = modified(&path);
                self.rewrite(file);
                touch(&path, time);
            }
            Operation::CopyWithTimes(from, to) if from != to => {
                let from = self.existing(from);
                let to = self.make_way(to);
                if from.is_file() {
                    fs::write(&to, fs::read(&from).unwrap()).unwrap();
                    touch(&to, modified(&from));
                }
            }
            Operation::MakeAgain(file) => {
                let path = self.existing(file);
                let (time, bytes) = (modified(&path), bytes_like(&path, self.writes + 1));
                fs::remove_file(&path).unwrap();
                fs::write(&path, bytes).unwrap();
                self.writes += 1;
                touch(&path, time);
            }
            Operation::Rename(from, to) if !within(from, to) => {
                self.make_way(from);
                if self.sandbox.exists(from) {
                    self.make_way(to);
                    take_away(&self.sandbox.at(to));
                    fs::rename(self.sandbox.at(from), self.sandbox.at(to)).unwrap();
                }
            }
            Operation::Exchange(one, other) if !within(one, other) => {
                let (one, other) = (self.make_way_to(one), self.make_way_to(other));
                let both =
                    fs::symlink_metadata(&one).is_ok() && fs::symlink_metadata(&other).is_ok();
                if both {
                    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                }
            }
            Operation::CopyWithTimes(..) | Operation::Rename(..) | Operation::Exchange(..) => {}
            Operation::ReplaceFolder(folder) => self.replace_folder(folder),
            Operation::Remove(path) => {
                let path = self.make_way_to(path);
                take_away(&path);
            }
            Operation::Chmod(path, mode) => {
                let path = self.make_way_to(path);
                if !path.is_symlink() && path.exists() {
                    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
                }
            }
            Operation::Link(at, target) => {
                let path = self.make_way_to(at);
                take_away(&path);
                symlink(target, path).unwrap();
            }
            Operation::Folder(at) => {
                let path = self.make_way_to(at);
                if !path.is_dir() || path.is_symlink() {
                    take_away(&path);
                    fs::create_dir(path).unwrap();
                }
            }
            Operation::HardLink(from, to) => {
                let from = self.existing(from);
                let to = self.make_way_to(to);
                if from != to && from.is_file() {
                    take_away(&to);
                    fs::hard_link(from, to).unwrap();
                }
            }
            Operation::Ignore(file, lines) => {
                let path = self.make_way(file);
                fs::write(path, lines).unwrap();
            }
            Operation::NoLongerIgnore(file) => {
                let path = self.make_way_to(file);
                take_away(&path);
            }
            Operation::StoreThroughMap(file) => {
                let path = self.existing(file);
                self.writes += 1;
                MemoryMap::open(&path).fill(self.writes);
            }
            _ => unreachable!("{operation:?} is an operation with a look"),
        }
    }

    /// The path, its folders made and whatever was in their way removed.
    fn make_way_to(&self, path: &str) -> PathBuf {
        let mut here = self.sandbox.root();
        for part in Path::new(path).parent().expect("it has a name") {
            here.push(part);
            if here.is_symlink() || !here.is_dir() {
                take_away(&here);
                fs::create_dir(&here).unwrap();
            }
        }
        self.sandbox.at(path)
    }

    /// The same, with nothing but a file at the path itself, if anything.
    fn make_way(&self, path: &str) -> PathBuf {
        let path = self.make_way_to(path);
        if path.is_symlink() || !path.is_file() {
            take_away(&path);
        }
        path
    }

    /// A file with at least one byte.
    fn existing(&mut self, file: &str) -> PathBuf {
        let path = self.make_way(file);
        if fs::metadata(&path).map_or(0, |metadata| metadata.len()) == 0 {
            self.writes += 1;
            fs::write(&path, [self.writes; 3]).unwrap();
        }
        path
    }

    /// Other bytes of the same size, in place.
    fn rewrite(&mut self, file: &str) {
        let path = self.existing(file);
        self.writes += 1;
        let bytes = bytes_like(&path, self.writes);
        fs::write(path, bytes).unwrap();
    }

    fn replace_folder(&mut self, folder: &str) {
        let path = self.make_way_to(folder);
        if !path.is_dir() || path.is_symlink() {
            return;
        }
        let new = self.sandbox.outside().join("new");
        fs::create_dir(&new).unwrap();
        for entry in fs::read_dir(&path).unwrap() {
            let old = entry.unwrap().path();
            if old.is_file() && !old.is_symlink() {
                self.writes += 1;
                let copy = new.join(old.file_name().unwrap());
                fs::write(&copy, bytes_like(&old, self.writes)).unwrap();
                touch(&copy, modified(&old));
            }
        }
        touch(&new, modified(&path));
        let old = self.sandbox.outside().join("old");
        fs::rename(&path, &old).unwrap();
        fs::rename(&new, &path).unwrap();
        fs::remove_dir_all(old).unwrap();
    }

    fn store_twice(&mut self, file: &str) -> Result<(), String> {
        let path = self.existing(file);
        if keeps_maps_dirty(&path) {
            return Ok(());
        }
        let mut map = MemoryMap::open(&path);
        for _ in 0..2 {
            self.writes += 1;
            map.fill(self.writes);
            // The kernel reports it to a watcher only at munmap.
            self.look_at_all()?;
        }
        Ok(())
    }

    fn work_while_scanned(&mut self, folder: &str) -> Result<(), String> {
        let folder = self.make_way_to(folder);
        if !folder.is_dir() || folder.is_symlink() {
            take_away(&folder);
            fs::create_dir(&folder).unwrap();
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..30_u8 {
                    fs::write(folder.join(format!("came-{}", round % 7)), [round]).unwrap();
                    fs::write(folder.join("changes"), [round; 100]).unwrap();
                }
            });
            for _ in 0..3 {
                look_around(&mut self.sandbox.workspace).map_err(|error| error.to_string())?;
            }
            Ok::<(), String>(())
        })?;
        self.look()
    }
}

/// Whether one path is the other or below it.
fn within(one: &str, other: &str) -> bool {
    Path::new(one).starts_with(other) || Path::new(other).starts_with(one)
}

fn take_away(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// As many bytes as the file has.
fn bytes_like(path: &Path, byte: u8) -> Vec<u8> {
    vec![byte; fs::metadata(path).map_or(3, |metadata| usize::try_from(metadata.len()).unwrap())]
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

fn touch(path: &Path, time: SystemTime) {
    let times = FileTimes::new().set_modified(time);
    fs::File::open(path).unwrap().set_times(times).unwrap();
}

/// Where pages are never written back, a second store through a map changes no time, so it cannot be
/// seen.
fn keeps_maps_dirty(path: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let kind = rustix::fs::statfs(path).unwrap().f_type;
    [TMPFS, RAMFS].contains(&u64::try_from(kind).unwrap())
}
