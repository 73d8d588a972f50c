//! The suite that every place for agents' states must pass: each promise of [`States`]'s
//! documentation, put to the test.

mod moving;
mod remembering;
mod samples;
mod saving;
mod values;
mod world;

use super::{StateError, States};

/// What one place can do and another cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Otherwise [`States::fork`] answers [`StateError::Unsupported`].
    pub fork: bool,
}

/// The same states, held twice, as two processes would.
type Pair<'a> = [&'a dyn States; 2];

/// Runs every case on a place of its own. `make` makes a new, empty one and opens it twice, as two
/// processes would. Panics at the first promise that is not kept.
pub fn run(make: &mut dyn FnMut() -> [Box<dyn States>; 2], abilities: Abilities) {
    let cases: &[fn(Pair<'_>)] = &[
        saving::a_new_place_is_empty,
        saving::a_checkpoint_is_made_and_loaded,
        saving::checkpoints_are_listed,
        saving::the_last_success_is_found,
        saving::the_last_success_may_have_to_be_before_a_step,
        saving::every_field_reads_back,
        saving::names_that_begin_alike_never_meet,
        saving::lists_are_in_the_order_of_numbers,
        saving::lists_come_in_pages,
        saving::the_same_content_again_is_the_same_checkpoint,
        saving::other_content_is_another_attempt,
        saving::an_attempt_can_be_given,
        saving::a_parent_must_be_the_head,
        saving::a_first_step_is_the_only_one,
        saving::of_many_who_begin_one_makes_the_first_step,
        saving::a_missing_parent_is_named,
        saving::an_answer_that_was_lost_can_be_asked_for_again,
        saving::of_two_writers_one_wins,
        saving::many_writers_lose_nothing,
        saving::unknown_names_are_told_from_empty_answers,
        values::any_json_reads_back,
        values::large_values_read_back,
        values::hostile_names_are_kept_apart,
        values::documents_are_kept_by_category_and_key,
        values::points_are_those_of_the_checkpoints,
        moving::a_moved_head_leaves_the_tail,
        moving::attempts_go_on_counting_after_a_move,
        moving::the_way_back_is_exact,
        moving::the_same_move_again_does_nothing,
        moving::a_head_can_move_to_what_was_left,
        moving::a_move_to_nowhere_does_nothing,
        remembering::a_head_that_moved_is_saved_after,
        remembering::what_was_deleted_is_not_saved_after,
        remembering::what_was_collected_is_kept_anew,
        remembering::what_was_loaded_is_not_taken_for_what_came_after,
        remembering::a_collection_takes_nothing_that_is_saved_meanwhile,
        remembering::a_success_right_after_another_ends_its_count,
        world::one_checkpoint_is_deleted,
        world::an_execution_is_deleted_with_all_that_is_its,
        world::the_executions_of_a_session_are_deleted,
        world::executions_are_listed_the_last_saved_first,
        world::retries_are_counted,
        world::a_success_ends_the_count,
        world::effects_are_intended_and_received,
        world::of_many_who_intend_the_same_one_is_the_first,
        world::effects_of_executions_do_not_meet,
        world::what_is_left_outlives_a_collection,
    ];
    let mut each = |case: &dyn Fn(Pair<'_>)| {
        let [one, other] = make();
        case([&*one, &*other]);
        assert_eq!(good(other.check()), Vec::<String>::new());
    };
    cases.iter().for_each(|case| each(case));
    if abilities.fork {
        each(&moving::a_fork_goes_its_own_way);
        each(&moving::a_fork_from_what_was_left);
        each(&moving::a_branch_is_saved_to_without_switching);
    } else {
        each(&moving::a_fork_is_refused_and_changes_nothing);
    }
}

#[track_caller]
fn good<T>(result: Result<T, StateError>) -> T {
    result.expect("the place works")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::json_states::JsonStates;

    /// Runs the suite on places on disk. `open` makes one in a folder of its own, which is not there
    /// yet, the first time, and opens the same one the second time.
    fn run_on_disk(open: &dyn Fn(&Path) -> Box<dyn States>, abilities: Abilities) {
        let dir = tempfile::tempdir().unwrap();
        let mut number = 0;
        let mut make = || {
            number += 1;
            let dir = dir.path().join(number.to_string());
            [open(&dir), open(&dir)]
        };
        run(&mut make, abilities);
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn sqlite() {
        use crate::sqlite::state::SqliteStates;

        let open = |dir: &Path| -> Box<dyn States> {
            Box::new(SqliteStates::create(dir).expect("it is made"))
        };
        run_on_disk(&open, Abilities { fork: true });
    }

    #[test]
    fn json() {
        let open = |dir: &Path| -> Box<dyn States> { Box::new(JsonStates::at(dir.to_owned())) };
        run_on_disk(&open, Abilities { fork: false });
    }
}
