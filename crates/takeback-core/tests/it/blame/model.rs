//! Random histories of files whose lines are all different, beside a plain list of who wrote which line.

use std::collections::BTreeMap;

use takeback_core::look_around;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_store::PointId;
use takeback_testkit::Sandbox;

use super::authors;

/// How many random histories, unless `TAKEBACK_TEST_RUNS` says otherwise.
const RUNS: u64 = 40;
const STEPS: usize = 25;

#[test]
fn blame_agrees_with_a_plain_list_of_who_wrote_which_line() {
    let runs = std::env::var("TAKEBACK_TEST_RUNS").ok().and_then(|runs| runs.parse().ok());
    let seed = std::env::var("TAKEBACK_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    match seed {
        Some(seed) => run(seed),
        None => (0..runs.unwrap_or(RUNS)).for_each(run),
    }
}

const AUTHORS: [&str; 4] = ["you", "s", "t", "u"];
const NAMES: [&str; 5] = ["a", "b", "d/c", "d/e", "f"];

struct Model {
    random: u64,
    /// Who wrote a line, by its text.
    wrote: BTreeMap<String, &'static str>,
    /// Every state that a file has had.
    seen: BTreeMap<&'static str, Vec<String>>,
    points: Vec<PointId>,
}

impl Model {
    fn below(&mut self, n: usize) -> usize {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn new_line(&mut self, author: &'static str) -> String {
        let text = format!("line {} of its own", self.wrote.len());
        self.wrote.insert(text.clone(), author);
        text
    }

    /// New contents of one or two files.
    fn edit(
        &mut self,
        author: &'static str,
        files: &BTreeMap<&'static str, Vec<String>>,
    ) -> Vec<(&'static str, Option<Vec<String>>)> {
        let name = NAMES[self.below(NAMES.len())];
        let other = NAMES[self.below(NAMES.len())];
        let Some(mut lines) = files.get(name).cloned() else {
            let count = 1 + self.below(8);
            let mut lines: Vec<String> = (0..count).map(|_| self.new_line(author)).collect();
            lines.push("}".to_owned());
            return vec![(name, Some(lines))];
        };
        let at = self.below(lines.len() + 1);
        let end = at + self.below(lines.len() - at + 1);
        match self.below(9) {
            0 | 1 => {
                for _ in 0..=self.below(3) {
                    let line = self.new_line(author);
                    lines.insert(at, line);
                }
            }
            2 => drop(lines.drain(at..end)),
            3 => {
                for line in &mut lines[at..end] {
                    *line = self.new_line(author);
                }
            }
            4 => {
                let moved: Vec<String> = lines.drain(at..end).collect();
                let to = self.below(lines.len() + 1);
                lines.splice(to..to, moved);
            }
            5 => lines[at..end].iter_mut().for_each(|line| line.insert_str(0, "    ")),
            6 if other != name && !files.contains_key(other) => {
                return vec![(name, None), (other, Some(lines))];
            }
            7 if other != name => {
                let moved: Vec<String> = lines.drain(at..end).collect();
                let mut others = files.get(other).cloned().unwrap_or_default();
                let to = self.below(others.len() + 1);
                others.splice(to..to, moved);
                return vec![(name, Some(lines)), (other, Some(others))];
            }
            8 => {
                let choice = self.below(self.seen[name].len());
                let state = &self.seen[name][choice];
                return vec![(name, Some(state.lines().map(str::to_owned).collect()))];
            }
            _ => return vec![(name, None)],
        }
        vec![(name, Some(lines))]
    }
}

fn files(sandbox: &Sandbox) -> BTreeMap<&'static str, Vec<String>> {
    let there = NAMES.into_iter().filter(|name| sandbox.exists(name));
    there.map(|name| (name, sandbox.read(name).lines().map(str::to_owned).collect())).collect()
}

fn write(sandbox: &Sandbox, edits: &[(&'static str, Option<Vec<String>>)]) {
    for (name, lines) in edits {
        match lines {
            Some(lines) => {
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                sandbox.write(name, text);
            }
            None if sandbox.exists(name) => sandbox.remove(name),
            None => {}
        }
    }
}

fn run(seed: u64) {
    let mut model =
        Model { random: seed, wrote: BTreeMap::new(), seen: BTreeMap::new(), points: Vec::new() };
    let mut sandbox = Sandbox::in_memory();
    for session in &AUTHORS[1..] {
        sandbox.prompt(session, "begin");
    }
    for step in 0..STEPS {
        let author = AUTHORS[model.below(AUTHORS.len())];
        let present = files(&sandbox);
        let choice = model.below(12);
        match (author, choice) {
            (_, 0) if !model.points.is_empty() => {
                let choice = model.below(model.points.len());
                sandbox.rewind_to(model.points[choice]);
            }
            (_, 1) => {
                let undo = RewindRequest::new(Target::Undo);
                // Nothing may be there to undo.
                drop(sandbox.rewind(&undo));
            }
            ("you", _) => {
                let edits = model.edit(author, &present);
                write(&sandbox, &edits);
            }
            (session, 2 | 3) => {
                model.points.push(sandbox.prompt(session, "go on"));
            }
            (session, 4 | 5) => {
                let edits = model.edit(session, &present);
                sandbox.agent_runs(session, "edit", |sandbox| write(sandbox, &edits));
            }
            (session, _) => {
                let edits = model.edit(session, &present);
                let paths: Vec<&str> = edits.iter().map(|(name, _)| *name).collect();
                let call = sandbox.before_edit(session, &paths);
                write(&sandbox, &edits);
                sandbox.after(session, &call);
            }
        }
        look_around(&mut sandbox.workspace).unwrap();
        for (name, lines) in files(&sandbox) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            model.seen.entry(name).or_default().push(text);
            let found = authors(&mut sandbox, name);
            assert_eq!(found.len(), lines.len(), "seed {seed}, step {step}: {name}");
            for (line, author) in found.iter().filter(|(line, _)| line != "}") {
                assert_eq!(author, model.wrote[line], "seed {seed}, step {step}: {name}: {line}");
            }
        }
    }
}
