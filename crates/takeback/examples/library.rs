//! What programs of this kind often call a manager, service or middleware, and what to call here in its
//! place. `docs/library.md` shows these functions.
//!
//! ```sh
//! cargo run -p takeback --example library
//! ```

#![expect(clippy::disallowed_methods, reason = "an agent writes its own files")]

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::json;
use takeback::agents::{Checkpoint, Metadata, checkpoint_description};
use takeback::core::execution::{history, retry_from_step};
use takeback::core::history::{LineAuthor, LogQuery, LogRow};
use takeback::store::state::{Category, DocumentKey, ExecutionId, StepIndex, Values};
use takeback::store::{JsonStates, States as _, Timestamp};
use takeback::{BisectQuery, DiffEnd, DiffQuery, StatsQuery, Step, Takeback, Tool};

type Example = fn(&Path) -> Result<(), Box<dyn Error>>;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let each: [Example; 7] = [
        questions,
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

fn open(folder: &Path) -> Result<Takeback, Box<dyn Error>> {
    Ok(Takeback::open_with_home(folder.join("project"), folder.join("home"))?)
}

fn questions(folder: &Path) -> Result<(), Box<dyn Error>> {
    let takeback = open(folder)?;
    let file = folder.join("project/cart.rs");
    fs::write(&file, "let total = sum;\n")?;
    let turn = takeback.prompt("session-1", "Add discounts")?;
    turn.call("call-1", Tool::edit("cart.rs"), || {
        fs::write(&file, "let total = sum - discount;\n")
    })?;
    fs::write(&file, "// Prices are in cents.\nlet total = sum - discount;\n")?;

    // Who wrote each line, and why a line is there
    let lines = takeback.blame("cart.rs")?.lines;
    assert_eq!(lines[0].writer.author, LineAuthor::You);
    let why = takeback.why("cart.rs", 2)?;
    assert_eq!(why.writer.author, LineAuthor::Agent);
    assert_eq!(why.writer.turn.as_ref().ok_or("a prompt")?.prompt, "Add discounts");

    // What a prompt changed, and what else changed since
    let own = DiffQuery { to: DiffEnd::Turn, ..DiffQuery::since(turn.point()) };
    let [of_agent] = &takeback.diff(&own)?.diffs[..] else { return Err("one file".into()) };
    let [all] = &takeback.diff(&DiffQuery::since(turn.point()))?.diffs[..] else {
        return Err("one file".into());
    };
    assert_ne!(of_agent.after, all.after, "your comment is not the agent's");

    // The log by author, one file's history, and how much is left of what each wrote
    let rows = takeback.log(&LogQuery::newest(20))?;
    let LogRow::Point(row) = &rows[0] else { return Err("a point".into()) };
    assert_eq!((row.tally.agent.lines.insertions, row.tally.you.lines.insertions), (1, 1));
    assert_eq!(takeback.history("cart.rs", 20)?[0].point.as_ref(), Some(&row.point));
    assert_eq!(takeback.stats(&StatsQuery::default())?.agents.left, 1);

    // A file as it was
    assert_eq!(takeback.cat(turn.point(), "cart.rs")?, b"let total = sum;\n");

    // What made a command fail
    let found = takeback.bisect(&BisectQuery::of(["grep", "-q", "= sum;", "cart.rs"]))?;
    assert_eq!(found.call.as_ref().ok_or("a call")?.id.0, "call-1");
    Ok(())
}

fn list_of_prompts(folder: &Path) -> Result<(), Box<dyn Error>> {
    // new CheckpointManager({ sessionId, maxCheckpoints: 10 }); await initialize()
    let (mut prompts, damaged) = Metadata::open(&folder.join("sessions"), "host-session", 10)?;
    assert!(damaged.is_none(), "a file that cannot be read is set aside and named here");

    // captureCheckpoint(uuid, description, sessionId)
    let content = json!([{ "type": "text", "text": "Add a dark mode" }]);
    prompts.capture(Checkpoint {
        id: "8f0e-uuid".to_owned(),
        timestamp: Timestamp(1_700_000_000_000),
        description: checkpoint_description(&content, "14:03:59"),
        session_id: "sdk-session".to_owned(),
    })?;

    // listCheckpoints(): newest first, as metadata.json has them
    assert_eq!(prompts.list()[0].description, "Add a dark mode");
    let file = fs::read_to_string(prompts.path())?;
    assert!(file.contains(r#""sessionId": "sdk-session""#));
    Ok(())
}

fn file_checkpoint_service(folder: &Path) -> Result<(), Box<dyn Error>> {
    let takeback = open(folder)?;
    let file = folder.join("project/cart.rs");
    fs::write(&file, "let total = sum;\n")?;

    // createCheckpoint(sessionId, messageId, filePath): taken before the tool runs
    let turn = takeback.prompt_as("session-1", Some("message-1"), "Add discounts")?;
    turn.call("call-1", Tool::edit("cart.rs"), || {
        fs::write(&file, "let total = sum - discount;\n")
    })?;

    // getCheckpoints(sessionId)
    let listed = takeback.file_checkpoints("session-1")?;
    assert_eq!(listed[0].message.as_deref(), Some("message-1"));
    let original = listed[0].original.digest().ok_or("the file existed")?;
    assert_eq!(takeback.contents(&original)?, b"let total = sum;\n");

    // rewindFiles(sessionId, messageId): that message's changes and all later ones
    let point = takeback.point("session-1:message-1")?;
    let receipt = takeback.rewind(point)?.apply()?;
    assert!(receipt.success && receipt.errors.is_empty());
    assert_eq!(fs::read_to_string(&file)?, "let total = sum;\n");

    // cleanup(): how many points were dropped
    assert_eq!(takeback.cleanup()?.points, 0);
    Ok(())
}

fn file_checkpoint_middleware(folder: &Path) -> Result<(), Box<dyn Error>> {
    let takeback = open(folder)?;
    let file = folder.join("project/notes.txt");
    fs::write(&file, "keep this\n")?;

    // wrap(executor): any tool by its name and input; its own result comes back
    let turn = takeback.prompt("session-1", "Tidy up")?;
    let tool = Tool::named("bash", &json!({ "command": "rm notes.txt" }));
    turn.call("call-1", tool, || fs::remove_file(&file))?;
    assert!(takeback.unrecorded().is_empty(), "what could not be recorded is listed here");

    takeback.rewind(turn.point())?.apply()?;
    assert_eq!(fs::read_to_string(&file)?, "keep this\n");
    Ok(())
}

fn persistence_manager(folder: &Path) -> Result<(), Box<dyn Error>> {
    // PersistenceManager(JSONStorage(project)); `takeback.states()` is the one of a workspace
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
    let takeback = open(folder)?;
    let values = Values {
        state: json!({ "agent_state": "thinking" }),
        context: json!({ "messages": [] }),
        variables: json!({ "var1": "value1" }),
        metadata: json!({ "cost": 0.25 }),
    };

    // create_checkpoint(…), with the files as they are
    let (execution, name) = ("exec-123", "plan");
    let saved =
        takeback.save_step(&Step { execution, index: 1, name, values, ..Step::default() })?;
    assert_eq!(saved.record.id().to_string(), "ckpt-exec-123-1");

    // load_checkpoint(id), get_last_successful_checkpoint(execution_id)
    let states = takeback.states();
    let loaded = states.load(&"ckpt-exec-123-1".parse()?)?.ok_or("it was saved")?;
    assert_eq!(loaded.values.metadata, json!({ "cost": 0.25 }));
    let execution = ExecutionId::new(execution)?;
    assert_eq!(states.last_successful(&execution, None, None)?, Some(saved.record.clone()));

    // get_formatted_checkpoint_history()
    let shown = history(&*states)?;
    assert_eq!(shown, [(execution, "Restore exec-123\n  Step: plan".to_owned())]);

    // delete_checkpoint(id)
    assert!(states.delete(&saved.record.key)?);
    Ok(())
}

fn execution_recovery(folder: &Path) -> Result<(), Box<dyn Error>> {
    let takeback = open(folder)?;
    let notes = folder.join("project/notes.txt");
    let (execution, name) = ("exec-123", "write");
    let turn = takeback.prompt(execution, "Write the notes")?;
    for (index, error) in [(1, None), (2, None), (3, Some("the model gave up"))] {
        let step = format!("step {index}");
        turn.call(&step, Tool::edit("notes.txt"), || fs::write(&notes, &step))?;
        let values = Values { state: json!({ "done": index }), ..Values::default() };
        takeback.save_step(&Step { execution, index, name, values, error, session: None })?;
    }

    // resume_from_checkpoint(id, agent): state, context and variables for the agent to go on from
    let resumed = takeback.resume(&"ckpt-exec-123-2".parse()?)?;
    assert_eq!(resumed.checkpoint.values.state, json!({ "done": 2 }));

    // retry_from_step(execution_id, step, agent, max_retries): counted across restarts
    let states = takeback.states();
    let retried = retry_from_step(&*states, &ExecutionId::new(execution)?, StepIndex(3), 3)?;
    assert_eq!(retried.checkpoint.record.id().to_string(), "ckpt-exec-123-2");

    // rollback_to_checkpoint(id): state and files together, or neither
    let receipt = takeback.rollback(&"ckpt-exec-123-1".parse()?)?;
    assert!(receipt.success, "{receipt:?}");
    assert_eq!(fs::read_to_string(&notes)?, "step 1");
    Ok(())
}
