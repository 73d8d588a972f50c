//! Answers to questions about files over time, cut to what a model needs. A note says what is missing, and how
//! to ask for it.

use schemars::JsonSchema;
use serde::Serialize;
use takeback_answers::{
    BisectAnswer, BlameReport, BlamedLine, CatAnswer, FileRow, HistoryAnswer, StatsAnswer,
    WhyAnswer,
};

use super::{MOST, OmittedCounts, cut};

/// Characters of one line; a file may be one long line.
const LINE: usize = 300;
/// Characters of a prompt or a command.
const PROMPT: usize = 4_000;
/// Bytes of a patch or a file.
pub(crate) const MOST_BYTES: usize = 30_000;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Blame {
    pub(crate) lines: Vec<BlamedLine>,
    /// What could not be asked about; lines may lack an author because of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    #[serde(skip_serializing_if = "OmittedCounts::is_empty")]
    pub(crate) left_out: OmittedCounts,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Why {
    #[serde(flatten)]
    pub(crate) answer: WhyAnswer,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct History {
    /// Newest first.
    pub(crate) rows: Vec<FileRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Stats {
    #[serde(flatten)]
    pub(crate) answer: StatsAnswer,
    #[serde(skip_serializing_if = "OmittedCounts::is_empty")]
    pub(crate) left_out: OmittedCounts,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Contents {
    /// Bytes of the whole file.
    pub(crate) size: usize,
    /// `null`: not text.
    pub(crate) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bisect {
    #[serde(flatten)]
    pub(crate) answer: BisectAnswer,
    #[serde(skip_serializing_if = "OmittedCounts::is_empty")]
    pub(crate) left_out: OmittedCounts,
}

impl From<BisectAnswer> for Bisect {
    fn from(mut answer: BisectAnswer) -> Self {
        let mut left_out = OmittedCounts::new();
        cut(&mut left_out, "files", &mut answer.files);
        if let Some(command) = &mut answer.command {
            shorten(command, PROMPT);
        }
        Self { answer, left_out }
    }
}

impl From<BlameReport> for Blame {
    fn from(BlameReport { mut lines, problems }: BlameReport) -> Self {
        let mut left_out = OmittedCounts::new();
        cut(&mut left_out, "lines", &mut lines);
        for line in &mut lines {
            shorten_line(line);
        }
        let note = (!left_out.is_empty()).then(|| {
            let next = lines.last().map_or(1, |line| line.line + 1);
            format!(
                "Lines from {next} on are left out. Ask again with `lines`, as in \"{next}-{}\".",
                next + MOST - 1
            )
        });
        Self { lines, problems, note, left_out }
    }
}

impl From<WhyAnswer> for Why {
    fn from(mut answer: WhyAnswer) -> Self {
        shorten_line(&mut answer.line);
        let mut missing = Vec::new();
        for (text, most, what) in [
            (&mut answer.whole_prompt, PROMPT, "the prompt"),
            (&mut answer.command, PROMPT, "the command"),
            (&mut answer.patch, MOST_BYTES, "the patch"),
        ] {
            if let Some(text) = text
                && shorten(text, most)
            {
                missing.push(what);
            }
        }
        let note = (!missing.is_empty())
            .then(|| format!("Too long, so only the beginning is here: {}.", missing.join(", ")));
        Self { answer, note }
    }
}

impl History {
    pub(crate) fn new(rows: HistoryAnswer, limit: usize) -> Self {
        let is_full = rows.len() == limit;
        let note =
            is_full.then(|| "There may be more; ask again with a larger `limit`.".to_owned());
        Self { rows, note }
    }
}

impl From<StatsAnswer> for Stats {
    fn from(mut answer: StatsAnswer) -> Self {
        let mut left_out = OmittedCounts::new();
        cut(&mut left_out, "sessions", &mut answer.sessions);
        // Oldest first: the newest are worth more.
        answer.prompts.reverse();
        cut(&mut left_out, "prompts", &mut answer.prompts);
        answer.prompts.reverse();
        cut(&mut left_out, "notFollowed", &mut answer.not_followed);
        Self { answer, left_out }
    }
}

impl From<CatAnswer> for Contents {
    fn from(answer: CatAnswer) -> Self {
        let CatAnswer { size, text, base64: _, cut } = answer;
        let note = match &text {
            None => Some(format!("It is not text: {size} bytes.")),
            Some(_) if cut => Some(
                "It is too long: only the beginning is here. Ask again with `lines`, as in \"200-400\"."
                    .to_owned(),
            ),
            Some(_) => None,
        };
        Self { size, text, note }
    }
}

fn shorten_line(line: &mut BlamedLine) {
    shorten(&mut line.text, LINE);
    // A model cannot read it.
    line.text_base64 = None;
}

/// Cuts after so many characters, with `…`; whether it did.
fn shorten(text: &mut String, most: usize) -> bool {
    let Some((at, _)) = text.char_indices().nth(most) else { return false };
    text.truncate(at);
    text.push('…');
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(number: usize, text: &str) -> serde_json::Value {
        json!({"line": number, "text": text, "author": "you", "evidence": null, "source": "log",
            "session": null, "agent": null, "model": null, "point": null, "call": null, "tool": null,
            "prompt": null, "at": null, "commit": null, "name": null})
    }

    fn report(lines: serde_json::Value) -> BlameReport {
        BlameReport { lines: serde_json::from_value(lines).unwrap(), problems: Vec::new() }
    }

    #[test]
    fn a_long_file_is_cut_with_the_lines_to_ask_for() {
        let many: Vec<_> = (11..=310).map(|number| line(number, "x")).collect();
        let blame = Blame::from(report(json!(many)));
        assert_eq!((blame.lines.len(), blame.lines[199].line), (200, 210));
        let note = "Lines from 211 on are left out. Ask again with `lines`, as in \"211-410\".";
        assert_eq!(blame.note.as_deref(), Some(note));
        assert_eq!(blame.left_out, OmittedCounts::from([("lines", 100)]));

        let wide = json!([line(1, &"é".repeat(1_000))]);
        let blame = Blame::from(report(wide));
        assert_eq!(blame.lines[0].text.chars().count(), LINE + 1);
        assert_eq!(blame.note, None);
    }

    #[test]
    fn of_many_prompts_the_newest_stay() {
        let none = json!({"files": 0, "insertions": 0, "deletions": 0, "left": 0});
        let prompt = |n: usize| {
            json!({"point": format!("{n:016x}"), "session": null, "description": "", "files": 1,
                "insertions": 1, "deletions": 0, "left": 1})
        };
        let prompts: Vec<_> = (0..250).map(prompt).collect();
        let answer = json!({"agents": none, "you": none, "unclear": none, "unknown": none,
            "sessions": [], "models": [], "prompts": prompts, "notFollowed": []});
        let stats = Stats::from(serde_json::from_value::<StatsAnswer>(answer).unwrap());
        assert_eq!(stats.left_out, OmittedCounts::from([("prompts", 50)]));
        assert_eq!(stats.answer.prompts[199].point.to_string(), format!("{:016x}", 249));
        assert_eq!(stats.answer.prompts[0].point.to_string(), format!("{:016x}", 50));
    }

    #[test]
    fn what_is_not_text_has_only_a_size() {
        let answer = CatAnswer { size: 3, text: None, base64: Some("AAAA".to_owned()), cut: false };
        let contents = Contents::from(answer);
        assert_eq!(
            (contents.text, contents.note.as_deref()),
            (None, Some("It is not text: 3 bytes."))
        );
    }
}
