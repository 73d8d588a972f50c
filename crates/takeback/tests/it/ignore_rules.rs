//! Files that an agent hides by its own ignore rules are taken back, or listed with an exit code.

use serde_json::json;

use crate::user::User;

/// An agent's command writes these files.
fn after_a_command(files: &[(&str, &str)]) -> User {
    let user = User::with(&[("a.txt", "one\n")]);
    user.agent_turn("m", "go", ("Bash", &[]), || {
        files.iter().for_each(|(path, text)| user.write(path, text));
    });
    user
}

#[test]
fn files_that_the_agent_ignores_are_taken_back() {
    for rules in [".gitignore", ".takebackignore"] {
        let user = after_a_command(&[(rules, "evil/\n"), ("evil/x.txt", "x\n")]);
        let answer = user.takeback(&["rewind", "@", "-y", "--json"]);
        assert_eq!(answer.code, 0, "{rules}: {}", answer.out);
        assert!(!user.exists("evil") && !user.exists(rules), "{rules}");
        user.succeeds(&["undo", "-y"]);
        assert_eq!(user.read("evil/x.txt"), "x\n");
    }
}

#[test]
fn build_output_of_the_agents_own_manifest_is_listed_with_exit_code_4() {
    let files = [("package.json", "{}"), ("node_modules/dep/index.js", "x\n")];
    let user = after_a_command(&files);
    let answer = user.takeback(&["rewind", "@", "-y", "--json"]);
    assert_eq!(answer.code, 4, "{}", answer.out);
    let receipt: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(receipt["success"], false);
    assert_eq!(receipt["deletedFiles"], json!(["package.json"]));
    let left = json!([{"filePath": "node_modules", "reason": "build output, not recorded"}]);
    assert_eq!(receipt["notCaptured"], left);
    assert!(user.exists("node_modules/dep/index.js"));
    let status = user.json(&["status"]);
    assert_eq!(status["notCovered"][0]["filePath"], "node_modules", "{status}");
    assert_eq!(status["notCovered"][0]["reason"], "derived", "{status}");
}
