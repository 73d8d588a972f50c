//! Recorded payloads of an agent, exactly as the program sent them, except for the folders of the project
//! and of the user.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use takeback_agents::{AgentKind, CallEnd, HookEvent, HookEventKind};
use takeback_core::Outcome;
use takeback_store::Timestamp;

/// An event in the project of the recordings, without anything optional.
pub(crate) fn bare_event(session: &str, event: &str, kind: HookEventKind) -> HookEvent {
    HookEvent {
        event: event.to_owned(),
        session: session.to_owned(),
        subagent: None,
        cwd: Some(PathBuf::from("/home/user/project")),
        transcript: None,
        prompt: None,
        timestamp: None,
        model: None,
        is_fork: false,
        forked_from: None,
        kind,
    }
}

/// Compares the event of every recording in a folder with the expected one, except for its time and model. The part of
/// a recording's name before the first `-` is the event's name.
#[track_caller]
pub(crate) fn all_are_parsed_as(agent: &AgentKind, folder: &str, expected: &[(&str, HookEvent)]) {
    let mut names: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(names, names_of(folder));
    for (name, expected) in expected {
        let event = name.split('-').next();
        let hook_event = agent.parse(&payload(folder, name), event).unwrap();
        assert_eq!(HookEvent { timestamp: None, model: None, ..hook_event }, *expected, "{name}");
    }
}

/// The models that the recordings in a folder name; the rest name none.
pub(crate) fn models(agent: &AgentKind, folder: &str) -> BTreeMap<String, String> {
    let model = |name: String| {
        let hook_event = agent.parse(&payload(folder, &name), name.split('-').next()).unwrap();
        Some((name, hook_event.model?))
    };
    names_of(folder).into_iter().filter_map(model).collect()
}

/// The time in a recording, in milliseconds since 1970.
pub(crate) fn sent_at(agent: &AgentKind, folder: &str, name: &str) -> Option<i64> {
    let hook_event = agent.parse(&payload(folder, name), name.split('-').next()).unwrap();
    hook_event.timestamp.map(|Timestamp(millis)| millis)
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

/// The bytes of a recording.
pub(crate) fn payload(folder: &str, name: &str) -> Vec<u8> {
    fs::read(recordings(folder).join(format!("{name}.json"))).unwrap()
}

fn recordings(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hook/recorded").join(folder)
}

/// The end of a call that says how long it ran.
pub(crate) fn took(outcome: Outcome, millis: u64) -> CallEnd {
    CallEnd { took: Some(Duration::from_millis(millis)), ..outcome.into() }
}
