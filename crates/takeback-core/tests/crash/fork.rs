//! A fork that is stopped anywhere changes nothing in the workspace, is never taken for a complete one, and is
//! completed by the next call.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use takeback_core::fork::{Fork, ForkError, ForkExtent, ForkPlace, ForkRequest, ForkTarget, fork};
use takeback_store::disk::CrashPoint;
use takeback_store::{Point, PointQuery};
use takeback_testkit::{Sandbox, tree};

use super::{at_every_stop, points_of};

fn run(sandbox: &Sandbox, point: &Point) -> Result<(), ForkError> {
    let store = sandbox.outside().join("fork store");
    fs::create_dir_all(&store).unwrap();
    let targets = ["one", "two"].map(|name| {
        let folder = sandbox.outside().join(name);
        let place = ForkPlace::find(&sandbox.workspace, &folder, &sandbox.outside().join("store"))?;
        ForkTarget::claim(&sandbox.workspace, &place, store.join(name))
    });
    let targets = targets.into_iter().collect::<Result<Vec<_>, _>>()?;
    for name in ["one", "two"] {
        fs::create_dir_all(store.join(name)).unwrap();
    }
    let request = ForkRequest { point, extent: ForkExtent::Covered, store_id: None };
    fork(&sandbox.workspace, &request, targets).map(drop)
}

/// The crash points that a fork passes.
pub(super) fn all_points() -> Vec<CrashPoint> {
    let mut sandbox = Sandbox::new();
    sandbox.write("a", "a\n");
    let point = sandbox.prompt("s", "go");
    let point = sandbox.workspace.store.find_points(PointQuery::Id(point)).unwrap().remove(0);
    points_of(|| run(&sandbox, &point).expect("it is complete"))
}

#[test]
fn a_stopped_fork_is_completed_by_the_next_call() {
    let mut sandbox = Sandbox::new();
    for number in 0..150 {
        sandbox.write(&format!("src/{number}.rs"), format!("{number}\n"));
    }
    sandbox.write("locked/x", "x\n");
    fs::set_permissions(sandbox.at("locked"), fs::Permissions::from_mode(0o555)).unwrap();
    symlink("src", sandbox.at("link")).unwrap();
    sandbox.write(".takeback/settings.json", "{}");
    std::thread::sleep(std::time::Duration::from_millis(30));
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "src/1.rs", "changed\n");
    let point = sandbox.workspace.store.find_points(PointQuery::Id(point)).unwrap().remove(0);
    let before = sandbox.tree();
    let image = sandbox.freeze();
    let stops = at_every_stop(|stop| {
        let sandbox = image.thaw();
        let mut done = None;
        stop.run(|| done = Some(run(&sandbox, &point)));
        assert_eq!(sandbox.tree(), before, "the workspace is untouched");
        let top = fs::canonicalize(sandbox.outside()).unwrap();
        let open = |name: &str| Fork::open(&top.join(name), &top.join("fork store").join(name));
        if stop.reached.is_some() {
            // The second folder is the last to be finished.
            assert!(open("two").is_err() || !top.join("two/.takeback/unfinished-fork").exists());
            for name in ["one", "two"] {
                // As a user does with a fork that was finished before the stop.
                if open(name).is_ok() {
                    fs::remove_dir_all(top.join(name)).unwrap();
                    fs::remove_dir_all(top.join("fork store").join(name)).unwrap();
                }
            }
            run(&sandbox, &point).expect("it is completed");
        } else {
            done.expect("it ran").expect("it is complete");
        }
        for name in ["one", "two"] {
            let forked = tree(&top.join(name));
            assert_eq!(forked.len(), before.len());
            assert_eq!(fs::read_to_string(top.join(name).join("src/1.rs")).unwrap(), "1\n");
            let fork = open(name).expect("it is complete");
            let ambient = takeback_core::Ambient::system();
            let found = fork.changes(&sandbox.workspace.scope, &ambient, &mut |_| {}).unwrap();
            assert_eq!(found.changes, []);
            assert!(!top.join(name).join(".takeback/unfinished-fork").exists());
        }
        assert_eq!(sandbox.tree(), before);
    });
    assert!(stops > 20, "{stops}");
}
