//! One JSON Schema document for every answer: `docs/schema.json`.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::{
    ActionAnswer, ArchiveAnswer, BisectAnswer, BlameAnswer, BlameReport, CatAnswer, Checkpoint,
    CheckpointAnswer, CleanupAnswer, CleanupPreview, CompareAnswer, ConfigAnswer, ConfigFileAnswer,
    ConfigSetAnswer, DiffAnswer, DoctorAnswer, DuAnswer, EffectAnswer, ErrorAnswer, ExportAnswer,
    FileCheckpoint, ForgetAnswer, ForkAnswer, HistoryAnswer, HookAnswer, ImportAnswer, InitAnswer,
    LogAnswer, NotesShowAnswer, NotesWriteAnswer, OpenConflict, Point, PointCreated, PreviewAnswer,
    PurgeAnswer, Receipt, RecordAnswer, RecoverAnswer, RecoverPreview, RelocateAnswer,
    ResumeAnswer, RunAnswer, SaveAnswer, SeriesExportAnswer, ServeAnswer, ServerInfo, ServerStatus,
    SessionDeletePreview, SessionsAnswer, Setting, ShowAnswer, StateDeleteAnswer, StateDiffAnswer,
    StateExport, StateExportAnswer, StateForkAnswer, StateListAnswer, StatsAnswer, StatusAnswer,
    StatusLineAnswer, SubscribeAnswer, TraceExportAnswer, VerifyAnswer, WhyAnswer, WithdrawAnswer,
    WorkspacesAnswer,
};

const DESCRIPTION: &str = "The answer of `takeback COMMAND --json` is #/$defs/COMMAND, of `takeback \
    state COMMAND --json` #/$defs/state-COMMAND, of `takeback config COMMAND --json` #/$defs/config-COMMAND; the result of a JSON-RPC method is #/methods/METHOD. \
    Exact for the version it came with; later ones may add keys.";

type Entry = (&'static str, fn(&mut SchemaGenerator) -> Schema);

/// A command or method, and the types of its answers.
macro_rules! entries {
    ($($name:literal: $($answer:ty)|+;)*) => {
        &[$(($name, |generator| one_of(vec![$(generator.subschema_for::<$answer>()),+]))),*]
    };
}

/// Every command with `--json`, and `error`, which all of them may answer.
const COMMANDS: &[Entry] = entries! {
    "adopt": Receipt;
    "bisect": BisectAnswer;
    "blame": BlameAnswer;
    "cat": CatAnswer;
    "checkpoint": CheckpointAnswer;
    "cleanup": CleanupAnswer | CleanupPreview;
    "compare": CompareAnswer;
    "config": ConfigAnswer | Setting;
    "config-edit": ConfigFileAnswer;
    "config-get": Setting;
    "config-path": ConfigFileAnswer;
    "config-set": ConfigSetAnswer;
    "config-unset": ConfigSetAnswer;
    "diff": DiffAnswer;
    "doctor": DoctorAnswer;
    "du": DuAnswer;
    "error": ErrorAnswer;
    "export": ExportAnswer | SeriesExportAnswer | TraceExportAnswer;
    "forget": ForgetAnswer;
    "fork": ForkAnswer;
    "history": HistoryAnswer;
    "import": ImportAnswer;
    "init": InitAnswer;
    "label": Point;
    "log": LogAnswer;
    "notes-show": NotesShowAnswer;
    "notes-write": NotesWriteAnswer;
    "pin": Point;
    "purge": PurgeAnswer;
    "record": RecordAnswer;
    "recover": RecoverAnswer | RecoverPreview;
    "redo": Receipt;
    "relocate": RelocateAnswer;
    "resolve": Receipt | Vec<OpenConflict>;
    "restore": Receipt;
    "revert": Receipt;
    "rewind": Receipt;
    "run": RunAnswer;
    "serve": ServeAnswer;
    "session": ArchiveAnswer | CleanupAnswer | SessionDeletePreview;
    "sessions": SessionsAnswer;
    "show": ShowAnswer;
    "state-delete": StateDeleteAnswer;
    "state-diff": StateDiffAnswer;
    "state-effect": EffectAnswer | WithdrawAnswer;
    "state-export": StateExport | StateExportAnswer;
    "state-fork": StateForkAnswer;
    "state-list": StateListAnswer;
    "state-resume": ResumeAnswer;
    "state-rollback": Receipt;
    "state-save": SaveAnswer;
    "state-show": Checkpoint;
    "stats": StatsAnswer;
    "status": StatusAnswer | Option<StatusLineAnswer>;
    "undo": Receipt;
    "uninstall": InitAnswer;
    "unpin": Point;
    "verify": VerifyAnswer;
    "why": WhyAnswer;
    "workspaces": WorkspacesAnswer;
};

/// Every JSON-RPC method.
const METHODS: &[Entry] = entries! {
    "checkpoint:cleanup": usize;
    "checkpoint:adopt": ActionAnswer;
    "checkpoint:compare": CompareAnswer;
    "checkpoint:conflicts": Vec<OpenConflict>;
    "checkpoint:create": CheckpointAnswer;
    "checkpoint:diff": DiffAnswer;
    "checkpoint:fork": ForkAnswer;
    "checkpoint:list": Vec<FileCheckpoint>;
    "checkpoint:preview": PreviewAnswer;
    "checkpoint:redo": Receipt;
    "checkpoint:resolve": ActionAnswer;
    "checkpoint:restore": ActionAnswer;
    "checkpoint:revert": ActionAnswer;
    "checkpoint:rewind": Receipt;
    "checkpoint:undo": Receipt;
    "checkpoint:verify": VerifyAnswer;
    "event:hook": HookAnswer;
    "event:record": RecordAnswer;
    "history:bisect": BisectAnswer;
    "history:blame": BlameReport;
    "history:cat": CatAnswer;
    "history:path": HistoryAnswer;
    "history:stats": StatsAnswer;
    "history:why": WhyAnswer;
    "point:list": LogAnswer;
    "point:rewind": Receipt;
    "point:show": ShowAnswer;
    "point:subscribe": SubscribeAnswer;
    "point:unsubscribe": bool;
    "server:info": ServerInfo;
    "session:archive": ArchiveAnswer;
    "session:delete": CleanupAnswer;
    "session:list": SessionsAnswer;
    "state:delete": StateDeleteAnswer;
    "state:fork": StateForkAnswer;
    "state:list": StateListAnswer;
    "state:resume": ResumeAnswer;
    "state:rollback": Receipt;
    "state:save": SaveAnswer;
    "state:show": Checkpoint;
    "status": ServerStatus;
};

/// What the server sends without being asked.
const NOTIFICATIONS: &[Entry] = entries! {
    "point:created": PointCreated;
};

/// The document: `$defs` has the commands and the types they share.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.with_transform(ExactSchema).into_generator();
    let mut list = |entries: &[Entry]| -> Map<String, Value> {
        let schemas = entries.iter().map(|(name, schema)| {
            let mut schema = schema(&mut generator);
            ExactSchema.transform(&mut schema);
            ((*name).to_owned(), schema.to_value())
        });
        schemas.collect()
    };
    let (mut definitions, methods, notifications) =
        (list(COMMANDS), list(METHODS), list(NOTIFICATIONS));
    definitions.extend(generator.take_definitions(true));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Takeback's JSON answers",
        "description": DESCRIPTION,
        "$defs": definitions,
        "methods": methods,
        "notifications": notifications,
    })
}

fn one_of(mut schemas: Vec<Schema>) -> Schema {
    match schemas.len() {
        1 => schemas.remove(0),
        _ => schemars::json_schema!({ "oneOf": schemas }),
    }
}

/// Says what the derived schema leaves open: objects have no other keys, and an optional key is absent
/// rather than `null`, unless its field is marked `nullable`. How wide a number is in Rust is left out.
#[derive(Clone)]
struct ExactSchema;

impl Transform for ExactSchema {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if schema.get("format").is_some_and(|format| format != "date-time") {
            schema.remove("format");
        }
        if let Some(text) = schema.get("description").and_then(Value::as_str) {
            let text = text.replace('\n', " ");
            schema.insert("description".to_owned(), json!(text));
        }
        let required =
            schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            for (name, property) in properties {
                let Some(property) = property.as_object_mut() else { continue };
                let is_nullable = property.remove("nullable").is_some();
                if !is_nullable && !required.iter().any(|one| one == name) {
                    remove_null(property);
                }
            }
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
    }
}

fn remove_null(property: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = property.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            property.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(options)) = property.get_mut("anyOf") {
        options.retain(|option| option["type"] != "null");
        if let [Value::Object(option)] = options.as_slice() {
            let option = option.clone();
            property.remove("anyOf");
            property.extend(option);
        }
    }
}
