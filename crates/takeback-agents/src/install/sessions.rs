//! What agents write down about their sessions, as far as it shows that there was one.

use std::path::PathBuf;

use serde_json::Value;

use super::place::{Homes, home_of};
use crate::hook::Plugged;

/// Where an agent keeps its sessions: below `folder`, each of `levels` a name, `*` any, `*.jsonl` any that
/// ends so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFiles {
    pub folder: PathBuf,
    pub levels: &'static [&'static str],
}

#[must_use]
pub fn session_files(agent: Plugged, homes: &Homes) -> Vec<SessionFiles> {
    let home = home_of(agent, homes);
    let of = |folder: &str, levels| SessionFiles { folder: home.join(folder), levels };
    match agent {
        Plugged::Claude => vec![of("projects", &["*", "*.jsonl"])],
        Plugged::Codex => vec![of("sessions", &["*", "*", "*", "*.jsonl"])],
        Plugged::Gemini => {
            vec![of("tmp", &["*", "chats", "*.jsonl"]), of("tmp", &["*", "chats", "*.json"])]
        }
        Plugged::Qwen => vec![of("projects", &["*", "chats", "*.jsonl"])],
        Plugged::Copilot => vec![
            of("session-state", &["*", "events.jsonl"]),
            of("history-session-state", &["*.json"]),
        ],
        Plugged::Opencode => {
            let data = homes.data.clone().unwrap_or_else(|| homes.user.join(".local/share"));
            let folder = data.join("opencode/storage/session");
            vec![SessionFiles { folder, levels: &["*", "*.json"] }]
        }
    }
}

/// A session by the name that hooks know it by, and when it began (ISO 8601).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenSession {
    pub id: String,
    pub began: String,
}

/// What the beginning of a session's file tells. All six write JSON, most of them a line at a time.
#[must_use]
pub fn seen_session(beginning: &[u8]) -> Option<SeenSession> {
    const IDS: &[&str] =
        &["/sessionId", "/session_id", "/data/sessionId", "/payload/session_id", "/payload/id"];
    const TIMES: &[&str] = &["/startTime", "/data/startTime", "/timestamp", "/payload/timestamp"];
    let lines = beginning.split(|byte| *byte == b'\n');
    let values = std::iter::once(beginning)
        .chain(lines)
        .filter_map(|text| serde_json::from_slice::<Value>(text).ok());
    let (mut id, mut began) = (None, None);
    for value in values {
        let first = |pointers: &[&str]| {
            let text = pointers.iter().find_map(|pointer| value.pointer(pointer)?.as_str());
            text.map(str::to_owned)
        };
        id = id.or_else(|| first(IDS));
        began = began.or_else(|| first(TIMES));
        if let (Some(id), Some(began)) = (&id, &began) {
            return Some(SeenSession { id: id.clone(), began: began.clone() });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First lines as the programs have written them, cut short.
    #[test]
    fn every_agents_file_tells_its_session() {
        let cases = [
            (
                r#"{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-15T20:00:00.000Z","sessionId":"a"}"#,
                ("a", "2026-11-15T20:00:00.000Z"),
            ),
            (
                r#"{"timestamp":"2026-11-15T22:08:22.120Z","ordinal":0,"type":"session_meta","payload":{"session_id":"01a1e141","id":"01a1e141","timestamp":"2026-11-15T22:08:22.068Z"}}"#,
                ("01a1e141", "2026-11-15T22:08:22.120Z"),
            ),
            (
                "{\"sessionId\":\"f56d3ddc\",\"projectHash\":\"c0e5\",\"startTime\":\"2026-11-15T22:13:39.118Z\",\"kind\":\"main\"}\n{\"$set\":",
                ("f56d3ddc", "2026-11-15T22:13:39.118Z"),
            ),
            (
                r#"{"type":"session.start","data":{"sessionId":"64681315","version":1,"startTime":"2026-11-15T22:04:48.835Z"},"timestamp":"2026-11-15T22:04:48.876Z"}"#,
                ("64681315", "2026-11-15T22:04:48.835Z"),
            ),
            (
                r#"{"uuid":"61c0","parentUuid":null,"sessionId":"5b1f","timestamp":"2026-11-15T22:09:57.710Z","type":"user"}"#,
                ("5b1f", "2026-11-15T22:09:57.710Z"),
            ),
        ];
        for (text, (id, began)) in cases {
            let seen = SeenSession { id: id.to_owned(), began: began.to_owned() };
            assert_eq!(seen_session(text.as_bytes()), Some(seen));
        }
        assert_eq!(seen_session(b"{\"sessionId\":\"cut"), None);
    }
}
