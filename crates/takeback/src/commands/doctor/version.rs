//! The version of an agent's program.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::Duration;

use serde_json::Value;

/// An agent that does not answer is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST: usize = 40;

/// As its package says, or else as it says itself.
pub(super) fn version(program: &Path) -> Option<String> {
    of_package(program).or_else(|| told(program))
}

/// Programs that came with npm lie in a package. To start them all would take seconds.
fn of_package(program: &Path) -> Option<String> {
    let program = std::fs::canonicalize(program).ok()?;
    let package = program.ancestors().skip(1).take(3).find_map(|folder| {
        let inside = folder.parent()?.ancestors().take(2);
        let is_module =
            inside.into_iter().any(|f| f.file_name().is_some_and(|n| n == "node_modules"));
        is_module.then(|| std::fs::read(folder.join("package.json")).ok()).flatten()
    })?;
    let package: Value = serde_json::from_slice(&package).ok()?;
    // The SDK brings the program along and counts its own versions.
    let is_sdk = package["name"].as_str().is_some_and(|name| name.contains("-sdk"));
    if is_sdk {
        return None;
    }
    Some(package["version"].as_str()?.to_owned())
}

fn told(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let (say, said) = channel();
    Builder::new().spawn(move || drop(say.send(command.output()))).ok()?;
    let output = said.recv_timeout(PATIENCE).ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_version =
        |word: &&str| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit());
    let word = text.split_whitespace().find(is_version)?;
    let word = word.trim_start_matches('v').trim_end_matches(['.', ',']);
    (word.len() <= LONGEST).then(|| word.to_owned())
}
