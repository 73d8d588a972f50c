//! Ends of calls that no hook reported, from the agents' transcripts and the running processes.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use takeback_agents::{AgentKind, TranscriptEnd, TranscriptEndKind as Told, agent_named};
use takeback_core::{CallEndSource, EndKind, LearnedEnd, process};
use takeback_store::{Call, CallState, Session};

use crate::heartbeat::Heartbeat;
use crate::installed_agents;

/// Knows where the agents of a home write their transcripts.
pub(crate) struct TranscriptWitness {
    pub(crate) home: PathBuf,
    pub(crate) root: PathBuf,
}

impl CallEndSource for TranscriptWitness {
    fn ends_of(&self, session: &Session, calls: &[Call]) -> Vec<LearnedEnd> {
        let agent = session.agent.as_deref().and_then(agent_named);
        let (background, calls): (Vec<&Call>, Vec<&Call>) =
            calls.iter().partition(|call| call.state == CallState::Background);
        let transcript = agent
            .filter(|_| !calls.is_empty())
            .and_then(|agent| Some((agent, end_of(&self.transcript_of(agent, session)?)?)));
        let told = transcript.map_or_else(Vec::new, |(agent, text)| {
            let ids: Vec<&str> = calls.iter().map(|call| call.id.0.as_str()).collect();
            agent.transcript.ends(&text, &ids)
        });
        let mut ends: Vec<LearnedEnd> =
            told.iter().filter_map(|end| self.learned(session, &calls, end)).collect();
        ends.extend(background.into_iter().filter(|call| self.is_over(session, call)).map(
            |call| LearnedEnd {
                session: session.id.clone(),
                call: call.id.clone(),
                how: EndKind::Finished,
                at: None,
                took: None,
            },
        ));
        ends
    }
}

impl TranscriptWitness {
    /// Combines a transcript's entry with the running processes.
    fn learned(
        &self,
        session: &Session,
        calls: &[&Call],
        told: &TranscriptEnd,
    ) -> Option<LearnedEnd> {
        let call = calls.iter().find(|call| call.id.0 == told.call)?;
        // It belongs to an earlier, identical call.
        if told.at.is_some_and(|at| at < call.opened_at) {
            return None;
        }
        let runs = || {
            let owner = session.owner?;
            Some(process::has_running(owner, call.opened_at, told.at, &self.root))
        };
        let how = match told.how {
            Told::Finished => EndKind::Finished,
            Told::Rejected => EndKind::Rejected,
            Told::Interrupted if runs() == Some(true) => return None,
            Told::Interrupted => EndKind::Interrupted,
            // The call still runs, was refused, or was killed with the turn.
            Told::Abandoned if runs() == Some(false) => EndKind::Unknown,
            Told::Abandoned => return None,
        };
        let (session, call) = (session.id.clone(), call.id.clone());
        Some(LearnedEnd { session, call, how, at: told.at, took: told.took })
    }

    /// Whether no process runs that the call may have started in the background.
    fn is_over(&self, session: &Session, call: &Call) -> bool {
        session.owner.is_some_and(|owner| {
            !process::is_alive(owner)
                || !process::has_running(owner, call.opened_at, None, &self.root)
        })
    }

    fn transcript_of(&self, agent: &AgentKind, session: &Session) -> Option<PathBuf> {
        let whole = session.whole().unwrap_or(&session.id);
        let known = Heartbeat::of(&self.home, agent.name, &whole.0)
            .and_then(|heartbeat| heartbeat.transcript);
        let transcript = known.or_else(|| {
            let homes = installed_agents::homes().ok()?;
            agent.transcript.path?(&agent.home.path(&homes), &whole.0)
        })?;
        match session.part() {
            Some(part) => {
                let own = agent.transcript.subagent_path.and_then(|path| path(&transcript, part));
                own.or(Some(transcript))
            }
            None => Some(transcript),
        }
    }
}

/// The end of a transcript, large enough for the newest prompt and its calls.
pub(crate) fn end_of(transcript: &Path) -> Option<Vec<u8>> {
    last_bytes(transcript, 1 << 20)
}

/// The end of a transcript, large enough for the model's last answer.
pub(crate) fn last_answer(transcript: &Path) -> Option<Vec<u8>> {
    last_bytes(transcript, 1 << 17)
}

fn last_bytes(transcript: &Path, most: u64) -> Option<Vec<u8>> {
    let mut file = File::open(transcript).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most))).ok()?;
    let mut end = Vec::new();
    file.take(most).read_to_end(&mut end).ok()?;
    Some(end)
}
