//! Names from the store: points, sessions, paths, executions. A store that is missing, damaged or of another
//! version has none.

use std::sync::Arc;
use std::time::Duration;

use takeback_core::find_point;
use takeback_store::state::{Execution, ListQuery, ListScope};
use takeback_store::{
    Entry, Point, PointFilter, PointQuery, RewindHeader, Session, States, Store, WorkPath,
};

use super::Candidate;
use crate::commands::log::operation_title;
use crate::place::Location;
use crate::screen::shorten;
use crate::session_name::SessionNames;
use crate::settings::Settings;
use crate::stores;
use crate::time::{ago, now};

/// Points that are searched by label or description.
const SEARCHED: usize = 1000;
/// Points that are offered before anything is typed.
const OFFERED: usize = 20;
/// How far back `@~N` is offered.
const STEPS: usize = 10;
/// Digits of an id.
const DIGITS: usize = 8;
/// Columns of a description.
const WIDTH: usize = 60;

pub(super) struct StoredNames<'l> {
    store: Box<dyn Store>,
    location: &'l Location,
}

impl<'l> StoredNames<'l> {
    /// `None`: there is no store, or none that can be read at once.
    pub(super) fn open(location: &'l Location) -> Option<Self> {
        let folder = stores::store_of(&location.root, &location.home);
        stores::is_protected(&location.root, &location.home).then_some(())?;
        let mut store = stores::open(&folder).ok()?;
        store.set_busy_timeout(Some(Duration::from_millis(20))).ok()?;
        Some(Self { store, location })
    }

    /// Labels, steps back and ids that begin with `word`.
    pub(super) fn points(&self, word: &str) -> Vec<Candidate> {
        let newest = PointQuery::Newest { filter: PointFilter::WithoutSafety, most: SEARCHED };
        let Ok(mut points) = self.store.find_points(newest) else { return Vec::new() };
        let mut found = Vec::new();
        for back in 0..STEPS {
            let name = if back == 0 { "@".to_owned() } else { format!("@~{back}") };
            // Before anything is typed, one of them shows that they exist.
            let is_offered = name.starts_with(word) && (back == 0 || !word.is_empty());
            if let Ok(point) = find_point(&points, &name, &|_| None)
                && is_offered
            {
                found.push(Candidate::new(name, described(point)));
            }
        }
        if word.len() >= 4
            && let Ok(older) = self.store.find_points(PointQuery::Name(word))
        {
            points.splice(
                0..0,
                older.into_iter().filter(|point| !points.contains(point)).collect::<Vec<_>>(),
            );
        }
        points.reverse();
        let labels = points.iter().filter_map(|point| Some((point.label.as_ref()?, point)));
        let labels = labels.filter(|(label, _)| label.starts_with(word));
        found.extend(labels.map(|(label, point)| Candidate::new(label, described(point))));
        let ids = points.iter().map(|point| (point.id.to_string(), point));
        let ids = ids.filter(|(id, _)| id.starts_with(word));
        let most = if word.is_empty() { OFFERED } else { SEARCHED };
        found.extend(ids.take(most).map(|(mut id, point)| {
            if word.len() <= DIGITS {
                id.truncate(DIGITS);
            }
            Candidate::new(id, described(point))
        }));
        found
    }

    /// The newest first.
    pub(super) fn operations(&self) -> Vec<Candidate> {
        let store = &*self.store;
        let mut operations = store.rewind_headers().unwrap_or_default();
        operations.reverse();
        let candidate = |operation: &RewindHeader| {
            let title = operation_title(store, operation).unwrap_or_default();
            Candidate::new(&operation.id.to_string()[..8], title)
        };
        operations.iter().map(candidate).collect()
    }

    /// The newest first.
    pub(super) fn sessions(&self) -> Vec<Candidate> {
        let sessions = self.all_sessions();
        let names = SessionNames::of(&sessions);
        let candidate = |session: &Session| {
            let agent = session.agent.as_deref().unwrap_or("session");
            let about = format!("{agent}, started {}", ago(session.started_at, now()));
            // The digits of `claude 3fa94c21` are enough, and have no space.
            let digits = names.shortened(&session.id).and_then(|name| name.split(' ').nth(1));
            let word = digits.filter(|_| session.whole().is_none()).unwrap_or(&session.id.0);
            Candidate::new(word, about)
        };
        sessions.iter().rev().map(candidate).collect()
    }

    pub(super) fn authors(&self) -> Vec<Candidate> {
        let mut found = vec![
            Candidate::new("you", "your own changes"),
            Candidate::new("agent", "what any agent changed"),
        ];
        for agent in self.all_sessions().into_iter().rev().filter_map(|session| session.agent) {
            let candidate = Candidate::new(agent, "what this agent changed");
            if !found.contains(&candidate) {
                found.push(candidate);
            }
        }
        found.extend(self.sessions());
        found
    }

    /// Every recorded path in the workspace, also those that are gone.
    pub(super) fn paths(&self) -> Vec<String> {
        let latest = self.store.latest().unwrap_or_default();
        let inside = latest.into_iter().filter(|(path, _)| !path.is_outside());
        let text = |(path, entry): (WorkPath, Entry)| {
            let slash = if matches!(entry, Entry::Dir { .. }) { "/" } else { "" };
            Some(format!("{}{slash}", std::str::from_utf8(path.as_bytes()).ok()?))
        };
        inside.filter_map(text).collect()
    }

    pub(super) fn executions(&self) -> Vec<Candidate> {
        let found = self.states().and_then(|states| states.executions().ok());
        let executions = found.map(|found| found.executions).unwrap_or_default();
        let candidate = |execution: Execution| {
            let steps = execution.checkpoints;
            Candidate::new(execution.id.to_string(), format!("{steps} checkpoints"))
        };
        executions.into_iter().map(candidate).collect()
    }

    /// The checkpoints of the newest executions.
    pub(super) fn checkpoints(&self) -> Vec<Candidate> {
        const EXECUTIONS: usize = 5;
        let Some(states) = self.states() else { return Vec::new() };
        let executions = states.executions().map(|found| found.executions).unwrap_or_default();
        let mut found = Vec::new();
        for execution in executions.iter().take(EXECUTIONS) {
            let query = ListQuery {
                execution: &execution.id,
                scope: ListScope::Branch(None),
                after: None,
                limit: None,
            };
            let records = states.list(&query).map(|page| page.records).unwrap_or_default();
            let named = records.iter().map(|record| (record.id(), &record.step_name));
            found.extend(named.map(|(id, step)| Candidate::new(id.to_string(), step)));
        }
        found
    }

    pub(super) fn branches(&self, execution: &str) -> Vec<Candidate> {
        let found = self.states().and_then(|states| states.executions().ok());
        let executions = found.map(|found| found.executions).unwrap_or_default();
        let named = executions.into_iter().find(|found| found.id.to_string() == execution);
        let branches = named.map(|execution| execution.branches).unwrap_or_default();
        branches.iter().map(|branch| Candidate::new(branch.to_string(), "")).collect()
    }

    fn all_sessions(&self) -> Vec<Session> {
        self.store.sessions().unwrap_or_default()
    }

    fn states(&self) -> Option<Arc<dyn States>> {
        let settings = Settings::load(&self.location.root, &self.location.home).ok()?;
        let folder = stores::store_of(&self.location.root, &self.location.home);
        Some(stores::open_states(&folder, &self.location.home, &settings.states_medium()))
    }
}

fn described(point: &Point) -> String {
    let text = point.label.as_deref().unwrap_or(&point.description);
    format!("{} ({})", shorten(text, WIDTH), ago(point.created_at, now()))
}
