//! What a rewind leaves to the user: HEAD, and folders of package managers.

mod git;
mod packages;

use takeback_core::rewind::{FollowUp, Receipt};
use takeback_testkit::Sandbox;

/// What a rewind has left.
fn follow_up(sandbox: &Sandbox, receipt: &Receipt) -> FollowUp {
    FollowUp::of_receipt(&sandbox.workspace, receipt).unwrap()
}
