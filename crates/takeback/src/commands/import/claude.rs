//! `import --from claude`: makes points from Claude Code's own session history.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use takeback_agents::{
    ClaudeHistoryError, PastSession, claude_transcript, claude_transcripts, past_session,
};
use takeback_core::exchange::{
    AgentHistory, AgentHistoryError, BundleLimits, ImportMode, ImportReport, OutsidePolicy,
};
use takeback_store::WorkPath;

use super::{answer, import_bundle, print_summary, refused};
use crate::answers;
use crate::args::{ImportArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Location, Store};
use crate::progress;
use crate::screen::{HINT, Screen, WARNING, count, name, plain_bytes, width, wrap};

/// Counts of what is not imported, by reason.
#[derive(Default)]
struct SkipCounts {
    /// Prompts that already have a point here.
    known: usize,
    without_files: usize,
    damaged_lines: usize,
    lost: Vec<WorkPath>,
    outside: Vec<PathBuf>,
}

pub(super) fn import(
    options: &Options,
    args: &ImportArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let location = place::locate(options)?;
    let reading = progress::spinner("Reading Claude Code's sessions");
    let (mut story, mut skipped) = read(&location, args)?;
    drop(reading);
    skipped.known = story.drop_known(known_messages(options)?);
    if story.sessions.is_empty() {
        return nothing(&skipped, &location, screen);
    }
    let outside = if args.include_ignored { OutsidePolicy::Accept } else { OutsidePolicy::Refuse };
    let limits = BundleLimits { contents: args.max_size, outside };
    let from = Path::new("Claude Code's file history");
    let converted = story.to_bundle(&location.root, &limits, tempfile::tempfile()?).map_err(
        |error| match error {
            AgentHistoryError::Bundle(error) => refused(from, error),
            error => CommandError::new(Kind::Error, error).hint("Nothing was imported."),
        },
    )?;
    (skipped.lost, skipped.outside) = (converted.lost, converted.outside);
    let trial = if args.dry_run { ImportMode::DryRun } else { ImportMode::ForReal };
    let imported = import_bundle(options, &converted.bundle, trial, from)?;
    if screen.json {
        screen.json(&answer_of(&imported, &skipped))?;
    } else if !screen.quiet {
        print_summary(&imported, trial, screen)?;
        print_skipped(&skipped, screen)?;
        if trial == ImportMode::ForReal {
            writeln!(
                screen.out,
                "Your files were not changed. {HINT}`takeback rewind ID` takes back what Claude \
                 did after a point; --exact restores every file of the point.{HINT:#}",
            )?;
        }
    }
    Ok(0)
}

/// Reads the requested sessions, oldest first.
fn read(
    location: &Location,
    args: &ImportArgs,
) -> Result<(AgentHistory, SkipCounts), CommandError> {
    let config = config()?;
    let failed = |error: ClaudeHistoryError| CommandError::new(Kind::Error, error);
    let mut sessions: Vec<PastSession> = Vec::new();
    match &args.file {
        None => {
            for file in claude_transcripts(&config, &location.root).map_err(failed)? {
                let session = past_session(&config, &file).map_err(failed)?;
                sessions.extend(session.filter(|past| past.folder.starts_with(&location.root)));
            }
        }
        Some(asked) => {
            let file = found(&config, asked)?;
            sessions.extend(past_session(&folder_of(&config, &file), &file).map_err(failed)?);
        }
    }
    sessions.sort_by_key(|past| past.session.started_at);
    let mut skipped = SkipCounts::default();
    for past in &sessions {
        skipped.without_files += past.without_files;
        skipped.damaged_lines += past.damaged_lines;
    }
    Ok((
        AgentHistory { sessions: sessions.into_iter().map(|past| past.session).collect() },
        skipped,
    ))
}

/// Claude Code's folder.
fn config() -> Result<PathBuf, CommandError> {
    let own = place::environment("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    own.or_else(|| Some(place::user_home()?.join(".claude"))).ok_or_else(|| {
        CommandError::new(Kind::Usage, "there is no home folder")
            .hint("Set HOME, or CLAUDE_CONFIG_DIR if Claude Code uses another folder.")
    })
}

/// The requested transcript: a file, or that of a session.
fn found(config: &Path, asked: &Path) -> Result<PathBuf, CommandError> {
    let name = asked.to_str().filter(|name| !name.contains('/') && !name.ends_with(".jsonl"));
    let Some(session) = name else { return Ok(asked.to_owned()) };
    let found = claude_transcript(config, session)
        .map_err(|error| CommandError::new(Kind::Error, error))?;
    found.ok_or_else(|| {
        let folder = config.join("projects");
        CommandError::new(Kind::Error, format!("Claude Code has no session {session:?}"))
            .hint(format!("Its sessions are in {}, as <session>.jsonl.", folder.display()))
    })
}

/// For a transcript in a Claude Code folder, that folder: its file copies are there, too.
fn folder_of(config: &Path, file: &Path) -> PathBuf {
    let real = std::fs::canonicalize(file);
    let above = real.ok().and_then(|file| file.ancestors().nth(3).map(Path::to_owned));
    above.filter(|above| above.join("file-history").is_dir()).unwrap_or_else(|| config.to_owned())
}

/// Whether a message has a point in this workspace, recorded here or imported before.
fn known_messages(options: &Options) -> Result<impl Fn(&str) -> bool, CommandError> {
    let points = match place::open(options, Store::MustExist) {
        Ok(place) => place.workspace.store.points()?,
        Err(error) if error.kind == Kind::NoStore => Vec::new(),
        Err(error) => return Err(error),
    };
    let known: HashSet<String> = points.into_iter().flat_map(|point| point.message_ids).collect();
    Ok(move |message: &str| known.contains(message))
}

fn nothing(
    skipped: &SkipCounts,
    location: &Location,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let none =
        ImportReport { points: Vec::new(), sessions: Vec::new(), changes: 0, blobs: 0, steps: 0 };
    if screen.json {
        screen.json(&answer_of(&none, skipped))?;
    } else if !screen.quiet {
        let root = plain_bytes(location.root.as_os_str().as_encoded_bytes());
        if skipped.known > 0 {
            writeln!(screen.out, "Nothing new.")?;
        } else {
            writeln!(screen.out, "Claude Code saved no files for {root}.")?;
        }
        print_skipped(skipped, screen)?;
    }
    Ok(Kind::Nothing as u8)
}

fn answer_of(imported: &ImportReport, skipped: &SkipCounts) -> answers::ImportAnswer {
    let mut answer = answer(imported);
    for (answer, point) in answer.points.iter_mut().zip(&imported.points) {
        // Only message ids mean something to Claude Code.
        answer.was = None;
        answer.message_ids = Some(point.message_ids.clone());
    }
    answer.passed_over = Some(answers::ImportSkips {
        known: skipped.known,
        without_files: skipped.without_files,
        damaged_lines: skipped.damaged_lines,
        lost: skipped.lost.iter().map(answers::path).collect(),
        outside: skipped.outside.iter().map(|path| answers::place(path)).collect(),
    });
    answer
}

fn print_skipped(skipped: &SkipCounts, screen: &mut Screen) -> io::Result<()> {
    let mut parts = Vec::new();
    let mut say = |n: usize, what: &str, text: &str| {
        if n > 0 {
            parts.push(format!("{} {text}", count(n, what)));
        }
    };
    say(skipped.known, "prompt", "skipped: already imported.");
    say(skipped.without_files, "prompt", "skipped: Claude Code saved no files.");
    say(skipped.damaged_lines, "line", "of its transcripts skipped: damaged.");
    let (lost, outside) = (skipped.lost.len(), skipped.outside.len());
    say(outside, "file", "outside the workspace left out. --include-ignored includes them.");
    say(lost, "file", "cannot be restored at every point, because copies are gone:");
    for text in parts {
        for line in wrap(&text, width()) {
            writeln!(screen.out, "{WARNING}{line}{WARNING:#}")?;
        }
    }
    const MOST: usize = 5;
    let most = if screen.verbose { lost } else { MOST };
    for path in skipped.lost.iter().take(most) {
        writeln!(screen.out, "  {}", name(path))?;
    }
    if lost > most {
        writeln!(screen.out, "  {HINT}and {} more (-v shows all){HINT:#}", lost - most)?;
    }
    Ok(())
}
