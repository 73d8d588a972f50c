//! `import --from claude`: what Claude Code kept of its sessions becomes points.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use takeback_agents::{
    ClaudeHistoryError, PastSession, claude_transcript, claude_transcripts, past_session,
};
use takeback_core::exchange::{BundleLimits, Imported, Outside, Story, StoryError, Trial};
use takeback_store::WorkPath;

use super::{answer, brought, refused, tell};
use crate::answers;
use crate::args::{ImportArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Here, Store};
use crate::progress;
use crate::screen::{HINT, Screen, WARNING, count, name, plain_bytes, width, wrap};

/// What of the sessions does not come along, and why.
#[derive(Default)]
struct Passed {
    /// Prompts that have a point here.
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
    let here = place::here(options)?;
    let reading = progress::spinner("Reading Claude Code's sessions");
    let (mut story, mut passed) = read(&here, args)?;
    drop(reading);
    passed.known = story.drop_known(known_messages(options)?);
    if story.sessions.is_empty() {
        return nothing(&passed, &here, screen);
    }
    let outside = if args.include_ignored { Outside::Accept } else { Outside::Refuse };
    let limits = BundleLimits { contents: args.max_size, outside };
    let from = Path::new("Claude Code's file history");
    let told =
        story.told(&here.root, &limits, tempfile::tempfile()?).map_err(|error| match error {
            StoryError::Bundle(error) => refused(from, error),
            error => CommandError::new(Kind::Error, error).hint("Nothing was imported."),
        })?;
    (passed.lost, passed.outside) = (told.lost, told.outside);
    let trial = if args.dry_run { Trial::DryRun } else { Trial::ForReal };
    let imported = brought(options, &told.bundle, trial, from)?;
    if screen.json {
        screen.json(&answer_of(&imported, &passed))?;
    } else if !screen.quiet {
        tell(&imported, trial, screen)?;
        say_passed(&passed, screen)?;
        if trial == Trial::ForReal {
            writeln!(
                screen.out,
                "Your files were not changed. {HINT}`takeback rewind ID` takes back what Claude \
                 did after a point; --exact restores every file of the point.{HINT:#}",
            )?;
        }
    }
    Ok(0)
}

/// The sessions that are asked for, the oldest first.
fn read(here: &Here, args: &ImportArgs) -> Result<(Story, Passed), CommandError> {
    let config = config()?;
    let failed = |error: ClaudeHistoryError| CommandError::new(Kind::Error, error);
    let mut sessions: Vec<PastSession> = Vec::new();
    match &args.file {
        None => {
            for file in claude_transcripts(&config, &here.root).map_err(failed)? {
                let session = past_session(&config, &file).map_err(failed)?;
                sessions.extend(session.filter(|past| past.folder.starts_with(&here.root)));
            }
        }
        Some(asked) => {
            let file = found(&config, asked)?;
            sessions.extend(past_session(&folder_of(&config, &file), &file).map_err(failed)?);
        }
    }
    sessions.sort_by_key(|past| past.session.started_at);
    let mut passed = Passed::default();
    for past in &sessions {
        passed.without_files += past.without_files;
        passed.damaged_lines += past.damaged_lines;
    }
    Ok((Story { sessions: sessions.into_iter().map(|past| past.session).collect() }, passed))
}

/// Where Claude Code keeps its things.
fn config() -> Result<PathBuf, CommandError> {
    let own = place::environment("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    own.or_else(|| Some(place::user_home()?.join(".claude"))).ok_or_else(|| {
        CommandError::new(Kind::Usage, "there is no home folder")
            .hint("Set HOME, or CLAUDE_CONFIG_DIR if Claude Code uses another folder.")
    })
}

/// The transcript that is meant: a file, or a session's.
fn found(config: &Path, asked: &Path) -> Result<PathBuf, CommandError> {
    let name = asked.to_str().filter(|name| !name.contains('/') && !name.ends_with(".jsonl"));
    let Some(session) = name else { return Ok(asked.to_owned()) };
    let found = claude_transcript(config, session)
        .map_err(|error| CommandError::new(Kind::Error, error))?;
    found.ok_or_else(|| {
        let folder = config.join("projects");
        CommandError::new(Kind::Error, format!("no session of Claude Code is called {session:?}"))
            .hint(format!("{} has its sessions, each named <session>.jsonl.", folder.display()))
    })
}

/// A transcript that lies where Claude Code puts it has its copies beside it, whichever is its home.
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

fn nothing(passed: &Passed, here: &Here, screen: &mut Screen) -> Result<u8, CommandError> {
    let none =
        Imported { points: Vec::new(), sessions: Vec::new(), changes: 0, blobs: 0, steps: 0 };
    if screen.json {
        screen.json(&answer_of(&none, passed))?;
    } else if !screen.quiet {
        let root = plain_bytes(here.root.as_os_str().as_encoded_bytes());
        if passed.known > 0 {
            writeln!(screen.out, "Nothing new.")?;
        } else {
            writeln!(screen.out, "Claude Code saved no session's files in {root}.")?;
        }
        say_passed(passed, screen)?;
    }
    Ok(Kind::Nothing as u8)
}

fn answer_of(imported: &Imported, passed: &Passed) -> answers::ImportAnswer {
    let mut answer = answer(imported);
    for (answer, point) in answer.points.iter_mut().zip(&imported.points) {
        // Only its messages mean something where it comes from.
        answer.was = None;
        answer.message_ids = Some(point.message_ids.clone());
    }
    answer.passed_over = Some(answers::ImportSkips {
        known: passed.known,
        without_files: passed.without_files,
        damaged_lines: passed.damaged_lines,
        lost: passed.lost.iter().map(answers::path).collect(),
        outside: passed.outside.iter().map(|path| answers::place(path)).collect(),
    });
    answer
}

fn say_passed(passed: &Passed, screen: &mut Screen) -> io::Result<()> {
    let mut said = Vec::new();
    let mut say = |n: usize, what: &str, text: &str| {
        if n > 0 {
            said.push(format!("{} {text}", count(n, what)));
        }
    };
    say(passed.known, "prompt", "skipped: already imported.");
    say(passed.without_files, "prompt", "skipped: Claude Code saved no files.");
    say(passed.damaged_lines, "line", "of its transcripts skipped: damaged.");
    let (lost, outside) = (passed.lost.len(), passed.outside.len());
    say(outside, "file", "outside the workspace left out. --include-ignored includes them.");
    say(lost, "file", "cannot be restored at every point, because copies are gone:");
    for text in said {
        for line in wrap(&text, width()) {
            writeln!(screen.out, "{WARNING}{line}{WARNING:#}")?;
        }
    }
    const MOST: usize = 5;
    let most = if screen.verbose { lost } else { MOST };
    for path in passed.lost.iter().take(most) {
        writeln!(screen.out, "  {}", name(path))?;
    }
    if lost > most {
        writeln!(screen.out, "  {HINT}and {} more (-v shows all){HINT:#}", lost - most)?;
    }
    Ok(())
}
