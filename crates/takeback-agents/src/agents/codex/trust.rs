//! Which hooks Codex runs: those that its user has trusted and that have not changed since.
//!
//! For each hook, by its position, `config.toml` has the hash of what was trusted. Codex silently ignores a
//! hook without one, or with another. Read as Codex 0.166.0 writes it.

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::install::{HookInFile, HookProblem, TrustSite, parse_settings};

pub(super) fn problem(site: &TrustSite<'_>) -> Option<HookProblem> {
    let config = String::from_utf8_lossy(site.config);
    let mut trusts = Vec::new();
    for file in site.files {
        let settings = parse_settings(file.contents).unwrap_or_default();
        let trust = |path: &Path, hook| trust_of(hook, (path, &settings), &config);
        trusts.extend(file.hooks.iter().map(|hook| match trust(file.path, hook) {
            Trust::Untrusted => trust(file.real_path, hook),
            trust => trust,
        }));
    }
    let all = match trusts.len() {
        1 => "1 hook".to_owned(),
        all => format!("{all} hooks"),
    };
    let number = |which: Trust| trusts.iter().filter(|trust| **trust == which).count();
    let (untrusted, changed) = (number(Trust::Untrusted), number(Trust::Changed));
    let off = number(Trust::SwitchedOff);
    let (why, key) = if untrusted > 0 {
        (format!("{untrusted} of {all} not trusted"), "press t")
    } else if changed > 0 {
        (format!("{changed} of {all} changed since you trusted them"), "press t")
    } else if off > 0 {
        (format!("{off} of {all} switched off in Codex"), "switch them on")
    } else {
        return None;
    };
    Some(HookProblem { why, next: format!("Start `codex`, enter /hooks and {key}.") })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    Untrusted,
    /// It has changed since it was trusted.
    Changed,
    Trusted,
    SwitchedOff,
}

/// Whether Codex trusts a hook. `file`: the path of `hooks.json` and what is in it; `config`: the text of
/// `config.toml`.
fn trust_of(hook: &HookInFile, file: (&Path, &Value), config: &str) -> Trust {
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

/// The hash that Codex computes: the hook alone in its group, with defaults filled in, as JSON with
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
    use crate::install::{HookCommand, HookPosition};

    use super::*;

    /// The record that Codex 0.166.0 wrote for these hooks.
    #[test]
    fn trusted_hooks_are_recognized() {
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
        let trust = |event: &str, config: &str| {
            let line = "/bin/true hook --agent codex".to_owned();
            let command = HookCommand { line, program: "/bin/true".to_owned() };
            let hook =
                HookInFile { event: event.to_owned(), command, position: HookPosition::default() };
            trust_of(&hook, (Path::new("/u/.codex/hooks.json"), &settings), config)
        };
        let found = ["PreToolUse", "Stop", "SessionStart", "SessionEnd"].map(|e| trust(e, config));
        use Trust::{Changed, SwitchedOff, Trusted, Untrusted};
        assert_eq!(found, [Trusted, Changed, Untrusted, SwitchedOff]);
        let stop = config.replace(
            "stop:0:0\"]\ntrusted_hash = \"sha256:aaaa\"",
            "stop:0:0\"]\ntrusted_hash = \"sha256:7d1e1d5582b49f0015e39fca061637aaf6ebb8ce802678ca8a940df137bdee1c\"",
        );
        assert_eq!(trust("Stop", &stop), Trusted);
    }
}
