//! A rewind in read-only folders, stopped anywhere: they are unlocked for it and have their modes again
//! after the recovery.

use takeback_testkit::Sandbox;

use crate::{Abilities, PointTree, after_a_crash, assert_intact, assert_same, at_every_stop};

const FOLDERS: [&str; 4] = ["locked", "locked/deep", "opened", "made"];

fn lay_out(sandbox: &Sandbox) {
    for folder in ["locked", "locked/deep", "opened"] {
        sandbox.write(&format!("{folder}/changed"), "1\n");
        sandbox.write(&format!("{folder}/gone"), "2\n");
    }
    sandbox.set_mode("locked/deep", 0o500);
    sandbox.set_mode("locked", 0o555);
}

fn damage(sandbox: &Sandbox) {
    unlock(sandbox);
    sandbox.write("made/by-the-agent", "3\n");
    for folder in ["locked", "locked/deep", "opened"] {
        sandbox.write(&format!("{folder}/changed"), "changed\n");
        sandbox.remove(&format!("{folder}/gone"));
        sandbox.write(&format!("{folder}/new"), "new\n");
    }
    sandbox.set_mode("locked/deep", 0o500);
    for folder in ["locked", "opened", "made"] {
        sandbox.set_mode(folder, 0o555);
    }
}

/// Lets everything in them be removed.
fn unlock(sandbox: &Sandbox) {
    for folder in FOLDERS.into_iter().filter(|folder| sandbox.exists(folder)) {
        sandbox.set_mode(folder, 0o755);
    }
}

#[test]
fn read_only_folders_have_their_modes_again() {
    let mut sandbox = Sandbox::new();
    lay_out(&sandbox);
    let point = sandbox.prompt("s", "go");
    let listed = [PointTree { point, tree: sandbox.tree() }];
    sandbox.agent_runs("s", "chmod -R u+w .; …", damage);
    sandbox.turn_end("s");
    let damaged = sandbox.tree();
    let frozen = sandbox.freeze();
    for abilities in [Abilities::All, Abilities::PlainRenames] {
        at_every_stop(|stop| {
            let mut sandbox = frozen.thaw();
            abilities.limit(&sandbox);
            stop.run(|| {
                let receipt = sandbox.rewind_to(point);
                assert!(receipt.success, "{receipt:?}");
            });
            let promised = !sandbox.another_process().store.rewinds().unwrap().is_empty();
            let recovered = after_a_crash(&mut sandbox, abilities);
            println!("{stop:?}, {recovered:?}");
            assert!(recovered.finished.iter().all(|receipt| receipt.success), "{recovered:?}");
            assert_same(&sandbox.tree(), if promised { &listed[0].tree } else { &damaged });
            assert_intact(&sandbox, &listed);
            unlock(&sandbox);
        });
    }
    unlock(&frozen.thaw());
}
