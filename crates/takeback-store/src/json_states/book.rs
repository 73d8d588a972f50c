//! What is known of an execution beside its checkpoints: lines, retries, effects. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{RewindId, SessionId, Timestamp};
use crate::state::{Attempt, Effect, ExecutionId, LineId, StepIndex};

/// The line that every execution begins with, and that the files of other programs are on.
pub(super) const FIRST_LINE: LineId = LineId(1);

/// A checkpoint among those of its execution.
pub(super) type Place = (StepIndex, Attempt);

/// The file of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Book {
    pub(super) execution_id: ExecutionId,
    /// Every write of this file adds one.
    pub(super) revision: u64,
    /// The session that saved to it last.
    pub(super) session: Option<SessionId>,
    /// How many checkpoints were ever saved.
    pub(super) saves: u64,
    /// The current line.
    pub(super) line: LineId,
    pub(super) lines: BTreeMap<u64, Line>,
    /// The highest attempt of each step that had more than one.
    pub(super) attempts: BTreeMap<u32, Attempt>,
    /// The attempt of each step whose short name another program's file was given again.
    pub(super) foreign: BTreeMap<u32, Attempt>,
    pub(super) retries: BTreeMap<u32, u32>,
    pub(super) effects: Vec<KeptEffect>,
    pub(super) moves: Vec<KeptMove>,
    /// The last checkpoint that was to be saved. It was, if its file is there: this is written first.
    pub(super) saving: Option<Saving>,
    /// Whether the names of the files may not yet be those that the current line gives them.
    pub(super) unsettled: bool,
    /// Whether all of it is on its way out.
    pub(super) deleted: bool,
    /// Files like this one that were damaged and set aside, with the effects that were in them.
    pub(super) lost: Vec<String>,
    /// Checkpoints that were deleted on purpose. `None`: the file was rebuilt from the checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) removed: Option<Vec<Removed>>,
}

/// A checkpoint that was deleted on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Removed {
    pub(super) position: u64,
    pub(super) place: Place,
}

/// A run of checkpoints that follow one another.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Line {
    /// Where it leaves another line. `None`: it begins by itself.
    pub(super) from: Option<From>,
    pub(super) head: Option<Place>,
}

/// The checkpoint that a line goes on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct From {
    pub(super) line: LineId,
    pub(super) position: u64,
    pub(super) step: StepIndex,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Saving {
    pub(super) step: StepIndex,
    pub(super) attempt: Attempt,
    pub(super) position: u64,
    pub(super) session: Option<SessionId>,
    pub(super) succeeds: bool,
    /// Whether its file's name was another's before.
    pub(super) replaces: bool,
    /// How many files of that name had been set aside.
    pub(super) asides: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptMove {
    pub(super) by: RewindId,
    pub(super) from: LineId,
    pub(super) to: LineId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptEffect {
    pub(super) key: String,
    pub(super) step: Option<StepIndex>,
    pub(super) intent: Value,
    pub(super) intended_at: Timestamp,
    pub(super) receipt: Option<KeptReceipt>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptReceipt {
    pub(super) receipt: Value,
    pub(super) received_at: Timestamp,
}

impl KeptEffect {
    pub(super) fn effect(&self) -> Effect {
        let Self { key, step, intent, intended_at, receipt } = self.clone();
        let receipt = receipt.map(|kept| (kept.receipt, kept.received_at));
        Effect { key, step, intent, intended_at, receipt }
    }
}

/// What the file of a checkpoint says about where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) line: LineId,
    /// 0: another program wrote it.
    pub(super) position: u64,
    pub(super) parent: Option<Place>,
    /// Whether its file has the name of the newest attempt on the current line.
    pub(super) is_named_newest: bool,
}

impl Entry {
    /// By when it was saved; those of other programs first, by their steps.
    fn order(&self) -> (u64, StepIndex) {
        (self.position, self.place.0)
    }
}

impl Book {
    pub(super) fn begin(execution: &ExecutionId) -> Self {
        Self {
            execution_id: execution.clone(),
            revision: 0,
            session: None,
            saves: 0,
            line: FIRST_LINE,
            lines: BTreeMap::from([(FIRST_LINE.0, Line::default())]),
            attempts: BTreeMap::new(),
            foreign: BTreeMap::new(),
            retries: BTreeMap::new(),
            effects: Vec::new(),
            moves: Vec::new(),
            saving: None,
            unsettled: false,
            deleted: false,
            lost: Vec::new(),
            removed: Some(Vec::new()),
        }
    }

    /// What can be known of an execution without its file: its lines by what the checkpoints say, and
    /// as the current one what the names of the files say.
    pub(super) fn rebuilt(execution: &ExecutionId, entries: &[Entry]) -> Self {
        let mut book = Self { removed: None, ..Self::begin(execution) };
        book.saves = entries.iter().map(|entry| entry.position).max().unwrap_or(0);
        for entry in entries {
            book.note_attempt(entry.place);
            book.lines.entry(entry.line.0).or_default();
        }
        let by_place: BTreeMap<_, _> = entries.iter().map(|entry| (entry.place, entry)).collect();
        let ids: Vec<_> = book.lines.keys().copied().collect();
        for id in &ids {
            let own = entries.iter().filter(|entry| entry.line.0 == *id);
            let parent = own.min_by_key(|entry| entry.order()).and_then(|first| first.parent);
            let from = parent
                .and_then(|parent| by_place.get(&parent))
                .filter(|parent| parent.line.0 < *id)
                .map(|parent| parent.from());
            book.lines.insert(*id, Line { from, head: None });
        }
        for id in &ids {
            let head = book.last_on(LineId(*id), entries);
            book.lines.entry(*id).or_default().head = head;
        }
        let named = entries.iter().filter(|entry| entry.is_named_newest);
        if let Some(newest) = named.max_by_key(|entry| entry.order())
            && ids != [FIRST_LINE.0]
        {
            book.line = book.add_line(newest);
        }
        book
    }

    /// Whether nothing is known: its first save was cut off.
    pub(super) fn is_blank(&self) -> bool {
        let is_new = self.saves == 0 && self.lines.values().all(|line| line.head.is_none());
        is_new && self.effects.is_empty() && self.retries.is_empty() && self.lost.is_empty()
    }

    pub(super) fn head(&self) -> Option<Place> {
        self.lines.get(&self.line.0).and_then(|line| line.head)
    }

    pub(super) fn set_head(&mut self, head: Place) {
        self.lines.entry(self.line.0).or_default().head = Some(head);
    }

    pub(super) fn note_attempt(&mut self, (step, attempt): Place) {
        if attempt > Attempt::FIRST {
            let highest = self.attempts.entry(step.0).or_insert(attempt);
            *highest = attempt.max(*highest);
        }
    }

    /// What was to be saved was.
    pub(super) fn has_saved(&mut self, saving: Saving) {
        let place = (saving.step, saving.attempt);
        self.set_head(place);
        self.note_attempt(place);
        self.saves = saving.position;
        self.session = saving.session.or(self.session.take());
        if saving.succeeds {
            self.retries.remove(&saving.step.0);
        }
    }

    /// Makes a line that goes on from a checkpoint.
    pub(super) fn add_line(&mut self, from: &Entry) -> LineId {
        let id = self.lines.last_key_value().map_or(FIRST_LINE.0, |(last, _)| last + 1);
        self.lines.insert(id, Line { from: Some(from.from()), head: Some(from.place) });
        LineId(id)
    }

    /// The newest attempt of each step on a line.
    pub(super) fn newest_on(
        &self,
        line: LineId,
        entries: &[Entry],
    ) -> BTreeMap<StepIndex, Attempt> {
        let mut seen: Vec<_> = entries.iter().filter(|entry| self.sees(line, entry)).collect();
        seen.sort_by_key(|entry| (entry.position, entry.place.1));
        seen.into_iter().map(|entry| entry.place).collect()
    }

    /// The checkpoint that was saved to a line last, of those that are there.
    pub(super) fn last_on(&self, line: LineId, entries: &[Entry]) -> Option<Place> {
        let seen = entries.iter().filter(|entry| self.sees(line, entry));
        seen.max_by_key(|entry| (entry.order(), entry.place.1)).map(|entry| entry.place)
    }

    /// Heads that are no longer there are what is left before them.
    pub(super) fn mend_heads(&mut self, entries: &[Entry]) {
        let gone = |line: &Line| {
            line.head.is_some_and(|head| entries.iter().all(|entry| entry.place != head))
        };
        let gone: Vec<_> =
            self.lines.iter().filter(|(_, line)| gone(line)).map(|(id, _)| *id).collect();
        for id in gone {
            let head = self.last_on(LineId(id), entries);
            self.lines.entry(id).or_default().head = head;
        }
    }

    fn sees(&self, line: LineId, entry: &Entry) -> bool {
        let mut line = line;
        if entry.line == line {
            return true;
        }
        while let Some(from) = self.lines.get(&line.0).and_then(|line| line.from) {
            // A line goes on from one that was there before it.
            if from.line >= line {
                return false;
            }
            if entry.line == from.line {
                return entry.order() <= (from.position, from.step);
            }
            line = from.line;
        }
        false
    }
}

impl Entry {
    fn from(&self) -> From {
        From { line: self.line, position: self.position, step: self.place.0 }
    }
}
