//! `why PATH:LINE`: the prompt, the call and the change that wrote a line.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use takeback_core::Workspace;
use takeback_core::history::{LineAuthor, LineSource, LineWriter};
use takeback_store::{CallKind, WorkPath};

use super::blame::{self, BlamedLines, NumberedLine, is_doubtful, lines_at, lines_of, who};
use super::filediff::{Contents, FileDiff, LineDiff, Text};
use super::patch::{as_patch, body, on_screen, print_passage};
use super::show::{PLAIN, author, detail};
use crate::answers;
use crate::args::{Options, WhyArgs};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::screen::{HEADING, HINT, NAME, Screen, name, plain, plain_bytes};
use crate::session_name::SessionNames;
use crate::time::{ago, moment, now};

/// A line that the user named.
pub(crate) struct NamedLine {
    pub(crate) blamed: BlamedLines,
}

impl NamedLine {
    fn path(&self) -> &WorkPath {
        &self.blamed.path
    }

    fn line(&self) -> &NumberedLine {
        &self.blamed.lines[0]
    }

    /// The path that the line was written to, if it is another one.
    fn written_to(&self) -> Option<&WorkPath> {
        let change = self.line().line.writer.change.as_ref()?;
        Some(&change.path).filter(|path| *path != self.path())
    }

    fn change(&self) -> Option<FileDiff> {
        let writer = &self.line().line.writer;
        let change = writer.change.as_ref().filter(|_| writer.commit.is_none())?;
        Some(FileDiff::of_change(change))
    }
}

pub(crate) fn why(
    options: &Options,
    args: &WhyArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let found = line_at(&mut place.workspace, options, &args.line)?;
    let store = &*place.workspace.store;
    if screen.json {
        screen.json(&answer(store, &found)?)?;
    } else {
        screen.page()?;
        print(store, &found, screen)?;
    }
    found.blamed.report_problems(screen)?;
    Ok(0)
}

/// The line that `PATH:LINE` names.
pub(crate) fn line_at(
    workspace: &mut Workspace,
    options: &Options,
    name: &OsStr,
) -> Result<NamedLine, CommandError> {
    let name = name.as_bytes();
    let wrong = || {
        CommandError::new(Kind::Usage, format!("{} is not PATH:LINE", plain_bytes(name)))
            .hint("Write a file and a line's number with a colon between: src/main.rs:12")
    };
    let colon = name.iter().rposition(|byte| *byte == b':').ok_or_else(wrong)?;
    let (path, line) = (&name[..colon], &name[colon + 1..]);
    let line = std::str::from_utf8(line).map_err(|_not_a_number| wrong())?;
    if path.is_empty() || !line.bytes().all(|byte| byte.is_ascii_digit()) || line.is_empty() {
        return Err(wrong());
    }
    let path = Path::new(OsStr::from_bytes(path));
    Ok(NamedLine { blamed: lines_of(workspace, options, path, Some(line))? })
}

/// A line of a file, from 1.
pub(crate) fn line_of(
    workspace: &mut Workspace,
    path: WorkPath,
    line: usize,
) -> Result<NamedLine, CommandError> {
    Ok(NamedLine { blamed: lines_at(workspace, path, Some(&line.to_string()))? })
}

pub(crate) fn answer(
    store: &dyn takeback_store::Store,
    found: &NamedLine,
) -> Result<answers::WhyAnswer, CommandError> {
    let writer = &found.line().line.writer;
    let patch = match found.change() {
        Some(diff) => {
            let mut patch = Vec::new();
            as_patch(&diff, Contents::of(store), &mut patch)?;
            Some(String::from_utf8_lossy(&patch).into_owned())
        }
        None => None,
    };
    Ok(answers::WhyAnswer {
        line: blame::answer(found.line()),
        whole_prompt: prompt_of(writer).map(str::to_owned),
        command: command(writer).map(str::to_owned),
        written_to: found.written_to().map(|path| answers::path(path).file_path),
        patch,
        summary: writer.commit.as_ref().map(|commit| commit.summary.clone()),
        problems: found.blamed.problems.clone(),
    })
}

/// The prompt in full; a subagent's line has that of its point.
fn prompt_of(writer: &LineWriter) -> Option<&str> {
    let own = writer.turn.as_ref().map(|turn| turn.prompt.trim());
    let of_point = || writer.point.as_ref().map(|point| point.description.as_str());
    own.filter(|prompt| !prompt.is_empty()).or_else(of_point).or(own)
}

fn command(writer: &LineWriter) -> Option<&str> {
    match &writer.call.as_ref()?.kind {
        CallKind::Shell { command, .. } => command.as_deref(),
        CallKind::Edit { .. } => None,
    }
}

pub(crate) fn print(
    store: &dyn takeback_store::Store,
    found: &NamedLine,
    screen: &mut Screen,
) -> Result<(), CommandError> {
    let out = &mut screen.out;
    let NumberedLine { number, line } = found.line();
    let writer = &line.writer;
    writeln!(out, "{HEADING}{}:{number}{HEADING:#}", name(found.path()))?;
    writeln!(out, "{}\n", on_screen(body(&line.text)).trim_end())?;
    let names = SessionNames::of(&store.sessions()?);
    let model = writer.model.as_ref().map(|model| format!(", {}", plain(model)));
    let mark = if is_doubtful(writer) { "?" } else { "" };
    let person = who(writer, &names) + mark + &model.unwrap_or_default();
    detail(out, "author", PLAIN, &person)?;
    detail(out, "known by", PLAIN, &evidence(writer, &names))?;
    if let Some(at) = writer.at {
        detail(out, "when", PLAIN, &format!("{}, {}", moment(at), ago(at, now())))?;
    }
    if let Some(point) = &writer.point {
        detail(out, "point", NAME, &point.id.to_string()[..8])?;
    }
    if let Some(prompt) = prompt_of(writer) {
        for (at, line) in prompt.lines().enumerate() {
            detail(out, if at == 0 { "prompt" } else { "" }, PLAIN, &plain(line))?;
        }
    }
    if let Some(command) = command(writer) {
        for (at, line) in command.lines().enumerate() {
            detail(out, if at == 0 { "command" } else { "" }, PLAIN, &plain(line))?;
        }
    }
    if let Some(commit) = &writer.commit {
        let short = commit.id.get(..12).unwrap_or(&commit.id);
        detail(out, "commit", PLAIN, &format!("{short} {}", plain(&commit.summary)))?;
    }
    if let Some(path) = found.written_to() {
        detail(out, "file", PLAIN, &format!("{} then", name(path)))?;
    }
    if let (Some(diff), Some(at)) = (found.change(), line.number_then) {
        let contents = Contents::of(store);
        let texts = (Text::of(&diff.before, contents)?, Text::of(&diff.after, contents)?);
        if let (Text::Lines(before), Text::Lines(after)) = texts {
            let lines = LineDiff::new(&before, &after);
            writeln!(out)?;
            for passage in lines.passages().filter(|passage| passage.new.contains(&at)) {
                print_passage(&passage, &lines, out)?;
            }
        }
    }
    if let Some(point) = &writer.point {
        let id = &point.id.to_string()[..8];
        writeln!(out, "\n{HINT}`takeback diff {id}!` shows all that this prompt changed.{HINT:#}")?;
    }
    Ok(())
}

/// How the author is known.
fn evidence(writer: &LineWriter, names: &SessionNames) -> String {
    match (writer.source, &writer.change) {
        (LineSource::Git, _) => "git: this commit has the line".to_owned(),
        (LineSource::Note, _) => "a note on the commit (refs/notes/ai)".to_owned(),
        (LineSource::Trace, _) => "an Agent Trace record of the commit".to_owned(),
        (LineSource::Log, Some(change)) => {
            let doubt = if is_doubtful(writer) { "; it may be someone else's" } else { "" };
            format!("the log: {}{doubt}", author(change, names))
        }
        (LineSource::Log, None) if writer.author == LineAuthor::Before => {
            "nothing: the line is older than the log, and no commit has it".to_owned()
        }
        (LineSource::Log, None) => {
            "nothing: contents of the file in between are not in the store".to_owned()
        }
    }
}
