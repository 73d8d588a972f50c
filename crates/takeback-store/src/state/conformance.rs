//! The suite that every implementation of [`States`] must pass: it tests each promise in its
//! documentation.

mod heads;
mod caches;
mod samples;
mod checkpoints;
mod values;
mod executions;

use super::{StateError, States};

/// What an implementation supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Whether [`States::fork`] works; otherwise it must fail with [`StateError::Unsupported`].
    pub fork: bool,
}

/// Two handles on the same states, as two processes would have.
type Pair<'a> = [&'a dyn States; 2];

/// Runs every case on fresh states. `make` creates empty ones and opens them twice, as two
/// processes would. Panics at the first broken promise.
pub fn run(make: &mut dyn FnMut() -> [Box<dyn States>; 2], abilities: Abilities) {
    let cases: &[fn(Pair<'_>)] = &[
        checkpoints::new_states_are_empty,
        checkpoints::a_checkpoint_is_made_and_loaded,
        checkpoints::checkpoints_are_listed,
        checkpoints::the_last_success_is_found,
        checkpoints::the_last_success_may_have_to_be_before_a_step,
        checkpoints::every_field_reads_back,
        checkpoints::names_with_a_common_prefix_stay_apart,
        checkpoints::lists_are_in_the_order_of_numbers,
        checkpoints::lists_come_in_pages,
        checkpoints::the_same_content_again_is_the_same_checkpoint,
        checkpoints::other_content_is_another_attempt,
        checkpoints::an_attempt_can_be_given,
        checkpoints::a_parent_must_be_the_head,
        checkpoints::a_first_step_is_the_only_one,
        checkpoints::one_of_many_concurrent_writers_saves_the_first_step,
        checkpoints::a_missing_parent_is_an_error,
        checkpoints::a_save_whose_answer_was_lost_can_be_repeated,
        checkpoints::one_of_two_writers_wins,
        checkpoints::many_writers_lose_nothing,
        checkpoints::unknown_names_are_not_empty_answers,
        values::any_json_reads_back,
        values::large_values_read_back,
        values::hostile_names_are_kept_apart,
        values::documents_are_kept_by_category_and_key,
        values::points_are_those_of_the_checkpoints,
        heads::a_moved_head_keeps_the_old_line,
        heads::attempt_numbers_continue_after_a_move,
        heads::the_way_back_is_exact,
        heads::the_same_move_again_does_nothing,
        heads::a_head_can_move_to_an_old_line,
        heads::a_move_to_nowhere_does_nothing,
        caches::a_save_follows_a_moved_head,
        caches::a_save_does_not_follow_a_deleted_checkpoint,
        caches::collected_contents_are_stored_again,
        caches::a_cached_load_is_not_used_for_a_later_checkpoint,
        caches::a_collection_keeps_what_is_saved_at_the_same_time,
        caches::a_success_right_after_another_ends_its_count,
        executions::one_checkpoint_is_deleted,
        executions::an_execution_is_deleted_with_everything,
        executions::the_executions_of_a_session_are_deleted,
        executions::executions_are_listed_the_last_saved_first,
        executions::retries_are_counted,
        executions::a_success_ends_the_count,
        executions::effects_are_declared_and_confirmed,
        executions::one_of_many_concurrent_declarations_is_new,
        executions::effects_belong_to_their_execution,
        executions::live_data_survives_a_collection,
    ];
    let mut each = |case: &dyn Fn(Pair<'_>)| {
        let [one, other] = make();
        case([&*one, &*other]);
        assert_eq!(good(other.check()), Vec::<String>::new());
    };
    cases.iter().for_each(|case| each(case));
    if abilities.fork {
        each(&heads::a_fork_is_independent);
        each(&heads::a_fork_from_an_old_line);
        each(&heads::a_branch_is_saved_to_without_switching);
    } else {
        each(&heads::a_fork_is_refused_and_changes_nothing);
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

    /// Runs the suite on states on disk. `open` creates them in a folder that does not exist yet,
    /// and opens the same ones when called again.
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
        use crate::sqlite::SqliteStates;

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
