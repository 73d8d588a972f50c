//! The example in `examples/` runs, and what it says is so.

#[path = "../../examples/five_steps.rs"]
#[expect(dead_code, reason = "its arguments are not this program's")]
mod five_steps;

use std::fs;

#[test]
fn the_example_goes_back_to_step_2_and_can_be_run_again() {
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

#[path = "../../examples/library.rs"]
mod library;

#[test]
fn what_the_library_page_shows_runs() {
    library::main().expect("the example runs");
}

/// The page has each function of the example, and no other code.
#[test]
fn the_library_page_shows_the_example_as_it_is() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = fs::read_to_string(folder.join("examples/library.rs")).unwrap();
    let page = fs::read_to_string(folder.join("../../docs/library.md")).unwrap();
    let shown: Vec<&str> = page
        .split("```rust\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default())
        .collect();
    for code in &shown {
        assert!(example.contains(code), "not in the example:\n{code}");
    }
    for function in example.split("\nfn ").skip(1) {
        let name = function.split('(').next().unwrap_or_default();
        let is_shown = shown.iter().any(|code| code.starts_with(&format!("fn {name}(")));
        assert!(is_shown || name == "now", "{name} is not on the page");
    }
    for class in [
        "CheckpointManager",
        "FileCheckpointService",
        "FileCheckpointMiddleware",
        "PersistenceManager",
        "ExecutionRecovery",
    ] {
        assert!(page.contains(&format!("`{class}`")), "{class}");
    }
}
