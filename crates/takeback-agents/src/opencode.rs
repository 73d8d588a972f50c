//! opencode, used as it is: Takeback hears of it through a plugin.

pub mod hook;

use serde_json::json;

/// The plugin, which calls Takeback by `program`: a name on the `PATH`, or a path.
#[must_use]
pub fn plugin(program: &str) -> String {
    let called = format!("const TAKEBACK = {};", json!(program));
    include_str!("opencode/plugin.js").replace("const TAKEBACK = \"takeback\";", &called)
}
