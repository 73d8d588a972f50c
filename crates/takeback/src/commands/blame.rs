//! `blame PATH`: who wrote each line of a file.

use anstyle::Style;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use takeback_core::Workspace;
use takeback_core::history::{
    AuthoredFile, AuthoredLine, BlameError, CommittedLinesError, LineAuthor, LineSource,
    LineWriter, authored_lines, committed_lines,
};
use takeback_store::{Evidence, WorkPath};

use super::history::{PathError, never_recorded, not_a_file, work_path};
use super::patch::{body, on_screen};
use super::show::PLAIN;
use crate::answers;
use crate::args::{BlameArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::screen::{HINT, NAME, Reader, Screen, WARNING, columns, count, name, plain, shorten};
use crate::session_name::SessionNames;
use crate::time::{ago, now};

/// Lines of a file with their writers.
pub(crate) struct BlamedLines {
    pub(crate) path: WorkPath,
    pub(crate) lines: Vec<NumberedLine>,
    /// What could not be asked about.
    pub(crate) problems: Vec<String>,
}

/// A line and its number, from 1.
pub(crate) struct NumberedLine {
    pub(crate) number: usize,
    pub(crate) line: AuthoredLine,
}

pub(crate) fn blame(
    options: &Options,
    args: &BlameArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let (blamed, names) = match place::open_recovered(options, Store::MustExist) {
        Ok(mut place) => {
            let lines = args.lines.as_deref();
            let blamed = lines_of(&mut place.workspace, options, &args.path, lines)?;
            (blamed, SessionNames::of(&place.workspace.store.sessions()?))
        }
        Err(error) if error.kind == Kind::NoStore => {
            let blamed = lines_in_git(options, &args.path, args.lines.as_deref());
            (blamed?.ok_or(error)?, SessionNames::of(&[]))
        }
        Err(error) => return Err(error),
    };
    if screen.json {
        screen.json(&blamed.lines.iter().map(answer).collect::<Vec<_>>())?;
    } else {
        screen.page()?;
        print(&blamed.lines, &names, screen)?;
    }
    blamed.report_problems(screen)?;
    Ok(0)
}

impl BlamedLines {
    /// Says on standard error what could not be asked about.
    pub(crate) fn report_problems(&self, screen: &mut Screen) -> Result<(), CommandError> {
        screen.out.flush()?;
        if screen.quiet {
            return Ok(());
        }
        for problem in &self.problems {
            let problem = plain(problem);
            writeln!(anstream::stderr().lock(), "{WARNING}takeback:{WARNING:#} {problem}")?;
        }
        Ok(())
    }
}

/// Lines of a file that the user named, as it is now. `range`: `12` or `10-20`; `None`: all.
pub(crate) fn lines_of(
    workspace: &mut Workspace,
    options: &Options,
    path: &Path,
    range: Option<&str>,
) -> Result<BlamedLines, CommandError> {
    let path = work_path(workspace, options, path)?;
    lines_at(workspace, path, range)
}

/// Like [`lines_of`], of a path from the root.
pub(crate) fn lines_at(
    workspace: &mut Workspace,
    path: WorkPath,
    range: Option<&str>,
) -> Result<BlamedLines, CommandError> {
    takeback_core::look_around_if_changed(workspace, &path)?;
    let file = authored(workspace, &path)?;
    in_range(file, path, range)
}

/// Lines of a file in a folder without a log, as git, notes and traces know them. `None`: the file is in no
/// repository either.
fn lines_in_git(
    options: &Options,
    path: &Path,
    range: Option<&str>,
) -> Result<Option<BlamedLines>, CommandError> {
    let file = place::start(options)?.join(path);
    let file = file.canonicalize().unwrap_or(file);
    let mut found = match committed_lines(&file) {
        Ok(found) => found,
        Err(CommittedLinesError::NoRepository { .. }) => return Ok(None),
        Err(error) => return Err(CommandError::new(Kind::Error, error)),
    };
    found
        .problems
        .push("this folder has no history: only git, notes and traces were asked".to_owned());
    let path =
        WorkPath::new(path.as_os_str().as_bytes()).map_err(|_not_a_path| not_a_file(path))?;
    in_range(found, path, range).map(Some)
}

/// `range`: `12` or `10-20`; `None`: all.
fn in_range(
    file: AuthoredFile,
    path: WorkPath,
    range: Option<&str>,
) -> Result<BlamedLines, CommandError> {
    let mut lines: Vec<NumberedLine> =
        (1..).zip(file.lines).map(|(number, line)| NumberedLine { number, line }).collect();
    if let Some(range) = range {
        let numbers = line_numbers(range)?;
        let most = lines.len();
        lines.retain(|line| numbers.contains(&line.number));
        if lines.is_empty() {
            return Err(no_line(&path, most, *numbers.start()));
        }
    }
    Ok(BlamedLines { path, lines, problems: file.problems })
}

/// The numbers that `12` or `10-20` means, from 1.
pub(crate) fn line_numbers(range: &str) -> Result<RangeInclusive<usize>, CommandError> {
    let wrong = || {
        CommandError::new(Kind::Usage, format!("{} is not a range of lines", plain(range)))
            .hint("Write a line's number, or two with a dash between: 12 or 10-20.")
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_not_a_number| wrong());
    let (first, last) = (number(first)?, number(last)?);
    if first == 0 || last < first { Err(wrong()) } else { Ok(first..=last) }
}

/// A file with `most` lines has no line `line`.
pub(crate) fn no_line(path: &WorkPath, most: usize, line: usize) -> CommandError {
    let error = PathError::NoLine { path: name(path), lines: count(most, "line"), line };
    CommandError::new(Kind::Error, error)
}

/// All lines of a file as it was last seen.
pub(crate) fn authored(
    workspace: &Workspace,
    path: &WorkPath,
) -> Result<AuthoredFile, CommandError> {
    authored_lines(workspace, path).map_err(|error| explain(error, path))
}

fn explain(error: BlameError, path: &WorkPath) -> CommandError {
    match error {
        BlameError::NotRecorded { .. } => never_recorded(path),
        BlameError::Store(error) => error.into(),
        BlameError::NotAFile { .. } => {
            let hint = format!("`takeback history {}` shows what happened to it.", name(path));
            CommandError::new(Kind::Error, error).hint(hint)
        }
        error => CommandError::new(Kind::Error, error),
    }
}

pub(crate) fn print(
    lines: &[NumberedLine],
    names: &SessionNames,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    let (time, reader) = (now(), screen.reader());
    let heads: Vec<LineHead> = {
        let mut known: Vec<(Arc<LineWriter>, LineHead)> = Vec::new();
        lines
            .iter()
            .map(|NumberedLine { line, .. }| {
                let found = known.iter().rev().find(|(one, _)| Arc::ptr_eq(one, &line.writer));
                if let Some((_, head)) = found {
                    return head.clone();
                }
                let at = line.writer.at.map(|at| ago(at, time)).unwrap_or_default();
                let head = LineHead { at, ..LineHead::of(&line.writer, names) };
                known.push((line.writer.clone(), head.clone()));
                head
            })
            .collect()
    };
    let widest = |text: fn(&LineHead) -> &str| {
        heads.iter().map(|head| columns(text(head))).max().unwrap_or(0)
    };
    let (who, at) = (widest(|head| &head.who), widest(|head| &head.at));
    let digits = lines.last().map_or(1, |line| line.number.to_string().len());
    let mut last: Option<&Arc<LineWriter>> = None;
    for (NumberedLine { number, line }, head) in lines.iter().zip(&heads) {
        // People read blocks; programs read lines.
        let repeats = last.is_some_and(|last| Arc::ptr_eq(last, &line.writer));
        if repeats && reader == Reader::Person {
            write!(screen.out, "{:width$}", "", width = 8 + 1 + who + 1 + 2 + at)?;
        } else {
            let LineHead { id, id_style, who: text, style, at: when, is_doubtful } = head;
            let pad = |text: &str, width: usize| " ".repeat(width - columns(text));
            write!(screen.out, "{id_style}{id:8}{id_style:#} {style}{text}{style:#}")?;
            let mark = if *is_doubtful { "?" } else { " " };
            write!(screen.out, "{WARNING}{mark}{WARNING:#}{}", pad(text, who))?;
            write!(screen.out, "  {HINT}{when}{HINT:#}{}", pad(when, at))?;
        }
        let text = on_screen(body(&line.text).strip_suffix(b"\r").unwrap_or(body(&line.text)));
        writeln!(screen.out, "  {HINT}{number:>digits$}{HINT:#}  {text}")?;
        last = Some(&line.writer);
    }
    if reader == Reader::Person && heads.iter().any(|head| head.is_doubtful) {
        writeln!(
            screen.out,
            "{HINT}? written while a command ran, so perhaps by someone else. `takeback why PATH:LINE` shows \
             the evidence.{HINT:#}"
        )?;
    }
    Ok(())
}

/// What is shown before a line.
#[derive(Clone)]
struct LineHead {
    id: String,
    id_style: Style,
    who: String,
    style: Style,
    at: String,
    is_doubtful: bool,
}

impl LineHead {
    /// Without the time.
    fn of(writer: &LineWriter, names: &SessionNames) -> Self {
        let (id, id_style) = match (&writer.point, &writer.commit) {
            (Some(point), _) => (point.id.to_string(), NAME),
            (None, Some(commit)) => (commit.id.clone(), HINT),
            (None, None) => (String::new(), PLAIN),
        };
        let who = shorten(&who(writer, names), 24);
        let style = match writer.author {
            LineAuthor::Agent => PLAIN,
            LineAuthor::You | LineAuthor::Other | LineAuthor::Before => HINT,
            LineAuthor::Unknown => WARNING,
        };
        let id = id.chars().take(8).collect();
        let is_doubtful = is_doubtful(writer);
        Self { id, id_style, who, style, at: String::new(), is_doubtful }
    }
}

/// Whether the line was written while a command ran, so that someone else may have written it.
pub(crate) fn is_doubtful(writer: &LineWriter) -> bool {
    matches!(writer.evidence, Some(Evidence::Window | Evidence::OpenWindow))
}

/// The writer of a line in a few words.
pub(crate) fn who(writer: &LineWriter, names: &SessionNames) -> String {
    match (writer.author, writer.source) {
        (LineAuthor::Agent, LineSource::Log) => match &writer.session {
            Some(session) => names.get(session),
            None => "a deleted session".to_owned(),
        },
        (LineAuthor::Agent, _) => plain(writer.agent.as_deref().unwrap_or("an agent")),
        (LineAuthor::You, _) => "you".to_owned(),
        (LineAuthor::Other, _) => plain(writer.name.as_deref().unwrap_or("a person")),
        (LineAuthor::Before, _) => "before the log".to_owned(),
        (LineAuthor::Unknown, _) => match &writer.session {
            Some(session) => format!("you or {}", names.get(session)),
            None => "unknown".to_owned(),
        },
    }
}

pub(crate) fn answer(line: &NumberedLine) -> answers::BlamedLine {
    let NumberedLine { number, line } = line;
    let text = body(&line.text);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let is_utf8 = std::str::from_utf8(text).is_ok();
    answers::BlamedLine {
        line: *number,
        text: String::from_utf8_lossy(text).into_owned(),
        text_base64: (!is_utf8).then(|| STANDARD.encode(text)),
        writer: writer_answer(&line.writer),
    }
}

fn writer_answer(writer: &LineWriter) -> answers::LineWriter {
    answers::LineWriter {
        author: match writer.author {
            LineAuthor::Agent => answers::LineAuthor::Agent,
            LineAuthor::You => answers::LineAuthor::You,
            LineAuthor::Other => answers::LineAuthor::Other,
            LineAuthor::Before => answers::LineAuthor::Before,
            LineAuthor::Unknown => answers::LineAuthor::Unknown,
        },
        evidence: writer.evidence.map(answers::evidence),
        source: match (writer.author, writer.source) {
            (LineAuthor::Before, _) => None,
            (LineAuthor::Unknown, _) if writer.change.is_none() => None,
            (_, LineSource::Log) => Some(answers::LineSource::Log),
            (_, LineSource::Git) => Some(answers::LineSource::Git),
            (_, LineSource::Note) => Some(answers::LineSource::Note),
            (_, LineSource::Trace) => Some(answers::LineSource::Trace),
        },
        session: writer.session.as_ref().map(|session| session.0.clone()),
        agent: writer.agent.clone(),
        model: writer.model.clone(),
        point: writer.point.as_ref().map(|point| answers::Id::new(point.id)),
        call: writer.call.as_ref().map(|call| call.id.0.clone()),
        tool: writer.call.as_ref().map(|call| call.tool.clone()),
        prompt: writer.point.as_ref().map(|point| point.description.clone()),
        at: writer.at.map(answers::time),
        commit: writer.commit.as_ref().map(|commit| commit.id.clone()),
        name: writer.name.clone(),
    }
}
