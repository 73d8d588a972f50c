//! Classes that programs of this kind have, and what to call here in their place.
//!
//! `docs/library.md` shows these functions. Each does one thing in a folder of its own.
//!
//! ```sh
//! cargo run -p takeback-agents --example library
//! ```

#![expect(
    clippy::disallowed_methods,
    reason = "a program reads the clock and writes its own files"
)]
#![expect(clippy::print_stderr, reason = "a program talks to its user")]

use std::error::Error;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use takeback_agents::metadata::{Checkpoint, Metadata, description};
use takeback_core::execution::{
    RollbackFiles, history, resume, retry_from_step, rollback_to, save_step,
};
use takeback_core::history::{file_checkpoints, kept_for_call};
use takeback_core::middleware::{Middleware, ToolCall};
use takeback_core::point_name::find_point;
use takeback_core::retention::{Clock, Occasion, Policy, clean_up};
use takeback_core::rewind::{RewindRequest, Target, rewind};
use takeback_core::worktree::scope::ScopeOptions;
use takeback_core::{
    AgentEvent, Ambient, CallReport, Limits, Outcome, Tools, Touches, Workspace, WorkspaceOptions,
    record,
};
use takeback_store::state::{
    Category, CheckpointId, CheckpointKey, DocumentKey, ExecutionId, Expect, ListQuery,
    NewCheckpoint, Status, StepIndex, Values, Which,
};
use takeback_store::{CallId, JsonStates, SessionId, SqliteStore, StateStore as _, Timestamp};

type Example = fn(&Path) -> Result<(), Box<dyn Error>>;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let each: [Example; 6] = [
        list_of_prompts,
        file_checkpoint_service,
        file_checkpoint_middleware,
        persistence_manager,
        checkpoint_manager,
        execution_recovery,
    ];
    for example in each {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("project"))?;
        example(folder.path())?;
    }
    Ok(())
}

fn open(folder: &Path) -> Result<Workspace, Box<dyn Error>> {
    let store = folder.join("store");
    Ok(Workspace::open(WorkspaceOptions {
        root: folder.join("project"),
        store_dir: store.clone(),
        store: Box::new(SqliteStore::create(&store)?),
        // Or `SqliteStates::at(&store)`: in the database, beside the log of the files.
        states: Arc::new(JsonStates::at(folder.join("projects/example/persistence"))),
        home: None,
        scope: ScopeOptions::default(),
        limits: Limits::default(),
        ambient: Ambient {
            now: Box::new(now),
            file_time: Box::new(takeback_core::system_file_time),
            random: Box::new(|| RandomState::new().hash_one(())),
            watch: None,
        },
    })?)
}

fn now() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX))
}

fn list_of_prompts(folder: &Path) -> Result<(), Box<dyn Error>> {
    // new CheckpointManager({ sessionId, maxCheckpoints: 10 }); await initialize()
    let (mut prompts, damaged) = Metadata::open(&folder.join("sessions"), "host-session", 10)?;
    assert!(damaged.is_none(), "a file that cannot be read is set aside, and named here");

    // captureCheckpoint(uuid, description, sessionId)
    let content = json!([{ "type": "text", "text": "Add a dark mode" }]);
    prompts.capture(Checkpoint {
        id: "8f0e-uuid".to_owned(),
        timestamp: now(),
        description: description(&content, "14:03:59"),
        session_id: "sdk-session".to_owned(),
    })?;

    // listCheckpoints(): newest first, as metadata.json has them
    assert_eq!(prompts.list()[0].description, "Add a dark mode");
    let file = fs::read_to_string(prompts.path())?;
    assert!(file.contains(r#""sessionId": "sdk-session""#));
    Ok(())
}

fn file_checkpoint_service(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut workspace = open(folder)?;
    let file = folder.join("project/cart.rs");
    fs::write(&file, "let total = sum;\n")?;
    let (session, call) = (SessionId::from("session-1"), CallId::from("call-1"));

    // The message: a point to go back to.
    let text = "Add discounts".to_owned();
    let message = Some("message-1".to_owned());
    record(&mut workspace, &AgentEvent::Prompt { session: session.clone(), message, text })?;

    // createCheckpoint(sessionId, messageId, filePath): its id, or none if nothing was kept
    let touches = Touches::Paths(vec!["cart.rs".into()]);
    let (by, tool) = (session.clone(), "edit_file".to_owned());
    record(
        &mut workspace,
        &AgentEvent::BeforeTool { session: by, call: call.clone(), tool, touches },
    )?;
    let kept = kept_for_call(&*workspace.store, &session, &call)?;
    assert_eq!(kept[0].0.as_bytes(), b"cart.rs");

    fs::write(&file, "let total = sum - discount;\n")?;
    let (outcome, report) = (Outcome::Done, CallReport::default());
    record(
        &mut workspace,
        &AgentEvent::AfterTool { session: session.clone(), call, outcome, report },
    )?;

    // getCheckpoints(sessionId)
    let listed = file_checkpoints(&*workspace.store, &session)?;
    assert_eq!((listed[0].id, listed[0].message.as_deref()), (kept[0].1, Some("message-1")));
    let original = listed[0].original.digest().ok_or("it existed")?;
    assert_eq!(workspace.store.contents(&original)?, b"let total = sum;\n");

    // rewindFiles(sessionId, messageId): that message's changes and all later ones
    let points = workspace.store.points()?;
    let point = find_point(&points, "session-1:message-1", &|_| None)?.id;
    let receipt = rewind(&mut workspace, &RewindRequest::new(Target::Point(point)), None)?;
    assert!(receipt.success && receipt.errors.is_empty());
    assert_eq!(fs::read_to_string(&file)?, "let total = sum;\n");

    // cleanup(): how many points went
    let policy = Policy { points_per_session: 50, archive_days: 7, ..Policy::default() };
    let cleaned = clean_up(&mut workspace, &policy, Occasion::OnDemand, Clock::Doubted)?;
    assert_eq!(cleaned.points, 0);
    Ok(())
}

fn file_checkpoint_middleware(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut workspace = open(folder)?;
    let file = folder.join("project/notes.txt");
    fs::write(&file, "keep this\n")?;

    let mut middleware = Middleware {
        workspace: &mut workspace,
        session: SessionId::from("session-1"),
        tools: Tools::default(),
        on_unrecorded: Box::new(|what| eprintln!("not recorded: {what:?}")),
    };
    middleware.prompt(Some("message-1"), "Tidy up");

    // wrap(executor): what a call is about to overwrite is kept, then the executor runs
    let input = json!({ "command": "rm notes.txt" });
    let call = ToolCall { id: "call-1", tool: "bash", input: &input };
    middleware.around(call, |_call| fs::remove_file(&file))?;
    middleware.turn_end();
    drop(middleware);

    let points = workspace.store.points()?;
    let point = find_point(&points, "session-1:message-1", &|_| None)?.id;
    rewind(&mut workspace, &RewindRequest::new(Target::Point(point)), None)?;
    assert_eq!(fs::read_to_string(&file)?, "keep this\n");
    Ok(())
}

fn persistence_manager(folder: &Path) -> Result<(), Box<dyn Error>> {
    // PersistenceManager(JSONStorage(project)): any `StateStore`, here JSON files
    let states = JsonStates::at(folder.join("projects/example/persistence"));

    // save(category, key, data), load, list, delete
    let key = DocumentKey::new("conv-auto-save-123")?;
    let conversation = json!({ "messages": ["hello"] });
    states.put_document(Category::Conversation, &key, &conversation)?;
    assert_eq!(states.document(Category::Conversation, &key)?, Some(conversation));
    assert!(states.documents(Category::Conversation)?.contains(&key));
    let file = "projects/example/persistence/conversation/conv-auto-save-123.json";
    assert!(folder.join(file).is_file());
    assert!(states.delete_document(Category::Conversation, &key)?);
    Ok(())
}

fn checkpoint_manager(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut workspace = open(folder)?;
    let execution = ExecutionId::new("exec-123")?;
    let values = Values {
        state: json!({ "agent_state": "thinking" }),
        context: json!({ "messages": [] }),
        variables: json!({ "var1": "value1" }),
        metadata: json!({ "cost": 0.25 }),
    };

    // create_checkpoint(…), with the files as they are. `Expect::Newest(None)`: only as the first.
    let new = NewCheckpoint {
        execution: &execution,
        branch: None,
        step: StepIndex(1),
        attempt: None,
        step_name: "plan",
        time: now(),
        status: Status::Success,
        error: None,
        values: &values,
        expect: Expect::Newest(None),
        point: None,
        session: None,
    };
    let (saved, _recorded) = save_step(&mut workspace, &new)?;
    assert_eq!(saved.record.id().to_string(), "ckpt-exec-123-1");

    // load_checkpoint(id), list_checkpoints(execution_id), get_last_successful_checkpoint(execution_id)
    let states = &*workspace.states;
    let loaded = states.load(&"ckpt-exec-123-1".parse()?)?.ok_or("it was saved")?;
    assert_eq!(loaded.values.metadata, json!({ "cost": 0.25 }));
    let all =
        ListQuery { execution: &execution, which: Which::Branch(None), after: None, limit: None };
    assert_eq!(states.list(&all)?.records.len(), 1);
    assert_eq!(states.last_successful(&execution, None, None)?, Some(saved.record.clone()));

    // get_formatted_checkpoint_history()
    let shown = history(states)?;
    assert_eq!(shown, [(execution, "Restore exec-123\n  Step: plan".to_owned())]);

    // delete_checkpoint(id)
    assert!(states.delete(&saved.record.key)?);
    Ok(())
}

fn execution_recovery(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut workspace = open(folder)?;
    let (execution, session) = (ExecutionId::new("exec-123")?, SessionId::from("exec-123"));
    let notes = folder.join("project/notes.txt");
    let mut keys: Vec<CheckpointKey> = Vec::new();
    for (step, status) in [(1, Status::Success), (2, Status::Success), (3, Status::Failed)] {
        // What the step does to files is its own: it is recorded as a call.
        let (call, tool) = (CallId(format!("step-{step}")), "step".to_owned());
        let touches = Touches::anything(None);
        let begins =
            AgentEvent::BeforeTool { session: session.clone(), call: call.clone(), tool, touches };
        record(&mut workspace, &begins)?;
        fs::write(&notes, format!("step {step}\n"))?;
        let (outcome, report) = (Outcome::Done, CallReport::default());
        let ends = AgentEvent::AfterTool { session: session.clone(), call, outcome, report };
        record(&mut workspace, &ends)?;
        let values = Values { state: json!({ "done": step }), ..Values::default() };
        let new = NewCheckpoint {
            execution: &execution,
            branch: None,
            step: StepIndex(step),
            attempt: None,
            step_name: "write",
            time: now(),
            status,
            error: None,
            values: &values,
            expect: Expect::Anything,
            point: None,
            session: Some(&session),
        };
        keys.push(save_step(&mut workspace, &new)?.0.record.key);
    }

    // resume_from_checkpoint(id, agent): state, context and variables for the agent to go on from
    let id: CheckpointId = "ckpt-exec-123-2".parse()?;
    let resumed = resume(&*workspace.states, &id)?;
    assert_eq!(resumed.checkpoint.values.state, json!({ "done": 2 }));

    // retry_from_step(execution_id, step, agent, max_retries): counted over restarts
    let retried = retry_from_step(&*workspace.states, &execution, StepIndex(3), 3)?;
    assert_eq!(retried.checkpoint.record.key, keys[1]);

    // rollback_to_checkpoint(id): state and files together, or neither
    let receipt = rollback_to(&mut workspace, &keys[0], RollbackFiles::All)?;
    assert!(receipt.success, "{receipt:?}");
    assert_eq!(fs::read_to_string(&notes)?, "step 1\n");
    let head = workspace.states.head(&execution, None)?.and_then(|head| head.record);
    assert_eq!(head.map(|record| record.key), Some(keys[0].clone()));
    Ok(())
}
