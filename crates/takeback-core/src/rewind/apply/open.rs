//! Opening the stages of a promised plan.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use takeback_store::{RewindId, WorkPath};

use super::{Action, PlanRun, SiteRoot, StageSite, plain_error};
use crate::rewind::plan::Plan;
use crate::rewind::receipt::StepOutcome;
use crate::worktree::Root;
use crate::worktree::write::{Stage, StageError};

impl<'a> PlanRun<'a> {
    /// Opens the stages as they are, made where they are missing. A folder outside that cannot be used
    /// fails only the steps in it.
    pub(in crate::rewind) fn open(
        root: &'a Root,
        plan: &'a Plan,
        id: RewindId,
    ) -> Result<Self, StageError> {
        let stage = Stage::open_promised(root, id)?;
        let mut run = Self {
            actions: Vec::new(),
            unlocked: &plan.unlocked,
            left_open: Vec::new(),
            native: &plan.native_paths,
            sites: vec![StageSite { root: SiteRoot::Workspace(root), stage }],
        };
        let mut outside: BTreeMap<Vec<u8>, Result<usize, StepOutcome>> = BTreeMap::new();
        for (number, step) in plan.actions().enumerate() {
            let goal = step.goal().expect("an action has a goal");
            let path = step.path.clone();
            let mut action = Action { step, goal, number, site: 0, path, outcome: None };
            if step.path.is_outside() {
                let folder = lasting_folder(&step.path, plan);
                let below = &step.path.as_bytes()[folder.len() + 1..];
                action.path = WorkPath::new(below).expect("what follows a folder is a plain path");
                let opened = outside.entry(folder.clone()).or_insert_with(|| {
                    let site = StageSite::outside(&folder, id)
                        .map_err(|error| StepOutcome::Error(plain_error(&error)))?;
                    run.sites.push(site);
                    Ok(run.sites.len() - 1)
                });
                match opened {
                    Ok(site) => action.site = *site,
                    Err(outcome) => action.outcome = Some(outcome.clone()),
                }
            }
            run.actions.push(action);
        }
        Ok(run)
    }
}

impl StageSite<'_> {
    fn outside(folder: &[u8], id: RewindId) -> io::Result<Self> {
        let folder = if folder.is_empty() { b"/" } else { folder };
        let root = Root::open(Path::new(OsStr::from_bytes(folder)))?;
        let stage = Stage::open_outside(&root, id)?;
        Ok(Self { root: SiteRoot::Outside(root), stage })
    }
}

/// The nearest folder of a path outside that exists before and after the plan. The stage is in it, so the
/// plan must neither make nor remove it.
fn lasting_folder(path: &WorkPath, plan: &Plan) -> Vec<u8> {
    let comes_or_goes = |folder: &WorkPath| {
        plan.actions().any(|step| {
            step.path == *folder
                && (!step.present.is_dir() || step.goal().is_some_and(|goal| !goal.is_dir()))
        })
    };
    let lasting = path.ancestors().find(|folder| !comes_or_goes(folder));
    lasting.map_or(Vec::new(), |folder| folder.as_bytes().to_vec())
}
