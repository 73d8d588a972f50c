//! A handle's caches are never stale, whether another handle or the handle itself made the change.

use serde_json::json;

use super::samples::{all, execution, head, key, listed, new, places, save, state, steps, text_of};
use super::{Pair, good};
use crate::state::{HeadMove, MoveTo, NewCheckpoint, States, StepIndex, Values};

/// Too long to be stored inline in the checkpoint's row.
fn long(text: &str) -> Values {
    state(json!({ "messages": [text.repeat(3000), "and another".repeat(700)] }))
}

fn save_long(store: &dyn States, step: u32, text: &str) {
    let (execution, values) = (execution("e"), long(text));
    good(store.save(&NewCheckpoint { values: &values, ..new(&execution, step) }));
}

fn loaded(store: &dyn States, step: u32) -> Values {
    let id = format!("ckpt-e-{step}").parse().expect("an id");
    good(store.load(&id)).expect("it exists").values
}

pub(super) fn a_save_follows_a_moved_head([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 3);
    for (mover, step) in [(store, 4), (other, 5)] {
        let one = key(&execution, 1, 1);
        let to = MoveTo::Checkpoint(&one);
        good(mover.move_head(&HeadMove { execution: &execution, branch: None, to, by: None }));
        let saved = save(store, &execution, step, "after the move");
        assert_eq!(saved.parent, Some((StepIndex(1), one.attempt)));
        assert_eq!(places(&listed(other, &execution)), [(1, 1), (step, 1)]);
    }
}

pub(super) fn a_save_does_not_follow_a_deleted_checkpoint([store, other]: Pair<'_>) {
    let execution = execution("e");
    for (deleter, last) in [(store, 4), (other, 5)] {
        steps(store, &execution, 3);
        assert!(good(deleter.delete(&key(&execution, 3, 1))));
        let saved = save(store, &execution, last, "after it");
        assert_eq!(saved.parent.map(|(step, _)| step), Some(StepIndex(2)));
        assert!(good(deleter.delete_execution(&execution)));
        save(store, &execution, last, "anew");
        assert_eq!(places(&all(other, &execution)), [(last, 1)]);
        assert_eq!(head(other, &execution), Some((last, 1)));
        assert!(good(other.delete_execution(&execution)));
    }
}

pub(super) fn collected_contents_are_stored_again([store, other]: Pair<'_>) {
    // A new text each time, so that no cached value is used.
    for (collector, text) in [(store, "one"), (other, "two")] {
        save_long(store, 1, text);
        assert!(good(collector.delete_execution(&execution("e"))));
        good(collector.collect());
        save_long(store, 1, text);
        for store in [store, other] {
            assert!(loaded(store, 1) == long(text));
        }
        assert!(good(other.delete_execution(&execution("e"))));
    }
}

pub(super) fn a_cached_load_is_not_used_for_a_later_checkpoint([store, other]: Pair<'_>) {
    for deleter in [store, other] {
        save_long(store, 1, "one");
        assert!(loaded(store, 1) == long("one"));
        assert!(good(deleter.delete(&key(&execution("e"), 1, 1))));
        save_long(other, 1, "two");
        assert!(loaded(store, 1) == long("two"));
        assert!(good(store.delete_execution(&execution("e"))));
    }
}

pub(super) fn a_collection_keeps_what_is_saved_at_the_same_time([store, other]: Pair<'_>) {
    std::thread::scope(|scope| {
        let saver = scope.spawn(|| {
            for step in 1..=60 {
                // The deleted contents are needed again and again.
                save_long(store, step, if step % 2 == 0 { "even" } else { "odd" });
                good(store.delete(&key(&execution("e"), step.saturating_sub(1), 1)));
            }
        });
        while !saver.is_finished() {
            good(other.collect());
        }
    });
    assert!(loaded(other, 60) == long("even"));
}

pub(super) fn a_success_right_after_another_ends_its_count([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 1);
    assert_eq!(good(store.count_retry(&execution, StepIndex(3), 1)), 1);
    save(store, &execution, 2, "2");
    save(store, &execution, 3, "3");
    assert_eq!(good(other.count_retry(&execution, StepIndex(3), 1)), 1);
    assert_eq!(text_of(other, "ckpt-e-3").as_deref(), Some("3"));
}
