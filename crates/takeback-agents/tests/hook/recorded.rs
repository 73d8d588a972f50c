//! What was recorded of an agent. The recordings are as the program gave them, except for the folders
//! of the project and of the user.

use std::fs;
use std::path::{Path, PathBuf};

use takeback_agents::hook::{Heard, Plugged, hear};

/// Compares what is heard of every recording in a folder with what is expected of it. What happened is
/// the part of a recording's name before the first `-`.
#[track_caller]
pub(crate) fn all_are_heard_as(agent: Plugged, folder: &str, expected: &[(&str, Heard)]) {
    let mut names: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(names, names_of(folder));
    for (name, expected) in expected {
        let event = name.split('-').next();
        assert_eq!(hear(agent, &given(folder, name), event).unwrap(), *expected, "{name}");
    }
}

pub(crate) fn names_of(folder: &str) -> Vec<String> {
    let files = fs::read_dir(recordings(folder)).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let mut names: Vec<String> = files.map(|path| name_of(&path)).collect();
    names.sort_unstable();
    names
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// What a program gave, byte by byte.
pub(crate) fn given(folder: &str, name: &str) -> Vec<u8> {
    fs::read(recordings(folder).join(format!("{name}.json"))).unwrap()
}

fn recordings(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hook/recorded").join(folder)
}
