//! Which hooks Codex runs: those that its user has trusted, as they are.
//!
//! Codex keeps in `config.toml`, for each hook by its place, the hash of what was trusted, and passes over
//! hooks without one, or with another, and says nothing. Read as Codex 0.166.0 writes it.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::install::FoundHook;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    Untrusted,
    /// It was trusted, and is another one now.
    Changed,
    Trusted,
    SwitchedOff,
}

/// Whether Codex trusts a hook. `file`: the path of `hooks.json` and what is in it; `config`: the text of
/// `config.toml`.
#[must_use]
pub fn trust_of(hook: &FoundHook, file: (&Path, &Value), config: &str) -> Trust {
    let (path, settings) = file;
    let event = snake_case(&hook.event);
    let (group, place) = (hook.position.group, hook.position.hook);
    let key = format!("{}:{event}:{group}:{place}", path.display());
    let Some(state) = table(config, &key) else { return Trust::Untrusted };
    if state.contains(&("enabled", "false")) {
        return Trust::SwitchedOff;
    }
    let trusted = state.iter().find(|(name, _)| *name == "trusted_hash").map(|(_, hash)| *hash);
    let now = hash(&event, &settings["hooks"][&hook.event][group], place);
    match trusted {
        None => Trust::Untrusted,
        Some(hash) if hash.trim_matches(['"', '\'']) == now => Trust::Trusted,
        Some(_) => Trust::Changed,
    }
}

/// As Codex counts it: the hook alone in its group, with what it does not say filled in, as JSON with
/// sorted keys.
fn hash(event: &str, group: &Value, place: usize) -> String {
    let hook = &group["hooks"][place];
    let mut alone = json!({ "async": hook["async"].as_bool().unwrap_or(false) });
    for key in ["type", "command", "timeout"] {
        alone[key] = hook[key].clone();
    }
    let mut identity = json!({ "event_name": event, "hooks": [alone] });
    if let Some(matcher) = group.get("matcher") {
        identity["matcher"] = matcher.clone();
    }
    let digest = Sha256::digest(identity.to_string());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// The lines of the table of one hook.
fn table<'c>(config: &'c str, key: &str) -> Option<Vec<(&'c str, &'c str)>> {
    let escaped = key.replace('\\', "\\\\").replace('"', "\\\"");
    let heads = [format!("[hooks.state.\"{escaped}\"]"), format!("[hooks.state.'{key}']")];
    let mut lines = config.lines().map(str::trim);
    lines.find(|line| heads.iter().any(|head| line == head))?;
    let inside = lines.take_while(|line| !line.starts_with('['));
    let pairs = inside.filter_map(|line| line.split_once('='));
    Some(pairs.map(|(name, value)| (name.trim(), value.trim())).collect())
}

fn snake_case(event: &str) -> String {
    let mut name = String::new();
    for c in event.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use crate::hook::Plugged;
    use crate::install::{HookCommand, Position};

    use super::*;

    /// What Codex 0.166.0 wrote and said of these hooks.
    #[test]
    fn what_codex_trusts_is_known() {
        let hook =
            json!({ "type": "command", "command": "/bin/true hook --agent codex", "timeout": 30 });
        let settings = json!({ "hooks": {
            "PreToolUse": [{ "matcher": "*", "hooks": [hook] }],
            "Stop": [{ "hooks": [hook] }],
            "SessionStart": [{ "hooks": [hook] }],
            "SessionEnd": [{ "hooks": [hook] }],
        } });
        let config = r#"model = "scripted"
[hooks.state]

[hooks.state."/u/.codex/hooks.json:pre_tool_use:0:0"]
trusted_hash = "sha256:013868a607e8400f29a5a7b086ffebd96215360a1bd3dc6934982fde914dc19b"

[hooks.state."/u/.codex/hooks.json:stop:0:0"]
trusted_hash = "sha256:aaaa"

[hooks.state."/u/.codex/hooks.json:session_end:0:0"]
trusted_hash = "sha256:aaaa"
enabled = false
"#;
        assert_eq!(Plugged::Codex.name(), "codex");
        let trust = |event: &str, config: &str| {
            let line = "/bin/true hook --agent codex".to_owned();
            let command = HookCommand { line, program: "/bin/true".to_owned() };
            let hook =
                FoundHook { event: event.to_owned(), command, position: Position::default() };
            trust_of(&hook, (Path::new("/u/.codex/hooks.json"), &settings), config)
        };
        let told = ["PreToolUse", "Stop", "SessionStart", "SessionEnd"].map(|e| trust(e, config));
        use Trust::{Changed, SwitchedOff, Trusted, Untrusted};
        assert_eq!(told, [Trusted, Changed, Untrusted, SwitchedOff]);
        let stop = config.replace(
            "stop:0:0\"]\ntrusted_hash = \"sha256:aaaa\"",
            "stop:0:0\"]\ntrusted_hash = \"sha256:7d1e1d5582b49f0015e39fca061637aaf6ebb8ce802678ca8a940df137bdee1c\"",
        );
        assert_eq!(trust("Stop", &stop), Trusted);
    }
}
