//! Any name, at any depth.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use takeback_testkit::Sandbox;

use super::{Row, row};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row("odd names, changed", odd, |s| {
            odd_names().iter().for_each(|name| fs::write(at(s, name), "changed\n").unwrap());
        }),
        row("odd names, gone", odd, |s| {
            odd_names().iter().for_each(|name| fs::remove_file(at(s, name)).unwrap());
        }),
        row("odd names of folders, gone", odd_folders, |s| {
            odd_names().iter().for_each(|name| fs::remove_dir_all(at(s, name)).unwrap());
        }),
        row("odd names that the agent made", |s| s.write("a", "a\n"), odd),
        row(
            "renamed in nothing but case",
            |s| {
                s.write("Readme", "r\n");
                s.write("Src/Main.rs", "m\n");
            },
            |s| {
                fs::rename(s.at("Readme"), s.at("README")).unwrap();
                fs::rename(s.at("Src"), s.at("src")).unwrap();
                fs::rename(s.at("src/Main.rs"), s.at("src/main.rs")).unwrap();
            },
        ),
        row(
            "deeper than a path may be long, changed",
            |s| deep_file(s, "deep\n"),
            |s| deep_file(s, "changed\n"),
        ),
        row(
            "deeper than a path may be long, gone",
            |s| deep_file(s, "deep\n"),
            |s| fs::remove_dir_all(s.at(&deep_name())).unwrap(),
        ),
        row(
            "deeper than a path may be long, made by the agent",
            |s| s.write("a", "a\n"),
            |s| deep_file(s, "made\n"),
        ),
        row(
            "deeper than a path may be long, a file gone",
            |s| deep_file(s, "deep\n"),
            |s| {
                rustix::fs::unlinkat(deep_folder(s), c"file", AtFlags::empty()).unwrap();
            },
        ),
    ]
}

fn odd_names() -> Vec<Vec<u8>> {
    vec![
        b"with\nnewline".to_vec(),
        b"\n".to_vec(),
        b"-rf".to_vec(),
        b"--".to_vec(),
        b"invalid-\xff\xfe-utf8".to_vec(),
        b"caf\xe9".to_vec(),
        vec![b'n'; 255],
        b"bell\x07\x1b[31m".to_vec(),
        b" space at both ends ".to_vec(),
        b"back\\slash".to_vec(),
        b"*?[x]".to_vec(),
        b"\xe2\x80\xaeoverride".to_vec(),
        b"...".to_vec(),
        b"caf\xc3\xa9".to_vec(),
        b"cafe\xcc\x81".to_vec(),
    ]
}

fn at(s: &Sandbox, name: &[u8]) -> std::path::PathBuf {
    s.root().join(OsStr::from_bytes(name))
}

fn odd(s: &Sandbox) {
    odd_names().iter().for_each(|name| fs::write(at(s, name), name).unwrap());
}

fn odd_folders(s: &Sandbox) {
    for name in odd_names() {
        fs::create_dir(at(s, &name)).unwrap();
        fs::write(at(s, &name).join(OsStr::from_bytes(&name)), &name).unwrap();
    }
}

fn deep_name() -> String {
    "d".repeat(250)
}

/// A folder whose path from the root alone is longer than 4,096 bytes, made if missing.
fn deep_folder(s: &Sandbox) -> OwnedFd {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let mut folder = rustix::fs::openat(CWD, s.root(), flags, Mode::empty()).unwrap();
    for _ in 0..18 {
        let name = deep_name();
        match rustix::fs::mkdirat(&folder, name.as_str(), Mode::from_raw_mode(0o750)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => panic!("{error}"),
        }
        folder = rustix::fs::openat(&folder, name.as_str(), flags, Mode::empty()).unwrap();
    }
    folder
}

fn deep_file(s: &Sandbox, text: &str) {
    let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o640);
    let file = rustix::fs::openat(deep_folder(s), c"file", flags, mode).unwrap();
    File::from(file).write_all(text.as_bytes()).unwrap();
}
