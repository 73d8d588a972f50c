//! What the installed git makes of three texts: the merge, and the changes it finds between two.

use std::io::Write as _;
use std::ops::Range;
use std::process::Command;

use tempfile::{NamedTempFile, TempPath};

/// The merged text, or nothing if there are conflicts.
pub(crate) fn merge_file(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let files = [ours, base, theirs].map(file);
    let output = Command::new("git")
        .args(["-c", "merge.conflictStyle=merge", "merge-file", "-p", "--quiet"])
        .args(&files)
        .output()
        .expect("git is installed");
    match output.status.code() {
        Some(0) => Some(output.stdout),
        // Up to 127 it is the number of conflicts, beyond that an error.
        Some(1..=127) => None,
        _ => panic!("git merge-file: {output:?}"),
    }
}

/// Lines of the text before, and what they become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hunk {
    pub(crate) lines: Range<usize>,
    pub(crate) text: Vec<u8>,
}

pub(crate) fn hunks(before: &[u8], after: &[u8]) -> Vec<Hunk> {
    let files = [before, after].map(file);
    let output = Command::new("git")
        .args(["diff", "--no-index", "--diff-algorithm=myers", "--no-indent-heuristic", "--text"])
        .args(["--no-ext-diff", "--no-textconv", "--no-color", "--unified=0"])
        .args(&files)
        .output()
        .expect("git is installed");
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let after: Vec<&[u8]> = lines(after).collect();
    let headers = lines(&output.stdout).filter(|line| line.starts_with(b"@@ "));
    headers
        .map(|header| {
            let header = String::from_utf8_lossy(header);
            let mut ranges = header.split(' ').skip(1).take(2).map(numbered_lines);
            let mut next = || ranges.next().expect("a header has two ranges");
            let (old, new) = (next(), next());
            Hunk { lines: old, text: after[new].concat() }
        })
        .collect()
}

/// `-3,2` are the third and fourth line, `-3` is the third, `-3,0` is the place behind the third.
fn numbered_lines(range: &str) -> Range<usize> {
    let (first, count) = range[1..].split_once(',').unwrap_or((&range[1..], "1"));
    let [first, count] = [first, count].map(|text| text.parse::<usize>().expect("a number"));
    let start = if count == 0 { first } else { first - 1 };
    start..start + count
}

pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n')
}

fn file(text: &[u8]) -> TempPath {
    let mut file = NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(text).expect("it can be written");
    file.into_temp_path()
}
