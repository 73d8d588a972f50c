//! The main story, in one breath.

use takeback_testkit::Sandbox;

#[test]
fn an_agents_work_goes_and_a_persons_stays() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    sandbox.write("lib/b.txt", "b\n");
    let point = sandbox.prompt("s", "do it");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.agent_runs("s", "rm -rf lib", |sandbox| sandbox.remove("lib"));
    sandbox.turn_end("s");
    sandbox.write("mine.txt", "mine\n");
    let receipt = sandbox.rewind_to(point);
    assert!(receipt.success, "{receipt:?}");
    assert_eq!(sandbox.read("a.txt"), "one\n");
    assert_eq!(sandbox.read("lib/b.txt"), "b\n");
    assert_eq!(sandbox.read("mine.txt"), "mine\n");
    sandbox.undo();
    assert_eq!(sandbox.read("a.txt"), "two\n");
    assert!(!sandbox.exists("lib"));
    sandbox.redo();
    assert_eq!(sandbox.read("a.txt"), "one\n");
}
