//! Settings as people write them, with and without a hook that runs after an edit.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use takeback_agents::{
    AGENTS, AgentKind, CLAUDE, CODEX, COPILOT, GEMINI, Homes, HookProgram, HookScope, OPENCODE,
    QWEN, add_hooks, has_other_post_edit_hook, is_takeback_command,
};
use tempfile::TempDir;

struct SettingsFixture {
    _dir: TempDir,
    homes: Homes,
    project: PathBuf,
}

impl SettingsFixture {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let homes = Homes { user: dir.path().join("home"), variable: |_| None };
        let project = dir.path().join("work/project");
        fs::create_dir_all(project.join("src/deep")).unwrap();
        Self { _dir: dir, homes, project }
    }

    fn put(&self, file: &Path, text: &[u8]) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn in_project(&self, file: &str, text: &str) {
        self.put(&self.project.join(file), text.as_bytes());
    }

    /// Below the agent's folder in the user's home.
    fn in_home(&self, agent: &AgentKind, file: &str, text: &str) {
        self.put(&agent.home.path(&self.homes).join(file), text.as_bytes());
    }

    fn has_other(&self, agent: &AgentKind) -> bool {
        let cwd = self.project.join("src/deep");
        has_other_post_edit_hook(agent, &agent.home.path(&self.homes), &cwd, &is_takeback_command)
    }
}

static GROUPED: [(&AgentKind, &str, &str, &str); 4] = [
    (&CLAUDE, "settings.json", "PostToolUse", "Edit|Write"),
    (&CODEX, "hooks.json", "PostToolUse", "apply_patch"),
    (&GEMINI, "settings.json", "AfterTool", "write_file|replace"),
    (&QWEN, "settings.json", "PostToolUse", "^(write_file|edit)$"),
];

fn settings(event: &str, matcher: &str, command: &str) -> String {
    format!(
        "{{\n  \"hooks\": {{\"{event}\": [{{\"matcher\": \"{matcher}\", \"hooks\": \
         [{{\"type\": \"command\", \"command\": \"{command}\"}}]}}]}}\n}}\n"
    )
}

#[test]
fn without_settings_there_is_none() {
    for agent in AGENTS {
        assert!(!SettingsFixture::new().has_other(agent), "{agent:?}");
    }
}

#[test]
fn own_hooks_do_not_count() {
    for agent in AGENTS {
        let fixture = SettingsFixture::new();
        let program = HookProgram { word: "/usr/bin/takeback", runs: &|_| true };
        let own = add_hooks(agent, None, &program).unwrap().unwrap();
        for scope in [HookScope::User, HookScope::Project] {
            fixture.put(&agent.hooks_file(scope, &fixture.homes, &fixture.project), &own);
        }
        assert!(!fixture.has_other(agent), "{agent:?}");
    }
}

#[test]
fn a_formatter_next_to_own_hooks_counts() {
    for (agent, file, event, matcher) in GROUPED {
        let fixture = SettingsFixture::new();
        let formats = settings(event, matcher, "npx prettier --write .");
        let program = HookProgram { word: "takeback", runs: &|_| true };
        let both = add_hooks(agent, Some(formats.as_bytes()), &program).unwrap().unwrap();
        fixture.put(&agent.home.path(&fixture.homes).join(file), &both);
        assert!(fixture.has_other(agent), "{agent:?}");
    }
}

#[test]
fn a_formatter_of_the_project_counts() {
    for (agent, file, event, matcher) in GROUPED {
        let fixture = SettingsFixture::new();
        let formats = settings(event, matcher, "gofmt -w .");
        fixture.in_project(&format!(".{}/{file}", agent.name), &formats);
        assert!(fixture.has_other(agent), "{agent:?}");
    }
    let fixture = SettingsFixture::new();
    fixture.in_project(".claude/settings.local.json", &settings("PostToolUse", "", "gofmt -w ."));
    assert!(fixture.has_other(&CLAUDE));
}

#[test]
fn a_hook_for_another_tool_or_event_does_not_count() {
    for (agent, file, event, matcher) in GROUPED {
        let before = agent.hooks.iter().map(|hook| hook.event);
        let before = before.filter(|name| name.starts_with("Pre") || name.starts_with("Before"));
        for (event, matcher) in before.map(|name| (name, matcher)).chain([(event, "Bash")]) {
            let fixture = SettingsFixture::new();
            fixture.in_home(agent, file, &settings(event, matcher, "npx prettier --write ."));
            assert!(!fixture.has_other(agent), "{agent:?} {event} {matcher}");
        }
    }
}

#[test]
fn copilot_reads_every_file_in_its_folders() {
    let hook = |event: &str, bash: &str| {
        format!(
            "{{\"version\":1,\"hooks\":{{\"{event}\":[{{\"type\":\"command\",\"bash\":\"{bash}\"}}]}}}}"
        )
    };
    let fixture = SettingsFixture::new();
    fixture.in_home(&COPILOT, "hooks/log.json", &hook("preToolUse", "date"));
    assert!(!fixture.has_other(&COPILOT));
    fixture.in_project(".github/hooks/format.json", &hook("postToolUse", "npx prettier --write ."));
    assert!(fixture.has_other(&COPILOT));

    let fixture = SettingsFixture::new();
    fixture.in_home(&COPILOT, "hooks/format.json", &hook("postToolUse", "gofmt -w ."));
    assert!(fixture.has_other(&COPILOT));

    let fixture = SettingsFixture::new();
    fixture.in_project(".claude/settings.json", &settings("PostToolUse", "Edit", "gofmt -w ."));
    assert!(fixture.has_other(&COPILOT), "it runs hooks of Claude Code, too");
}

#[test]
fn codex_has_hooks_in_its_config_too() {
    let config = |event: &str, matcher: &str, command: &str| {
        format!(
            "model = \"gpt-5.5\"\n\n[[hooks.{event}]]\nmatcher = \"{matcher}\"\n\n\
             [[hooks.{event}.hooks]]\ntype = \"command\"\ncommand = '{command}'\n\n\
             [model_providers.x]\ncommand = \"other\"\n"
        )
    };
    for (event, matcher, command, expected) in [
        ("PostToolUse", "apply_patch", "gofmt -w .", true),
        ("PostToolUse", "^Bash$", "gofmt -w .", false),
        ("PreToolUse", "apply_patch", "date # PostToolUse", false),
        ("PostToolUse", "apply_patch", "takeback hook --agent codex", false),
    ] {
        let fixture = SettingsFixture::new();
        fixture.in_home(&CODEX, "config.toml", &config(event, matcher, command));
        assert_eq!(fixture.has_other(&CODEX), expected, "{event} {matcher} {command}");
    }
}

#[test]
fn opencode_plugins_are_not_read() {
    let fixture = SettingsFixture::new();
    fixture.in_home(&OPENCODE, "plugins/format.js", "// tool.execute.after: prettier");
    assert!(!fixture.has_other(&OPENCODE));
}

#[test]
fn settings_that_cannot_be_parsed_have_none() {
    let fixture = SettingsFixture::new();
    fixture.in_home(&CLAUDE, "settings.json", "{\"hooks\": {\"PostToolUse\": ");
    assert!(!fixture.has_other(&CLAUDE));
    fixture.in_home(&CLAUDE, "settings.json", "{\"hooks\": {\"PostToolUse\": \"x\"}}");
    assert!(!fixture.has_other(&CLAUDE));
}

/// Every hook runs this check. The limit leaves room for a busy machine and a build without optimisation.
#[test]
fn the_check_is_fast() {
    let fixture = SettingsFixture::new();
    for (agent, file, event, matcher) in GROUPED {
        fixture.in_home(agent, file, &settings(event, matcher, "takeback hook --agent claude"));
    }
    for (agent, ..) in GROUPED {
        let began = Instant::now();
        for _ in 0..100 {
            assert!(!fixture.has_other(agent));
        }
        let each = began.elapsed() / 100;
        assert!(each.as_millis() < 5, "{agent:?}: {each:?}");
    }
}
