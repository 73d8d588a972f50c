//! The scenarios of the design for file checkpoints through the Claude Agent SDK that are about the
//! checkpoints themselves: their list, their file, and restoring with a live agent.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::{Value, json};
use takeback_agents::{
    AgentError, ChatAgent, Checkpoint, Decision, Metadata, NativeFiles, NativeFilesError,
    NativeFilesResult, RestoreError, RestoreMode, checkpoint_description, restore_with_agent,
};
use takeback_core::rewind::{NativeOutcome, RewindError, RewindRequest, Target};
use takeback_store::{PointId, Timestamp};
use takeback_testkit::Sandbox;

fn checkpoint(n: i64) -> Checkpoint {
    Checkpoint {
        id: format!("8b0f2c6e-0000-4000-8000-{n:012}"),
        timestamp: Timestamp(1_700_000_000_000 + n * 60_000),
        description: format!("prompt {n}"),
        session_id: "sdk-session".to_owned(),
    }
}

// 初始化检查点管理器
#[test]
fn initialising_the_checkpoint_manager() {
    let home = tempfile::tempdir().unwrap();
    let sessions = home.path().join("sessions");
    let (mut metadata, aside) = Metadata::open(&sessions, "session-1", 10).unwrap();
    assert_eq!((metadata.list(), aside), (&[] as &[Checkpoint], None));
    assert!(sessions.join("session-1/checkpoints").is_dir());
    assert_eq!(metadata.path(), sessions.join("session-1/checkpoints/metadata.json"));

    for n in [2, 1, 3] {
        metadata.capture(checkpoint(n)).unwrap();
    }
    let (metadata, aside) = Metadata::open(&sessions, "session-1", 10).unwrap();
    assert_eq!(metadata.list(), [checkpoint(3), checkpoint(2), checkpoint(1)]);
    assert_eq!(aside, None);
    assert_eq!(Metadata::open(&sessions, "session-2", 10).unwrap().0.list(), []);
}

// 捕获用户消息检查点
#[test]
fn capturing_a_checkpoint_of_a_user_message() {
    let sessions = tempfile::tempdir().unwrap();
    let (mut metadata, _) = Metadata::open(sessions.path(), "session-1", 3).unwrap();
    for n in 1..=5 {
        metadata.capture(checkpoint(n)).unwrap();
        assert_eq!(metadata.list()[0], checkpoint(n), "it is the first");
        let kept: Value =
            serde_json::from_slice(&fs::read(metadata.path()).unwrap()).expect("it is JSON");
        assert_eq!(kept["checkpoints"][0]["id"], checkpoint(n).id, "and in the file");
    }
    assert_eq!(metadata.list(), [checkpoint(5), checkpoint(4), checkpoint(3)]);
    let (again, _) = Metadata::open(sessions.path(), "session-1", 3).unwrap();
    assert_eq!(again.list(), metadata.list());
}

// 列出可用检查点
#[test]
fn listing_the_available_checkpoints() {
    let sessions = tempfile::tempdir().unwrap();
    let (mut metadata, _) = Metadata::open(sessions.path(), "session-1", 10).unwrap();
    metadata.capture(checkpoint(1)).unwrap();
    metadata.capture(checkpoint(2)).unwrap();
    let kept: Value = serde_json::from_slice(&fs::read(metadata.path()).unwrap()).unwrap();
    assert_eq!(
        kept,
        json!({ "checkpoints": [
            {
                "id": "8b0f2c6e-0000-4000-8000-000000000002",
                "timestamp": "2023-11-14T22:15:20.000Z",
                "description": "prompt 2",
                "sessionId": "sdk-session",
            },
            {
                "id": "8b0f2c6e-0000-4000-8000-000000000001",
                "timestamp": "2023-11-14T22:14:20.000Z",
                "description": "prompt 1",
                "sessionId": "sdk-session",
            },
        ]})
    );
}

// 智能提取检查点描述
#[test]
fn finding_a_description_for_a_checkpoint() {
    let say = |content: Value| checkpoint_description(&content, "09:05:00");
    assert_eq!(say(json!("line one\nline two")), "line one line two");
    assert_eq!(say(json!("好".repeat(81))), "好".repeat(80));
    let blocks = json!([
        { "type": "image", "source": { "type": "base64" } },
        { "type": "text", "text": format!("{}\n{}", "a".repeat(40), "b".repeat(60)) },
        { "type": "text", "text": "another" },
    ]);
    assert_eq!(say(blocks), format!("{} {}", "a".repeat(40), "b".repeat(39)));
    for none in [json!(null), json!(""), json!([]), json!([{ "type": "tool_result" }])] {
        assert_eq!(say(none), "Checkpoint at 09:05:00");
    }
}

/// An agent that only has copies of files.
struct CopyingAgent {
    live: bool,
    /// The paths and texts that it would restore; `None`: it has no copies for that prompt.
    copies: Option<Vec<(PathBuf, &'static str)>>,
    asked: Mutex<Vec<(String, RestoreMode)>>,
}

impl CopyingAgent {
    fn new(copies: Option<Vec<(PathBuf, &'static str)>>) -> Self {
        Self { live: true, copies, asked: Mutex::default() }
    }

    fn asked(&self) -> Vec<(String, RestoreMode)> {
        self.asked.lock().unwrap().clone()
    }
}

impl ChatAgent for CopyingAgent {
    fn name(&self) -> &'static str {
        "keeper"
    }

    fn prompt(&self, _: &str, _: &str) -> Result<(), AgentError> {
        Ok(())
    }

    fn interrupt(&self) -> Result<(), AgentError> {
        Ok(())
    }

    fn decide(&self, _: &str, _: Decision) -> Result<(), AgentError> {
        Ok(())
    }

    fn is_live(&self) -> bool {
        self.live
    }

    fn rewind_files(
        &self,
        message: &str,
        mode: RestoreMode,
    ) -> Result<Option<NativeFiles>, NativeFilesError> {
        self.asked.lock().unwrap().push((message.to_owned(), mode));
        let copies = self.copies.as_ref().ok_or(NativeFilesError::NoCheckpoint)?;
        if mode == RestoreMode::DryRun {
            let paths = copies.iter().map(|(path, _)| path.clone()).collect();
            return Ok(Some(NativeFiles { paths }));
        }
        for (path, text) in copies {
            fs::write(path, text).unwrap();
        }
        Ok(Some(NativeFiles::default()))
    }

    fn cut(&self, _: &str) -> Result<(), AgentError> {
        Ok(())
    }

    fn memory(&self) -> Value {
        Value::Null
    }

    fn load(&self, _: &Value) -> Result<(), AgentError> {
        Ok(())
    }

    fn close(&self) {}
}

/// A workspace with an edit by a tool, one by a command, and one by the user.
fn edited_workspace() -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::new();
    sandbox.write("utils.ts", "add, subtract\n");
    sandbox.write("by-shell.txt", "one\n");
    sandbox.write("mine.txt", "mine\n");
    sandbox.start("s");
    let point = sandbox.prompt("s", "add multiply and divide");
    sandbox.agent_writes("s", "utils.ts", "add, subtract, multiply, divide\n");
    sandbox.agent_runs("s", "sed -i", |sandbox| sandbox.write("by-shell.txt", "two\n"));
    sandbox.turn_end("s");
    sandbox.write("mine.txt", "mine, later\n");
    (sandbox, point)
}

// 恢复文件到检查点状态
#[test]
fn restoring_files_to_a_checkpoint() {
    let (mut sandbox, point) = edited_workspace();
    let before = sandbox.tree();
    let copies = vec![(sandbox.at("utils.ts"), "add, subtract\n"), (sandbox.at("mine.txt"), "")];
    let agent = CopyingAgent::new(Some(copies));
    let request = RewindRequest::new(Target::Point(point));
    let restored =
        restore_with_agent(&mut sandbox.workspace, &agent, "uuid-1", &request, None).unwrap();

    let uuid = || "uuid-1".to_owned();
    assert_eq!(agent.asked(), [(uuid(), RestoreMode::DryRun), (uuid(), RestoreMode::Apply)]);
    assert!(
        matches!(restored.own, NativeFilesResult::Asked(NativeOutcome::Ran)),
        "{:?}",
        restored.own
    );
    assert!(restored.receipt.success, "{:?}", restored.receipt);
    assert_eq!(sandbox.read("utils.ts"), "add, subtract\n");
    assert_eq!(sandbox.read("by-shell.txt"), "one\n", "of which the agent knows nothing");
    assert_eq!(sandbox.read("mine.txt"), "mine, later\n", "which the agent overwrote");
    sandbox.undo();
    assert_eq!(sandbox.tree(), before);
}

// 恢复文件到检查点状态: 当检查点数据不存在时,应当抛出描述性错误
#[test]
fn restoring_files_to_a_checkpoint_without_data() {
    let (mut sandbox, point) = edited_workspace();
    let agent = CopyingAgent::new(None);
    let nowhere = RewindRequest::new(Target::Point(PointId(77)));
    let refused =
        restore_with_agent(&mut sandbox.workspace, &agent, "uuid-7", &nowhere, None).unwrap_err();
    assert!(matches!(refused, RestoreError::Rewind(RewindError::NoPoint(PointId(77)))));
    assert_eq!(refused.to_string(), "there is no point 000000000000004d");

    // The agent has none, but Takeback has.
    let request = RewindRequest::new(Target::Point(point));
    let restored =
        restore_with_agent(&mut sandbox.workspace, &agent, "uuid-1", &request, None).unwrap();
    assert!(restored.receipt.success);
    let NativeFilesResult::Unavailable(why) = restored.own else { panic!("{:?}", restored.own) };
    assert_eq!(why.to_string(), "the agent has no copies for this prompt");
    assert_eq!(sandbox.read("utils.ts"), "add, subtract\n");
}

// 恢复文件到检查点状态: 当 Query 实例无效时,应当拒绝恢复操作
// 提供 Query 实例访问: 当无活跃会话时,应当返回 null
#[test]
fn restoring_files_without_a_live_agent_is_refused() {
    let (mut sandbox, point) = edited_workspace();
    let before = sandbox.tree();
    let agent = CopyingAgent { live: false, ..CopyingAgent::new(Some(Vec::new())) };
    let request = RewindRequest::new(Target::Point(point));
    let refused =
        restore_with_agent(&mut sandbox.workspace, &agent, "uuid-1", &request, None).unwrap_err();
    assert!(matches!(refused, RestoreError::NotLive));
    assert_eq!(refused.to_string(), "No active query session. Cannot restore checkpoint.");
    assert_eq!(sandbox.tree(), before);
    assert_eq!(agent.asked(), []);
}
