//! The rewind steps of a run, compared with the oracle.

use super::*;

impl Run {
    pub(super) fn rewind_as(&mut self, options: &RewindOptions) -> Result<(), String> {
        let points = self.oracle.points.len();
        if points == 0 {
            return Ok(());
        }
        let mut target = points - 1 - options.point % points;
        // A point without a full scan covers only its session's changes.
        if options.exact {
            while self.oracle.points[target].tree.is_none()
                && self.oracle.points[target].safety_of.is_none()
            {
                if target == 0 {
                    return Ok(());
                }
                target -= 1;
            }
        }
        let scope = match options.sessions {
            SessionChoice::OfPoint => None,
            SessionChoice::Only(session) => Some(Scope::Only(BTreeSet::from([session]))),
            SessionChoice::AllAgents => Some(Scope::All),
        };
        let ask = Request {
            target: Target::Point(target),
            scope,
            exact: options.exact,
            take_ambiguous: options.take_ambiguous,
            paths: options.paths.clone(),
        };
        self.rewind(&ask, options.preview)
    }

    pub(super) fn rewind(&mut self, ask: &Request, previewed: bool) -> Result<(), String> {
        let request = self.request(ask);
        let before = tree(&self.sandbox);
        let times_before = self.times();
        let tree_at_point = match ask.target {
            Target::Point(at) if ask.exact => self.oracle.points[at].tree.clone(),
            _ => None,
        };
        let preview = match previewed {
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
                self.check_receipt(&receipt, &expected, &before)?;
                receipt
            }
            (Err(error), Some(_)) => return Err(format!("the rewind failed: {error} ({error:?})")),
            (answer, None) => {
                return Err(format!("nothing to do, but the answer is {answer:?}"));
            }
        };
        if let Some(preview) = preview {
            same("the preview and the receipt", &lists(&preview.receipt()), &lists(&receipt))?;
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
        if let Some((opposite, before_last_rewind)) = self.before_last_rewind.take()
            && opposite == ask.target
        {
            same("the tree after an immediate undo or redo", &after, &before_last_rewind)?;
        }
        self.before_last_rewind = match ask.target {
            _ if receipt.rewind.is_none() => None,
            Target::Point(_) => Some((Target::Undo, before)),
            Target::Undo => Some((Target::Redo, before)),
            // The next undo is of the rewind, and may do more than the opposite of this redo.
            Target::Redo => None,
        };
        let all = ask.paths.is_empty() && receipt.success && !self.scope_changes;
        match tree_at_point {
            Some(tree_at_point) if all => same("the whole tree as it was", &after, &tree_at_point),
            _ => Ok(()),
        }
    }

    pub(super) fn request(&self, ask: &Request) -> RewindRequest {
        let target = match ask.target {
            Target::Point(at) => rewind::Target::Point(self.oracle.points[at].id),
            Target::Undo => rewind::Target::Undo,
            Target::Redo => rewind::Target::Redo,
        };
        let scope = ask.scope.as_ref().map(|scope| match scope {
            Scope::All => rewind::RewindScope::AllAgents,
            Scope::Only(sessions) => rewind::RewindScope::Sessions(
                sessions.iter().copied().map(SessionId::from).collect(),
            ),
        });
        RewindRequest {
            scope,
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

    fn check_receipt(
        &self,
        receipt: &Receipt,
        expected: &ReceiptPaths,
        before: &Tree,
    ) -> Result<(), String> {
        let after = tree(&self.sandbox);
        let log = || self.log_text();
        same("the tree", &after, &self.oracle.disk)
            .map_err(|e| format!("{e}\n{receipt:?}\n{}", log()))?;
        same("the receipt", &lists(receipt), expected)
            .map_err(|e| format!("{e}\n{receipt:?}\n{}", log()))?;
        let changed = |path: &&String| before.get(*path) != after.get(*path);
        let restored: BTreeSet<String> = after.keys().filter(changed).cloned().collect();
        let deleted: BTreeSet<String> =
            before.keys().filter(|path| !after.contains_key(*path)).cloned().collect();
        same("paths restored on disk and in the receipt", &restored, &lists(receipt).restored)?;
        same("paths deleted on disk and in the receipt", &deleted, &lists(receipt).deleted)?;
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
        let ReceiptPaths { restored, deleted, .. } = lists(receipt);
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
}
