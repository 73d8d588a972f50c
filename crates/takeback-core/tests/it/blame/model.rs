//! Random histories of files whose lines are all different, beside a plain list of who wrote which line.
//!
//! The list asks nothing of Takeback: the author of a line is the one who first wrote its text.

mod with_git;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use takeback_core::rewind::{RewindRequest, Target};
use takeback_core::{CallReport, Outcome, look_around};
use takeback_store::PointId;
use takeback_testkit::Sandbox;

use super::authors;

/// How many random histories, unless `TAKEBACK_TEST_RUNS` says otherwise.
const RUNS: u64 = 40;
const STEPS: usize = 25;

#[test]
fn blame_agrees_with_a_plain_list_of_who_wrote_which_line() {
    for_each_seed(RUNS, run);
}

/// Runs with one seed, or with as many as the environment says.
fn for_each_seed(most: u64, run: fn(u64)) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("TAKEBACK_TEST_SEED") {
        Some(seed) => run(seed),
        None => {
            let first = number("TAKEBACK_TEST_FIRST_SEED").unwrap_or(0);
            let runs = number("TAKEBACK_TEST_RUNS").unwrap_or(most);
            (first..first + runs).for_each(run);
        }
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
    /// Lines that bob renamed the file of, out of Takeback's sight. The log may not find them again; then git
    /// answers, with the commit that had them first.
    carried: BTreeSet<String>,
    /// Whether files are dated, which shows that a formatter ran right after an edit.
    has_dates: bool,
}

/// New contents of some files; `None`: it is deleted.
type Edits = Vec<(&'static str, Option<Vec<String>>)>;
/// The lines of each file that exists.
type Files = BTreeMap<&'static str, Vec<String>>;

impl Model {
    fn new(seed: u64, has_dates: bool) -> Self {
        let (wrote, seen) = (BTreeMap::new(), BTreeMap::new());
        let (points, carried) = (Vec::new(), BTreeSet::new());
        Self { random: seed, wrote, seen, points, carried, has_dates }
    }

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
    fn edit(&mut self, author: &'static str, files: &Files) -> Edits {
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
            // The log does not see what bob moves to another file.
            7 if other != name && AUTHORS.contains(&author) => {
                let moved: Vec<String> = lines.drain(at..end).collect();
                let mut others = files.get(other).cloned().unwrap_or_default();
                let to = self.below(others.len() + 1);
                others.splice(to..to, moved);
                return vec![(name, Some(lines)), (other, Some(others))];
            }
            8 if self.seen.contains_key(name) => {
                let choice = self.below(self.seen[name].len());
                let state = &self.seen[name][choice];
                return vec![(name, Some(state.lines().map(str::to_owned).collect()))];
            }
            _ => return vec![(name, None)],
        }
        vec![(name, Some(lines))]
    }

    /// What a formatter makes of the files that were edited: everything is indented anew, and a line or two
    /// rewritten.
    fn format(&mut self, author: &'static str, edits: &Edits) -> Edits {
        let mut formatted = Vec::new();
        for (name, lines) in edits {
            let Some(mut lines) = lines.clone() else { continue };
            let indent = "  ".repeat(self.below(5));
            lines.iter_mut().for_each(|line| *line = format!("{indent}{}", line.trim_start()));
            let rewritten = self.below(lines.len() + 1);
            if let Some(line) = lines.get_mut(rewritten) {
                *line = self.new_line(author);
            }
            formatted.push((*name, Some(lines)));
        }
        formatted
    }

    /// A session edits files by name. A formatter may run, in the call or after it.
    fn agent_edits(&mut self, session: &'static str, edits: &Edits, sandbox: &mut Sandbox) {
        let paths: Vec<&str> = edits.iter().map(|(name, _)| *name).collect();
        let call = sandbox.before_edit(session, &paths);
        write(&sandbox.root(), edits);
        let is_formatted = self.below(3) == 0;
        let formatted = if is_formatted { self.format(session, edits) } else { Vec::new() };
        if !self.has_dates {
            write(&sandbox.root(), &formatted);
            sandbox.after(session, &call);
        } else {
            let report = CallReport { formatter: is_formatted, ..CallReport::default() };
            sandbox.after_with(session, &call, Outcome::Done, report);
            write(&sandbox.root(), &formatted);
        }
        if is_formatted {
            // The session's next event ends the formatter's time.
            sandbox.turn_end(session);
        }
    }

    /// Rewinds to some point, or undoes the last rewind.
    fn rewind(&mut self, sandbox: &mut Sandbox, is_to_point: bool) {
        if is_to_point && !self.points.is_empty() {
            let choice = self.below(self.points.len());
            sandbox.rewind_to(self.points[choice]);
        } else {
            let undo = RewindRequest::new(Target::Undo);
            // Nothing may be there to undo.
            drop(sandbox.rewind(&undo));
        }
    }

    /// The states of files come back later.
    fn remember(&mut self, files: &Files) {
        for (name, lines) in files {
            self.seen.entry(name).or_default().push(lines.join("\n"));
        }
    }
}

fn files(root: &Path) -> Files {
    let text = |name: &&'static str| std::fs::read_to_string(root.join(name)).ok();
    let there = NAMES.into_iter().filter_map(|name| Some((name, text(&name)?)));
    there.map(|(name, text)| (name, text.lines().map(str::to_owned).collect())).collect()
}

fn write(root: &Path, edits: &Edits) {
    for (name, lines) in edits {
        let path = root.join(name);
        match lines {
            Some(lines) => {
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            // It may not be there.
            None => drop(std::fs::remove_file(path)),
        }
    }
}

fn run(seed: u64) {
    let mut model = Model::new(seed, false);
    let mut sandbox = Sandbox::in_memory();
    for session in &AUTHORS[1..] {
        sandbox.prompt(session, "begin");
    }
    let mut story = Vec::new();
    for step in 0..STEPS {
        let author = AUTHORS[model.below(AUTHORS.len())];
        let present = files(&sandbox.root());
        let choice = model.below(12);
        let what = match (author, choice) {
            (_, 0 | 1) => {
                model.rewind(&mut sandbox, choice == 0);
                if choice == 0 { "rewinds".to_owned() } else { "undoes".to_owned() }
            }
            ("you", _) => {
                let edits = model.edit(author, &present);
                write(&sandbox.root(), &edits);
                format!("{edits:?}")
            }
            (session, 2 | 3) => {
                model.points.push(sandbox.prompt(session, "go on"));
                "is prompted".to_owned()
            }
            (session, 4 | 5) => {
                let edits = model.edit(session, &present);
                let edit = |sandbox: &Sandbox| write(&sandbox.root(), &edits);
                sandbox.agent_runs(session, "edit", edit);
                format!("runs {edits:?}")
            }
            (session, _) => {
                let edits = model.edit(session, &present);
                model.agent_edits(session, &edits, &mut sandbox);
                format!("edits {edits:?}")
            }
        };
        story.push(format!("{step}: {author} {what}"));
        look_around(&mut sandbox.workspace).unwrap();
        let present = files(&sandbox.root());
        model.remember(&present);
        for (name, lines) in present {
            let found = authors(&mut sandbox, name);
            let told = || format!("seed {seed}: {name}: {lines:?}\n{}", story.join("\n"));
            assert_eq!(found.len(), lines.len(), "{}", told());
            for (line, author) in found.iter().filter(|(line, _)| line != "}") {
                // A merge made it twice, after one author moved it and another removed it.
                if lines.iter().filter(|other| other.trim() == line).count() > 1 {
                    continue;
                }
                assert_eq!(author, model.wrote[line], "{line}, {}", told());
            }
        }
    }
}
