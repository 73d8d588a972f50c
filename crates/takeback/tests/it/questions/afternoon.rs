//! An afternoon: thirty prompts in three sessions, and six edits of yours between them. Three questions, each
//! answered by one command, beside a tally that was kept while it happened.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use takeback::Tool;

use super::library;
use crate::user::{User, column};

const SESSIONS: [&str; 3] = ["cart", "docs", "tests"];
const FILES: [&str; 3] = ["src/cart.rs", "docs/cart.md", "tests/cart.rs"];
/// The prompt that breaks the test.
const BREAKS: usize = 19;

/// Files, insertions and deletions of one author after one prompt.
type Counts = BTreeMap<&'static str, (usize, usize, usize)>;

#[derive(Default)]
struct Afternoon {
    /// Who wrote each line: a prompt's number, or you.
    wrote: BTreeMap<String, Option<usize>>,
    /// By the prompt before it.
    counts: Vec<Counts>,
}

impl Afternoon {
    /// Adds lines to a file and removes some, and keeps count.
    fn edit(&mut self, user: &User, prompt: usize, is_yours: bool, file: &'static str) {
        let mut lines: Vec<String> = if user.exists(file) {
            user.read(file).lines().map(str::to_owned).collect()
        } else {
            Vec::new()
        };
        let (added, removed) = (1 + prompt % 3, usize::from(prompt % 4 == 3 && lines.len() > 2));
        if removed > 0 {
            lines.remove(0);
        }
        let middle = lines.len() / 2;
        for n in 0..added {
            let who = if is_yours { "you".to_owned() } else { format!("prompt {prompt}") };
            let line = format!("line {n} of {who} after {prompt} in {file}");
            self.wrote.insert(line.clone(), (!is_yours).then_some(prompt));
            lines.insert(middle + n, line);
        }
        user.write(file, &(lines.join("\n") + "\n"));
        let counts = &mut self.counts[prompt];
        let count = counts.entry(if is_yours { "you" } else { "agent" }).or_default();
        count.0 += 1;
        count.1 += added;
        count.2 += removed;
    }
}

/// Longer than the time that is allowed for a hook to arrive: what follows is not the call's.
fn a_moment() {
    sleep(Duration::from_millis(300));
}

#[test]
fn three_questions_about_an_afternoon_take_one_command_each() {
    let user = User::with(&[("value.txt", "1\n")]);
    let library = library(&user);
    let mut afternoon = Afternoon { counts: vec![Counts::new(); 30], ..Afternoon::default() };
    for prompt in 0..30 {
        let session = SESSIONS[prompt % 3];
        let message = format!("message-{prompt}");
        let text = format!("prompt number {prompt}");
        let turn = library.prompt_as(session, Some(&message), &text).expect("recorded");
        let file = FILES[prompt % 3];
        let edit = || {
            afternoon.edit(&user, prompt, false, file);
            Ok::<(), ()>(())
        };
        turn.call(&format!("edit-{prompt}"), Tool::edit(file), edit).expect("done");
        if prompt == BREAKS {
            let break_it = || fs::write(user.work().join("value.txt"), "broken\n");
            turn.call("the-culprit", Tool::edit("value.txt"), break_it).expect("done");
            let count = afternoon.counts[prompt].entry("agent").or_default();
            *count = (count.0 + 1, count.1 + 1, count.2 + 1);
        }
        turn.end();
        if prompt % 5 == 2 {
            a_moment();
            // In the file of the session, or in another.
            afternoon.edit(&user, prompt, true, FILES[(prompt / 5) % 3]);
        }
    }

    // What did this prompt change?
    let rows = user.json(&["log", "-n", "100"]);
    let rows = rows.as_array().expect("a list");
    assert_eq!(rows.len(), 30);
    for (prompt, row) in rows.iter().rev().enumerate() {
        assert_eq!(row["description"], format!("prompt number {prompt}"));
        for party in ["agent", "you", "others", "unclear"] {
            let (files, insertions, deletions) =
                afternoon.counts[prompt].get(party).copied().unwrap_or_default();
            let expected =
                json!({ "files": files, "insertions": insertions, "deletions": deletions });
            assert_eq!(row["byAuthor"][party], expected, "{party} after prompt {prompt}");
        }
    }
    let patch = user.succeeds(&["diff", "message-7!"]).out;
    let changed = |sign: &str| {
        let lines = patch.lines().filter(|line| line.starts_with(sign));
        lines.filter(|line| !line.starts_with("+++") && !line.starts_with("---")).count()
    };
    assert_eq!((1, changed("+"), changed("-")), afternoon.counts[7]["agent"], "{patch}");
    assert!(!patch.contains("of you"), "{patch}");

    // Who wrote this line?
    let mut left = BTreeMap::<Option<usize>, usize>::new();
    for file in FILES {
        let lines = user.json(&["blame", file]);
        let lines = lines.as_array().expect("a list");
        assert_eq!(lines.len(), user.read(file).lines().count());
        for line in lines {
            let text = line["text"].as_str().expect("a text");
            let writer = afternoon.wrote[text];
            *left.entry(writer).or_default() += 1;
            match writer {
                None => {
                    assert_eq!((&line["author"], &line["prompt"]), (&json!("you"), &Value::Null));
                }
                Some(prompt) => {
                    assert_eq!(line["author"], "agent", "{text}");
                    assert_eq!(line["prompt"], format!("prompt number {prompt}"), "{text}");
                    assert_eq!(line["session"], SESSIONS[prompt % 3], "{text}");
                    assert_eq!(line["call"], format!("edit-{prompt}"), "{text}");
                }
            }
        }
    }
    let first = user.read("src/cart.rs");
    let first = first.lines().next().expect("it has lines");
    let why = user.succeeds(&["why", "src/cart.rs:1"]);
    match afternoon.wrote[first] {
        Some(prompt) => drop(why.prints(&format!("prompt number {prompt}"))),
        None => drop(why.prints("you")),
    }

    // Which prompt broke the test?
    let bisect = ["--json", "bisect", "--", "grep", "-q", "1", "value.txt"];
    let output = user.command(&bisect).output().expect("it runs");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["prompt"], format!("prompt number {BREAKS}"), "{found}");
    assert_eq!(found["call"], "the-culprit", "{found}");

    // And the sums.
    let stats = user.json(&["stats"]);
    let sum = |party: &str| {
        let all = afternoon.counts.iter().filter_map(|counts| counts.get(party));
        all.fold((0, 0), |(added, removed), count| (added + count.1, removed + count.2))
    };
    for (answer, party) in [("agents", "agent"), ("you", "you")] {
        let counted = (&stats[answer]["insertions"], &stats[answer]["deletions"]);
        let (added, removed) = sum(party);
        assert_eq!(counted, (&json!(added), &json!(removed)), "{party}: {stats}");
    }
    // `value.txt` has one line, which the culprit wrote.
    let by_agents =
        left.iter().filter(|(writer, _)| writer.is_some()).map(|(_, n)| n).sum::<usize>();
    assert_eq!(stats["agents"]["left"], by_agents + 1);
    assert_eq!(stats["you"]["left"], left[&None]);
    assert_eq!(column(&stats["sessions"], "session").len(), 3);
}
