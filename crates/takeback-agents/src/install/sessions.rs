//! What agents record about their sessions, as far as it shows that there was one.

use serde_json::Value;

use crate::kind::SessionFiles;

/// A session by the id that hooks know it by, and when it began (ISO 8601).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its id.
    pub id: String,
    /// When it began.
    pub began: String,
}

/// The session that a file is about, from the file's beginning: one JSON value, or one on each line.
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

    /// First lines as the programs have written them, cut short.
    #[test]
    fn every_agents_file_tells_its_session() {
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
