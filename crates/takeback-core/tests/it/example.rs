//! The example in `examples/` runs, and what it asserts is so.

#[path = "../../examples/middleware.rs"]
mod middleware;

#[test]
fn the_example_takes_back_what_its_agent_did() {
    middleware::main().expect("the example runs");
}
