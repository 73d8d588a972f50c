//! Removes names from texts, plans and receipts.

use std::collections::BTreeSet;

use takeback_store::{StoredPlan, WorkPath};

use crate::rewind::{Note, Plan, Receipt, Step, Verdict, read_plan, write_plan};

/// Replaces a name.
const REPLACED: &str = "[purged]";

/// Removes the names of purged paths from texts.
#[derive(Debug, Clone, Default)]
pub struct Scrubber {
    paths: BTreeSet<WorkPath>,
    /// What to look for in texts, the longest first.
    words: Vec<String>,
}

impl Scrubber {
    /// For `path` and what is known below it.
    #[must_use]
    pub fn of(path: &WorkPath, known: &BTreeSet<WorkPath>) -> Self {
        let mut words = BTreeSet::new();
        for one in known {
            words.insert(String::from_utf8_lossy(one.as_bytes()).into_owned());
            // A command that runs in the folder names its files by their last part.
            words.insert(String::from_utf8_lossy(one.file_name()).into_owned());
        }
        words.insert(String::from_utf8_lossy(path.as_bytes()).into_owned());
        let mut words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        Self { paths: known.clone(), words }
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

    /// The plan without steps at the paths and without their names elsewhere. `None`: it has none of them.
    pub(super) fn plan(&self, stored: &StoredPlan) -> Option<StoredPlan> {
        const READ: &str = "it was read before";
        let Ok(mut plan) = read_plan::<Plan>(stored) else {
            let text = self.text(&stored.text().ok()?)?;
            return Some(StoredPlan::of_text(&text).expect(READ));
        };
        self.clean_plan(&mut plan).then(|| write_plan(&plan).expect(READ))
    }

    /// The same for a receipt, which is JSON.
    pub(super) fn receipt(&self, json: &str) -> Option<String> {
        let Ok(mut receipt) = serde_json::from_str::<Receipt>(json) else { return self.text(json) };
        let changed = self.clean_receipt(&mut receipt);
        changed.then(|| serde_json::to_string(&receipt).expect("it was read from JSON"))
    }

    fn clean_plan(&self, plan: &mut Plan) -> bool {
        // The other fields have neither paths nor texts.
        let Plan { steps, unlocked, opens, native_paths, first_seen, .. } = plan;
        let mut changed = self.drop_paths(steps, |step| &step.path);
        changed |= self.drop_paths(unlocked, |folder| &folder.path);
        changed |= self.drop_paths(opens, |folder| &folder.path);
        changed |= self.drop_paths(native_paths, |native| &native.path);
        changed |= self.drop_paths(first_seen, |seen| &seen.path);
        for step in steps {
            changed |= self.clean_step(step);
        }
        changed
    }

    fn clean_step(&self, step: &mut Step) -> bool {
        let Step { verdict, unclear, hard_link_of, .. } = step;
        let mut changed = hard_link_of.take_if(|other| self.paths.contains(other)).is_some();
        if let Some(reason) = unclear {
            changed |= self.clean_text(reason);
        }
        match verdict {
            Verdict::Restore { .. } | Verdict::Delete | Verdict::Merge { .. } => changed,
            Verdict::Keep { reason }
            | Verdict::Conflict { reason }
            | Verdict::Ambiguous { reason }
            | Verdict::NotCaptured { reason } => changed | self.clean_text(reason),
        }
    }

    fn clean_receipt(&self, receipt: &mut Receipt) -> bool {
        // All fields are listed: a new one must not be forgotten here.
        let Receipt {
            success: _,
            rewind: _,
            point: _,
            adopts: _,
            safety_point: _,
            restored_files,
            deleted_files,
            merged_files,
            kept_files,
            first_seen,
            conflicts,
            conflict_lines,
            ambiguous,
            not_captured,
            evidence,
            notes,
            errors,
            state,
        } = receipt;
        let mut changed = self.drop_paths(restored_files, |path| path);
        changed |= self.drop_paths(deleted_files, |path| path);
        changed |= self.drop_paths(first_seen, |seen| &seen.path);
        changed |= self.drop_paths(conflict_lines, |file| &file.path);
        changed |= self.drop_paths(evidence, |evidence| &evidence.path);
        for notes in [merged_files, kept_files, conflicts, ambiguous, not_captured, notes] {
            changed |= self.drop_paths(notes, |note| &note.path);
            for Note { path: _, reason } in notes {
                changed |= self.clean_text(reason);
            }
        }
        changed |= self.drop_paths(errors, |problem| &problem.path);
        for problem in errors {
            changed |= self.clean_text(&mut problem.error);
        }
        if let Some(error) = state.as_mut().and_then(|state| state.error.as_mut()) {
            changed |= self.clean_text(error);
        }
        changed
    }

    fn drop_paths<T>(&self, items: &mut Vec<T>, path: impl Fn(&T) -> &WorkPath) -> bool {
        let before = items.len();
        items.retain(|item| !self.paths.contains(path(item)));
        items.len() != before
    }

    fn clean_text(&self, text: &mut String) -> bool {
        let clean = self.text(text);
        clean.map(|clean| *text = clean).is_some()
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
    use takeback_store::Entry;

    use super::*;

    fn path(name: impl AsRef<[u8]>) -> WorkPath {
        WorkPath::new(name.as_ref()).expect("a plain path")
    }

    fn scrubber() -> Scrubber {
        Scrubber::of(&path("conf"), &BTreeSet::from([path("conf"), path("conf/.env")]))
    }

    fn step(name: &str, verdict: Verdict) -> Step {
        Step::new(path(name), Entry::Absent, verdict)
    }

    fn note(name: &str, reason: &str) -> Note {
        Note { path: path(name), reason: reason.to_owned() }
    }

    fn json(value: &impl serde::Serialize) -> String {
        serde_json::to_string(value).expect("JSON")
    }

    #[test]
    fn names_are_replaced_and_longer_words_stay() {
        let text = "cat /home/me/conf/.env; cd conf && cat .env; vi prod.env config";
        let clean = scrubber().text(text).expect("names are in it");
        assert_eq!(clean, "cat /home/me/[purged]; cd [purged] && cat [purged]; vi prod.env config");
        assert_eq!(scrubber().text("nothing of it"), None);
    }

    #[test]
    fn a_plan_loses_the_paths_and_their_names() {
        let keep = |reason: &str| Verdict::Keep { reason: reason.to_owned() };
        let link = Step { hard_link_of: Some(path("conf/.env")), ..step("a", Verdict::Delete) };
        let steps = vec![
            link,
            step("b", keep("written to by `cat conf/.env`")),
            step("conf/.env", Verdict::Delete),
        ];
        let plan = Plan { steps, ..Plan::default() };
        let clean = scrubber().plan(&write_plan(&plan).expect("a plan")).expect("it is about them");
        let clean: Plan = read_plan(&clean).expect("a plan");
        let steps =
            vec![step("a", Verdict::Delete), step("b", keep("written to by `cat [purged]`"))];
        assert_eq!(clean, Plan { steps, ..Plan::default() });
        assert_eq!(scrubber().plan(&write_plan(&clean).expect("a plan")), None);
    }

    #[test]
    fn a_name_that_is_also_a_word_of_the_format_leaves_the_plan_readable() {
        let scrubber = Scrubber::of(&path("delete"), &BTreeSet::from([path("delete")]));
        let steps = vec![step("a", Verdict::Delete), step("delete", Verdict::Delete)];
        let plan = Plan { steps, ..Plan::default() };
        let clean = scrubber.plan(&write_plan(&plan).expect("a plan")).expect("it is about it");
        let clean: Plan = read_plan(&clean).expect("a plan");
        assert_eq!(clean.steps, [step("a", Verdict::Delete)]);
    }

    #[test]
    fn a_receipt_loses_the_paths_and_their_names() {
        let receipt = Receipt {
            restored_files: vec![path("b"), path("conf/.env")],
            notes: vec![note("a", "see conf/.env"), note("conf", "x")],
            ..Receipt::default()
        };
        let clean = scrubber().receipt(&json(&receipt)).expect("it is about them");
        let clean: Receipt = serde_json::from_str(&clean).expect("a receipt");
        let expected = Receipt {
            restored_files: vec![path("b")],
            notes: vec![note("a", "see [purged]")],
            ..Receipt::default()
        };
        assert_eq!(clean, expected);
    }

    #[test]
    fn a_receipt_loses_names_that_are_not_text() {
        let (odd, other) = (path(b"key-\xff"), path(b"other-\xff"));
        let scrubber = Scrubber::of(&odd, &BTreeSet::from([odd.clone()]));
        let receipt = |restored_files| Receipt { restored_files, ..Receipt::default() };
        let clean = scrubber.receipt(&json(&receipt(vec![odd, other.clone()])));
        let clean: Receipt =
            serde_json::from_str(&clean.expect("it is about them")).expect("a receipt");
        assert_eq!(clean, receipt(vec![other]));
    }

    #[test]
    fn what_cannot_be_read_loses_the_names() {
        let stored = |text| StoredPlan::of_text(text).expect("a text");
        let clean = scrubber().plan(&stored(r#"{"steps":[{"path":"conf/.env""#));
        assert_eq!(clean, Some(stored(r#"{"steps":[{"path":"[purged]""#)));
    }
}
