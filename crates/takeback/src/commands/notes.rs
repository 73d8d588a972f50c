//! `notes write`, `notes show`: who wrote the lines of commits, in a form that other tools read.

use std::io::Write as _;

use takeback_core::attribution::{
    AI_NOTES, AiNote, CommitNote, ForeignNotes, LineCount, NoteOutcome, NotesError, NotesReport,
    NotesRequest, write_notes,
};
use takeback_core::{GitError, Repository, look_around};

use crate::answers;
use crate::args::{NotesCommand, NotesShowArgs, NotesWriteArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::screen::{HINT, NAME, SUCCESS, Screen, WARNING, count, plain};

pub(crate) fn notes(
    options: &Options,
    command: &NotesCommand,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    match command {
        NotesCommand::Write(args) => write(options, args, screen),
        NotesCommand::Show(args) => show(options, args, screen),
    }
}

fn write(
    options: &Options,
    args: &NotesWriteArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let repository = repository(options)?;
    let mut place = place::open_recovered(options, Store::MustExist)?;
    look_around(&mut place.workspace)?;
    let request = NotesRequest {
        range: &args.range,
        foreign: if args.replace { ForeignNotes::Replace } else { ForeignNotes::Keep },
        is_dry_run: args.dry_run,
    };
    let report = write_notes(&place.workspace, &repository, request)?;
    if screen.json {
        screen.json(&answer(&report, args.dry_run))?;
    } else {
        print(&report, args.dry_run, screen)?;
    }
    let is_left = |note: &CommitNote| note.outcome == NoteOutcome::LeftForeign;
    Ok(if report.commits.iter().any(is_left) { Kind::Conflicts as u8 } else { 0 })
}

fn print(report: &NotesReport, is_dry_run: bool, screen: &mut Screen) -> Result<(), CommandError> {
    let out = &mut screen.out;
    if report.commits.is_empty() {
        writeln!(out, "No commits.")?;
    }
    for CommitNote { commit, outcome, count, note } in &report.commits {
        let (style, what) = match outcome {
            NoteOutcome::Written if is_dry_run => (SUCCESS, "would write"),
            NoteOutcome::Replaced if is_dry_run => (SUCCESS, "would replace"),
            NoteOutcome::Written => (SUCCESS, "wrote"),
            NoteOutcome::Replaced => (SUCCESS, "replaced"),
            NoteOutcome::Unchanged => (HINT, "unchanged"),
            NoteOutcome::NothingKnown => (HINT, "no note"),
            NoteOutcome::LeftForeign | NoteOutcome::LeftFuller => (WARNING, "left"),
        };
        let id = commit.id.get(..12).unwrap_or(&commit.id);
        write!(out, "{style}{what}{style:#} {NAME}{id}{NAME:#} {}", plain(&commit.summary))?;
        writeln!(out, "  {HINT}{}{HINT:#}", reason(*outcome, *count))?;
        if let Some(note) = note.as_ref().filter(|_| is_dry_run) {
            for line in note.lines() {
                writeln!(out, "    {}", plain(line))?;
            }
        }
    }
    for problem in &report.problems {
        writeln!(out, "{WARNING}not asked:{WARNING:#} {}", plain(problem))?;
    }
    let is_left = |note: &CommitNote| note.outcome == NoteOutcome::LeftForeign;
    if report.commits.iter().any(is_left) {
        writeln!(
            out,
            "{HINT}`takeback notes write --replace` replaces notes of other tools.{HINT:#}"
        )?;
    }
    Ok(())
}

fn reason(outcome: NoteOutcome, lines: LineCount) -> String {
    let LineCount { agent, doubtful, you, unexplained } = lines;
    match outcome {
        NoteOutcome::NothingKnown if unexplained == 0 => "adds no lines".to_owned(),
        NoteOutcome::NothingKnown => {
            format!("the log explains none of its {}", count(unexplained, "line"))
        }
        NoteOutcome::LeftForeign => "another tool wrote its note".to_owned(),
        NoteOutcome::LeftFuller => "its note has more lines than the log explains now".to_owned(),
        NoteOutcome::Written | NoteOutcome::Replaced | NoteOutcome::Unchanged => {
            let doubt =
                if doubtful > 0 { format!(" ({doubtful} doubtful)") } else { String::new() };
            let mut parts = vec![format!("{} by agents{doubt}", count(agent, "line"))];
            if you > 0 {
                parts.push(format!("{you} by you"));
            }
            if unexplained > 0 {
                parts.push(format!("{unexplained} unknown"));
            }
            parts.join(", ")
        }
    }
}

fn answer(report: &NotesReport, is_dry_run: bool) -> answers::NotesWriteAnswer {
    let note = |note: &CommitNote| answers::CommitNote {
        commit: note.commit.id.clone(),
        summary: note.commit.summary.clone(),
        outcome: match note.outcome {
            NoteOutcome::Written => answers::NoteOutcome::Written,
            NoteOutcome::Replaced => answers::NoteOutcome::Replaced,
            NoteOutcome::Unchanged => answers::NoteOutcome::Unchanged,
            NoteOutcome::NothingKnown => answers::NoteOutcome::NothingKnown,
            NoteOutcome::LeftForeign => answers::NoteOutcome::LeftForeign,
            NoteOutcome::LeftFuller => answers::NoteOutcome::LeftFuller,
        },
        agent_lines: note.count.agent,
        doubtful_lines: note.count.doubtful,
        your_lines: note.count.you,
        unexplained_lines: note.count.unexplained,
        note: note.note.clone(),
    };
    answers::NotesWriteAnswer {
        reference: AI_NOTES.to_owned(),
        dry_run: is_dry_run,
        written: report.commits.iter().filter(|note| note.note.is_some()).count(),
        commits: report.commits.iter().map(note).collect(),
        problems: report.problems.iter().cloned().collect(),
    }
}

fn show(options: &Options, args: &NotesShowArgs, screen: &mut Screen) -> Result<u8, CommandError> {
    let repository = repository(options)?;
    let unknown = || {
        CommandError::new(Kind::Error, format!("git has no commit {}", plain(&args.commit)))
            .hint("`git log` lists commits.")
    };
    let commit = repository.commit(&args.commit)?.ok_or_else(unknown)?;
    let note =
        repository.notes(AI_NOTES, std::slice::from_ref(&commit))?.into_iter().flatten().next();
    let Some(note) = note else {
        let text = format!("commit {} has no note", commit.get(..12).unwrap_or(&commit));
        return Err(CommandError::new(Kind::Error, text)
            .hint("`takeback notes write` writes one. Notes of others: `git fetch REMOTE refs/notes/ai:refs/notes/ai`."));
    };
    let text = String::from_utf8_lossy(&note).into_owned();
    if screen.json {
        let is_own = AiNote::parse(&note).is_ok_and(|note| note.own.is_some());
        screen.json(&answers::NotesShowAnswer { commit, is_own, note: text })?;
        return Ok(0);
    }
    screen.page()?;
    for line in text.lines() {
        writeln!(screen.out, "{}", plain(line))?;
    }
    Ok(0)
}

fn repository(options: &Options) -> Result<Repository, CommandError> {
    let folder = place::start(options)?;
    Repository::around(&folder).ok_or_else(|| {
        let text = format!("{} is not in a git repository", place::tilde_path(&folder));
        CommandError::new(Kind::Error, text).hint(
            "Notes are attached to commits. `takeback export --agent-trace FILE` needs no git.",
        )
    })
}

impl From<NotesError> for CommandError {
    fn from(error: NotesError) -> Self {
        match error {
            NotesError::Git(error) => error.into(),
            NotesError::Store(error) => error.into(),
            NotesError::KeepsMoving => {
                Self::new(Kind::Locked, error).hint("Try again when it is done.")
            }
        }
    }
}

impl From<GitError> for CommandError {
    fn from(error: GitError) -> Self {
        let hint = match &error {
            GitError::NotInstalled => Some("Install git, or add it to PATH."),
            GitError::Failed { command, .. } if command == "log" => {
                Some("Name commits as git does: HEAD, v1.0, main..HEAD.")
            }
            GitError::Failed { command, .. } if command == "var" => Some(
                "Tell git who you are: git config user.name NAME, git config user.email ADDRESS.",
            ),
            _ => None,
        };
        let error = Self::new(Kind::Error, error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}
