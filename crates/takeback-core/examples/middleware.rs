//! An agent whose tool calls can be taken back.
//!
//! The agent has two tools. Takeback wraps them: it saves what each call is about to overwrite, then runs
//! the call. At the end the whole turn is taken back, and the user's own changes stay.
//!
//! ```sh
//! cargo run -p takeback-core --example middleware
//! ```

#![expect(clippy::disallowed_methods, reason = "a program writes its own files")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use takeback_core::middleware::{Middleware, ToolCall};
use takeback_core::rewind::{RewindRequest, Target, rewind};
use takeback_core::worktree::ScopeOptions;
use takeback_core::{Ambient, Limits, Tools, Workspace, WorkspaceOptions};
use takeback_store::{SessionId, SqliteStates, SqliteStore};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let project = folder.path().join("project");
    fs::create_dir(&project)?;
    fs::write(project.join("greeting.txt"), "hello\n")?;
    fs::write(project.join("notes.txt"), "do not lose this\n")?;
    let mut workspace = open(&project, &folder.path().join("store"))?;

    // The agent's tool calls for one prompt.
    let calls = [
        ("write_file", json!({ "path": "greeting.txt", "content": "Good day to you.\n" })),
        ("bash", json!({ "command": "rm notes.txt; date > today.txt" })),
    ];
    let mut takeback = Middleware {
        workspace: &mut workspace,
        session: SessionId::from("example"),
        tools: Tools::new(&["write_file"], &["bash"], &["read_file"]),
        on_unrecorded: Box::new(|what| eprintln!("not recorded: {what:?}")),
    };
    takeback.prompt(None, "make the greeting polite and tidy up");
    for (number, (tool, input)) in calls.iter().enumerate() {
        let call = ToolCall { id: &format!("call {number}"), tool, input };
        takeback.around(call, |call| run_tool(&project, call.tool, call.input))?;
    }
    takeback.turn_end();
    drop(takeback);

    // The user saves a file in an editor.
    fs::write(project.join("mine.txt"), "by hand\n")?;

    let point = workspace.store.points()?.pop().ok_or("the prompt made a point")?;
    let receipt = rewind(&mut workspace, &RewindRequest::new(Target::Point(point.id)), None)?;
    println!("back to before \"{}\":", point.description);
    println!("{}", serde_json::to_string_pretty(&receipt)?);

    assert_eq!(fs::read_to_string(project.join("greeting.txt"))?, "hello\n");
    assert_eq!(fs::read_to_string(project.join("notes.txt"))?, "do not lose this\n");
    assert_eq!(fs::read_to_string(project.join("mine.txt"))?, "by hand\n");
    assert!(!project.join("today.txt").exists());
    Ok(())
}

/// The agent's own tools, which do not know about Takeback.
fn run_tool(project: &Path, tool: &str, input: &Value) -> Result<(), Box<dyn Error>> {
    let text = |key: &str| input[key].as_str().ok_or_else(|| format!("{tool} needs {key}"));
    match tool {
        "write_file" => fs::write(project.join(text("path")?), text("content")?)?,
        "bash" => {
            Command::new("sh").arg("-c").arg(text("command")?).current_dir(project).status()?;
        }
        other => return Err(format!("no tool is called {other}").into()),
    }
    Ok(())
}

fn open(project: &Path, store: &Path) -> Result<Workspace, Box<dyn Error>> {
    Ok(Workspace::open(WorkspaceOptions {
        root: project.to_owned(),
        store_dir: store.to_owned(),
        store: Box::new(SqliteStore::create(store)?),
        states: std::sync::Arc::new(SqliteStates::at(store)),
        home: None,
        scope: ScopeOptions::default(),
        limits: Limits::default(),
        ambient: Ambient::system(),
    })?)
}
