//! Reads the id and the start of a session from the files that agents keep.

use serde_json::Value;

use crate::kind::SessionFiles;

/// A session in an agent's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The id by which hooks know it.
    pub id: String,
    /// When it began, as ISO 8601.
    pub began: String,
}

/// The session of a file, from its first bytes: one JSON value, or one per line.
#[must_use]
pub fn read_session(files: &SessionFiles, beginning: &[u8]) -> Option<SessionInfo> {
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
        id = id.or_else(|| first(files.id));
        began = began.or_else(|| first(files.began));
        if let (Some(id), Some(began)) = (&id, &began) {
            return Some(SessionInfo { id: id.clone(), began: began.clone() });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{CLAUDE, CODEX, COPILOT, GEMINI, QWEN};
    use crate::kind::AgentKind;

    /// First lines as the programs wrote them, shortened.
    #[test]
    fn every_agents_session_file_is_read() {
        let cases: [(&AgentKind, &str, (&str, &str)); 5] = [
            (
                &CLAUDE,
                r#"{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-15T20:00:00.000Z","sessionId":"a"}"#,
                ("a", "2026-11-15T20:00:00.000Z"),
            ),
            (
                &CODEX,
                r#"{"timestamp":"2026-11-15T22:08:22.120Z","ordinal":0,"type":"session_meta","payload":{"session_id":"01a1e141","id":"01a1e141","timestamp":"2026-11-15T22:08:22.068Z"}}"#,
                ("01a1e141", "2026-11-15T22:08:22.120Z"),
            ),
            (
                &GEMINI,
                "{\"sessionId\":\"f56d3ddc\",\"projectHash\":\"c0e5\",\"startTime\":\"2026-11-15T22:13:39.118Z\",\"kind\":\"main\"}\n{\"$set\":",
                ("f56d3ddc", "2026-11-15T22:13:39.118Z"),
            ),
            (
                &COPILOT,
                r#"{"type":"session.start","data":{"sessionId":"64681315","version":1,"startTime":"2026-11-15T22:04:48.835Z"},"timestamp":"2026-11-15T22:04:48.876Z"}"#,
                ("64681315", "2026-11-15T22:04:48.835Z"),
            ),
            (
                &QWEN,
                r#"{"uuid":"61c0","parentUuid":null,"sessionId":"5b1f","timestamp":"2026-11-15T22:09:57.710Z","type":"user"}"#,
                ("5b1f", "2026-11-15T22:09:57.710Z"),
            ),
        ];
        for (agent, text, (id, began)) in cases {
            let seen = SessionInfo { id: id.to_owned(), began: began.to_owned() };
            assert_eq!(read_session(&agent.sessions, text.as_bytes()), Some(seen));
        }
        assert_eq!(read_session(&CLAUDE.sessions, b"{\"sessionId\":\"cut"), None);
    }
}
