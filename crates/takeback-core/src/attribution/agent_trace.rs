//! Agent Trace 0.1: JSON records that say which lines of a file came from which conversation. Pure.

use serde::{Deserialize, Deserializer, Serialize};

use super::NotedAuthor;

/// The version that is written.
pub(super) const VERSION: &str = "0.1.0";

/// One record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTrace {
    /// The version of the format.
    pub version: String,
    /// A UUID.
    pub id: String,
    /// When it was written, as in RFC 3339.
    pub timestamp: String,
    /// The commit that the line numbers are of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcs: Option<TraceRevision>,
    /// What wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<TraceTool>,
    /// The files.
    pub files: Vec<TraceFile>,
    /// What the format has no field for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TraceMetadata>,
}

/// Metadata. What other tools put into it is skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMetadata {
    /// Takeback's.
    #[serde(
        default,
        rename = "io.github.takeback",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "own_or_none"
    )]
    pub own: Option<OwnTrace>,
}

/// What Takeback adds to its records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTrace {
    /// How the authors of lines are known.
    pub lines: Vec<OwnLines>,
}

/// Lines of one author.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnLines {
    /// The file.
    pub path: String,
    /// The first line.
    pub start_line: usize,
    /// The last line.
    pub end_line: usize,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The point of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<String>,
    /// How the agent is known to be the author, or possibly the author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The lines were written while a command of the agent ran, so perhaps by someone else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
}

/// A record of another tool may have anything under that name.
fn own_or_none<'de, D: Deserializer<'de>>(own: D) -> Result<Option<OwnTrace>, D::Error> {
    let own = serde_json::Value::deserialize(own)?;
    Ok(OwnTrace::deserialize(own).ok())
}

/// A revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRevision {
    /// `git`, or another system.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its id.
    pub revision: String,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceTool {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A file of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// From the top of the repository.
    pub path: String,
    /// Who wrote which lines.
    #[serde(default)]
    pub conversations: Vec<TraceConversation>,
}

/// The lines that came from one conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceConversation {
    /// Where the conversation can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Who wrote the lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contributor: Option<Contributor>,
    /// The lines.
    #[serde(default)]
    pub ranges: Vec<TraceRange>,
    /// What else belongs to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<TraceLink>,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceLink {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is.
    pub url: String,
}

/// Who wrote lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contributor {
    /// `human`, `ai`, `mixed` or `unknown`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
}

/// Lines, from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRange {
    /// The first.
    pub start_line: usize,
    /// The last.
    pub end_line: usize,
    /// Who wrote these, if not the conversation's contributor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contributor: Option<Contributor>,
}

impl AgentTrace {
    /// The records in a text: one per line, or one for the whole text. What cannot be read is passed over
    /// and counted.
    #[must_use]
    pub fn parse_all(text: &[u8]) -> (Vec<Self>, usize) {
        if let Ok(record) = serde_json::from_slice::<Self>(text) {
            return (vec![record], 0);
        }
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        let (mut records, mut unreadable) = (Vec::new(), 0);
        for line in lines {
            match serde_json::from_slice::<Self>(line) {
                Ok(record) if record.version.contains('.') => records.push(record),
                _ => unreadable += 1,
            }
        }
        (records, unreadable)
    }

    /// Whether its line numbers are those of this commit.
    #[must_use]
    pub fn is_of(&self, commit: &str) -> bool {
        let revision = self.vcs.as_ref().filter(|vcs| vcs.kind == "git");
        revision.is_some_and(|vcs| vcs.revision.len() >= 7 && commit.starts_with(&vcs.revision))
    }

    /// Who wrote a line. `line`: from 1. The last of overlapping ranges counts; `mixed` and `unknown` name
    /// no author.
    #[must_use]
    pub fn author_of(&self, path: &[u8], line: usize) -> Option<NotedAuthor> {
        let files = self.files.iter().filter(|file| file.path.as_bytes() == path);
        let conversations = files.flat_map(|file| &file.conversations);
        let hits = conversations.flat_map(|conversation| {
            let ranges = conversation.ranges.iter();
            let hits = ranges.filter(|range| (range.start_line..=range.end_line).contains(&line));
            hits.map(move |range| (conversation, range))
        });
        let (conversation, range) = hits.last()?;
        let contributor = range.contributor.as_ref().or(conversation.contributor.as_ref())?;
        match contributor.kind.as_str() {
            "human" => Some(NotedAuthor::Person { name: None }),
            "ai" => {
                let own = self.own_lines(path, line);
                let tool = || self.tool.as_ref().and_then(|tool| tool.name.clone());
                Some(NotedAuthor::Agent {
                    tool: own.map_or_else(tool, |own| own.agent.clone()),
                    conversation: own
                        .and_then(|own| own.session.clone())
                        .or_else(|| conversation.url.clone()),
                    model: contributor.model_id.clone(),
                    is_doubtful: own.is_some_and(|own| own.doubtful),
                })
            }
            _ => None,
        }
    }

    fn own_lines(&self, path: &[u8], line: usize) -> Option<&OwnLines> {
        let own = self.metadata.as_ref()?.own.as_ref()?;
        own.lines.iter().find(|lines| {
            lines.path.as_bytes() == path && (lines.start_line..=lines.end_line).contains(&line)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_line_by_line_and_the_last_range_counts() {
        let one = r#"{"version":"0.1.0","id":"x","timestamp":"2026-01-01T00:00:00Z",
            "vcs":{"type":"git","revision":"0123456789"},"tool":{"name":"cursor"},"files":[{"path":"a.rs",
            "conversations":[{"url":"u","contributor":{"type":"ai","model_id":"p/m"},"ranges":[
            {"start_line":1,"end_line":9,"content_hash":"murmur3:1"},
            {"start_line":4,"end_line":4,"contributor":{"type":"human"}},
            {"start_line":5,"end_line":5,"contributor":{"type":"mixed"}}]}]}],"metadata":{"x":1}}"#
            .replace('\n', " ");
        let (records, unreadable) =
            AgentTrace::parse_all(format!("{one}\nnonsense\n\n{one}\n").as_bytes());
        assert_eq!((records.len(), unreadable), (2, 1));
        let agent = NotedAuthor::Agent {
            tool: Some("cursor".to_owned()),
            conversation: Some("u".to_owned()),
            model: Some("p/m".to_owned()),
            is_doubtful: false,
        };
        for (line, author) in
            [(1, Some(agent)), (4, Some(NotedAuthor::Person { name: None })), (5, None), (10, None)]
        {
            assert_eq!(records[0].author_of(b"a.rs", line), author, "line {line}");
        }
        assert!(records[0].is_of("0123456789abcdef") && !records[0].is_of("abcdef0123456789"));
        assert_eq!(records[0].author_of(b"b.rs", 1), None);
        let (whole, _) =
            AgentTrace::parse_all(serde_json::to_string_pretty(&records[0]).unwrap().as_bytes());
        assert_eq!(whole, records[..1]);
    }
}
