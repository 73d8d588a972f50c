# The commands that a change has to pass, by name. `.ci/run` calls the same recipes.

default:
    @just --list

# everything that is checked without running the program
check: fmt lint doc typos deny

# formatting
fmt:
    cargo fmt --all --check

# clippy, with warnings denied
lint:
    cargo clippy --workspace --all-targets -- -D warnings
    cargo clippy -p takeback-store -p takeback-core -p takeback-agents --no-default-features -- -D warnings

# rustdoc, with warnings denied
doc:
    RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --workspace --no-deps

# spelling (needs typos: pip install typos)
typos:
    typos

# licences, bans and sources of the dependencies (needs cargo-deny)
deny:
    cargo deny check licenses bans sources

# what would be published, built from the packaged files
package:
    cargo publish --workspace --dry-run --allow-dirty

# all tests
test *args:
    cargo test --workspace {{ args }}

# the real agents, driven through their hooks (installs them from npm)
e2e *agents:
    scripts/e2e {{ agents }}

# the TypeScript client against the real program (needs node and npm)
test-typescript:
    scripts/test-typescript

# the MCP server against an agent's client (needs node and npm)
test-mcp:
    scripts/test-mcp

# a rewind from start to end, in a temporary folder
demo:
    cargo run --release -- demo

# comparisons with other tools, as ratios in one run; `just bench --help` lists them
bench *args:
    cargo run --release -p takeback-bench -- {{ args }}
