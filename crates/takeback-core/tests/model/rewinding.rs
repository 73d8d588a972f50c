//! Rewinds of a run, compared with the oracle.

use super::*;

impl Run {
    pub(super) fn rewind_as(&mut self, asked: &Asked) -> Result<(), String> {
        let points = self.oracle.points.len();
        if points == 0 {
            return Ok(());
        }
        let mut target = points - 1 - asked.point % points;
        // A point of which not all was looked at makes no promise beyond its session's changes.
        if asked.exact {
            while self.oracle.points[target].tree.is_none()
                && self.oracle.points[target].safety_of.is_none()
            {
                if target == 0 {
                    return Ok(());
                }
                target -= 1;
            }
        }
        let whose = match asked.whose {
            AskedWhose::ThePoints => None,
            AskedWhose::Only(session) => Some(Whose::Only(BTreeSet::from([session]))),
            AskedWhose::AllAgents => Some(Whose::All),
        };
        let ask = Ask {
            target: Target::Point(target),
            whose,
            exact: asked.exact,
            take_ambiguous: asked.take_ambiguous,
            paths: asked.paths.clone(),
        };
        self.rewind(&ask, asked.preview)
    }

    pub(super) fn rewind(&mut self, ask: &Ask, shown: bool) -> Result<(), String> {
        let request = self.request(ask);
        let before = tree(&self.sandbox);
        let times_before = self.times();
        let as_it_was = match ask.target {
            Target::Point(at) if ask.exact => self.oracle.points[at].tree.clone(),
            _ => None,
        };
        let preview = match shown {
            true => {
                Some(preview(&mut self.sandbox.workspace, &request).map_err(|e| e.to_string())?)
            }
            false => None,
        };
        let mut answer = rewind::rewind(&mut self.sandbox.workspace, &request, preview.as_ref());
        if matches!(answer, Err(RewindError::RewoundNothing)) {
            if !std::mem::take(&mut self.rewound_nothing) || ask.target != Target::Undo {
                return Err("the last rewind did something".to_owned());
            }
            answer = rewind::rewind(&mut self.sandbox.workspace, &request, preview.as_ref());
        }
        let receipt = match (answer, self.oracle.rewind(ask)) {
            (
                Err(
                    RewindError::NothingToUndo
                    | RewindError::NothingToRedo
                    | RewindError::SessionDeleted,
                ),
                None,
            ) => return Ok(()),
            (Ok(receipt), Some(expected)) => {
                self.as_expected(&receipt, &expected, &before)?;
                receipt
            }
            (Err(error), Some(_)) => return Err(format!("it fails: {error} ({error:?})")),
            (answer, None) => {
                return Err(format!("there is nothing to do, but it answers {answer:?}"));
            }
        };
        if let Some(preview) = preview {
            same("what was shown and what was done", &lists(&preview.receipt()), &lists(&receipt))?;
        }
        let after = tree(&self.sandbox);
        let is_rewind = matches!(ask.target, Target::Point(_));
        self.rewound_nothing = receipt.rewind.is_none() && (is_rewind || self.rewound_nothing);
        self.rewinds.extend(receipt.rewind);
        if receipt.rewind.is_some() {
            self.oracle
                .add_safety_point(receipt.safety_point.ok_or("a rewind makes a safety point")?);
        }
        self.untouched_files_keep_their_times(&times_before, &receipt)?;
        if let Some((opposite, just_before)) = self.just_before.take()
            && opposite == ask.target
        {
            same("the tree, taken back at once", &after, &just_before)?;
        }
        self.just_before = match ask.target {
            _ if receipt.rewind.is_none() => None,
            Target::Point(_) => Some((Target::Undo, before)),
            Target::Undo => Some((Target::Redo, before)),
            // What is undone next is the rewind; an undo of it may have done more.
            Target::Redo => None,
        };
        let all = ask.paths.is_empty() && receipt.success && !self.scope_changes;
        match as_it_was {
            Some(as_it_was) if all => same("the whole tree as it was", &after, &as_it_was),
            _ => Ok(()),
        }
    }

    pub(super) fn request(&self, ask: &Ask) -> RewindRequest {
        let target = match ask.target {
            Target::Point(at) => rewind::Target::Point(self.oracle.points[at].id),
            Target::Undo => rewind::Target::Undo,
            Target::Redo => rewind::Target::Redo,
        };
        let whose = ask.whose.as_ref().map(|whose| match whose {
            Whose::All => rewind::RewindScope::AllAgents,
            Whose::Only(sessions) => rewind::RewindScope::Sessions(
                sessions.iter().copied().map(SessionId::from).collect(),
            ),
        });
        RewindRequest {
            scope: whose,
            paths: ask.paths.iter().map(|path| (*path).to_owned()).collect(),
            exactness: if ask.exact { Exactness::Exact } else { Exactness::AgentsOnly },
            ambiguous: if ask.take_ambiguous {
                AmbiguousPolicy::Take
            } else {
                AmbiguousPolicy::Leave
            },
            ..RewindRequest::new(target)
        }
    }

    fn as_expected(
        &self,
        receipt: &Receipt,
        expected: &Expected,
        before: &Tree,
    ) -> Result<(), String> {
        let after = tree(&self.sandbox);
        let log = || self.told_log();
        same("the tree", &after, &self.oracle.disk)
            .map_err(|e| format!("{e}\n{receipt:?}\n{}", log()))?;
        same("the receipt", &lists(receipt), expected)
            .map_err(|e| format!("{e}\n{receipt:?}\n{}", log()))?;
        let changed = |path: &&String| before.get(*path) != after.get(*path);
        let restored: BTreeSet<String> = after.keys().filter(changed).cloned().collect();
        let deleted: BTreeSet<String> =
            before.keys().filter(|path| !after.contains_key(*path)).cloned().collect();
        same(
            "what was restored on disk and what the receipt says",
            &restored,
            &lists(receipt).restored,
        )?;
        same(
            "what was deleted on disk and what the receipt says",
            &deleted,
            &lists(receipt).deleted,
        )?;
        let left = [&receipt.conflicts, &receipt.ambiguous, &receipt.not_captured];
        same("success", &receipt.success, &left.iter().all(|list| list.is_empty()))?;
        if !receipt.errors.is_empty() {
            return Err(format!("errors: {:?}", receipt.errors));
        }
        same(
            "a rewind was recorded",
            &receipt.rewind.is_some(),
            &!(restored.is_empty() && deleted.is_empty()),
        )
    }

    pub(super) fn times(&self) -> BTreeMap<String, (i64, i64, u64)> {
        let things = tree(&self.sandbox).into_iter();
        things
            .filter(|(_, thing)| !matches!(thing, Thing::Folder { .. }))
            .map(|(path, _)| {
                let metadata = fs::symlink_metadata(self.sandbox.at(&path)).expect("it is there");
                (path, (metadata.mtime(), metadata.mtime_nsec(), metadata.ino()))
            })
            .collect()
    }

    fn untouched_files_keep_their_times(
        &self,
        before: &BTreeMap<String, (i64, i64, u64)>,
        receipt: &Receipt,
    ) -> Result<(), String> {
        let Expected { restored, deleted, .. } = lists(receipt);
        let untouched = |times: BTreeMap<String, (i64, i64, u64)>| -> BTreeMap<_, _> {
            times
                .into_iter()
                .filter(|(path, _)| !restored.contains(path) && !deleted.contains(path))
                .collect()
        };
        same(
            "times and inodes of untouched files",
            &untouched(self.times()),
            &untouched(before.clone()),
        )
    }

    // --- the log --------------------------------------------------------------------------------
}
