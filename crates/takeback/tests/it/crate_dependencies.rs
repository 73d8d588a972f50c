//! Crates depend on each other in one direction.

use std::path::Path;

/// The crates of this workspace that a crate's own code (not its tests) needs.
fn needs(krate: &str) -> Vec<String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(krate).join("Cargo.toml");
    let text = std::fs::read_to_string(manifest).expect("the manifest is there");
    let own = text.split("[dev-dependencies]").next().expect("a first part");
    let dependencies = own.split("[dependencies]").nth(1).expect("dependencies");
    let names = dependencies.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    let mut names: Vec<String> =
        names.filter(|name| name.starts_with("takeback")).map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn crates_depend_in_one_direction() {
    assert_eq!(needs("takeback-answers"), [""; 0], "plain data");
    assert_eq!(needs("takeback-store"), [""; 0]);
    assert_eq!(needs("takeback-core"), ["takeback-store"]);
    assert_eq!(needs("takeback-agents"), ["takeback-core", "takeback-store"]);
    assert_eq!(needs("takeback-tui"), [""; 0]);
    assert_eq!(needs("takeback-ipc"), ["takeback-core", "takeback-store"], "a lock, and the disk");
    assert_eq!(needs("takeback-mcp"), ["takeback-answers"], "it talks to the binary");
    let all = ["agents", "answers", "core", "ipc", "store", "tui"];
    assert_eq!(needs("takeback"), all.map(|name| format!("takeback-{name}")));
}
