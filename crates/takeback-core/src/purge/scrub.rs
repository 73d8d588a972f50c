//! Removes names from texts and JSON.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use takeback_store::WorkPath;

/// Replaces a name.
const REPLACED: &str = "[purged]";

/// Removes the names of purged paths from texts.
#[derive(Debug, Clone, Default)]
pub struct Scrubber {
    /// Paths as JSON has them: as text, or as base64 where they are not UTF-8.
    paths: BTreeSet<String>,
    /// What to look for in texts, the longest first.
    words: Vec<String>,
}

impl Scrubber {
    /// For `path` and what is known below it.
    #[must_use]
    pub fn of(path: &WorkPath, known: &BTreeSet<WorkPath>) -> Self {
        let mut scrubber = Self::default();
        let mut words = BTreeSet::new();
        for one in known {
            let bytes = one.as_bytes();
            scrubber.paths.insert(String::from_utf8_lossy(bytes).into_owned());
            scrubber.paths.insert(STANDARD.encode(bytes));
            words.insert(String::from_utf8_lossy(bytes).into_owned());
            // A command that runs in the folder names its files by their last part.
            words.insert(String::from_utf8_lossy(one.file_name()).into_owned());
        }
        words.insert(String::from_utf8_lossy(path.as_bytes()).into_owned());
        scrubber.words = words.into_iter().filter(|word| !word.is_empty()).collect();
        scrubber.words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        scrubber
    }

    /// The text without the names; `None`: it has none.
    #[must_use]
    pub fn text(&self, text: &str) -> Option<String> {
        let mut clean = text.to_owned();
        for word in &self.words {
            clean = without_word(&clean, word);
        }
        (clean != text).then_some(clean)
    }

    /// The JSON without items about the paths, and without their names elsewhere. `None`: it does not
    /// mention them, or is not JSON.
    #[must_use]
    pub fn json(&self, json: &str) -> Option<String> {
        let mut value: Value = serde_json::from_str(json).ok()?;
        let before = value.clone();
        self.clean(&mut value);
        (value != before).then(|| value.to_string())
    }

    fn clean(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => {
                items.retain(|item| !self.is_about(item));
                items.iter_mut().for_each(|item| self.clean(item));
            }
            Value::Object(fields) => {
                fields.retain(|name, value| name != "one_with" || !self.is_path(value));
                fields.values_mut().for_each(|value| self.clean(value));
                // In `pathsBase64` the names themselves are keys.
                let is_emptied = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
                fields.retain(|name, value| !(self.paths.contains(name) && is_emptied(value)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn is_about(&self, item: &Value) -> bool {
        self.is_path(item)
            || ["path", "filePath", "filePathBase64"].iter().any(|name| self.is_path(&item[*name]))
    }

    fn is_path(&self, value: &Value) -> bool {
        let text = value.as_str().or_else(|| value["base64"].as_str());
        text.is_some_and(|text| self.paths.contains(text))
    }
}

/// Replaces a word wherever it is not part of a longer one.
fn without_word(text: &str, word: &str) -> String {
    let is_inner = |c: char| c.is_alphanumeric() || c == '_';
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, from) = rest.split_at(at);
        let after = &from[word.len()..];
        clean.push_str(before);
        let begins = clean.chars().next_back().is_none_or(|c| !is_inner(c));
        let ends = after.chars().next().is_none_or(|c| !is_inner(c));
        clean.push_str(if begins && ends { REPLACED } else { word });
        rest = after;
    }
    clean + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewind::Receipt;

    fn scrubber() -> Scrubber {
        let path = |text: &str| WorkPath::new(text).expect("a plain path");
        Scrubber::of(&path("conf"), &BTreeSet::from([path("conf"), path("conf/.env")]))
    }

    #[test]
    fn names_are_replaced_and_longer_words_stay() {
        let text = "cat /home/me/conf/.env; cd conf && cat .env; vi prod.env config";
        let clean = scrubber().text(text).expect("names are in it");
        assert_eq!(clean, "cat /home/me/[purged]; cd [purged] && cat [purged]; vi prod.env config");
        assert_eq!(scrubber().text("nothing of it"), None);
    }

    #[test]
    fn json_loses_items_about_the_paths() {
        let json = r#"{"steps":[{"path":"conf/.env","n":1},{"path":"a","one_with":"conf/.env"}],
            "restoredFiles":["conf/.env","b"],"notes":[{"filePath":"conf","reason":"x"}]}"#;
        let clean = scrubber().json(json).expect("it is about them");
        let expected = r#"{"steps":[{"path":"a"}],"restoredFiles":["b"],"notes":[]}"#;
        let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(value(&clean), value(expected));
        assert_eq!(scrubber().json(r#"{"path":"other"}"#), None);
    }

    #[test]
    fn a_receipt_loses_names_that_are_not_text() {
        let odd = WorkPath::new(b"key-\xff").expect("a plain path");
        let scrubber = Scrubber::of(&odd, &BTreeSet::from([odd.clone()]));
        let other = WorkPath::new(b"other-\xff").expect("a plain path");
        let receipt = |restored_files| Receipt { restored_files, ..Receipt::default() };
        let json = serde_json::to_string(&receipt(vec![odd, other.clone()])).expect("JSON");
        let clean = scrubber.json(&json).expect("it is about them");
        let clean: Receipt = serde_json::from_str(&clean).expect("a receipt");
        assert_eq!(clean, receipt(vec![other]));
    }
}
