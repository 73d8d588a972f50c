//! A clean-up stopped anywhere has dropped all expired points or none; the others are intact.

use takeback_core::retention::{Clock, Occasion, Policy, clean_up};
use takeback_store::RewindState;
use takeback_testkit::{Sandbox, SandboxImage};

use crate::scene::Scene;
use crate::{Abilities, PointTree, after_a_crash, assert_intact, at_every_stop, go_exactly_to};

/// Six turns, of which two will be kept.
fn scene() -> (SandboxImage, Vec<PointTree>) {
    let mut sandbox = Sandbox::new();
    let mut listed = Vec::new();
    for number in 0..6_u32 {
        let point = sandbox.prompt("s", "go on");
        listed.push(PointTree { point, tree: sandbox.tree() });
        sandbox.agent_writes("s", "a.txt", format!("{number}\n").repeat(5000));
        sandbox.agent_writes("s", &format!("b-{number}.txt"), format!("only in {number}\n"));
        sandbox.agent_runs("s", "rm", |sandbox| sandbox.remove(&format!("b-{number}.txt")));
        sandbox.turn_end("s");
    }
    (sandbox.freeze(), listed)
}

#[test]
fn a_stopped_clean_up_leaves_every_point_intact() {
    let (frozen, listed) = scene();
    let policy = Policy { points_per_session: 2, ..Policy::default() };
    let mut outcomes = Vec::new();
    at_every_stop(|stop| {
        let mut sandbox = frozen.thaw();
        let before = sandbox.tree();
        stop.run(|| {
            clean_up(&mut sandbox.workspace, &policy, Occasion::OnDemand, Clock::Doubted).unwrap();
        });
        after_a_crash(&mut sandbox, Abilities::All);
        assert_eq!(sandbox.tree(), before, "the user's files are not touched");
        let points = sandbox.workspace.store.points().unwrap();
        let still: Vec<PointTree> = listed
            .iter()
            .filter(|listed| points.iter().any(|point| point.id == listed.point))
            .cloned()
            .collect();
        assert!(still.len() == 6 || still.len() == 2, "{stop:?}: {} points", still.len());
        outcomes.push(still.len());
        assert_intact(&sandbox, &still);
        clean_up(&mut sandbox.workspace, &policy, Occasion::OnDemand, Clock::Doubted).unwrap();
        assert_intact(&sandbox, &listed[4..]);
        assert!(sandbox.workspace.store.unreferenced().unwrap().digests.is_empty(), "{stop:?}");
        for PointTree { point, tree } in &listed[4..] {
            go_exactly_to(&mut sandbox, *point);
            assert_eq!(sandbox.tree(), *tree, "{stop:?}");
        }
    });
    assert!(outcomes.contains(&6) && outcomes.contains(&2), "{outcomes:?}");
}

/// Merged contents are named only by the rewind's plan until the rewind is done.
#[test]
fn a_clean_up_keeps_everything_an_interrupted_rewind_needs() {
    let scene = Scene::before_a_rewind();
    let mut promised = false;
    at_every_stop(|stop| {
        let mut sandbox = scene.frozen.thaw();
        stop.run(|| {
            sandbox.rewind_to(scene.listed[1].point);
        });
        sandbox.reopen();
        let rewinds = sandbox.workspace.store.rewinds().unwrap();
        promised |= rewinds.iter().any(|rewind| rewind.state == RewindState::Open);
        clean_up(&mut sandbox.workspace, &Policy::default(), Occasion::AtStart, Clock::Doubted)
            .unwrap();
        after_a_crash(&mut sandbox, Abilities::All);
        assert_intact(&sandbox, &scene.listed);
    });
    assert!(promised, "some were stopped after the promise");
}
