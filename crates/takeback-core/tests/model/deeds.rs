//! What happens in a run: steps drawn at random, and how a deed is done to the files.
//!
//! A step holds all its randomness, so that a list of steps from which some were dropped still means
//! what it meant.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use takeback_testkit::{Sandbox, Thing};

pub(crate) const SESSIONS: [&str; 4] = ["s1", "s2", "s3", "s1/p"];
/// Started (if at all) as continuations of the first.
pub(crate) const CONTINUES: [(&str, &str); 2] = [("s3", "s1"), ("s1/p", "s1")];
/// Once it was started as that, it is a part of the first: a subagent, which may work on after the
/// turn of the whole has ended.
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
    Edit(&'static str, Deed),
    /// A shell call from beginning to end.
    Shell(&'static str, Vec<Deed>),
    OpenEdit(&'static str, &'static str),
    OpenShell(&'static str),
    /// Tells the end of the newest call of the session of which it was not told yet.
    Close(&'static str, Ending),
    TurnEnd(&'static str),
    End(&'static str),
    /// Somebody does something and tells nobody; whose it is depends on the calls that are open.
    Quiet(Deed),
    Checkpoint,
    LookAround,
    Reopen,
    Rewind(Asked),
    Undo {
        exact: bool,
    },
    Redo,
    /// So many points of each session are kept.
    CleanUp(usize),
    /// Counted like the points of a rewind.
    Pin(usize),
    /// Unless it is at work.
    DeleteSession(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Done,
    Failed,
    Background,
}

#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Counted from the newest, modulo their number.
    pub(crate) point: usize,
    pub(crate) whose: AskedWhose,
    pub(crate) exact: bool,
    pub(crate) take_ambiguous: bool,
    pub(crate) paths: Vec<&'static str>,
    pub(crate) preview: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum AskedWhose {
    ThePoints,
    Only(&'static str),
    AllAgents,
}

/// Something done to one path.
#[derive(Debug, Clone)]
pub(crate) struct Deed {
    pub(crate) path: &'static str,
    pub(crate) what: What,
    /// In no other deed of the run.
    pub(crate) fresh: u32,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    /// A new text, whatever stood there.
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
        let ignores = |deed: &Deed| matches!(deed.what, What::Ignore(_));
        match self {
            Self::Edit(_, deed) | Self::Quiet(deed) => ignores(deed),
            Self::Shell(_, deeds) => deeds.iter().any(ignores),
            _ => false,
        }
    }
}

/// Whether the deed is the edit tool's, which changes one file, or anybody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    EditTool,
    Anybody,
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

/// What a run is mostly about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Theme {
    /// Several hands in the sections of few texts.
    Texts,
    /// Everything that can stand at a path.
    Kinds,
    /// What comes into scope and leaves it.
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
    /// Somebody cleans up all the time.
    tidy: bool,
    /// Ends of calls are told late, or never.
    careless: bool,
    /// A run keeps to a few paths, so that several hands meet on them.
    paths: Vec<&'static str>,
    fresh: u32,
}

impl Draw {
    fn steps(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.theme == Theme::Texts {
            for path in self.paths.clone() {
                self.fresh += 1;
                steps.push(Step::Quiet(Deed { path, what: What::Text, fresh: self.fresh }));
            }
        }
        for _ in 0..self.dice.below(6) {
            let deed = self.deed();
            steps.push(Step::Quiet(deed));
        }
        steps.push(if self.dice.one_in(3) { Step::Checkpoint } else { Step::Prompt("s1") });
        if self.dice.one_in(4) {
            steps.push(Step::Start("s1/p"));
        }
        for _ in 0..8 + self.dice.below(32) {
            let step = self.step();
            let takes_back = matches!(step, Step::Rewind(_));
            steps.push(step);
            if takes_back && self.dice.one_in(3) {
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
            0..23 => Step::Edit(session, self.deed()),
            23..36 => {
                let deeds = (0..=self.dice.below(3)).map(|_| self.deed()).collect();
                Step::Shell(session, deeds)
            }
            36..52 => Step::Quiet(self.quiet_deed()),
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
            81..92 => Step::Rewind(self.asked()),
            92..95 => Step::Undo { exact: self.dice.one_in(6) },
            95..97 => Step::Redo,
            97 => Step::Pin(self.dice.below(1000)),
            _ => self.tidying(session),
        }
    }

    fn closing(&mut self, session: &'static str) -> Step {
        let endings = [Ending::Done, Ending::Done, Ending::Failed, Ending::Background];
        Step::Close(session, self.dice.pick(&endings))
    }

    fn tidying(&mut self, session: &'static str) -> Step {
        match self.dice.below(8) {
            0 => Step::DeleteSession(session),
            1 => Step::Pin(self.dice.below(1000)),
            _ => Step::CleanUp(1 + self.dice.below(3)),
        }
    }

    fn asked(&mut self) -> Asked {
        let whose = match self.dice.below(6) {
            0 => AskedWhose::AllAgents,
            1 => AskedWhose::Only(self.dice.pick(&SESSIONS)),
            _ => AskedWhose::ThePoints,
        };
        let mut paths = Vec::new();
        if self.dice.one_in(5) {
            for _ in 0..=self.dice.below(2) {
                paths.push(self.dice.pick(&FILTERS));
            }
        }
        Asked {
            point: self.dice.below(1000),
            whose,
            exact: self.dice.one_in(6),
            take_ambiguous: self.dice.one_in(5),
            paths,
            preview: self.dice.one_in(5),
        }
    }

    /// One that nobody tells of is often a way back: a stash, a switch of branches, an editor's undo.
    fn quiet_deed(&mut self) -> Deed {
        let deed = self.deed();
        if deed.path == IGNORE_FILE || !self.dice.one_in(3) {
            return deed;
        }
        Deed { what: What::Earlier(self.dice.below(100)), ..deed }
    }

    fn deed(&mut self) -> Deed {
        self.fresh += 1;
        let fresh = self.fresh;
        if self.theme == Theme::Scope && self.dice.one_in(5) {
            let text = self.dice.below(IGNORE_TEXTS.len());
            let what = if self.dice.one_in(8) { What::Remove } else { What::Ignore(text) };
            return Deed { path: IGNORE_FILE, what, fresh };
        }
        let path = self.dice.pick(&self.paths.clone());
        let section = What::Section(self.dice.below(SECTIONS as usize) as u32);
        let what = match self.dice.below(40) {
            _ if self.theme == Theme::Texts && !self.dice.one_in(4) => section,
            0..6 => What::Text,
            6..16 => section,
            16..21 => What::Earlier(self.dice.below(100)),
            21..24 => What::Binary,
            24 => What::Empty,
            25..28 => What::Link(self.dice.below(LINK_TARGETS.len())),
            28..30 => What::Folder,
            30..34 => What::Mode(self.dice.below(100)),
            34..38 => What::Remove,
            _ => What::MoveTo(self.dice.pick(&self.paths.clone())),
        };
        Deed { path, what, fresh }
    }
}

// --- on disk ------------------------------------------------------------------------------------

/// The contents that each path has had.
pub(crate) type Past = BTreeMap<String, Vec<Vec<u8>>>;

/// Whether the edit tool can be used on a path: it is neither a link nor a folder nor below a link.
pub(crate) fn can_be_edited(sandbox: &Sandbox, path: &str) -> bool {
    let plain = fs::symlink_metadata(sandbox.at(path)).map_or(true, |metadata| metadata.is_file());
    plain && stands_in_folders(sandbox, path)
}

fn stands_in_folders(sandbox: &Sandbox, path: &str) -> bool {
    let above = Path::new(path).ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let mut above = above.map(|folder| fs::symlink_metadata(sandbox.root().join(folder)));
    above.all(|metadata| metadata.map_or(true, |metadata| metadata.is_dir()))
}

/// Does it, unless it makes no sense where things stand.
pub(crate) fn act(sandbox: &Sandbox, deed: &Deed, by: By, past: &Past) {
    let Deed { path, what, fresh } = *deed;
    let here = fs::symlink_metadata(sandbox.at(path)).ok();
    let is_file = here.as_ref().is_some_and(fs::Metadata::is_file);
    let is_folder = here.as_ref().is_some_and(fs::Metadata::is_dir);
    if !stands_in_folders(sandbox, path) || (by == By::EditTool && is_folder) {
        return;
    }
    match what {
        What::Text => put(sandbox, path, text(fresh)),
        What::Section(section) => {
            let old = if is_file { fs::read(sandbox.at(path)).ok() } else { None };
            let changed = old.and_then(|old| with_section(&old, section, fresh));
            put(sandbox, path, changed.unwrap_or_else(|| text(fresh)));
        }
        What::Earlier(which) => {
            let had = past.get(path).map(Vec::as_slice).unwrap_or_default();
            let bytes = if had.is_empty() { text(fresh) } else { had[which % had.len()].clone() };
            put(sandbox, path, bytes);
        }
        What::Binary => put(sandbox, path, [b"\0binary".as_slice(), &fresh.to_le_bytes()].concat()),
        What::Empty => put(sandbox, path, Vec::new()),
        What::Ignore(which) => put(sandbox, path, IGNORE_TEXTS[which].as_bytes().to_vec()),
        What::Link(target) => {
            clear(sandbox, path);
            make_folders(sandbox, path);
            symlink(LINK_TARGETS[target], sandbox.at(path)).expect("a link is made");
        }
        What::Folder if by == By::Anybody && !is_folder => {
            clear(sandbox, path);
            make_folders(sandbox, &format!("{path}/within"));
        }
        What::Mode(which) if is_file => {
            sandbox.set_mode(path, FILE_MODES[which % FILE_MODES.len()]);
        }
        What::Mode(which) if is_folder => {
            sandbox.set_mode(path, FOLDER_MODES[which % FOLDER_MODES.len()]);
        }
        What::Remove => clear(sandbox, path),
        What::MoveTo(to)
            if by == By::Anybody && is_file && to != path && stands_in_folders(sandbox, to) =>
        {
            let bytes = fs::read(sandbox.at(path)).expect("it is a file");
            clear(sandbox, path);
            put(sandbox, to, bytes);
        }
        What::Folder | What::Mode(_) | What::MoveTo(_) => {}
    }
}

/// Removes whatever stands there.
fn clear(sandbox: &Sandbox, path: &str) {
    match fs::symlink_metadata(sandbox.at(path)) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(sandbox.at(path)).expect("it goes"),
        Ok(_) => fs::remove_file(sandbox.at(path)).expect("it goes"),
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

/// Sections of one line each, so far apart that a merge never touches two of them for one.
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
