//! What is done to the files between two scans.

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
pub(super) enum Deed {
    Settle,
    Look,
    Prompt,
    AgentWrites(&'static str),
    RewindToTheFirst,
    Write(&'static str, usize),
    /// Same size, scanned in between, with nothing else to tell the two apart than the clock.
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

pub(super) fn any_deed() -> impl Strategy<Value = Deed> {
    let file = || select(FILES.as_slice());
    let folder = || select(FOLDERS.as_slice());
    let any = || prop_oneof![3 => file(), 1 => folder()];
    prop_oneof![
        3 => Just(Deed::Settle),
        3 => Just(Deed::Look),
        1 => Just(Deed::Prompt),
        1 => file().prop_map(Deed::AgentWrites),
        1 => Just(Deed::RewindToTheFirst),
        3 => (file(), 0..9_usize).prop_map(|(file, size)| Deed::Write(file, size)),
        2 => file().prop_map(Deed::WriteTwiceAtOnce),
        2 => any().prop_map(Deed::MakeAtOnce),
        2 => file().prop_map(Deed::WriteAndTouchBack),
        2 => (file(), file()).prop_map(|(from, to)| Deed::CopyWithTimes(from, to)),
        2 => file().prop_map(Deed::MakeAgain),
        2 => (any(), any()).prop_map(|(from, to)| Deed::Rename(from, to)),
        2 => (any(), any()).prop_map(|(one, other)| Deed::Exchange(one, other)),
        2 => folder().prop_map(Deed::ReplaceFolder),
        1 => any().prop_map(Deed::Remove),
        1 => (any(), select(vec![0o700, 0o750, 0o755])).prop_map(|(at, mode)| Deed::Chmod(at, mode)),
        1 => (any(), select(vec!["f", "../b", "nowhere"]))
            .prop_map(|(at, target)| Deed::Link(at, target)),
        1 => any().prop_map(Deed::Folder),
        2 => (file(), file()).prop_map(|(from, to)| Deed::HardLink(from, to)),
        2 => select(RULES.as_slice()).prop_map(|(file, lines)| Deed::Ignore(file, lines)),
        1 => select(RULES.as_slice()).prop_map(|(file, _)| Deed::NoLongerIgnore(file)),
        1 => file().prop_map(Deed::StoreThroughMap),
        1 => file().prop_map(Deed::StoreThroughOneMapTwice),
        1 => folder().prop_map(Deed::WorkWhileScanned),
    ]
}

impl Run {
    pub(super) fn act(&mut self, deed: &Deed) -> Result<(), String> {
        match *deed {
            Deed::Settle => settle(),
            Deed::Look => self.look()?,
            Deed::Prompt => {
                self.sandbox.prompt("s", "go on");
                self.compare()?;
            }
            Deed::AgentWrites(file) => {
                let path = self.make_way(file);
                self.writes += 1;
                let bytes = bytes_like(&path, self.writes);
                self.sandbox.agent_writes("s", file, bytes);
            }
            Deed::RewindToTheFirst => {
                self.sandbox.rewind_to(self.first);
                self.look()?;
            }
            Deed::WriteTwiceAtOnce(file) => {
                self.rewrite(file);
                self.look()?;
                self.rewrite(file);
                self.look()?;
            }
            Deed::MakeAtOnce(file) => {
                let path = self.make_way(file);
                take_away(&path);
                self.look()?;
                fs::write(path, [1]).unwrap();
                self.look()?;
            }
            Deed::StoreThroughOneMapTwice(file) => self.store_twice(file)?,
            Deed::WorkWhileScanned(folder) => self.work_while_scanned(folder)?,
            // What is done under a name that is gone before anybody looks, no watcher tells.
            Deed::HardLink(..) if self.sandbox.workspace.watched.is_some() => {
                self.change(deed);
                self.look()?;
            }
            _ => self.change(deed),
        }
        Ok(())
    }

    /// The deeds during which nobody looks.
    fn change(&mut self, deed: &Deed) {
        match *deed {
            Deed::Write(file, size) => {
                let path = self.make_way(file);
                self.writes += 1;
                fs::write(path, vec![self.writes; size]).unwrap();
            }
            Deed::WriteAndTouchBack(file) => {
                let path = self.existing(file);
                let time = modified(&path);
                self.rewrite(file);
                touch(&path, time);
            }
            Deed::CopyWithTimes(from, to) if from != to => {
                let from = self.existing(from);
                let to = self.make_way(to);
                if from.is_file() {
                    fs::write(&to, fs::read(&from).unwrap()).unwrap();
                    touch(&to, modified(&from));
                }
            }
            Deed::MakeAgain(file) => {
                let path = self.existing(file);
                let (time, bytes) = (modified(&path), bytes_like(&path, self.writes + 1));
                fs::remove_file(&path).unwrap();
                fs::write(&path, bytes).unwrap();
                self.writes += 1;
                touch(&path, time);
            }
            Deed::Rename(from, to) if !within(from, to) => {
                self.make_way(from);
                if self.sandbox.exists(from) {
                    self.make_way(to);
                    take_away(&self.sandbox.at(to));
                    fs::rename(self.sandbox.at(from), self.sandbox.at(to)).unwrap();
                }
            }
            Deed::Exchange(one, other) if !within(one, other) => {
                let (one, other) = (self.make_way_to(one), self.make_way_to(other));
                let both =
                    fs::symlink_metadata(&one).is_ok() && fs::symlink_metadata(&other).is_ok();
                if both {
                    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                }
            }
            Deed::CopyWithTimes(..) | Deed::Rename(..) | Deed::Exchange(..) => {}
            Deed::ReplaceFolder(folder) => self.replace_folder(folder),
            Deed::Remove(path) => {
                let path = self.make_way_to(path);
                take_away(&path);
            }
            Deed::Chmod(path, mode) => {
                let path = self.make_way_to(path);
                if !path.is_symlink() && path.exists() {
                    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
                }
            }
            Deed::Link(at, target) => {
                let path = self.make_way_to(at);
                take_away(&path);
                symlink(target, path).unwrap();
            }
            Deed::Folder(at) => {
                let path = self.make_way_to(at);
                if !path.is_dir() || path.is_symlink() {
                    take_away(&path);
                    fs::create_dir(path).unwrap();
                }
            }
            Deed::HardLink(from, to) => {
                let from = self.existing(from);
                let to = self.make_way_to(to);
                if from != to && from.is_file() {
                    take_away(&to);
                    fs::hard_link(from, to).unwrap();
                }
            }
            Deed::Ignore(file, lines) => {
                let path = self.make_way(file);
                fs::write(path, lines).unwrap();
            }
            Deed::NoLongerIgnore(file) => {
                let path = self.make_way_to(file);
                take_away(&path);
            }
            Deed::StoreThroughMap(file) => {
                let path = self.existing(file);
                self.writes += 1;
                MemoryMap::open(&path).fill(self.writes);
            }
            _ => unreachable!("{deed:?} is done where somebody looks"),
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
            // A watcher is told when the map goes.
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

/// Whether one lies in the other, or is it.
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

/// Where pages are never written back, a second store through a map moves no time: nobody can see it.
fn keeps_maps_dirty(path: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let kind = rustix::fs::statfs(path).unwrap().f_type;
    [TMPFS, RAMFS].contains(&u64::try_from(kind).unwrap())
}
