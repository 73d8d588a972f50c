//! The versions of programs: agents', and other copies of this one.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::place::environment;

/// How long all programs together may take. A program that has not answered by then is killed, and its
/// version is unknown.
const PATIENCE: Duration = Duration::from_millis(600);
/// Overrides the limit, in milliseconds, for busy machines.
const PATIENCE_VARIABLE: &str = "TAKEBACK_VERSION_PATIENCE_MS";
const LONGEST: usize = 40;

/// The versions of these programs, if known: from their package, or else from `--version`, run in parallel.
pub(super) fn versions(programs: impl Iterator<Item = PathBuf>) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut asked = Vec::new();
    for program in programs {
        match of_package(&program) {
            Some(version) => drop(found.insert(program, version)),
            None => asked.extend(ask(&program).map(|answer| (program, answer))),
        }
    }
    let patience = environment(PATIENCE_VARIABLE).and_then(|it| it.to_str()?.parse().ok());
    let until = Instant::now() + patience.map_or(PATIENCE, Duration::from_millis);
    for (program, VersionQuery { mut child, answer }) in asked {
        let answer = answer.recv_timeout(until.saturating_duration_since(Instant::now()));
        if let Some(version) = answer.ok().and_then(|text| version_in(&text)) {
            found.insert(program, version);
        }
        // A process that has exited cannot be killed.
        drop(child.kill());
        drop(child.wait());
    }
    found
}

/// Whether a version is older than another; `false` if they cannot be compared.
pub(super) fn is_older(version: &str, than: &str) -> bool {
    let numbers = |version: &str| -> Option<Vec<u64>> {
        let release = version.split(['-', '+']).next()?;
        release.split('.').map(|number| number.parse().ok()).collect()
    };
    matches!((numbers(version), numbers(than)), (Some(version), Some(than)) if version < than)
}

/// Programs installed by npm are in a package. Starting them all would take seconds.
fn of_package(program: &Path) -> Option<String> {
    let program = std::fs::canonicalize(program).ok()?;
    let package = program.ancestors().skip(1).take(3).find_map(|folder| {
        let inside = folder.parent()?.ancestors().take(2);
        let is_module =
            inside.into_iter().any(|f| f.file_name().is_some_and(|n| n == "node_modules"));
        is_module.then(|| std::fs::read(folder.join("package.json")).ok()).flatten()
    })?;
    let package: Value = serde_json::from_slice(&package).ok()?;
    // The SDK bundles the program and has its own version number.
    let is_sdk = package["name"].as_str().is_some_and(|name| name.contains("-sdk"));
    if is_sdk {
        return None;
    }
    Some(package["version"].as_str()?.to_owned())
}

/// A program that was started with `--version`.
struct VersionQuery {
    child: Child,
    answer: Receiver<String>,
}

fn ask(program: &Path) -> Option<VersionQuery> {
    const MOST: u64 = 64 << 10;
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let out = child.stdout.take()?;
    let (say, answer) = channel();
    let listen = move || {
        let mut bytes = Vec::new();
        // On an error, use what was read so far.
        drop(out.take(MOST).read_to_end(&mut bytes));
        // After the deadline there is no receiver.
        drop(say.send(String::from_utf8_lossy(&bytes).into_owned()));
    };
    Builder::new().spawn(listen).ok()?;
    Some(VersionQuery { child, answer })
}

fn version_in(text: &str) -> Option<String> {
    let is_version =
        |word: &&str| word.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit());
    let word = text.split_whitespace().find(is_version)?;
    let word = word.trim_start_matches('v').trim_end_matches(['.', ',']);
    (word.len() <= LONGEST).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_and_nothing_else() {
        for (version, than, expected) in [
            ("0.1.0", "0.1.0", false),
            ("0.0.9", "0.1.0", true),
            ("0.9.0", "0.10.0", true),
            ("0.10.0", "0.9.0", false),
            ("0.1", "0.1.1", true),
            ("0.1.0-rc1", "0.1.1", true),
            ("nightly", "0.1.0", false),
        ] {
            assert_eq!(is_older(version, than), expected, "{version}, {than}");
        }
    }

    #[test]
    fn a_version_is_the_first_word_that_looks_like_one() {
        let outputs = ["2.1.325 (Claude Code)", "codex-cli 0.166.0", "takeback v0.1.0.\n", "none"];
        let versions = outputs.map(|text| version_in(text).unwrap_or_default());
        assert_eq!(versions, ["2.1.325", "0.166.0", "0.1.0", ""]);
    }
}
