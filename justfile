# Short names for the commands in CONTRIBUTING.md. Nothing needs `just`: .ci/run calls cargo itself.

default:
    @just --list

# formatting and lints
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# all tests
test *args:
    cargo test --workspace {{ args }}

# the real agents, driven through their hooks (installs them from npm)
e2e *agents:
    scripts/e2e {{ agents }}

# what a hook costs, beside an empty one
bench-hooks:
    cargo run --release -p takeback-bench --bin hooks

# `takeback mcp` with the clients that agents are built with (needs node and npm)
test-mcp:
    scripts/test-mcp

# comparisons with other tools, as ratios in one run
bench *args:
    cargo run --release -p takeback-bench -- {{ args }}

# the state store beside langgraph-checkpoint-sqlite and SQLite alone (needs python3 and the network, once)
bench-state *args:
    cargo run --release -p takeback-bench --bin state -- {{ args }}

# what comes back, beside git and restic
fidelity:
    cargo run -p takeback-bench --bin fidelity

# a rewind from start to end, in a throw-away folder
demo:
    cargo run --release -- demo

# licences, duplicates and origins of the dependencies (needs cargo-deny)
deny:
    cargo deny check licenses bans sources
