//! What was seen and decided becomes one commit: changes with their authors, the event's own traces,
//! and perhaps a point.

use takeback_store::{
    Author, Call, CallKind, Change, Entry, Evidence, Head, Lack, Point, PointKind, Seq, StoreError,
    Timestamp, WorkPath, Write,
};

use super::decide::{Decision, Now, PointAt};
use super::sight::Sight;
use super::unseen::{Judgement, Unseen};
use super::{RecordError, Recorded};
use crate::author::{Found, Scene};
use crate::ends::LearnedEnd;
use crate::git_state::git_state;
use crate::workspace::Workspace;

/// Appends what was seen and decided, trying again as long as others come first.
pub(super) fn commit(
    workspace: &mut Workspace,
    mut sight: Sight,
    ends: &[LearnedEnd],
    mut decide: impl FnMut(&Now) -> Result<Decision, RecordError>,
) -> Result<Recorded, RecordError> {
    let learned_at = if ends.is_empty() { Timestamp(0) } else { (workspace.ambient.now)() };
    loop {
        let head = workspace.store.head()?;
        sight.catch_up(workspace, head)?;
        let now = Now::read(&*workspace.store, ends, learned_at)?;
        let decision = decide(&now)?;
        let is_whole = sight.index.is_some();
        let buried = if is_whole { now.buried(decision.time) } else { Vec::new() };
        // A command may have written anywhere: only a look at the whole tree takes in all of it.
        let closed = now.ended.iter().filter(|call| is_whole || is_edit(call)).cloned();
        let closed: Vec<Write> = closed.map(Write::Call).collect();
        let mut scene = decision.scene.unwrap_or_else(|| now.scene.clone());
        let (Authored { changes: mut writes, filled_in, not_captured }, awake) =
            authored(workspace, &sight, &mut scene, head, decision.time)?;
        let seq = Seq(head.seq.0 + writes.len() as u64);
        let unreadable = sight.unreadable.clone();
        let stats = sight.stats;
        let mut recorded = Recorded { stats, not_captured, unreadable, ..Recorded::nothing(seq) };
        recorded.changes = writes.len();
        let unread = Entry::NotCaptured { lack: Lack::Deadline };
        recorded.unfinished =
            sight.index.is_some() && sight.found.iter().any(|observed| observed.after == unread);
        if recorded.unfinished {
            super::want_the_rest(workspace)?;
        }
        writes.extend(filled_in.into_iter().map(Write::ReplaceChange));
        writes.extend(awake);
        writes.extend(closed);
        writes.extend(buried);
        writes.extend(decision.writes);
        // A step that found everything as at the session's last point needs none of its own.
        let standing = match &decision.point {
            Some(point) if point.kind == PointKind::Step => now.point_at(seq, &point.session)?,
            _ => decision.standing,
        };
        recorded.point = standing;
        if let Some(point) = decision.point.filter(|_| standing.is_none()) {
            recorded.point = Some(point.id);
            writes.push(Write::Point(Point {
                id: point.id,
                seq: match decision.point_at {
                    PointAt::BeforeWhatWasSeen => head.seq,
                    PointAt::AfterWhatWasSeen => seq,
                },
                session: point.session,
                kind: point.kind,
                description: point.description,
                label: point.label,
                pinned: false,
                created_at: decision.time,
                message_ids: point.message.into_iter().collect(),
                git: git_state(workspace.root.path()),
                vouched: sight.vouched(),
            }));
        }
        let worth = !writes.is_empty() || workspace.store.last_scan()?.is_none();
        if let Some(scanned) = decision.scanned.filter(|_| worth) {
            writes.push(Write::Scanned(scanned));
        }
        if writes.is_empty() {
            sight.save_index(workspace, head);
            return Ok(recorded);
        }
        match workspace.store.commit(head, &writes) {
            Ok(head) => {
                drop(writes);
                sight.save_index(workspace, head);
                return Ok(recorded);
            }
            Err(StoreError::Moved) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// About as many as an event leaves besides its changes.
const MORE_WRITES: usize = 8;

/// What a sight means for the log.
struct Authored {
    /// Nothing else; as writes, since a first scan has very many of them.
    changes: Vec<Write>,
    not_captured: Vec<(WorkPath, Lack)>,
    /// Changes of which it is known by now what they left: the file is still the very same, and there
    /// was time to read it.
    filled_in: Vec<Change>,
}

fn is_edit(call: &Call) -> bool {
    matches!(call.kind, CallKind::Edit { .. })
}

/// The changes, and the calls in the background that were seen to be at work.
fn authored(
    workspace: &Workspace,
    sight: &Sight,
    scene: &mut Scene,
    head: Head,
    time: Timestamp,
) -> Result<(Authored, Vec<Write>), StoreError> {
    // Dates decide between calls; without any, there is nothing to decide.
    let unseen = Unseen::of(workspace, sight)?;
    let needs_dates = !scene.calls.is_empty() || !unseen.is_empty();
    let dates = if needs_dates { sight.dates(workspace) } else { Vec::new() };
    let date = |at: usize| dates.get(at).copied().flatten();
    let found: Vec<Found<'_>> = (0..)
        .zip(&sight.found)
        .map(|(at, one)| Found { path: &one.path, changed_at: date(at), found_at: time })
        .collect();
    let awake = scene.keep_awake(&found).into_iter().map(Write::Call).collect();
    let mut authored = Authored {
        changes: Vec::with_capacity(sight.found.len() + MORE_WRITES),
        not_captured: Vec::new(),
        filled_in: Vec::new(),
    };
    let same = sight.found.iter().filter(|observed| observed.same_file);
    let same: Vec<WorkPath> = same.map(|observed| observed.path.clone()).collect();
    let mut latest = workspace.store.latest_of(&same)?.into_iter();
    let mut seq = head.seq;
    for (observed, found) in sight.found.iter().zip(found) {
        if observed.same_file {
            match latest.next().flatten() {
                Some(change) if change.after == observed.before => {
                    let after = observed.after.clone();
                    authored.filled_in.push(Change { after, ..change });
                    continue;
                }
                // Somebody else was first.
                Some(change) if change.after == observed.after => continue,
                _ => {}
            }
        }
        let is_first_seen = sight.first_seen.contains(&observed.path);
        let (author, evidence) = match unseen.judge(observed, found, scene) {
            Some(Judgement::SameChange(change)) => {
                authored.filled_in.push(change);
                continue;
            }
            Some(Judgement::Whose(author, evidence)) => (author, evidence),
            // It came into sight; whose work it is, it does not say.
            None if is_first_seen => (Author::Human, Evidence::Named),
            None => scene.whose(found),
        };
        seq = seq.next();
        if let Entry::NotCaptured { lack } = observed.after {
            authored.not_captured.push((observed.path.clone(), lack));
        }
        authored.changes.push(Write::Change(Change {
            seq,
            path: observed.path.clone(),
            before: observed.before.clone(),
            after: observed.after.clone(),
            author,
            evidence,
            time,
            changed_at: found.changed_at,
            correction: None,
            cancels: Vec::new(),
        }));
    }
    Ok((authored, awake))
}
