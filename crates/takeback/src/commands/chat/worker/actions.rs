//! Actions without a menu: bring a path back, take back a call or a range, settle conflicts.

use takeback_core::look_around;
use takeback_core::rewind::{Choice, Receipt, RewindRequest, open_conflicts, preview, rewind};
use takeback_store::PointQuery;

use super::{MenuTrigger, Worker};
use crate::actions::SettledConflict;
use crate::args::{
    Ambiguous, ApplyArgs, Conflicts, Options, ResolveArgs, RestoreArgs, RevertArgs, Side,
};
use crate::commands::{resolve, restore, revert};
use crate::error::CommandError;
use crate::point::find_in;

/// What is to be done.
pub(in crate::commands::chat) enum Action {
    /// This path, as it was at the last prompt.
    Restore(String),
    /// This call or range.
    Revert(String),
    /// Every open conflict, in the same way.
    Resolve(Side),
}

impl Worker {
    pub(super) fn act(&mut self, action: Action) -> Result<Receipt, CommandError> {
        look_around(&mut self.place.workspace)?;
        let options = Options { quiet: true, ..self.options.clone() };
        let request = match action {
            Action::Restore(path) => self.restore_request(&options, path)?,
            Action::Revert(what) => {
                let args = RevertArgs {
                    what,
                    paths: Vec::new(),
                    session: Vec::new(),
                    all_agents: false,
                    ambiguous: Ambiguous::Leave,
                    conflicts: Conflicts::Keep,
                    doing: ApplyArgs::default(),
                };
                revert::request(&mut self.place.workspace, &options, &args)?.request
            }
            Action::Resolve(side) => self.resolve_request(side)?,
        };
        Ok(rewind(&mut self.place.workspace, &request, None)?)
    }

    /// Whether these words are for another action than opening the menu.
    pub(super) fn is_no_point(&mut self, name: &str, trigger: MenuTrigger) -> bool {
        if self.find_point(name).is_ok() {
            return false;
        }
        match trigger {
            MenuTrigger::Key | MenuTrigger::Slash => false,
            MenuTrigger::Revert => true,
            MenuTrigger::Restore => self.is_path(name).unwrap_or(false),
        }
    }

    /// Whether there is a file of this name, or would be after a restore.
    fn is_path(&mut self, name: &str) -> Result<bool, CommandError> {
        look_around(&mut self.place.workspace)?;
        let request = self.restore_request(&self.options, name.to_owned())?;
        let workspace = &mut self.place.workspace;
        let exists = workspace.root.path().join(name).symlink_metadata().is_ok();
        Ok(exists || !preview(workspace, &request)?.plan.does_nothing())
    }

    fn restore_request(
        &self,
        options: &Options,
        path: String,
    ) -> Result<RewindRequest, CommandError> {
        let workspace = &self.place.workspace;
        let last = PointQuery::LastPromptOf(&self.session);
        let point = match workspace.store.find_points(last)?.pop() {
            Some(point) => point,
            None => find_in(&*workspace.store, "@")?,
        };
        let args = RestoreArgs {
            paths: vec![path],
            from: point.id.to_string(),
            hunk: false,
            doing: ApplyArgs::default(),
        };
        restore::request(workspace, options, &args, &point)
    }

    fn resolve_request(&mut self, side: Side) -> Result<RewindRequest, CommandError> {
        let workspace = &mut self.place.workspace;
        let choice = match side {
            Side::Mine => Choice::Mine,
            Side::Before => Choice::Before,
        };
        let open = open_conflicts(workspace)?;
        let mut changes = Vec::new();
        for conflict in &open {
            let settled = SettledConflict::new(conflict.clone(), &choice);
            changes.extend(settled.change(workspace)?);
        }
        Ok(resolve::request(&open, changes)?.request)
    }

    pub(super) fn conflicts(&self) -> Result<String, CommandError> {
        let args = ResolveArgs {
            paths: Vec::new(),
            take: None,
            tool: false,
            list: true,
            doing: ApplyArgs::default(),
        };
        let listed = self.command(|options, screen| resolve::resolve(options, &args, screen))?;
        if open_conflicts(&self.place.workspace)?.is_empty() {
            return Ok(listed);
        }
        Ok(format!(
            "{listed}\n/resolve mine keeps your lines; /resolve before takes them back too."
        ))
    }
}
