//! Asks, before a rewind, about changes that may be the agent's or the user's.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write as _};

use takeback_core::rewind::{Plan, RewindRequest, Step, Verdict};
use takeback_store::{
    Author, Call, CallId, CallKind, CallState, Evidence, SessionId, Store, StoreError, WorkPath,
};

use crate::ask;
use crate::commands::menu::patterns_of;
use crate::error::CommandError;
use crate::screen::{
    HINT, Screen, WARNING, count, name, plain, shorten, shorten_path, width, wrap,
};

/// Asks at most this many questions; `--take` and `--mine` accept patterns.
const MOST_GROUPS: usize = 5;
/// Paths listed of each group.
const MOST_PATHS: usize = 10;

/// Unclear paths that changed after the same call started.
struct Group<'a> {
    /// The call's command or tool, and what is known about its end; `None`: several calls are possible.
    call: Option<(String, &'static str)>,
    paths: BTreeSet<&'a WorkPath>,
    has_folder: bool,
}

/// Asks about each group of unclear paths and adds the answers to the request. Returns whether that changed
/// it.
pub(super) fn ask_authors(
    store: &dyn Store,
    plan: &Plan,
    request: &mut RewindRequest,
    screen: &mut Screen,
) -> Result<bool, CommandError> {
    let groups = groups(store, plan)?;
    let mut is_changed = false;
    for group in groups.iter().take(MOST_GROUPS) {
        group.show(screen)?;
        let patterns = match ask::answer(&wrap(group.question(), width() - 1), screen)?.as_str() {
            "t" | "T" => &mut request.take,
            "m" | "M" => &mut request.mine,
            _ => continue,
        };
        patterns.extend(patterns_of(plan, &group.paths));
        is_changed = true;
    }
    let rest = groups.get(MOST_GROUPS..).unwrap_or_default();
    if !rest.is_empty() {
        let paths = rest.iter().map(|group| group.paths.len()).sum();
        let question = format!(
            "{} more stay as they are; --take PATH and --mine PATH decide about them.",
            count(paths, "unclear path")
        );
        writeln!(screen.out)?;
        print_lines(&question, HINT, screen)?;
    }
    if is_changed {
        writeln!(screen.out)?;
    }
    Ok(is_changed)
}

impl Group<'_> {
    fn is_one(&self) -> bool {
        self.paths.len() == 1
    }

    fn show(&self, screen: &mut Screen) -> io::Result<()> {
        let files = count(self.paths.len(), if self.has_folder { "path" } else { "file" });
        let they = if self.is_one() { "It" } else { "They" };
        let question = match &self.call {
            Some((what, end)) => {
                let what = shorten(&plain(what), 60);
                format!("{files} changed after `{what}` began; {end}. {they} may be yours:")
            }
            None => {
                format!("{files} changed while several sessions worked. {they} may be yours:")
            }
        };
        writeln!(screen.out)?;
        print_lines(&question, WARNING, screen)?;
        for path in self.paths.iter().take(MOST_PATHS) {
            writeln!(screen.out, "  {}", shorten_path(&name(path), width() - 2))?;
        }
        if self.paths.len() > MOST_PATHS {
            let more = self.paths.len() - MOST_PATHS;
            writeln!(screen.out, "  {HINT}… and {more} more{HINT:#}")?;
        }
        Ok(())
    }

    fn question(&self) -> &'static str {
        if self.is_one() {
            "Take it back, keep it, or mark it as yours? [t/k/m, Enter keeps]"
        } else {
            "Take them back, keep them, or mark them as yours? [t/k/m, Enter keeps]"
        }
    }
}

fn print_lines(text: &str, style: anstyle::Style, screen: &mut Screen) -> io::Result<()> {
    for line in wrap(text, width()) {
        writeln!(screen.out, "{style}{line}{style:#}")?;
    }
    Ok(())
}

/// In the order of their first paths.
fn groups<'a>(store: &dyn Store, plan: &'a Plan) -> Result<Vec<Group<'a>>, StoreError> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut places: HashMap<Option<(&SessionId, &CallId)>, usize> = HashMap::new();
    for step in plan.steps.iter().filter(|step| is_unclear(step)) {
        let suspect = suspect(step);
        let key = suspect.map(|(session, call, _)| (session, call));
        let place = match places.get(&key) {
            Some(place) => *place,
            None => {
                let call = match suspect {
                    Some((session, id, tool)) => Some(described(store.call(session, id)?, tool)),
                    None => None,
                };
                groups.push(Group { call, paths: BTreeSet::new(), has_folder: false });
                places.insert(key, groups.len() - 1);
                groups.len() - 1
            }
        };
        groups[place].paths.insert(&step.path);
        groups[place].has_folder |= step.present.is_dir();
    }
    Ok(groups)
}

fn is_unclear(step: &Step) -> bool {
    step.unclear.is_some() || matches!(step.verdict, Verdict::Ambiguous { .. })
}

/// The last call that may have changed the path and whose end is unknown, with its tool.
fn suspect(step: &Step) -> Option<(&SessionId, &CallId, &str)> {
    step.because.iter().rev().find_map(|known| match (&known.author, known.evidence) {
        (Author::Agent { session, call, tool, .. }, Evidence::OpenWindow) => {
            Some((session, call, tool.as_str()))
        }
        _ => None,
    })
}

fn described(call: Option<Call>, tool: &str) -> (String, &'static str) {
    let end = match &call {
        Some(Call { state: CallState::Background, .. } | Call { active_at: Some(_), .. }) => {
            "it ran in the background"
        }
        Some(Call { state: CallState::Open | CallState::Overtaken, .. }) => "it may still run",
        _ => "its end is not known",
    };
    let command = call.and_then(|call| match call.kind {
        CallKind::Shell { command, .. } => command,
        CallKind::Edit { .. } => None,
    });
    (command.unwrap_or_else(|| tool.to_owned()), end)
}
