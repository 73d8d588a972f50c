//! Whose change it is.

use std::collections::{BTreeMap, HashMap, HashSet};

use takeback_store::{
    Author, Call, CallId, CallKind, CallState, Evidence, Session, SessionId, Store, StoreError,
    WorkPath,
};

use crate::process;

/// Who may be writing right now.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    /// Calls that may write: open, overtaken, or in the background.
    pub calls: Vec<Call>,
    /// Calls of which it is not known whether they still ran.
    pub cut_off: HashSet<(SessionId, CallId)>,
    /// Sessions that did something of which only the end is known.
    pub unseen: Vec<SessionId>,
    /// Sessions that are parts of others: what several of them may have written is not in doubt.
    pub wholes: HashMap<SessionId, SessionId>,
}

impl Scene {
    /// As the store tells it. A call whose agent has died was cut off.
    pub fn read(store: &dyn Store, sessions: &[Session]) -> Result<Self, StoreError> {
        let calls = store.live_calls()?;
        let died = |id: &SessionId| {
            sessions
                .iter()
                .find(|session| session.id == *id)
                .and_then(|session| session.owner)
                .is_some_and(|owner| !process::is_alive(owner))
        };
        let cut_off = calls
            .iter()
            .filter(|call| died(&call.session))
            .map(|call| (call.session.clone(), call.id.clone()))
            .collect();
        let wholes = sessions
            .iter()
            .filter_map(|session| Some((session.id.clone(), session.whole()?.clone())))
            .collect();
        Ok(Self { calls, cut_off, unseen: Vec::new(), wholes })
    }

    /// From now on, whatever is found may be this session's.
    pub fn may_have_written(&mut self, session: &SessionId) {
        self.unseen.push(session.clone());
    }

    /// These were open when the look began, whatever others have told of them meanwhile: what was seen
    /// where they named something is theirs. If a command is over by now, the rest of what was seen may
    /// have come after it.
    pub fn were_open(&mut self, calls: &[Call]) {
        for call in calls {
            let same = |known: &&mut Call| (&known.session, &known.id) == (&call.session, &call.id);
            if let Some(known) = self.calls.iter_mut().find(same) {
                known.state = CallState::Open;
                continue;
            }
            if matches!(call.kind, CallKind::Shell { .. }) {
                self.calls.insert(0, Call { state: CallState::Overtaken, ..call.clone() });
            }
            let kind = CallKind::Edit { paths: call.kind.paths().to_vec() };
            self.calls.insert(0, Call { kind, ..call.clone() });
        }
    }

    /// The author of a change to `path` that happened just now.
    #[must_use]
    pub fn whose(&self, path: &WorkPath) -> (Author, Evidence) {
        let whole = |session| self.wholes.get(session).unwrap_or(session);
        let mut running: BTreeMap<&SessionId, &Call> = BTreeMap::new();
        let mut uncertain: Vec<&SessionId> = self.unseen.iter().map(whole).collect();
        for call in self.calls.iter().filter(|call| could_write(call, path)) {
            let known = call.state == CallState::Open
                && !self.cut_off.contains(&(call.session.clone(), call.id.clone()));
            if !known {
                uncertain.push(whole(&call.session));
                continue;
            }
            let rival = running.get(whole(&call.session));
            // A call that names the path comes before one that may write anything, the later one
            // before the earlier.
            if rival.is_none_or(|rival| names(call, path) || !names(rival, path)) {
                running.insert(whole(&call.session), call);
            }
        }
        let mut sessions: Vec<SessionId> =
            running.keys().copied().chain(uncertain).cloned().collect();
        sessions.sort();
        sessions.dedup();
        match (sessions.as_slice(), running.values().next()) {
            ([], _) => (Author::Human, Evidence::Tool),
            ([_], Some(call)) => {
                let author = Author::Agent {
                    session: call.session.clone(),
                    turn: call.turn,
                    call: call.id.clone(),
                    tool: call.tool.clone(),
                };
                let named = names(call, path);
                (author, if named { Evidence::Tool } else { Evidence::Window })
            }
            _ => (Author::Ambiguous { sessions }, Evidence::Window),
        }
    }
}

fn could_write(call: &Call, path: &WorkPath) -> bool {
    matches!(call.kind, CallKind::Shell { .. }) || names(call, path)
}

fn names(call: &Call, path: &WorkPath) -> bool {
    call.kind.paths().contains(path)
}
