//! Codex: its screen steps back to an earlier prompt, and its app server forks a thread after a turn.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::CODEX;
use crate::conversation_copy::{ConversationCopy, CopyExtent};
use crate::cut::{Cut, CutError, PointPrompt, is_plain_name, quoted};

pub(super) fn cut(home: &Path, prompt: PointPrompt<'_>) -> Result<Option<Cut>, CutError> {
    let session = prompt.session;
    let Some(place) = place_of(home, prompt)? else { return Ok(None) };
    let mut how = vec![format!("`codex resume {session}`, then {}", keys(prompt.text))];
    how.push(match place.before {
        Some(before) => format!(
            "its app server forks it without a model: thread/fork {{\"threadId\":\"{session}\",\
             \"lastTurnId\":\"{before}\"}}"
        ),
        None => "the conversation began with that prompt: `codex` starts a new one".to_owned(),
    });
    Ok(Some(Cut {
        agent: CODEX.name,
        title: CODEX.title,
        session: session.to_owned(),
        message_id: place.turn,
        how,
        command: None,
    }))
}

/// Without a screen it copies only whole threads.
pub(super) fn copy(
    home: &Path,
    extent: CopyExtent<'_>,
) -> Result<Option<ConversationCopy>, CutError> {
    // Git's folder is not in a fork, and without it the program refuses to start without its screen.
    let (session, keys, headless) = match extent {
        CopyExtent::Whole(session) => {
            if !is_plain_name(session) || rollout_of(home, session)?.is_none() {
                return Ok(None);
            }
            (session, None, Some(format!("codex exec fork --skip-git-repo-check {session}")))
        }
        CopyExtent::Before(prompt) => {
            let place = place_of(home, prompt)?;
            if place.and_then(|place| place.before).is_none() {
                return Ok(None);
            }
            (prompt.session, Some(keys(prompt.text)), None)
        }
    };
    Ok(Some(ConversationCopy {
        agent: CODEX.name,
        title: CODEX.title,
        session: session.to_owned(),
        // Without -C it asks whether to work in the old folder.
        command: format!("codex fork -C . {session}"),
        keys,
        headless,
    }))
}

fn keys(text: &str) -> String {
    format!("Esc while nothing is typed, back to {}, Enter", quoted(text))
}

/// Where a prompt is in its thread.
struct PromptPlace {
    turn: String,
    /// The turn before; `None` if the thread began with the prompt.
    before: Option<String>,
}

/// `None`: there is no such prompt.
fn place_of(home: &Path, prompt: PointPrompt<'_>) -> Result<Option<PromptPlace>, CutError> {
    if !is_plain_name(prompt.session) {
        return Ok(None);
    }
    let Some(file) = rollout_of(home, prompt.session)? else { return Ok(None) };
    let turns = turns(&file).map_err(|source| CutError { path: file, source })?;
    let at = turns.iter().position(|turn| prompt.message_ids.contains(turn));
    Ok(at.map(|at| PromptPlace {
        turn: turns[at].clone(),
        before: at.checked_sub(1).map(|before| turns[before].clone()),
    }))
}

/// The file of a thread: `sessions/YEAR/MONTH/DAY/rollout-TIME-THREAD.jsonl`, the newest first.
fn rollout_of(home: &Path, session: &str) -> Result<Option<PathBuf>, CutError> {
    let end = format!("-{session}.jsonl");
    let mut open = vec![(home.join("sessions"), 3)];
    while let Some((folder, depth)) = open.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => continue,
            entries => entries.map_err(|source| CutError { path: folder.clone(), source })?,
        };
        let names: Result<Vec<PathBuf>, _> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut names = names.map_err(|source| CutError { path: folder, source })?;
        names.sort();
        if depth > 0 {
            open.extend(names.into_iter().map(|name| (name, depth - 1)));
        } else {
            let is_it = |name: &&PathBuf| {
                let name = name.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| name.starts_with("rollout-") && name.ends_with(&end))
            };
            if let Some(found) = names.iter().find(is_it) {
                return Ok(Some(found.clone()));
            }
        }
    }
    Ok(None)
}

/// A line that says which turn follows.
#[derive(Deserialize)]
struct WireLine {
    #[serde(rename = "type")]
    kind: String,
    payload: WirePayload,
}

#[derive(Deserialize)]
struct WirePayload {
    turn_id: Option<String>,
}

/// The turns of a thread, in order.
fn turns(file: &Path) -> io::Result<Vec<String>> {
    let mut turns: Vec<String> = Vec::new();
    for line in BufReader::new(File::open(file)?).split(b'\n') {
        // Lines of other types have other payloads.
        let Ok(line) = serde_json::from_slice::<WireLine>(&line?) else { continue };
        if let Some(turn) = line.payload.turn_id.filter(|_| line.kind == "turn_context")
            && is_plain_name(&turn)
            && !turns.contains(&turn)
        {
            turns.push(turn);
        }
    }
    Ok(turns)
}
