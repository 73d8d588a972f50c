//! Turns the files that the user selected in the menu into path patterns of a request.

use std::collections::{BTreeSet, HashSet};

use takeback_core::Workspace;
use takeback_core::rewind::{Plan, RewindRequest, Step, Verdict, preview};
use takeback_store::WorkPath;
use takeback_tui::FileSelection;

use super::preview::{FILES_MAX, diff_of};
use crate::commands::receipt::folder_row;
use crate::error::{CommandError, Kind};
use crate::screen::name;

/// Puts the selected files into a request. They are named as the preview showed them, which may differ from
/// their names on disk.
pub(crate) fn select_files(
    workspace: &mut Workspace,
    request: &mut RewindRequest,
    files: &FileSelection,
) -> Result<(), CommandError> {
    if files.paths.is_none() && files.marks.is_empty() {
        return Ok(());
    }
    let plan = preview(workspace, request)?.plan;
    let marked = |shown: &[String]| {
        let shown: HashSet<&String> = shown.iter().collect();
        let is_marked = |step: &&Step| {
            // A row of a folder stands for the kept files in it.
            let is_kept = matches!(step.verdict, Verdict::Keep { .. });
            shown.contains(&name(&step.path)) || is_kept && shown.contains(&folder_row(&step.path))
        };
        let paths = plan.steps.iter().filter(is_marked).map(|step| &step.path);
        patterns_of(&plan, &paths.collect())
    };
    let (take, mine) = (marked(&files.marks.take), marked(&files.marks.mine));
    request.take.extend(take.iter().cloned());
    request.mine.extend(mine.iter().cloned());
    let Some(shown) = &files.paths else { return Ok(()) };
    // Files beyond the limit were not shown, so the user could not untick them.
    let changes = plan.actions().map(diff_of).enumerate().filter(|(at, change)| {
        !change.is_folder() && (*at >= FILES_MAX || shown.contains(&name(&change.path)))
    });
    let ticked = changes.map(|(_, change)| escape(&change.path));
    // A mark has an effect only on paths of the request.
    let patterns: Vec<String> = ticked.chain(take).chain(mine).collect();
    if patterns.is_empty() {
        // An empty list would mean every file.
        return Err(CommandError::new(
            Kind::Error,
            "none of the selected files would change any more",
        ));
    }
    request.paths = patterns;
    Ok(())
}

/// Patterns for these paths of a plan, and for no other path of it.
///
/// The pattern of a folder matches everything in it, so a folder is left out if the plan has other paths in
/// it.
pub(crate) fn patterns_of(plan: &Plan, paths: &BTreeSet<&WorkPath>) -> Vec<String> {
    let others = plan.steps.iter().map(|step| &step.path).filter(|path| !paths.contains(path));
    let others = others.filter(|path| !path.is_outside());
    let shared: HashSet<WorkPath> = others.flat_map(WorkPath::ancestors).collect();
    paths.iter().filter(|path| !shared.contains(**path)).map(|path| escape(path)).collect()
}

/// A pattern that matches only this path; a byte that is not UTF-8 becomes `?`, which matches any.
fn escape(path: &WorkPath) -> String {
    let mut pattern = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern.extend(chunk.invalid().iter().map(|_| '?'));
    }
    pattern
}

#[cfg(test)]
mod tests {
    use takeback_core::rewind::PathFilter;
    use takeback_store::Entry;

    use super::*;

    fn path(bytes: impl AsRef<[u8]>) -> WorkPath {
        WorkPath::new(bytes.as_ref()).expect("a plain path")
    }

    #[test]
    fn a_pattern_stands_for_one_path() {
        let odd = [
            "plain.txt",
            "a!.txt",
            "!a",
            "[!a]",
            "[^a]",
            "[a-z]",
            "{a,b}",
            "*",
            "**",
            "?",
            "a\\b",
            "a\\*",
            "]",
            "}{",
            "dots..",
            "é*",
            "in/[x]/*.rs",
        ];
        for one in odd {
            let filter = PathFilter::new(&[escape(&path(one))]).expect("it is a pattern");
            for other in odd.iter().copied().chain(["a", "b", "aa", "x", "in/x/a.rs", "a,b"]) {
                assert_eq!(filter.includes(&path(other)), one == other, "{one} and {other}");
            }
        }
        let filter = PathFilter::new(&[escape(&path(b"not-\xff"))]).expect("it is a pattern");
        assert!(filter.includes(&path(b"not-\xff")) && !filter.includes(&path("not-")));
    }

    #[test]
    fn a_folder_is_named_only_with_all_that_is_in_it() {
        let step = |name: &str| Step::new(path(name), Entry::Absent, Verdict::Delete);
        let steps = ["a", "a/b", "a/b/one", "a/two"].map(step).to_vec();
        let plan = Plan { steps, ..Plan::default() };
        let all: Vec<WorkPath> = plan.steps.iter().map(|step| step.path.clone()).collect();
        assert_eq!(patterns_of(&plan, &all.iter().collect()), ["a", "a/b", "a/b/one", "a/two"]);
        assert_eq!(patterns_of(&plan, &all[..3].iter().collect()), ["a/b", "a/b/one"]);
        assert_eq!(patterns_of(&plan, &all[..1].iter().collect()), [""; 0]);
    }
}
