//! Settings as people write them, with and without something that runs after an edit.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use takeback_agents::hook::{Plugged, has_other_post_edit_hook, wanted};
use takeback_agents::install::{
    Homes, Program, Scope, file_of, home_of, is_own_command, with_hooks,
};
use tempfile::TempDir;

struct Desk {
    _dir: TempDir,
    homes: Homes,
    project: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let homes = Homes { user: dir.path().join("home"), ..Homes::default() };
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

    /// Below the agent's folder of the user.
    fn in_home(&self, agent: Plugged, file: &str, text: &str) {
        self.put(&home_of(agent, &self.homes).join(file), text.as_bytes());
    }

    fn has_other(&self, agent: Plugged) -> bool {
        let cwd = self.project.join("src/deep");
        has_other_post_edit_hook(agent, &home_of(agent, &self.homes), &cwd, &is_own_command)
    }
}

const GROUPED: [(Plugged, &str, &str, &str); 4] = [
    (Plugged::Claude, "settings.json", "PostToolUse", "Edit|Write"),
    (Plugged::Codex, "hooks.json", "PostToolUse", "apply_patch"),
    (Plugged::Gemini, "settings.json", "AfterTool", "write_file|replace"),
    (Plugged::Qwen, "settings.json", "PostToolUse", "^(write_file|edit)$"),
];

fn settings(event: &str, matcher: &str, command: &str) -> String {
    format!(
        "{{\n  \"hooks\": {{\"{event}\": [{{\"matcher\": \"{matcher}\", \"hooks\": \
         [{{\"type\": \"command\", \"command\": \"{command}\"}}]}}]}}\n}}\n"
    )
}

#[test]
fn without_settings_there_is_none() {
    for agent in Plugged::ALL {
        assert!(!Desk::new().has_other(agent), "{agent:?}");
    }
}

#[test]
fn takebacks_own_hooks_do_not_count() {
    for agent in Plugged::ALL {
        let desk = Desk::new();
        let program = Program { word: "/usr/bin/takeback", runs: &|_| true };
        let own = with_hooks(agent, None, &program).unwrap().unwrap();
        for scope in [Scope::User, Scope::Project] {
            desk.put(&file_of(agent, scope, &desk.homes, &desk.project), &own);
        }
        assert!(!desk.has_other(agent), "{agent:?}");
    }
}

#[test]
fn a_formatter_beside_takebacks_counts() {
    for (agent, file, event, matcher) in GROUPED {
        let desk = Desk::new();
        let formats = settings(event, matcher, "npx prettier --write .");
        let program = Program { word: "takeback", runs: &|_| true };
        let both = with_hooks(agent, Some(formats.as_bytes()), &program).unwrap().unwrap();
        desk.put(&home_of(agent, &desk.homes).join(file), &both);
        assert!(desk.has_other(agent), "{agent:?}");
    }
}

#[test]
fn a_formatter_of_the_project_counts() {
    for (agent, file, event, matcher) in GROUPED {
        let desk = Desk::new();
        let formats = settings(event, matcher, "gofmt -w .");
        desk.in_project(&format!(".{}/{file}", agent.name()), &formats);
        assert!(desk.has_other(agent), "{agent:?}");
    }
    let desk = Desk::new();
    desk.in_project(".claude/settings.local.json", &settings("PostToolUse", "", "gofmt -w ."));
    assert!(desk.has_other(Plugged::Claude));
}

#[test]
fn a_hook_for_another_tool_or_another_moment_does_not_count() {
    for (agent, file, event, matcher) in GROUPED {
        let before = wanted(agent).iter().map(|hook| hook.event);
        let before = before.filter(|name| name.starts_with("Pre") || name.starts_with("Before"));
        for (event, matcher) in before.map(|name| (name, matcher)).chain([(event, "Bash")]) {
            let desk = Desk::new();
            desk.in_home(agent, file, &settings(event, matcher, "npx prettier --write ."));
            assert!(!desk.has_other(agent), "{agent:?} {event} {matcher}");
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
    let desk = Desk::new();
    desk.in_home(Plugged::Copilot, "hooks/log.json", &hook("preToolUse", "date"));
    assert!(!desk.has_other(Plugged::Copilot));
    desk.in_project(".github/hooks/format.json", &hook("postToolUse", "npx prettier --write ."));
    assert!(desk.has_other(Plugged::Copilot));

    let desk = Desk::new();
    desk.in_home(Plugged::Copilot, "hooks/format.json", &hook("postToolUse", "gofmt -w ."));
    assert!(desk.has_other(Plugged::Copilot));

    let desk = Desk::new();
    desk.in_project(".claude/settings.json", &settings("PostToolUse", "Edit", "gofmt -w ."));
    assert!(desk.has_other(Plugged::Copilot), "it runs hooks of Claude Code, too");
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
        let desk = Desk::new();
        desk.in_home(Plugged::Codex, "config.toml", &config(event, matcher, command));
        assert_eq!(desk.has_other(Plugged::Codex), expected, "{event} {matcher} {command}");
    }
}

#[test]
fn opencodes_plugins_are_not_looked_into() {
    let desk = Desk::new();
    desk.in_home(Plugged::Opencode, "plugins/format.js", "// tool.execute.after: prettier");
    assert!(!desk.has_other(Plugged::Opencode));
}

#[test]
fn what_cannot_be_understood_is_none() {
    let desk = Desk::new();
    desk.in_home(Plugged::Claude, "settings.json", "{\"hooks\": {\"PostToolUse\": ");
    assert!(!desk.has_other(Plugged::Claude));
    desk.in_home(Plugged::Claude, "settings.json", "{\"hooks\": {\"PostToolUse\": \"x\"}}");
    assert!(!desk.has_other(Plugged::Claude));
}

/// Every hook asks this. The bound leaves room for a busy machine and a build without optimisation.
#[test]
fn it_is_cheap() {
    let desk = Desk::new();
    for (agent, file, event, matcher) in GROUPED {
        desk.in_home(agent, file, &settings(event, matcher, "takeback hook --agent claude"));
    }
    for (agent, ..) in GROUPED {
        let began = Instant::now();
        for _ in 0..100 {
            assert!(!desk.has_other(agent));
        }
        let each = began.elapsed() / 100;
        assert!(each.as_millis() < 5, "{agent:?}: {each:?}");
    }
}
