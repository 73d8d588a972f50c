//! Conflicts that an operation left open, and the change that settles them.

use std::collections::BTreeSet;

use takeback_store::{
    Digest, Entry, IN_PART, PackedBlob, RewindId, RewindKind, RewindRecord, Seq, Store, WorkPath,
};

use super::conflict::LineConflict;
use super::error::RewindError;
use super::history::past_rewinds;
use super::journal;
use super::plan::{Step, Verdict};
use super::request::IncomingChange;
use super::target::is_taken_back;
use crate::workspace::Workspace;

/// A file with conflicts that are not settled yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenConflict {
    /// The operation that left it.
    pub operation: RewindId,
    /// The file.
    pub path: WorkPath,
    /// Why it is one.
    pub reason: String,
    /// What the operation left there.
    pub left: Entry,
    /// The places. Empty: it is about the file as a whole.
    pub lines: Vec<LineConflict>,
    /// What would be there instead, if it is about the file as a whole.
    pub instead: Option<Entry>,
    cancels: Vec<Seq>,
}

/// How a conflict is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// As it is now.
    Mine,
    /// As it was before the change that should have been taken back.
    Before,
    /// Other lines.
    Text(Vec<u8>),
}

/// The conflicts of the newest operation in effect that are still open, by path.
pub fn open_conflicts(workspace: &Workspace) -> Result<Vec<OpenConflict>, RewindError> {
    let past = past_rewinds(workspace)?;
    let mut settled: BTreeSet<WorkPath> = BTreeSet::new();
    let mut open = Vec::new();
    for record in workspace.store.rewinds()?.into_iter().rev() {
        if is_taken_back(&past, record.id) || record.receipt.is_none() {
            continue;
        }
        let plan = journal::plan_of(&record)
            .map_err(|source| RewindError::DamagedPlan { id: record.id, source })?;
        let is_resolve = matches!(record.kind, RewindKind::Resolve { .. });
        for step in plan.steps {
            if settled.contains(&step.path) {
                continue;
            }
            if is_resolve {
                settled.insert(step.path.clone());
            }
            open.extend(conflict_of(&record, step));
        }
        // An undo without conflicts of its own: what it took back was left out above, and the operation
        // before that is the newest in effect.
        let goes_on = is_resolve || !record.kind.is_undoable() && open.is_empty();
        if !goes_on {
            break;
        }
    }
    open.sort_by(|a: &OpenConflict, b| a.path.cmp(&b.path));
    Ok(open)
}

fn conflict_of(record: &RewindRecord, step: Step) -> Option<OpenConflict> {
    let reason = match &step.verdict {
        Verdict::Conflict { reason } => reason.clone(),
        _ if !step.lines.is_empty() => super::merge::SAME_LINES.to_owned(),
        _ => return None,
    };
    let left = step.goal().unwrap_or_else(|| step.present.clone());
    // A file that stays as a whole is settled as a whole, although it stays for some lines.
    let lines = if step.instead.is_some() { Vec::new() } else { step.lines };
    Some(OpenConflict {
        operation: record.id,
        path: step.path,
        reason,
        left,
        lines,
        instead: step.instead,
        cancels: step.cancels,
    })
}

impl OpenConflict {
    /// The change that settles the conflicts as chosen: one choice for each place, or for the file.
    /// `None`: this place stays open. Puts new contents into the store.
    pub fn settle(
        &self,
        store: &mut dyn Store,
        choices: &[Option<Choice>],
    ) -> Result<Option<IncomingChange>, RewindError> {
        let change = |entry, cancels, lines| {
            let (path, base) = (self.path.clone(), self.left.clone());
            Some(IncomingChange { path, base, entry, cancels, lines })
        };
        let mut cancels = self.cancels.clone();
        cancels.retain(|seq| *seq != IN_PART);
        if self.lines.is_empty() {
            return Ok(match choices.first() {
                Some(Some(Choice::Mine)) => change(self.left.clone(), cancels, Vec::new()),
                Some(Some(Choice::Before)) => {
                    self.instead.clone().and_then(|entry| change(entry, cancels, Vec::new()))
                }
                _ => None,
            });
        }
        if choices.iter().all(Option::is_none) {
            return Ok(None);
        }
        let Entry::File { digest, mode, .. } = self.left else { return Ok(None) };
        let (text, lines) = self.settled(&store.contents(&digest)?, choices);
        if !lines.is_empty() && !cancels.is_empty() {
            cancels.insert(0, IN_PART);
        }
        let entry = Entry::File { digest: Digest::of(&text), size: text.len() as u64, mode };
        if entry != self.left {
            store.put(PackedBlob::new(text))?;
        }
        Ok(change(entry, cancels, lines))
    }

    /// The change that settles all conflicts of the file: it becomes this text.
    pub fn settle_as(
        &self,
        store: &mut dyn Store,
        text: Vec<u8>,
    ) -> Result<Option<IncomingChange>, RewindError> {
        let Entry::File { mode, .. } = self.left else { return Ok(None) };
        let entry = Entry::File { digest: Digest::of(&text), size: text.len() as u64, mode };
        store.put(PackedBlob::new(text))?;
        let mut cancels = self.cancels.clone();
        cancels.retain(|seq| *seq != IN_PART);
        let (path, base) = (self.path.clone(), self.left.clone());
        Ok(Some(IncomingChange { path, base, entry, cancels, lines: Vec::new() }))
    }

    /// The text that the operation left, with these choices.
    #[must_use]
    pub fn text_with(&self, left: &[u8], choices: &[Option<Choice>]) -> Vec<u8> {
        self.settled(left, choices).0
    }

    /// The text with the choices, and the places that stay open.
    fn settled(&self, text: &[u8], choices: &[Option<Choice>]) -> (Vec<u8>, Vec<LineConflict>) {
        let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        let count = |text: &[u8]| text.split_inclusive(|&byte| byte == b'\n').count();
        let mut made = Vec::new();
        let mut open = Vec::new();
        let (mut copied, mut made_lines) = (0, 0);
        for (at, place) in self.lines.iter().enumerate() {
            let start = (place.line - 1).min(lines.len());
            let end = (start + place.count).min(lines.len());
            made.extend(lines[copied..start].concat());
            made_lines += start - copied;
            let here = lines[start..end].concat();
            let becomes = match choices.get(at).and_then(Option::as_ref) {
                // Between conflict markers, mine is not what is there.
                Some(Choice::Mine) => place.mine.0.clone(),
                Some(Choice::Before) => place.before.0.clone(),
                Some(Choice::Text(text)) => text.clone(),
                None => {
                    open.push(LineConflict { line: made_lines + 1, ..place.clone() });
                    here
                }
            };
            made_lines += count(&becomes);
            made.extend(becomes);
            copied = end;
        }
        made.extend(lines[copied..].concat());
        (made, open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewind::conflict::LineText;

    fn place(line: usize, mine: &str, before: &str) -> LineConflict {
        LineConflict {
            line,
            count: mine.lines().count(),
            mine: LineText(mine.into()),
            before: LineText(before.into()),
        }
    }

    fn conflict(lines: Vec<LineConflict>) -> OpenConflict {
        OpenConflict {
            operation: RewindId(1),
            path: WorkPath::new(b"a").unwrap(),
            reason: String::new(),
            left: Entry::Absent,
            lines,
            instead: None,
            cancels: Vec::new(),
        }
    }

    #[test]
    fn each_place_becomes_what_was_chosen() {
        let text = b"1\nmine\n3\nmine too\nof two\n5\n";
        let places = vec![place(2, "mine\n", "old\nolder\n"), place(4, "mine too\nof two\n", "")];
        let conflict = conflict(places.clone());
        let settled = |choices: &[Option<Choice>]| {
            let (text, open) = conflict.settled(text, choices);
            (String::from_utf8(text).unwrap(), open)
        };
        let (before, mine) = (Some(Choice::Before), Some(Choice::Mine));
        let all = settled(&[before.clone(), before.clone()]);
        assert_eq!(all, ("1\nold\nolder\n3\n5\n".to_owned(), Vec::new()));
        let kept = settled(&[mine.clone(), mine]);
        assert_eq!(kept, (String::from_utf8(text.to_vec()).unwrap(), Vec::new()));
        let edited = settled(&[Some(Choice::Text(b"x\n".to_vec())), before.clone()]);
        assert_eq!(edited, ("1\nx\n3\n5\n".to_owned(), Vec::new()));
        // The place below moves.
        let half = settled(&[before, None]);
        assert_eq!(half.0, "1\nold\nolder\n3\nmine too\nof two\n5\n");
        assert_eq!(half.1, [LineConflict { line: 5, ..places[1].clone() }]);
    }
}
