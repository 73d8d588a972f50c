//! The steps of a run, drawn at random, and how an edit changes the files.
//!
//! A step holds all its randomness, so a list of steps keeps its meaning when some are dropped.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use takeback_core::Outcome;
use takeback_testkit::{Sandbox, Thing};

pub(crate) const SESSIONS: [&str; 4] = ["s1", "s2", "s3", "s1/p"];
/// Sessions that, if started, continue another: (child, parent).
pub(crate) const CONTINUES: [(&str, &str); 2] = [("s3", "s1"), ("s1/p", "s1")];
/// Continuations that are a part of their parent: a subagent, which may work after the parent's turn
/// has ended.
pub(crate) const PARTS: [&str; 1] = ["s1/p"];
pub(crate) const IGNORE_FILE: &str = ".takebackignore";

const PATHS: [&str; 14] = [
    "a", "b", "k.log", "d", "d/e", "d/f", "d/g", "d/g/h", "n/x", "n/m", "n/m/y", "ig", "ig/p",
    "ig/q/r",
];
const SCOPE_PATHS: [&str; 8] = ["ig", "ig/p", "ig/s", "ig/q/r", "d", "d/e", "d/g/h", "k.log"];
const FILTERS: [&str; 6] = ["a", "d", "d/g", "d/*", "n/x", "ig"];
/// One line at most: any three different ones cannot be merged.
pub(crate) const IGNORE_TEXTS: [&str; 5] = ["", "ig/\n", "/ig/\n", "d/\n", "*.log/\n"];
const LINK_TARGETS: [&str; 4] = ["a", "d", "nowhere", "nowhere else"];
const FILE_MODES: [u32; 4] = [0o644, 0o755, 0o600, 0o640];
const FOLDER_MODES: [u32; 3] = [0o755, 0o700, 0o750];
const SECTIONS: u32 = 6;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Start(&'static str),
    Prompt(&'static str),
    /// A call of the edit tool from beginning to end.
    Edit(&'static str, FileEdit),
    /// A shell call from beginning to end.
    Shell(&'static str, Vec<FileEdit>),
    OpenEdit(&'static str, &'static str),
    OpenShell(&'static str),
    /// Reports the end of the session's newest unended call.
    Close(&'static str, Outcome),
    TurnEnd(&'static str),
    End(&'static str),
    /// An edit without an event; its author depends on the open calls.
    Unreported(FileEdit),
    Checkpoint,
    LookAround,
    Reopen,
    Rewind(RewindOptions),
    Undo {
        exact: bool,
    },
    Redo,
    /// Keeps this many points of each session.
    CleanUp(usize),
    /// Counted like the points of a rewind.
    Pin(usize),
    /// Unless the session is at work.
    DeleteSession(&'static str),
}

#[derive(Debug, Clone)]
pub(crate) struct RewindOptions {
    /// Counted from the newest, modulo their number.
    pub(crate) point: usize,
    pub(crate) sessions: SessionChoice,
    pub(crate) exact: bool,
    pub(crate) take_ambiguous: bool,
    pub(crate) paths: Vec<&'static str>,
    pub(crate) preview: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum SessionChoice {
    OfPoint,
    Only(&'static str),
    AllAgents,
}

/// An edit of one path.
#[derive(Debug, Clone)]
pub(crate) struct FileEdit {
    pub(crate) path: &'static str,
    pub(crate) kind: EditKind,
    /// Unique in the run.
    pub(crate) fresh: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum EditKind {
    /// A new text, whatever was there.
    Text,
    /// One section of a text gets a new value.
    Section(u32),
    /// Contents that the path had before.
    Earlier(usize),
    Binary,
    Empty,
    Link(usize),
    Folder,
    Mode(usize),
    Remove,
    MoveTo(&'static str),
    Ignore(usize),
}

impl Step {
    pub(crate) fn changes_scope(&self) -> bool {
        let ignores = |edit: &FileEdit| matches!(edit.kind, EditKind::Ignore(_));
        match self {
            Self::Edit(_, edit) | Self::Unreported(edit) => ignores(edit),
            Self::Shell(_, edits) => edits.iter().any(ignores),
            _ => false,
        }
    }
}

/// The edit tool changes one file and cannot make folders or move files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Editor {
    EditTool,
    Other,
}

/// Splitmix64.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// The focus of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Theme {
    /// Several authors in the sections of few texts.
    Texts,
    /// All kinds of files, links and folders.
    Kinds,
    /// Paths that enter and leave the scope.
    Scope,
}

/// The steps of the run with this seed.
pub(crate) fn draw(seed: u64) -> Vec<Step> {
    let mut dice = Dice(seed);
    let theme = dice.pick(&[Theme::Texts, Theme::Texts, Theme::Kinds, Theme::Kinds, Theme::Scope]);
    let (paths, most): (&[_], _) = match theme {
        Theme::Texts => (&PATHS, 3),
        Theme::Kinds => (&PATHS, 6),
        Theme::Scope => (&SCOPE_PATHS, 5),
    };
    let paths = (0..=dice.below(most)).map(|_| dice.pick(paths)).collect();
    let tidy = dice.one_in(3);
    let careless = dice.one_in(4);
    Draw { dice, theme, tidy, careless, paths, fresh: 0 }.steps()
}

struct Draw {
    dice: Dice,
    theme: Theme,
    /// Whether clean-ups are frequent.
    tidy: bool,
    /// Whether ends of calls are reported late or never.
    careless: bool,
    /// Few, so that several authors edit the same ones.
    paths: Vec<&'static str>,
    fresh: u32,
}

impl Draw {
    fn steps(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.theme == Theme::Texts {
            for path in self.paths.clone() {
                self.fresh += 1;
                steps.push(Step::Unreported(FileEdit {
                    path,
                    kind: EditKind::Text,
                    fresh: self.fresh,
                }));
            }
        }
        for _ in 0..self.dice.below(6) {
            let edit = self.edit();
            steps.push(Step::Unreported(edit));
        }
        steps.push(if self.dice.one_in(3) { Step::Checkpoint } else { Step::Prompt("s1") });
        if self.dice.one_in(4) {
            steps.push(Step::Start("s1/p"));
        }
        for _ in 0..8 + self.dice.below(32) {
            let step = self.step();
            let is_rewind = matches!(step, Step::Rewind(_));
            steps.push(step);
            if is_rewind && self.dice.one_in(3) {
                if self.dice.one_in(4) {
                    steps.push(Step::Reopen);
                }
                steps.push(Step::Undo { exact: self.dice.one_in(4) });
                if self.dice.one_in(2) {
                    steps.push(Step::Redo);
                }
            }
        }
        steps
    }

    fn step(&mut self) -> Step {
        // The first session is at work most of the time.
        let session = if self.dice.one_in(2) { "s1" } else { self.dice.pick(&SESSIONS) };
        if self.tidy && self.dice.one_in(8) {
            return self.tidying(session);
        }
        if self.careless && self.dice.one_in(4) {
            return match self.dice.below(5) {
                0 | 1 => Step::OpenShell(session),
                2 => Step::OpenEdit(session, self.dice.pick(&self.paths.clone())),
                _ => self.closing(session),
            };
        }
        match self.dice.below(100) {
            0..23 => Step::Edit(session, self.edit()),
            23..36 => {
                let edits = (0..=self.dice.below(3)).map(|_| self.edit()).collect();
                Step::Shell(session, edits)
            }
            36..52 => Step::Unreported(self.unreported_edit()),
            52..60 => Step::Prompt(session),
            60..65 => Step::TurnEnd(session),
            65..67 => Step::OpenShell(session),
            67..69 => Step::OpenEdit(session, self.dice.pick(&self.paths.clone())),
            69..73 => self.closing(session),
            73..75 => Step::Start(self.dice.pick(&["s3", "s1/p", session])),
            75 => Step::End(session),
            76..79 => Step::Checkpoint,
            79 => Step::LookAround,
            80 => Step::Reopen,
            81..92 => Step::Rewind(self.options()),
            92..95 => Step::Undo { exact: self.dice.one_in(6) },
            95..97 => Step::Redo,
            97 => Step::Pin(self.dice.below(1000)),
            _ => self.tidying(session),
        }
    }

    fn closing(&mut self, session: &'static str) -> Step {
        let endings = [Outcome::Done, Outcome::Done, Outcome::Failed, Outcome::Background];
        Step::Close(session, self.dice.pick(&endings))
    }

    fn tidying(&mut self, session: &'static str) -> Step {
        match self.dice.below(8) {
            0 => Step::DeleteSession(session),
            1 => Step::Pin(self.dice.below(1000)),
            _ => Step::CleanUp(1 + self.dice.below(3)),
        }
    }

    fn options(&mut self) -> RewindOptions {
        let sessions = match self.dice.below(6) {
            0 => SessionChoice::AllAgents,
            1 => SessionChoice::Only(self.dice.pick(&SESSIONS)),
            _ => SessionChoice::OfPoint,
        };
        let mut paths = Vec::new();
        if self.dice.one_in(5) {
            for _ in 0..=self.dice.below(2) {
                paths.push(self.dice.pick(&FILTERS));
            }
        }
        RewindOptions {
            point: self.dice.below(1000),
            sessions,
            exact: self.dice.one_in(6),
            take_ambiguous: self.dice.one_in(5),
            paths,
            preview: self.dice.one_in(5),
        }
    }

    /// Often restores an earlier version, like a stash, a branch switch or an editor's undo.
    fn unreported_edit(&mut self) -> FileEdit {
        let edit = self.edit();
        if edit.path == IGNORE_FILE || !self.dice.one_in(3) {
            return edit;
        }
        FileEdit { kind: EditKind::Earlier(self.dice.below(100)), ..edit }
    }

    fn edit(&mut self) -> FileEdit {
        self.fresh += 1;
        let fresh = self.fresh;
        if self.theme == Theme::Scope && self.dice.one_in(5) {
            let text = self.dice.below(IGNORE_TEXTS.len());
            let kind = if self.dice.one_in(8) { EditKind::Remove } else { EditKind::Ignore(text) };
            return FileEdit { path: IGNORE_FILE, kind, fresh };
        }
        let path = self.dice.pick(&self.paths.clone());
        let section = EditKind::Section(self.dice.below(SECTIONS as usize) as u32);
        let kind = match self.dice.below(40) {
            _ if self.theme == Theme::Texts && !self.dice.one_in(4) => section,
            0..6 => EditKind::Text,
            6..16 => section,
            16..21 => EditKind::Earlier(self.dice.below(100)),
            21..24 => EditKind::Binary,
            24 => EditKind::Empty,
            25..28 => EditKind::Link(self.dice.below(LINK_TARGETS.len())),
            28..30 => EditKind::Folder,
            30..34 => EditKind::Mode(self.dice.below(100)),
            34..38 => EditKind::Remove,
            _ => EditKind::MoveTo(self.dice.pick(&self.paths.clone())),
        };
        FileEdit { path, kind, fresh }
    }
}

// --- on disk ------------------------------------------------------------------------------------

/// The contents that each path has had.
pub(crate) type Past = BTreeMap<String, Vec<Vec<u8>>>;

/// Whether the edit tool can be used on a path: it is neither a link nor a folder nor below a link.
pub(crate) fn can_be_edited(sandbox: &Sandbox, path: &str) -> bool {
    let plain = fs::symlink_metadata(sandbox.at(path)).map_or(true, |metadata| metadata.is_file());
    plain && has_no_file_above(sandbox, path)
}

fn has_no_file_above(sandbox: &Sandbox, path: &str) -> bool {
    let above = Path::new(path).ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let mut above = above.map(|folder| fs::symlink_metadata(sandbox.root().join(folder)));
    above.all(|metadata| metadata.map_or(true, |metadata| metadata.is_dir()))
}

/// Applies the edit, unless the tree does not allow it.
pub(crate) fn act(sandbox: &Sandbox, edit: &FileEdit, editor: Editor, past: &Past) {
    let FileEdit { path, kind, fresh } = *edit;
    let here = fs::symlink_metadata(sandbox.at(path)).ok();
    let is_file = here.as_ref().is_some_and(fs::Metadata::is_file);
    let is_folder = here.as_ref().is_some_and(fs::Metadata::is_dir);
    if !has_no_file_above(sandbox, path) || (editor == Editor::EditTool && is_folder) {
        return;
    }
    match kind {
        EditKind::Text => put(sandbox, path, text(fresh)),
        EditKind::Section(section) => {
            let old = if is_file { fs::read(sandbox.at(path)).ok() } else { None };
            let changed = old.and_then(|old| with_section(&old, section, fresh));
            put(sandbox, path, changed.unwrap_or_else(|| text(fresh)));
        }
        EditKind::Earlier(which) => {
            let had = past.get(path).map(Vec::as_slice).unwrap_or_default();
            let bytes = if had.is_empty() { text(fresh) } else { had[which % had.len()].clone() };
            put(sandbox, path, bytes);
        }
        EditKind::Binary => {
            put(sandbox, path, [b"\0binary".as_slice(), &fresh.to_le_bytes()].concat());
        }
        EditKind::Empty => put(sandbox, path, Vec::new()),
        EditKind::Ignore(which) => put(sandbox, path, IGNORE_TEXTS[which].as_bytes().to_vec()),
        EditKind::Link(target) => {
            clear(sandbox, path);
            make_folders(sandbox, path);
            symlink(LINK_TARGETS[target], sandbox.at(path)).expect("a link is made");
        }
        EditKind::Folder if editor == Editor::Other && !is_folder => {
            clear(sandbox, path);
            make_folders(sandbox, &format!("{path}/within"));
        }
        EditKind::Mode(which) if is_file => {
            sandbox.set_mode(path, FILE_MODES[which % FILE_MODES.len()]);
        }
        EditKind::Mode(which) if is_folder => {
            sandbox.set_mode(path, FOLDER_MODES[which % FOLDER_MODES.len()]);
        }
        EditKind::Remove => clear(sandbox, path),
        EditKind::MoveTo(to)
            if editor == Editor::Other
                && is_file
                && to != path
                && has_no_file_above(sandbox, to) =>
        {
            let bytes = fs::read(sandbox.at(path)).expect("it is a file");
            clear(sandbox, path);
            put(sandbox, to, bytes);
        }
        EditKind::Folder | EditKind::Mode(_) | EditKind::MoveTo(_) => {}
    }
}

/// Removes the file, link or folder at the path.
fn clear(sandbox: &Sandbox, path: &str) {
    match fs::symlink_metadata(sandbox.at(path)) {
        Ok(metadata) if metadata.is_dir() => {
            fs::remove_dir_all(sandbox.at(path)).expect("it can be removed");
        }
        Ok(_) => fs::remove_file(sandbox.at(path)).expect("it can be removed"),
        Err(_) => {}
    }
}

fn put(sandbox: &Sandbox, path: &str, bytes: Vec<u8>) {
    let is_file = fs::symlink_metadata(sandbox.at(path)).is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        clear(sandbox, path);
        make_folders(sandbox, path);
    }
    fs::write(sandbox.at(path), bytes).expect("a file is written");
    if !is_file {
        sandbox.set_mode(path, 0o644);
    }
}

fn make_folders(sandbox: &Sandbox, path: &str) {
    let mut missing: Vec<&Path> = Path::new(path).ancestors().skip(1).collect();
    missing.retain(|folder| !sandbox.root().join(folder).exists());
    for folder in missing.into_iter().rev() {
        fs::create_dir(sandbox.root().join(folder)).expect("a folder is made");
        sandbox.set_mode(folder.to_str().expect("plain text"), 0o755);
    }
}

/// Sections of one line each, far enough apart that a merge never joins two of them.
fn text(id: u32) -> Vec<u8> {
    let section = |i| {
        let frame: String =
            (0..4).map(|line| format!("text {id}, before section {i}, line {line}\n")).collect();
        format!("{frame}section {i} is as in text {id}\n")
    };
    let sections: String = (0..SECTIONS).map(section).collect();
    format!("{sections}text {id} ends here\n").into_bytes()
}

fn with_section(old: &[u8], section: u32, fresh: u32) -> Option<Vec<u8>> {
    let (frame, mut sections) = parts(old)?;
    sections[section as usize] = format!("section {section} became {fresh}");
    Some(whole(&frame, &sections))
}

/// A text's frame (with gaps where the sections are), and its sections.
pub(crate) fn parts(bytes: &[u8]) -> Option<(Vec<String>, Vec<String>)> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.starts_with("text "))?;
    let (sections, frame): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("section "));
    let owned = |lines: Vec<&str>| lines.into_iter().map(str::to_owned).collect();
    Some((owned(frame), owned(sections)))
}

pub(crate) fn whole(frame: &[String], sections: &[String]) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut frame = frame.chunks(4);
    for section in sections {
        lines.extend_from_slice(frame.next().expect("a frame before each section"));
        lines.push(section.clone());
    }
    lines.extend(frame.flatten().cloned());
    (lines.join("\n") + "\n").into_bytes()
}

/// The workspace's tree, by path as text.
pub(crate) fn tree(sandbox: &Sandbox) -> BTreeMap<String, Thing> {
    let plain = |path: &Path| path.to_str().expect("all names here are text").to_owned();
    sandbox.tree().into_iter().map(|(path, thing)| (plain(&path), thing)).collect()
}
