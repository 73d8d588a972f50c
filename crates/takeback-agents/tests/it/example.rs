//! The example in `examples/` runs and does what it prints.

#[path = "../../examples/five_steps.rs"]
#[expect(dead_code, reason = "its arguments are not this program's")]
mod five_steps;

use std::fs;

#[test]
fn the_example_rolls_back_to_step_2_and_can_run_again() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        five_steps::play(folder.path(), None).expect("the example runs");
        let notes = fs::read_to_string(folder.path().join("project/NOTES.md")).unwrap();
        assert_eq!(notes, "- checkpoints\n- rollback\n");
        assert!(!folder.path().join("project/archive").exists());
        let announced = fs::read_to_string(folder.path().join("announced.txt")).unwrap();
        assert_eq!(announced, "# Release notes\n\n- checkpoints\n- rollback\n", "once");
    }
}
