//! `compare`: what each fork changed since it was made, and how a command ends in it.

mod command;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use takeback_core::fork::{Fork, ForkError, Origin};
use takeback_core::history::{Contents, FileDiff, Lines};
use takeback_core::record::Unreadable;
use takeback_core::worktree::ScopeOptions;
use takeback_store::{Entry, MemoryStore, PackedBlob, PointKind, Session, StoreError, WorkPath};

pub(crate) use self::command::CommandResult;
use self::command::run_in_all;
use super::fork::from;
use crate::answers;
use crate::args::{CompareArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, quoted, tilde_path};
use crate::screen::{HINT, NAME, SUCCESS, Screen, WARNING, count, name, plain, shorten};
use crate::session_name::SessionNames;
use crate::settings::Settings;
use crate::stores;
use crate::table::{Cell, Overflow, Table};
use crate::time::{ago, now};

pub(crate) fn compare(
    options: &Options,
    args: &CompareArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let (start, home) = (place::start(options)?, place::home(options)?);
    let folders: Vec<PathBuf> = args.folders.iter().map(|folder| start.join(folder)).collect();
    let mut forks = compared(&folders, &home)?;
    if !args.command.is_empty() {
        let roots: Vec<&Path> = forks.iter().map(|fork| fork.root.as_path()).collect();
        let results = run_in_all(&args.command, &roots, args.jobs, screen)?;
        for (fork, result) in forks.iter_mut().zip(results) {
            fork.command = Some(result);
        }
    }
    if screen.json {
        screen.json(&answer(&forks))?;
    } else {
        print(&forks, &start, screen)?;
    }
    Ok(0)
}

/// A fork, and what happened in it.
pub(crate) struct ComparedFork {
    pub(crate) root: PathBuf,
    pub(crate) origin: Origin,
    /// Files and links, without folders.
    pub(crate) changed: Vec<ChangedFile>,
    pub(crate) unreadable: Vec<Unreadable>,
    pub(crate) sessions: Vec<(Session, usize)>,
    pub(crate) command: Option<CommandResult>,
}

/// A file that differs from what the fork got.
pub(crate) struct ChangedFile {
    pub(crate) diff: FileDiff,
    /// `None`: it is not text, or its earlier contents are not at hand.
    pub(crate) lines: Option<Lines>,
}

impl ComparedFork {
    fn lines(&self) -> Lines {
        let mut total = Lines::default();
        self.changed.iter().filter_map(|file| file.lines).for_each(|lines| total += lines);
        total
    }
}

/// Compares each fork with what it was made of.
pub(crate) fn compared(
    folders: &[PathBuf],
    home: &Path,
) -> Result<Vec<ComparedFork>, CommandError> {
    let mut forks: Vec<ComparedFork> = Vec::new();
    for folder in folders {
        let fork = open(folder, home)?;
        if forks.iter().any(|other| other.root == fork.path()) {
            let text = format!("{} is named twice", fork.path().display());
            return Err(CommandError::new(Kind::Usage, text));
        }
        forks.push(compared_one(fork, home)?);
    }
    Ok(forks)
}

/// The fork in a folder.
pub(crate) fn open(folder: &Path, home: &Path) -> Result<Fork, CommandError> {
    let path = place::existing_folder(folder)?;
    let store_dir = stores::store_of(&path, home);
    Fork::open(&path, &store_dir).map_err(|error| {
        let moved = match &error {
            ForkError::NoFork { .. } => stores::moved_here(&path, home),
            _ => None,
        };
        let error = CommandError::from(error);
        match moved {
            Some(old) => error.hint(format!(
                "If {} was moved here: `takeback relocate {} {}`.",
                old.display(),
                quoted(&old),
                quoted(&path)
            )),
            None => error,
        }
    })
}

/// What a fork covers.
pub(crate) fn scope_of(root: &Path, home: &Path) -> Result<ScopeOptions, CommandError> {
    let mut scope = Settings::load(root, home)?.scope();
    scope.nested_workspaces = stores::nested(root, home);
    Ok(scope)
}

fn compared_one(fork: Fork, home: &Path) -> Result<ComparedFork, CommandError> {
    let root = fork.path().to_owned();
    let scope = scope_of(&root, home)?;
    let mut made: Vec<PackedBlob> = Vec::new();
    let found = fork.changes(&scope, &place::ambient(), &mut |blob| made.push(blob))?;
    // Earlier contents are in the origin's store, as long as that exists.
    let origin = stores::open(&stores::store_of(&fork.origin.root, home));
    let origin: Box<dyn takeback_store::Store> = match origin {
        Err(StoreError::Missing { .. }) => Box::new(MemoryStore::new()),
        opened => opened?,
    };
    let contents = Contents { store: &*origin, made: &made };
    let mut changed = Vec::new();
    for change in found.changes {
        let (path, before, after) = (change.path, change.base, change.now);
        let diff = FileDiff { path, before, after, renamed_from: None };
        if diff.is_folder() {
            continue;
        }
        let lines = match &diff.before {
            Entry::NotCaptured { .. } | Entry::Unknown => None,
            _ => diff.compare_in(contents)?.lines(),
        };
        changed.push(ChangedFile { diff, lines });
    }
    let own = stores::open(&stores::store_of(&root, home))?;
    let points = own.points()?;
    let sessions = own.sessions()?.into_iter().map(|session| {
        let is_its = |point: &&takeback_store::Point| {
            point.kind == PointKind::Prompt && point.session.as_ref() == Some(&session.id)
        };
        let prompts = points.iter().filter(is_its).count();
        (session, prompts)
    });
    Ok(ComparedFork {
        root,
        origin: fork.origin,
        changed,
        unreadable: found.unreadable,
        sessions: sessions.collect(),
        command: None,
    })
}

/// The files that several forks changed, with the numbers of the forks and whether their results are equal.
fn shared(forks: &[ComparedFork]) -> Vec<(&WorkPath, Vec<usize>, bool)> {
    let mut paths: BTreeMap<&WorkPath, Vec<(usize, &Entry)>> = BTreeMap::new();
    for (number, fork) in forks.iter().enumerate() {
        for file in &fork.changed {
            paths.entry(&file.diff.path).or_default().push((number, &file.diff.after));
        }
    }
    let several = paths.into_iter().filter(|(_, changes)| changes.len() > 1);
    several
        .map(|(path, changes)| {
            let same = changes.windows(2).all(|pair| pair[0].1 == pair[1].1);
            (path, changes.into_iter().map(|(number, _)| number).collect(), same)
        })
        .collect()
}

pub(crate) fn origin_answer(origin: &Origin) -> answers::ForkOrigin {
    answers::ForkOrigin {
        root: answers::place(&origin.root),
        point: answers::Id::new(origin.point),
        seq: origin.seq.0,
        description: origin.description.clone(),
        forked_at: answers::time(origin.forked_at),
    }
}

pub(crate) fn answer(forks: &[ComparedFork]) -> answers::CompareAnswer {
    let one = |fork: &ComparedFork| {
        let total = fork.lines();
        let changed = fork.changed.iter().map(|file| answers::ForkedFile {
            path: answers::path(&file.diff.path),
            what: file.diff.what(),
            insertions: file.lines.map(|lines| lines.insertions),
            deletions: file.lines.map(|lines| lines.deletions),
        });
        let sessions = fork.sessions.iter().map(|(session, prompts)| answers::ForkSession {
            id: session.id.0.clone(),
            agent: session.agent.clone(),
            prompts: *prompts,
        });
        answers::ComparedFork {
            root: answers::place(&fork.root),
            origin: origin_answer(&fork.origin),
            files: fork.changed.len(),
            insertions: total.insertions,
            deletions: total.deletions,
            changed: changed.collect(),
            unreadable: answers::unreadable(&fork.unreadable),
            sessions: sessions.collect(),
            command: fork.command.as_ref().map(CommandResult::answer),
        }
    };
    let root = |number: usize| answers::place(&forks[number].root);
    let shared = shared(forks).into_iter().map(|(path, numbers, same)| answers::SharedFile {
        path: answers::path(path),
        forks: numbers.into_iter().map(root).collect(),
        same,
    });
    answers::CompareAnswer { forks: forks.iter().map(one).collect(), shared: shared.collect() }
}

/// Where a fork comes from, in one line.
pub(crate) fn origin_line(origin: &Origin) -> String {
    let what = match origin.description.as_str() {
        "" => String::new(),
        text => format!(" “{}”", shorten(&plain(text), 40)),
    };
    format!(
        "Forked from {} at {}{what}, {}",
        tilde_path(&origin.root),
        &origin.point.to_string()[..8],
        ago(origin.forked_at, now())
    )
}

fn print(forks: &[ComparedFork], start: &Path, screen: &mut Screen) -> Result<(), CommandError> {
    screen.page()?;
    let out = &mut screen.out;
    let mut origins: Vec<String> = Vec::new();
    for line in forks.iter().map(|fork| origin_line(&fork.origin)) {
        if !origins.contains(&line) {
            origins.push(line);
        }
    }
    for line in &origins {
        writeln!(out, "{HINT}{line}{HINT:#}")?;
    }
    let shown = |fork: &ComparedFork| plain(&from(start, &fork.root).to_string_lossy());
    let overflows = [
        Overflow::Start(10),
        Overflow::Nothing,
        Overflow::Nothing,
        Overflow::Nothing,
        Overflow::Nothing,
        Overflow::All(2),
        Overflow::End(12),
    ];
    let mut table = Table::new(0, overflows);
    for fork in forks {
        let lines = fork.lines();
        let (result, seconds, last) = match &fork.command {
            None => (Cell::default(), Cell::default(), Cell::default()),
            Some(result) => {
                let style = if result.is_success() { SUCCESS } else { WARNING };
                let last = plain(result.last_line.as_deref().unwrap_or_default());
                (
                    Cell::new(style, result.describe()),
                    Cell::new(HINT, format!("{:.1} s", result.time.as_secs_f64())),
                    Cell::new(HINT, last),
                )
            }
        };
        let mut counts = Cell::new(SUCCESS, format!("+{}", lines.insertions));
        counts.push(WARNING, format!(" -{}", lines.deletions));
        table.rows.push([
            Cell::new(NAME, shown(fork)),
            Cell::plain(count(fork.changed.len(), "file")),
            counts,
            result,
            seconds,
            Cell::plain(sessions_of(fork)),
            last,
        ]);
    }
    table.print(out)?;
    for fork in forks {
        for one in &fork.unreadable {
            writeln!(out, "{WARNING}not read{WARNING:#}  {} in {}", name(&one.path), shown(fork))?;
        }
    }
    let shared = shared(forks);
    if !shared.is_empty() {
        writeln!(out, "\nChanged in several:")?;
        let mut table = Table::new(2, [Overflow::Start(12), Overflow::End(10), Overflow::Nothing]);
        for (path, numbers, same) in shared {
            let names: Vec<String> = numbers.iter().map(|at| shown(&forks[*at])).collect();
            table.rows.push([
                Cell::plain(name(path)),
                Cell::new(HINT, names.join(", ")),
                Cell::new(HINT, if same { "the same" } else { "" }),
            ]);
        }
        table.print(out)?;
    }
    Ok(())
}

/// Who worked in a fork, as its own store knows.
fn sessions_of(fork: &ComparedFork) -> String {
    let all: Vec<Session> = fork.sessions.iter().map(|(session, _)| session.clone()).collect();
    let names = SessionNames::of(&all);
    let one = |(session, prompts): &(Session, usize)| {
        format!("{} ({})", names.get(&session.id), count(*prompts, "prompt"))
    };
    // A subagent has no prompts of its own.
    let shown: Vec<String> =
        fork.sessions.iter().filter(|(session, _)| session.part().is_none()).map(one).collect();
    shown.join(", ")
}
