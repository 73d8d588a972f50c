//! The manifest of an execution: its lines, retries and effects, and what a crashed writer left
//! undone. Pure data; other modules read and write the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{RewindId, SessionId, Timestamp};
use crate::state::{Attempt, Effect, ExecutionId, LineId, StepIndex};

/// The line that every execution begins with. Files of other programs are on it.
pub(super) const FIRST_LINE: LineId = LineId(1);

/// Identifies a checkpoint within its execution.
pub(super) type Place = (StepIndex, Attempt);

/// The contents of `execution/{execution}.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) execution_id: ExecutionId,
    /// Incremented by every write of this file, so that readers notice a concurrent write.
    pub(super) revision: u64,
    /// The session that saved to it last.
    pub(super) session: Option<SessionId>,
    /// The number of checkpoints ever saved.
    pub(super) saves: u64,
    /// The current line.
    pub(super) line: LineId,
    pub(super) lines: BTreeMap<u64, Line>,
    /// The highest attempt of each step that had more than one.
    pub(super) attempts: BTreeMap<u32, Attempt>,
    /// The attempts that got the short file name back although another program wrote them, by step.
    pub(super) foreign: BTreeMap<u32, Attempt>,
    pub(super) retries: BTreeMap<u32, u32>,
    pub(super) effects: Vec<StoredEffect>,
    pub(super) moves: Vec<StoredMove>,
    /// The last save that was started. It is written before the checkpoint's file, so the save
    /// happened only if that file exists.
    pub(super) saving: Option<PendingSave>,
    /// Whether file names may not match the current line yet, because a rename was interrupted.
    pub(super) unsettled: bool,
    /// Whether the execution is being deleted; the next writer finishes that.
    pub(super) deleted: bool,
    /// Names of earlier manifests of this execution that were damaged and set aside. Their effects
    /// are unknown.
    pub(super) lost: Vec<String>,
    /// Checkpoints that were deleted on purpose. `None` if the manifest was rebuilt from the
    /// checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) removed: Option<Vec<DeletedCheckpoint>>,
}

/// A checkpoint that was deleted on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeletedCheckpoint {
    pub(super) position: u64,
    pub(super) place: Place,
}

/// A sequence of checkpoints, each the parent of the next.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Line {
    /// Where it branches off another line; `None` if it does not.
    pub(super) from: Option<LineOrigin>,
    pub(super) head: Option<Place>,
}

/// The checkpoint of another line after which a line begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LineOrigin {
    pub(super) line: LineId,
    pub(super) position: u64,
    pub(super) step: StepIndex,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PendingSave {
    pub(super) step: StepIndex,
    pub(super) attempt: Attempt,
    pub(super) position: u64,
    pub(super) session: Option<SessionId>,
    pub(super) succeeds: bool,
    /// Whether an earlier attempt had the file name before.
    pub(super) replaces: bool,
    /// How many files of that name had been set aside before the save.
    pub(super) asides: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredMove {
    pub(super) by: RewindId,
    pub(super) from: LineId,
    pub(super) to: LineId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredEffect {
    pub(super) key: String,
    pub(super) step: Option<StepIndex>,
    pub(super) intent: Value,
    pub(super) intended_at: Timestamp,
    pub(super) receipt: Option<StoredReceipt>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredReceipt {
    pub(super) receipt: Value,
    pub(super) received_at: Timestamp,
}

impl StoredEffect {
    pub(super) fn effect(&self) -> Effect {
        let Self { key, step, intent, intended_at, receipt } = self.clone();
        let receipt = receipt.map(|kept| (kept.receipt, kept.received_at));
        Effect { key, step, intent, intended_at, receipt }
    }
}

/// The position of a checkpoint, as its file gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) line: LineId,
    /// The number of the save; 0 if another program wrote it.
    pub(super) position: u64,
    pub(super) parent: Option<Place>,
    /// Whether its file has the name of the newest attempt on the current line.
    pub(super) is_named_newest: bool,
}

impl Entry {
    /// Sorts by save; files of other programs come first, by step.
    fn order(&self) -> (u64, StepIndex) {
        (self.position, self.place.0)
    }
}

impl Manifest {
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

    /// Rebuilds the manifest from the checkpoints: the lines from their contents, the current line
    /// from their file names.
    pub(super) fn rebuilt(execution: &ExecutionId, entries: &[Entry]) -> Self {
        let mut manifest = Self { removed: None, ..Self::begin(execution) };
        manifest.saves = entries.iter().map(|entry| entry.position).max().unwrap_or(0);
        for entry in entries {
            manifest.note_attempt(entry.place);
            manifest.lines.entry(entry.line.0).or_default();
        }
        let by_place: BTreeMap<_, _> = entries.iter().map(|entry| (entry.place, entry)).collect();
        let ids: Vec<_> = manifest.lines.keys().copied().collect();
        for id in &ids {
            let own = entries.iter().filter(|entry| entry.line.0 == *id);
            let parent = own.min_by_key(|entry| entry.order()).and_then(|first| first.parent);
            let from = parent
                .and_then(|parent| by_place.get(&parent))
                .filter(|parent| parent.line.0 < *id)
                .map(|parent| parent.from());
            manifest.lines.insert(*id, Line { from, head: None });
        }
        for id in &ids {
            let head = manifest.last_on(LineId(*id), entries);
            manifest.lines.entry(*id).or_default().head = head;
        }
        let named = entries.iter().filter(|entry| entry.is_named_newest);
        if let Some(newest) = named.max_by_key(|entry| entry.order())
            && ids != [FIRST_LINE.0]
        {
            manifest.line = manifest.add_line(newest);
        }
        manifest
    }

    /// Whether the manifest is empty because the first save was interrupted.
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

    /// Records that the pending save happened.
    pub(super) fn finish_save(&mut self, saving: PendingSave) {
        let place = (saving.step, saving.attempt);
        self.set_head(place);
        self.note_attempt(place);
        self.saves = saving.position;
        self.session = saving.session.or(self.session.take());
        if saving.succeeds {
            self.retries.remove(&saving.step.0);
        }
    }

    /// Adds a line that begins after a checkpoint.
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

    /// The last checkpoint of a line among the existing ones.
    pub(super) fn last_on(&self, line: LineId, entries: &[Entry]) -> Option<Place> {
        let seen = entries.iter().filter(|entry| self.sees(line, entry));
        seen.max_by_key(|entry| (entry.order(), entry.place.1)).map(|entry| entry.place)
    }

    /// Moves heads whose checkpoint is gone to the last one that is left before it.
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
            // A line always begins on an older line; anything else is damage and would loop.
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
    fn from(&self) -> LineOrigin {
        LineOrigin { line: self.line, position: self.position, step: self.place.0 }
    }
}
