//! A diff of one path: coloured for people, or as `git apply` and `patch -p1` take it.

use std::io::{self, Write};

use anstyle::Style;
use takeback_store::{Entry, WorkPath};

use super::filediff::{
    Contents, DAMAGED, FileDiff, LineDiff, Part, Passage, PrintError, Text, path_name,
};
use super::word_diff::{self, Budget, compare};
use crate::screen::{
    FAILURE, HEADING, HINT, NAME, Reader, SUCCESS, Screen, WARNING, count, name, plain_bytes,
    shorten_path, width,
};

/// Changed words stand out on dark and light backgrounds.
const ADDED_WORD: Style = SUCCESS.invert();
const REMOVED_WORD: Style = FAILURE.invert();

/// Prints each diff. Returns how many files have damaged contents in the store.
pub(crate) fn print_all(
    diffs: &[FileDiff],
    contents: Contents<'_>,
    screen: &mut Screen,
) -> Result<usize, PrintError> {
    let mut damaged = 0;
    match screen.reader() {
        Reader::Program => {
            let mut out = screen.bare()?;
            let mut left_out = 0;
            for diff in diffs {
                match as_patch(diff, contents, &mut out)? {
                    PatchCoverage::Included => {}
                    PatchCoverage::NotText => left_out += 1,
                    PatchCoverage::Damaged => damaged += 1,
                }
            }
            out.flush()?;
            for (n, why) in [(left_out, "not text"), (damaged, DAMAGED)] {
                if n > 0 && (!screen.quiet || why == DAMAGED) {
                    let (files, verb) = (count(n, "file"), if n == 1 { "is" } else { "are" });
                    let mut err = anstream::stderr().lock();
                    writeln!(
                        err,
                        "{WARNING}takeback:{WARNING:#} {files} {verb} {why} and not in the patch"
                    )?;
                }
            }
        }
        Reader::Person => {
            for (at, diff) in diffs.iter().enumerate() {
                if at > 0 {
                    writeln!(screen.out)?;
                }
                damaged += usize::from(
                    for_people(diff, contents, &mut screen.out)? == PatchCoverage::Damaged,
                );
            }
        }
    }
    Ok(damaged)
}

// --- for people ---------------------------------------------------------------------------------

pub(crate) fn for_people(
    diff: &FileDiff,
    contents: Contents<'_>,
    out: &mut dyn Write,
) -> Result<PatchCoverage, PrintError> {
    let what = diff.what();
    let room = width().saturating_sub(what.chars().count() + 2 + 14).max(16);
    let title = shorten_path(&path_name(diff), room);
    write!(out, "{HEADING}{title}{HEADING:#}  {HINT}{what}{HINT:#}")?;
    let texts = (text(&diff.before, contents)?, text(&diff.after, contents)?);
    let (before, after) = match &texts {
        (Text::Lines(before), Text::Lines(after)) => (before, after),
        (Text::TooLarge, _) | (_, Text::TooLarge) => {
            writeln!(out, "\n{HINT}  too large to compare{HINT:#}")?;
            return Ok(PatchCoverage::NotText);
        }
        (Text::Damaged, _) | (_, Text::Damaged) => {
            writeln!(out, "\n{WARNING}  {DAMAGED}; `takeback verify` shows details{WARNING:#}")?;
            return Ok(PatchCoverage::Damaged);
        }
        _ if diff.has_same_bytes() => {
            writeln!(out)?;
            return Ok(PatchCoverage::Included);
        }
        _ => {
            writeln!(out, "\n{HINT}  not text{HINT:#}")?;
            return Ok(PatchCoverage::NotText);
        }
    };
    let lines = LineDiff::new(before, after);
    let count = lines.count();
    if count.insertions > 0 {
        write!(out, " {SUCCESS}+{}{SUCCESS:#}", count.insertions)?;
    }
    if count.deletions > 0 {
        write!(out, " {FAILURE}-{}{FAILURE:#}", count.deletions)?;
    }
    writeln!(out)?;
    for passage in lines.passages() {
        print_passage(&passage, &lines, out)?;
    }
    Ok(PatchCoverage::Included)
}

/// Prints one passage of a diff, for people.
pub(crate) fn print_passage(
    passage: &Passage,
    lines: &LineDiff<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{NAME}{passage}{NAME:#}")?;
    let mut budget = Budget::default();
    passage.parts.iter().try_for_each(|part| print_part(part, lines, &mut budget, out))
}

/// For people, a link's target counts as a line of text.
fn text(entry: &Entry, contents: Contents<'_>) -> Result<Text, PrintError> {
    let mut text = Text::of(entry, contents)?;
    if let (Entry::Symlink { .. }, Text::Lines(target)) = (entry, &mut text) {
        target.push(b'\n');
    }
    Ok(text)
}

fn print_part(
    part: &Part,
    lines: &LineDiff<'_>,
    budget: &mut Budget,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (old, new) = (&lines.old[part.old.clone()], &lines.new[part.new.clone()]);
    if !part.differs {
        for line in old {
            let text = body(line);
            writeln!(out, " {}", on_screen(text.strip_suffix(b"\r").unwrap_or(text)))?;
            say_if_unfinished(line, out)?;
        }
        return Ok(());
    }
    let old_bodies: Vec<&[u8]> = old.iter().map(|line| body(line)).collect();
    let new_bodies: Vec<&[u8]> = new.iter().map(|line| body(line)).collect();
    let (old_parts, new_parts) = compare(&old_bodies, &new_bodies, budget);
    let sides =
        [('-', FAILURE, REMOVED_WORD, old, old_parts), ('+', SUCCESS, ADDED_WORD, new, new_parts)];
    for (sign, line_style, word_style, lines, parts) in sides {
        for (line, parts) in lines.iter().zip(parts) {
            write!(out, "{line_style}{sign}{line_style:#}")?;
            for word_diff::Part { text, differs } in
                parts.iter().filter(|part| !part.text.is_empty())
            {
                let style = if *differs { word_style } else { line_style };
                write!(out, "{style}{}{style:#}", on_screen(text))?;
            }
            writeln!(out)?;
            say_if_unfinished(line, out)?;
        }
    }
    Ok(())
}

/// A line without its end.
pub(crate) fn body(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

fn say_if_unfinished(line: &[u8], out: &mut dyn Write) -> io::Result<()> {
    if line.ends_with(b"\n") { Ok(()) } else { writeln!(out, "{HINT}{UNFINISHED}{HINT:#}") }
}

const UNFINISHED: &str = "\\ No newline at end of file";

/// File contents must not control the terminal or hide text. Tabs are allowed.
pub(crate) fn on_screen(text: &[u8]) -> String {
    text.split(|byte| *byte == b'\t').map(plain_bytes).collect::<Vec<_>>().join("\t")
}

// --- as a patch ---------------------------------------------------------------------------------

/// Whether a path's contents are in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchCoverage {
    Included,
    NotText,
    /// Damaged in the store.
    Damaged,
}

/// Git's patch format. What a patch cannot express is in lines that begin with `#`, which `git apply` and
/// `patch` ignore.
pub(crate) fn as_patch(
    diff: &FileDiff,
    contents: Contents<'_>,
    out: &mut dyn Write,
) -> Result<PatchCoverage, PrintError> {
    let (old, new) = (git_mode(&diff.before), git_mode(&diff.after));
    let unkept = |entry: &Entry| matches!(entry, Entry::NotCaptured { .. });
    if unkept(&diff.before) || unkept(&diff.after) || (old.is_none() && new.is_none()) {
        writeln!(out, "# {}: {}", name(&diff.path), diff.what())?;
        return Ok(PatchCoverage::Included);
    }
    let same_bytes = diff.has_same_bytes();
    // Identical bytes need no hunk.
    let (before, after) = if same_bytes {
        (Vec::new(), Vec::new())
    } else {
        match (Text::of(&diff.before, contents)?, Text::of(&diff.after, contents)?) {
            (Text::Lines(before), Text::Lines(after)) => (before, after),
            (Text::Damaged, _) | (_, Text::Damaged) => {
                writeln!(out, "# {}: {}, {DAMAGED}", name(&diff.path), diff.what())?;
                return Ok(PatchCoverage::Damaged);
            }
            // `git apply` rejects a whole patch with a binary file but no binary data.
            _ => {
                writeln!(out, "# {}: {}, not text", name(&diff.path), diff.what())?;
                return Ok(PatchCoverage::NotText);
            }
        }
    };
    let is_link = |entry: &Entry| matches!(entry, Entry::Symlink { .. });
    let is_both = old.is_some() && new.is_some();
    let old_path = diff.renamed_from.as_ref().unwrap_or(&diff.path);
    if is_both && is_link(&diff.before) != is_link(&diff.after)
        || !is_both && diff.renamed_from.is_some()
    {
        // A different file type: a deletion and a creation.
        let gone = FileDiff::new(old_path.clone(), diff.before.clone(), Entry::Absent);
        let come = FileDiff::new(diff.path.clone(), Entry::Absent, diff.after.clone());
        as_patch(&gone, contents, out)?;
        return as_patch(&come, contents, out);
    }
    if same_bytes && old == new && diff.renamed_from.is_none() {
        writeln!(out, "# {}: {}", name(&diff.path), diff.what())?;
        return Ok(PatchCoverage::Included);
    }
    // `patch` takes the names of a rename from here, and a blank as their end.
    let has_blank = |path: &WorkPath| path.as_bytes().contains(&b' ');
    let is_unclear = diff.renamed_from.is_some() && (has_blank(old_path) || has_blank(&diff.path));
    let quote = if is_unclear { in_quotes } else { quoted };
    let (a, b) = (quote(b"a/", old_path), quote(b"b/", &diff.path));
    out.write_all(b"diff --git ")?;
    out.write_all(&a)?;
    out.write_all(b" ")?;
    out.write_all(&b)?;
    out.write_all(b"\n")?;
    match (old, new) {
        (Some(old), Some(new)) if old != new => writeln!(out, "old mode {old}\nnew mode {new}")?,
        (None, Some(new)) => writeln!(out, "new file mode {new}")?,
        (Some(old), None) => writeln!(out, "deleted file mode {old}")?,
        _ => {}
    }
    if diff.renamed_from.is_some() {
        for (key, path) in [("rename from ", old_path), ("rename to ", &diff.path)] {
            out.write_all(key.as_bytes())?;
            out.write_all(&quote(b"", path))?;
            out.write_all(b"\n")?;
        }
    }
    let lines = LineDiff::new(&before, &after);
    if lines.differ() {
        for (sign, mode, name) in [("---", old, &a), ("+++", new, &b)] {
            write!(out, "{sign} ")?;
            out.write_all(if mode.is_some() { name } else { b"/dev/null" })?;
            // A tab marks the end of a name that contains spaces.
            let tab = mode.is_some() && name.contains(&b' ') && !name.starts_with(b"\"");
            out.write_all(if tab { b"\t\n" } else { b"\n" })?;
        }
    }
    for passage in lines.passages() {
        writeln!(out, "{passage}")?;
        for part in &passage.parts {
            let (old, new) = (&lines.old[part.old.clone()], &lines.new[part.new.clone()]);
            let sides: &[(&[u8], &[&[u8]])] = match part.differs {
                false => &[(b" ", old)],
                true => &[(b"-", old), (b"+", new)],
            };
            for (sign, lines) in sides {
                for line in *lines {
                    out.write_all(sign)?;
                    out.write_all(line)?;
                    if !line.ends_with(b"\n") {
                        writeln!(out, "\n{UNFINISHED}")?;
                    }
                }
            }
        }
    }
    Ok(PatchCoverage::Included)
}

/// Git's mode for an entry; `None` for entries that a patch cannot hold.
fn git_mode(entry: &Entry) -> Option<&'static str> {
    match entry {
        Entry::File { mode, .. } if mode & 0o100 != 0 => Some("100755"),
        Entry::File { .. } => Some("100644"),
        Entry::Symlink { .. } => Some("120000"),
        Entry::Absent | Entry::Dir { .. } | Entry::NotCaptured { .. } | Entry::Unknown => None,
    }
}

/// A name in git's format: quoted, with octal escapes, if it has special characters.
fn quoted(prefix: &[u8], path: &WorkPath) -> Vec<u8> {
    let bytes = path.as_bytes();
    let special = |byte: &u8| byte.is_ascii_control() || matches!(byte, b'"' | b'\\');
    if !bytes.iter().any(special) && name(path).as_bytes() == bytes {
        return [prefix, bytes].concat();
    }
    in_quotes(prefix, path)
}

fn in_quotes(prefix: &[u8], path: &WorkPath) -> Vec<u8> {
    let mut quoted = [b"\"", prefix].concat();
    for byte in path.as_bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            byte if byte.is_ascii_control() || *byte >= 0x80 => {
                quoted.extend(format!("\\{byte:03o}").bytes());
            }
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}
