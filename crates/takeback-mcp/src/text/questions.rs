//! Answers to questions about files over time, as text.

use std::fmt::Write as _;

use takeback_answers::{
    BlamedLine, Contribution, Evidence, FileRow, LineAuthor, LineSource, LineWriter, PromptStats,
    SessionStats, WhyAnswer,
};

use super::{
    author, author_counts, count, left_out, one_line, path, push_rows, quoted, taken_back,
};
use crate::outputs::questions::{Bisect, Blame, Contents, History, Stats, Why};

/// Neighbouring lines with the same writer, under one heading.
pub(crate) fn blame(file: &str, blame: &Blame) -> String {
    let mut text = format!("{}:\n", path(file));
    for lines in blame.lines.chunk_by(|a, b| a.writer == b.writer) {
        let (first, last) = (lines[0].line, lines[lines.len() - 1].line);
        let numbers = if first == last { first.to_string() } else { format!("{first}-{last}") };
        push(&mut text, format_args!("{numbers} by {}", writer(&lines[0].writer)));
        for BlamedLine { text: line, .. } in lines {
            push(&mut text, format_args!("  | {}", one_line(line, 120)));
        }
    }
    if blame.lines.is_empty() {
        text.push_str("The file is empty.\n");
    }
    add_problems(&mut text, &blame.problems);
    add_note(&mut text, blame.note.as_deref());
    text
}

pub(crate) fn why(file: &str, why: &Why) -> String {
    let WhyAnswer { line, whole_prompt, command, written_to, patch, summary, problems } =
        &why.answer;
    let mut text = format!("{}:{}\n", path(file), line.line);
    push(&mut text, format_args!("  | {}", one_line(&line.text, 120)));
    push(&mut text, format_args!("Written by {}.", writer(&line.writer)));
    if let Some(at) = &line.writer.at {
        push(&mut text, format_args!("When: {at}"));
    }
    if let Some(prompt) = whole_prompt {
        push(&mut text, format_args!("Prompt: {}", quoted(prompt, usize::MAX)));
    }
    if let Some(command) = command {
        push(&mut text, format_args!("Command: {}", quoted(command, usize::MAX)));
    }
    if let Some(summary) = summary {
        push(&mut text, format_args!("Commit message: {}", quoted(summary, 200)));
    }
    if let Some(then) = written_to {
        push(&mut text, format_args!("The file was {} then.", path(then)));
    }
    if let Some(patch) = patch {
        push(&mut text, format_args!("The change:\n{}", patch.trim_end()));
    }
    add_problems(&mut text, problems);
    add_note(&mut text, why.note.as_deref());
    text
}

pub(crate) fn history(file: &str, history: &History) -> String {
    let mut text = format!("{}, newest first:\n", path(file));
    for row in &history.rows {
        push(&mut text, format_args!("- {}", file_row(row)));
    }
    add_note(&mut text, history.note.as_deref());
    text
}

/// `717fc7c81e8ac477 “Make it better”  2026-11-15T22:29:32Z  changed  agent 1 file, +2 -1`
fn file_row(row: &FileRow) -> String {
    let point = match &row.point {
        Some(point) if row.description.is_empty() => format!("after {point}"),
        Some(point) => format!("after {point} {}", quoted(&row.description, 120)),
        None => "before the first point".to_owned(),
    };
    let mut line = format!("{point}  {}  {}", row.at, one_line(&row.what, 300));
    let counts = author_counts(&row.by_author);
    if !counts.is_empty() {
        line += &format!("  {counts}");
    }
    line + taken_back(row.taken_back)
}

pub(crate) fn stats(stats: &Stats) -> String {
    let answer = &stats.answer;
    let mut text = String::new();
    for (who, counted) in [
        ("agents", answer.agents),
        ("the user", answer.you),
        ("unclear who", answer.unclear),
        ("deleted sessions", answer.unknown),
    ] {
        if counted != Contribution::default() {
            push(&mut text, format_args!("{who}: {}", written(counted)));
        }
    }
    if text.is_empty() {
        text.push_str("Nothing was written.\n");
    }
    if !answer.sessions.is_empty() {
        text.push_str("By session:\n");
        let rows = answer.sessions.iter().map(|one| {
            let SessionStats { session, agent, model, written: counted } = one;
            let about: Vec<&str> =
                [agent, model].into_iter().flatten().map(String::as_str).collect();
            let about =
                if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
            format!("{}{}: {}", one_line(session, 80), one_line(&about, 80), written(*counted))
        });
        push_rows(&mut text, rows, answer.sessions.len() + left_out(&stats.left_out, "sessions"));
    }
    if !answer.prompts.is_empty() {
        text.push_str("By prompt, newest first:\n");
        let rows = answer.prompts.iter().rev().map(|one| {
            let PromptStats { point, description, written: counted, .. } = one;
            format!("{point} {}: {}", quoted(description, 120), written(*counted))
        });
        push_rows(&mut text, rows, answer.prompts.len() + left_out(&stats.left_out, "prompts"));
    }
    if !answer.not_followed.is_empty() {
        let files = answer.not_followed.len() + left_out(&stats.left_out, "notFollowed");
        push(
            &mut text,
            format_args!(
                "What is left of {} is not known: not text, too large, or lost.",
                count(files, "file")
            ),
        );
    }
    text
}

fn written(written: Contribution) -> String {
    let Contribution { count: counted, left } = written;
    let files = count(counted.files, "file");
    format!("{files}, +{} -{}; {left} of them left", counted.insertions, counted.deletions)
}

/// The contents as they are: what follows them is after a blank line.
pub(crate) fn contents(contents: &Contents) -> String {
    let mut text = contents.text.clone().unwrap_or_default();
    if let Some(note) = &contents.note {
        let gap = if text.is_empty() { "" } else { "\n\n" };
        text = format!("{}{gap}({note})\n", text.trim_end_matches('\n'));
    }
    text
}

pub(crate) fn bisect(found: &Bisect) -> String {
    let answer = &found.answer;
    let runs = format!("({}, {} skipped)", count(answer.runs, "run"), answer.skipped);
    let mut text = match answer.candidates {
        1 => format!("The first failure came with this step {runs}:\n"),
        steps => format!(
            "The first failure came with one of {steps} steps {runs}: the others could not be tested. The \
             newest:\n"
        ),
    };
    push(&mut text, format_args!("By {}", author(&answer.author, answer.evidence)));
    if let Some(point) = &answer.turn {
        let prompt = answer.prompt.as_deref().unwrap_or_default();
        push(&mut text, format_args!("Prompt: point {point} {}", quoted(prompt, 120)));
    }
    if let Some(command) = &answer.command {
        push(&mut text, format_args!("Command: {}", quoted(command, 4_000)));
    }
    text.push_str("Files:\n");
    let files = answer.files.iter().map(|file| path(&file.file_path));
    push_rows(&mut text, files, answer.files.len() + left_out(&found.left_out, "files"));
    match (&answer.turn, &answer.good) {
        (Some(point), _) => {
            push(
                &mut text,
                format_args!("`diff` from \"{point}!\" shows what the prompt changed."),
            );
        }
        (None, Some(point)) => {
            push(
                &mut text,
                format_args!("`diff` from \"{point}\" shows what changed since it was good."),
            );
        }
        (None, None) => {}
    }
    text
}

/// Who wrote a line, and how that is known.
fn writer(writer: &LineWriter) -> String {
    let session = writer.session.as_deref().map(|session| one_line(session, 80));
    let mut who = match (writer.author, writer.source) {
        (LineAuthor::You, _) => "the user".to_owned(),
        (LineAuthor::Agent, Some(LineSource::Log)) => match &session {
            Some(session) => format!("session {session}"),
            None => "a deleted session".to_owned(),
        },
        (LineAuthor::Agent, _) => one_line(writer.agent.as_deref().unwrap_or("an agent"), 80),
        (LineAuthor::Other, _) => one_line(writer.name.as_deref().unwrap_or("a person"), 80),
        (LineAuthor::Before, _) => "unknown: older than the log".to_owned(),
        (LineAuthor::Unknown, _) => match &session {
            Some(session) => format!("unknown: the user or session {session}"),
            None => "unknown".to_owned(),
        },
    };
    if let Some(tool) = &writer.tool {
        let how = match writer.evidence {
            Some(Evidence::Named) => "with",
            Some(Evidence::AfterEdit) => "right after",
            Some(Evidence::OpenWindow) => "after the start of",
            _ => "while running",
        };
        who += &format!(" {how} {}", one_line(tool, 40));
    }
    if let Some(point) = &writer.point {
        who += &format!(", point {point}");
    }
    if let Some(prompt) = &writer.prompt {
        who += &format!(" {}", quoted(prompt, 120));
    }
    if let Some(commit) = &writer.commit {
        let source = match writer.source {
            Some(LineSource::Note) => " (a note on it says so)",
            Some(LineSource::Trace) => " (an Agent Trace record says so)",
            _ => "",
        };
        who += &format!(", commit {}{source}", commit.get(..12).unwrap_or(commit));
    }
    who
}

fn add_problems(text: &mut String, problems: &[String]) {
    for problem in problems {
        push(text, format_args!("Not known: {}.", one_line(problem, 300)));
    }
}

fn add_note(text: &mut String, note: Option<&str>) {
    if let Some(note) = note {
        push(text, format_args!("({note})"));
    }
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("text can always be longer");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use takeback_answers::BlameReport;

    use super::*;

    fn line(number: usize, text: &str, more: Value) -> Value {
        let mut line = json!({"line": number, "text": text, "author": "you", "evidence": null,
            "source": "log", "session": null, "agent": null, "model": null, "point": null, "call": null,
            "tool": null, "prompt": null, "at": null, "commit": null, "name": null});
        let Value::Object(more) = more else { unreachable!("an object") };
        line.as_object_mut().unwrap().extend(more);
        line
    }

    fn agent() -> Value {
        json!({"author": "agent", "evidence": "named", "session": "s1", "agent": "claude", "tool": "Edit",
            "point": "717fc7c81e8ac477", "prompt": "Make it\nbetter”"})
    }

    #[test]
    fn neighbouring_lines_of_one_writer_have_one_heading() {
        let note = json!({"author": "agent", "source": "note", "agent": "cursor",
            "commit": "0123456789abcdef0123", "name": null});
        let unknown = json!({"author": "unknown", "source": null, "session": "s2"});
        let lines = json!([
            line(9, "one", json!({})),
            line(10, "two", agent()),
            line(11, "\u{202e}three", agent()),
            line(12, "four", note),
            line(13, "five", unknown),
            line(14, "six", json!({"author": "before", "source": null})),
        ]);
        let lines = serde_json::from_value(lines).unwrap();
        let problems = vec!["2 Agent Trace records\ncannot be read".to_owned()];
        assert_eq!(
            blame("a\nb.rs", &Blame::from(BlameReport { lines, problems })),
            "a\\nb.rs:\n\
             9 by the user\n  | one\n\
             10-11 by session s1 with Edit, point 717fc7c81e8ac477 “Make it\\nbetter\\u{201d}”\n  | two\n  \
             | \\u{202e}three\n\
             12 by cursor, commit 0123456789ab (a note on it says so)\n  | four\n\
             13 by unknown: the user or session s2\n  | five\n\
             14 by unknown: older than the log\n  | six\n\
             Not known: 2 Agent Trace records\\ncannot be read.\n"
        );
    }

    #[test]
    fn why_has_the_prompt_and_the_change() {
        let mut answer = line(2, "two", agent());
        let more = json!({"wholePrompt": "Make it\nbetter", "command": null, "writtenTo": "old.rs",
            "patch": "-1\n+two\n", "summary": null, "problems": [], "at": "2026-11-15T22:29:32Z"});
        answer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer: WhyAnswer = serde_json::from_value(answer).unwrap();
        assert_eq!(
            why("new.rs", &Why::from(answer)),
            "new.rs:2\n  | two\n\
             Written by session s1 with Edit, point 717fc7c81e8ac477 “Make it\\nbetter\\u{201d}”.\n\
             When: 2026-11-15T22:29:32Z\nPrompt: “Make it\\nbetter”\nThe file was old.rs then.\n\
             The change:\n-1\n+two\n"
        );
    }

    #[test]
    fn contents_are_not_changed() {
        let text = |text: Option<&str>, note: Option<&str>| {
            let (text, note) = (text.map(str::to_owned), note.map(str::to_owned));
            contents(&Contents { size: 9, text, note })
        };
        assert_eq!(text(Some("\n one\n\n"), None), "\n one\n\n");
        assert_eq!(text(Some("one\n"), Some("cut")), "one\n\n(cut)\n");
        assert_eq!(text(None, Some("not text")), "(not text)\n");
    }
}
