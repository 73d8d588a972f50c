//! One-line titles and results of calls, for people.

use std::path::Path;

use serde_json::Value;

/// `Write utils.ts`, `$ cargo test`.
pub(super) fn title(tool: &str, input: &Value, folder: &Path) -> String {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let with = |rest: &str| one_line(&format!("{tool} {rest}"), TITLE);
    match tool {
        "Bash" => one_line(&format!("$ {}", text("command").trim()), TITLE),
        "Agent" | "Task" => one_line(&format!("Task {}", text("description")), TITLE),
        "Grep" | "Glob" => with(text("pattern")),
        "WebFetch" => with(text("url")),
        "WebSearch" => with(text("query")),
        _ => {
            match ["file_path", "notebook_path", "path"].map(text).iter().find(|p| !p.is_empty()) {
                Some(path) => with(&relative(path, folder)),
                None => tool.to_owned(),
            }
        }
    }
}

/// Everything a call would do, for the permission dialog.
pub(super) fn detail(tool: &str, input: &Value, description: Option<&str>) -> String {
    let text = |key: &str| input[key].as_str().unwrap_or_default();
    let marked = |sign: &str, text: &str| -> String {
        text.lines().map(|line| format!("{sign} {line}\n")).collect()
    };
    match tool {
        "Bash" => {
            let about = input["description"].as_str().or(description).unwrap_or_default();
            let command = text("command");
            if about.is_empty() || about == command {
                command.to_owned()
            } else {
                format!("{command}\n# {about}")
            }
        }
        "Write" => text("content").to_owned(),
        "Edit" => {
            let changed = marked("-", text("old_string")) + &marked("+", text("new_string"));
            changed.trim_end().to_owned()
        }
        "ExitPlanMode" => text("plan").to_owned(),
        _ => serde_json::to_string_pretty(input).expect("it was parsed from JSON"),
    }
}

/// The result of a call that succeeded.
pub(super) fn result(tool: &str, response: &Value) -> String {
    let text = |key: &str| response[key].as_str().unwrap_or_default();
    if !response["backgroundTaskId"].is_null() {
        return "runs in the background".to_owned();
    }
    match (tool, text("type")) {
        ("Write", "create") => "created".to_owned(),
        ("Write", _) => "written".to_owned(),
        ("Edit" | "MultiEdit" | "NotebookEdit", _) => "edited".to_owned(),
        ("Bash", _) => {
            let lines = || text("stdout").lines().chain(text("stderr").lines());
            let first = lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no output");
            match lines().filter(|line| !line.trim().is_empty()).count() {
                0 | 1 => one_line(first, LINE),
                more => format!("{} (+{} lines)", one_line(first, LINE), more - 1),
            }
        }
        ("Read", _) => match response["file"]["numLines"].as_u64() {
            Some(1) => "1 line".to_owned(),
            Some(lines) => format!("{lines} lines"),
            None => "read".to_owned(),
        },
        ("Grep" | "Glob", _) => match response["numFiles"].as_u64() {
            Some(1) => "1 file".to_owned(),
            Some(files) => format!("{files} files"),
            None => "done".to_owned(),
        },
        _ => "done".to_owned(),
    }
}

/// The result of a call without an end event: it was refused or interrupted.
pub(super) fn cut_short(text: &str) -> String {
    // Answers that are written for the model, not for people.
    const FOR_THE_MODEL: [&str; 2] = ["The user doesn't want to ", "[Request interrupted by user"];
    if FOR_THE_MODEL.iter().any(|start| text.starts_with(start)) {
        return INTERRUPTED.to_owned();
    }
    failure(text)
}

pub(super) const INTERRUPTED: &str = "interrupted";
pub(super) const NOT_ALLOWED: &str = "not allowed";

/// The result of a call that failed, or whose answer is only known as text.
pub(super) fn failure(text: &str) -> String {
    let text = text.replace("<tool_use_error>", "").replace("</tool_use_error>", "");
    let text = text.trim().trim_start_matches("Error: ");
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("failed");
    match (first.strip_prefix("Exit code "), lines.next()) {
        (Some(code), Some(why)) => one_line(&format!("exit {code}: {why}"), LINE),
        (Some(code), None) => format!("exit {code}"),
        (None, _) => one_line(first, LINE),
    }
}

/// The text of a tool's result as the model receives it: a text, or blocks of it.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> =
                blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

const TITLE: usize = 100;
const LINE: usize = 160;

fn relative(path: &str, folder: &Path) -> String {
    let inside = Path::new(path).strip_prefix(folder).ok();
    inside.and_then(Path::to_str).filter(|inside| !inside.is_empty()).unwrap_or(path).to_owned()
}

/// The first line, cut between characters.
fn one_line(text: &str, most: usize) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().trim_end();
    let is_all = lines.all(|line| line.trim().is_empty());
    if is_all && first.chars().count() <= most {
        return first.to_owned();
    }
    let cut: String = first.chars().take(most - 1).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_has_a_title() {
        let folder = Path::new("/proj");
        let long = "ä".repeat(120);
        let cases = [
            (
                "Write",
                json!({ "file_path": "/proj/src/utils.ts" }),
                "Write src/utils.ts".to_owned(),
            ),
            ("Edit", json!({ "file_path": "/elsewhere/a" }), "Edit /elsewhere/a".to_owned()),
            ("NotebookEdit", json!({ "notebook_path": "/proj/n" }), "NotebookEdit n".to_owned()),
            ("Bash", json!({ "command": "cargo test" }), "$ cargo test".to_owned()),
            ("Bash", json!({ "command": "cat <<E\nx\nE" }), "$ cat <<E…".to_owned()),
            ("Bash", json!({ "command": long }), format!("$ {}…", "ä".repeat(97))),
            ("Agent", json!({ "description": "look" }), "Task look".to_owned()),
            ("Task", json!({ "description": "look" }), "Task look".to_owned()),
            ("Grep", json!({ "pattern": "fn" }), "Grep fn".to_owned()),
            ("mcp__a__b", json!({ "x": 1 }), "mcp__a__b".to_owned()),
            ("Odd", Value::Null, "Odd".to_owned()),
        ];
        for (tool, input, expected) in cases {
            assert_eq!(title(tool, &input, folder), expected);
        }
    }

    #[test]
    fn a_result_is_one_line() {
        let done = [
            ("Write", json!({ "type": "create" }), "created"),
            ("Write", json!({ "type": "update" }), "written"),
            ("Edit", json!({}), "edited"),
            ("Bash", json!({ "stdout": "\none\ntwo\n", "stderr": "" }), "one (+1 lines)"),
            ("Bash", json!({ "stdout": "", "stderr": "" }), "no output"),
            ("Bash", json!({ "backgroundTaskId": "b1" }), "runs in the background"),
            ("Read", json!({ "file": { "numLines": 3 } }), "3 lines"),
            ("mcp__a__b", Value::Null, "done"),
        ];
        for (tool, response, expected) in done {
            assert_eq!(result(tool, &response), expected);
        }
        let failed = [
            ("Exit code 3", "exit 3"),
            ("Exit code 1\n\nls: no such file\nmore", "exit 1: ls: no such file"),
            ("<tool_use_error>File does not exist.\nx</tool_use_error>", "File does not exist."),
            ("Error: no", "no"),
            ("", "failed"),
        ];
        for (text, expected) in failed {
            assert_eq!(failure(text), expected);
        }
    }

    #[test]
    fn the_permission_dialog_shows_everything() {
        let bash = json!({ "command": "rm a\nrm b", "description": "tidy" });
        assert_eq!(detail("Bash", &bash, None), "rm a\nrm b\n# tidy");
        assert_eq!(detail("Bash", &json!({ "command": "ls" }), Some("ls")), "ls");
        let edit = json!({ "old_string": "a\nb", "new_string": "c" });
        assert_eq!(detail("Edit", &edit, None), "- a\n- b\n+ c");
        assert_eq!(detail("Write", &json!({ "content": "x\n" }), None), "x\n");
    }
}
