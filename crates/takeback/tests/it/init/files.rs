//! What `init` adds to a settings file, and what `uninstall` removes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::json;
use takeback_agents::{AGENTS, agent_names};

use super::{bin, exits, home, json, program, settings, takeback, with_agents, write_settings};
use crate::user::User;

const MINE: &str = "{\n  \"model\" : \"opus\",\n  \"hooks\": {\n    \
    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }\n    ]\n  \
    }\n}\n";

/// Files as editors and people leave them.
const ODD: &[&str] = &[
    "",
    "\n",
    "{}",
    "{\n}\n",
    "{ }",
    "{\"a\":1,\"b\":[1,2]}",
    "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}",
    "{\r\n    \"a\": 1,\r\n    \"b\": 2\r\n}\r\n",
    "\u{feff}{\n  \"a\": 1\n}\n",
    MINE,
    "{\"hooks\":{}}",
    "{\"hooks\":{\"Stop\":[]}}",
    "{\"hooks\":{\"Stop\":[{\"hooks\":[]}],\"Strange\":{\"a\":1}}}",
    "\n\n{\n\n\n  \"a\"  :  1  \n\n}\n\n\n",
];

#[test]
fn comments_stay_where_the_agent_reads_them_and_are_refused_where_it_does_not() {
    let text = "// first\n{\n  /* before */\n  \"a\": 1 // beside\n\n  // last\n}\n// after";
    let user = with_agents(&[("gemini", "0.61.0"), ("claude", "2")]);
    let file = user.home().join(".gemini/settings.json");
    fs::create_dir(user.home().join(".gemini")).expect("a folder");
    fs::write(&file, text).expect("settings");
    write_settings(&user, text);
    let before = home(&user);
    let answer = exits(&user, 3, &["init", "-y"]);
    let what = "Claude Code: ~/.claude/settings.json cannot be used: line 1, column 1: Comments are not \
        allowed; Claude Code ignores the whole file because of it\n  Make it plain JSON, without comments and trailing commas, and try again; nothing was written.\n";
    assert!(answer.out.contains(what), "{answer:?}");
    assert_eq!(fs::read_to_string(settings(&user)).expect("it is there"), text);
    let now = fs::read_to_string(&file).expect("it is there");
    assert!(now.contains("takeback") && now.contains("1, // beside\n"), "{now}");
    let doctor = takeback(&user, &["doctor"]);
    let out = doctor.unwrapped();
    let what = "! Claude Code 2: ~/.claude/settings.json is not read: line 1, column 1: Comments are not allowed; Claude Code ignores the whole file";
    assert!(out.contains(what), "{out}");
    exits(&user, 0, &["uninstall", "-y"]);
    assert_eq!(home(&user), before);
}

#[test]
fn uninstall_restores_the_exact_bytes() {
    for text in ODD {
        let user = with_agents(&[("claude", "2.1.325 (Claude Code)")]);
        write_settings(&user, text);
        fs::set_permissions(settings(&user), fs::Permissions::from_mode(0o640)).expect("a mode");
        let before = home(&user);
        let answer = takeback(&user, &["init", "-y"]);
        assert_eq!(answer.code, 0, "{text:?}: {answer:?}");
        assert_ne!(home(&user), before);
        let backup = fs::read_to_string(user.home().join(".claude/settings.json.takeback-backup"));
        assert_eq!(backup.expect("a backup"), *text);
        exits(&user, 0, &["uninstall", "-y"]);
        assert_eq!(home(&user), before, "{text:?}");
    }
}

#[test]
fn a_file_that_init_created_is_removed_with_its_folder() {
    let user = with_agents(&[("claude", "2")]);
    let before = home(&user);
    exits(&user, 0, &["init", "-y"]);
    let mode = fs::metadata(settings(&user)).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    exits(&user, 0, &["uninstall", "-y"]);
    assert_eq!(home(&user), before);
    exits(&user, 0, &["init", "-y"]);
    fs::write(user.home().join(".claude/mine"), "").expect("a file");
    exits(&user, 0, &["uninstall", "-y"]);
    assert!(user.home().join(".claude/mine").exists() && !settings(&user).exists());
}

#[test]
fn other_programs_changes_stay_byte_for_byte() {
    let user = with_agents(&[("claude", "2")]);
    write_settings(&user, MINE);
    exits(&user, 0, &["init", "-y"]);
    let edit = |text: String| text.replace("\"model\" : \"opus\"", "\"model\" :  \"haiku\"");
    let now = fs::read_to_string(settings(&user)).expect("it is there");
    fs::write(settings(&user), edit(now)).expect("it is edited");
    exits(&user, 0, &["uninstall", "-y"]);
    let now = fs::read_to_string(settings(&user)).expect("it is there");
    assert_eq!(now, edit(MINE.to_owned()));
    let left: Vec<String> = home(&user).into_iter().map(|(path, _)| path).collect();
    assert_eq!(left, [".claude", ".claude/settings.json", "bin", "bin/claude"]);
}

#[test]
fn a_second_run_finds_nothing_to_do_and_a_half_one_is_completed() {
    let user = with_agents(&[("claude", "2")]);
    write_settings(&user, MINE);
    exits(&user, 0, &["init", "-y"]);
    let whole = home(&user);
    let again = takeback(&user, &["init"]);
    assert_eq!(again.code, 0, "no confirmation is needed: {again:?}");
    assert!(again.out.contains("Nothing to do"), "{again:?}");
    assert_eq!(home(&user), whole);
    let text = fs::read_to_string(settings(&user)).expect("it is there");
    let half = text.replace("\"UserPromptSubmit\"", "\"Elsewhere\"");
    fs::write(settings(&user), half).expect("it is edited");
    exits(&user, 0, &["init", "-y"]);
    let hooks = &json(&user, &["doctor"])["agents"][0]["hooks"][0];
    assert_eq!((&hooks["state"], &hooks["hooks"]), (&json!("complete"), &hooks["wanted"]));
    exits(&user, 0, &["uninstall", "-y"]);
    let text = fs::read_to_string(settings(&user)).expect("it is there");
    assert_eq!(text, MINE);
}

#[test]
fn a_hook_that_cannot_run_any_more_is_replaced_and_one_that_can_is_left() {
    let user = with_agents(&[("claude", "2")]);
    exits(&user, 0, &["init", "-y"]);
    let text = fs::read_to_string(settings(&user)).expect("it is there");
    let own = env!("CARGO_BIN_EXE_takeback");
    let moved = text.replace(own, "/gone/takeback");
    assert_ne!(moved, text);
    fs::write(settings(&user), &moved).expect("it is edited");
    let health = &json(&user, &["doctor"])["agents"][0];
    assert_eq!(health["hooks"][0]["state"], "broken", "{health}");
    exits(&user, 0, &["init", "-y"]);
    assert_eq!(fs::read_to_string(settings(&user)).expect("it is there"), text);
    program(&user, "takeback", "#!/bin/sh\n");
    let by_name = text.replace(own, "takeback");
    fs::write(settings(&user), &by_name).expect("it is edited");
    assert!(takeback(&user, &["init", "-y"]).out.contains("Nothing to do"));
}

#[test]
fn the_command_is_short_where_the_name_means_this_program() {
    let user = with_agents(&[("claude", "2")]);
    symlink(env!("CARGO_BIN_EXE_takeback"), bin(&user).join("takeback")).expect("a link");
    exits(&user, 0, &["init", "-y"]);
    let text = fs::read_to_string(settings(&user)).expect("it is there");
    assert!(text.contains("\"command\": \"takeback hook --agent claude\""), "{text}");
}

#[test]
fn a_projects_hooks_are_in_the_project() {
    let user = with_agents(&[("claude", "2")]);
    exits(&user, 0, &["init", "-y", "--scope", "project"]);
    assert!(user.exists(".claude/settings.json") && !settings(&user).exists());
    exits(&user, 0, &["uninstall", "-y", "--scope", "project"]);
    assert!(!user.exists(".claude"));
    let home = user.home().display().to_string();
    exits(&user, 2, &["-C", &home, "init", "-y", "--scope", "project"]);
}

#[test]
fn a_path_of_this_machine_in_a_project_is_pointed_out() {
    const DOUBT: &str = "others who use this project need takeback at the same path";
    let user = with_agents(&[("claude", "2")]);
    let project = ["init", "-y", "--scope", "project"];
    let said = |args: &[&str]| takeback(&user, args).unwrapped();
    assert!(said(&["init", "--dry-run", "--scope", "project"]).contains(DOUBT));
    assert!(!said(&["init", "--dry-run"]).contains(DOUBT), "it is the user's own");
    let next = json(&user, &project)["next"][0].to_string();
    assert!(next.contains(DOUBT), "{next}");
    assert!(said(&project).contains(DOUBT), "it is still so");
    assert!(!said(&["uninstall", "-y", "--scope", "project"]).contains(DOUBT));
    symlink(env!("CARGO_BIN_EXE_takeback"), bin(&user).join("takeback")).expect("a link");
    assert!(!said(&project).contains(DOUBT));
}

#[test]
fn hooks_in_both_scopes_are_pointed_out_where_both_would_run() {
    const DOUBT: &str = "each prompt would be recorded twice";
    let user = with_agents(&[("claude", "2"), ("copilot", "1.0.102")]);
    let twice = |args: &[&str]| -> Vec<String> {
        let told = json(&user, args);
        let next = told["next"].as_array().expect("a list").iter();
        let next = next.map(|line| line.as_str().expect("text").to_owned());
        next.filter(|line| line.contains(DOUBT)).collect()
    };
    assert_eq!(twice(&["init", "-y"]), [""; 0]);
    // Claude Code runs identical commands once.
    let copilot = "Copilot CLI has hooks in ~/.copilot/hooks/takeback.json too: each prompt would be \
                   recorded twice. `takeback uninstall --agent copilot` removes them there.";
    assert_eq!(twice(&["init", "-y", "--scope", "project"]), [copilot]);
    let text = fs::read_to_string(settings(&user)).expect("it is there");
    symlink(env!("CARGO_BIN_EXE_takeback"), bin(&user).join("takeback")).expect("a link");
    let by_name = text.replace(env!("CARGO_BIN_EXE_takeback"), "takeback");
    fs::write(settings(&user), by_name).expect("it is edited");
    let found = twice(&["init", "-y", "--agent", "claude"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0]
            .ends_with("`takeback uninstall --agent claude --scope project` removes them there.")
    );
    let home = user.home().display().to_string();
    assert_eq!(twice(&["-C", &home, "init", "-y"]), [""; 0], "it is one file");
}

#[test]
fn agents_are_found_by_their_folder_too_and_wrong_names_are_refused() {
    let user = User::new();
    let answer = takeback(&user, &["init", "-y"]);
    insta::assert_snapshot!(answer.err.replace(&agent_names(), "AGENTS"), @"
    takeback: no agent was found
      Looked for AGENTS: programs on PATH, and folders in your home.
      --agent NAME installs the hooks anyway.
    ");
    assert_eq!(answer.code, 1);
    let answer = takeback(&user, &["init", "-y", "--agent", "cloude"]);
    insta::assert_snapshot!(answer.err.replace(&agent_names(), "AGENTS"), @"
    takeback: there is no agent cloude
      Known agents: AGENTS.
    ");
    assert_eq!(answer.code, 2);
    let mut homeless = user.command(&["init", "-y", "--home", "/nowhere"]);
    homeless.env_remove("HOME");
    let answer = user.answer_of(homeless, "");
    insta::assert_snapshot!(answer.err, @"
    takeback: there is no home folder: HOME is not set
      Set HOME; agents keep their settings there.
    ");
    assert_eq!(answer.code, 2);
    fs::create_dir(user.home().join(".claude")).expect("a folder");
    assert_eq!(takeback(&user, &["init"]).code, 2, "needs confirmation");
    exits(&user, 0, &["init", "--dry-run"]);
    assert!(!settings(&user).exists());
    exits(&user, 0, &["init", "-y"]);
    assert!(settings(&user).exists());
}

#[test]
fn the_change_is_shown_as_a_diff() {
    let user = with_agents(&[("claude", "2")]);
    symlink(env!("CARGO_BIN_EXE_takeback"), bin(&user).join("takeback")).expect("a link");
    write_settings(&user, "{\n  \"model\": \"opus\"\n}\n");
    let answer = takeback(&user, &["init", "--dry-run"]);
    let shown: Vec<&str> = answer.out.lines().take(23).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    Claude Code
    ~/.claude/settings.json  changed +128 -1
    @@ -1,3 +1,130 @@
     {
    -  "model": "opus"
    +  "model": "opus",
    +  "hooks": {
    +    "SessionStart": [
    +      {
    +        "hooks": [
    +          {
    +            "type": "command",
    +            "command": "takeback hook --agent claude",
    +            "timeout": 30
    +          }
    +        ]
    +      }
    +    ],
    +    "UserPromptSubmit": [
    +      {
    +        "hooks": [
    +          {
    +            "type": "command",
    "#);
}

#[test]
fn every_agent_is_installed_and_uninstalled() {
    // Some programs say only the number, others put words around it.
    let said = ["2.1.325 (Claude Code)", "codex-cli 0.166.0", "0.61.0"];
    let programs = AGENTS.iter().map(|agent| agent.program);
    let versions: Vec<(&str, &str)> = programs.zip(said.into_iter().cycle()).collect();
    let user = with_agents(&versions);
    fs::create_dir(user.home().join(".gemini")).expect("a folder");
    fs::write(user.home().join(".gemini/settings.json"), "{\n\t\"a\": 1\n}").expect("settings");
    let before = home(&user);
    let answer = json(&user, &["init", "-y"]);
    let changes = |answer: &serde_json::Value| -> Vec<(String, String)> {
        let agents = answer["agents"].as_array().expect("a list");
        let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
        agents.iter().map(|agent| (text(&agent["agent"]), text(&agent["change"]))).collect()
    };
    let all = |change: &str| -> Vec<(String, String)> {
        AGENTS.iter().map(|agent| (agent.name.to_owned(), change.to_owned())).collect()
    };
    let but_gemini = |change: &str| {
        let mut all = all(change);
        for (agent, change) in &mut all {
            if agent == "gemini" {
                change.replace_range(.., "changed");
            }
        }
        all
    };
    let expected = but_gemini("created");
    assert_eq!(changes(&answer), expected, "{answer}");
    assert_eq!(changes(&json(&user, &["init", "-y"])), all("none"));
    let doctor = json(&user, &["doctor"]);
    let agents = doctor["agents"].as_array().expect("a list");
    assert_eq!(agents.len(), AGENTS.len(), "{doctor}");
    for (agent, (kind, (_, version))) in agents.iter().zip(AGENTS.iter().zip(versions)) {
        assert_eq!(
            (&agent["agent"], &agent["hooks"][0]["state"]),
            (&json!(kind.name), &json!("complete"))
        );
        let told = agent["version"].as_str().expect("a version");
        assert!(version.split(' ').any(|word| word == told), "{agent}");
        let health = if kind.name == "codex" { "warning" } else { "good" };
        assert_eq!(agent["health"], health, "{agent}");
    }
    let removed = but_gemini("removed");
    assert_eq!(changes(&json(&user, &["uninstall", "-y"])), removed);
    assert_eq!(home(&user), before);
}

#[test]
fn a_user_at_a_terminal_is_asked() {
    let user = with_agents(&[]);
    let init = ["init", "--agent", "claude"];
    let ran = user.terminal(80, 70).run(&init, "[y/N]", "\r");
    assert_eq!(ran.code, 5, "{}", ran.shown());
    assert!(!settings(&user).exists());
    let ran = user.terminal(80, 70).run(&init, "[y/N]", "y\r");
    let shown = ran.shown();
    assert!(
        ran.code == 0 && shown.contains("Installed Claude Code's hooks in ~/.claude"),
        "{shown}"
    );
    assert!(settings(&user).exists());
}
