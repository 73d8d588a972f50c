//! Every method, with its parameters in positional order.

use takeback_ipc::{NamedParams, Outcome, Outlet, Params};

use super::client::Client;
use super::{
    actions, checkpoints, events, file_checkpoints, forks, history, points, server, sessions,
    states, watch,
};

pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) params: &'static [&'static str],
    pub(super) run: Run,
}

pub(super) enum Run {
    Named(fn(&mut Client, &NamedParams, &Outlet) -> Outcome),
    /// The parameters are an event, with any fields.
    Event(fn(&mut Client, &Params) -> Outcome),
}

const fn named(
    name: &'static str,
    params: &'static [&'static str],
    run: fn(&mut Client, &NamedParams, &Outlet) -> Outcome,
) -> Method {
    Method { name, params, run: Run::Named(run) }
}

/// The parameters of a rewind.
macro_rules! doing {
    ($($first:literal),* $(; $($last:literal),*)?) => {
        &[$($first,)* "dryRun", "outside", "discard", "workspace" $($(, $last)*)?]
    };
}

pub(super) const METHODS: &[Method] = &[
    named("checkpoint:list", &["sessionId", "contents", "workspace"], file_checkpoints::list),
    named(
        "checkpoint:rewind",
        &["sessionId", "messageId", "workspace", "conflicts"],
        file_checkpoints::rewind,
    ),
    named("checkpoint:cleanup", &["trustClock", "workspace"], file_checkpoints::cleanup),
    named("checkpoint:create", &["label", "workspace"], checkpoints::create),
    named(
        "checkpoint:preview",
        &[
            "point",
            "paths",
            "exact",
            "sessions",
            "allAgents",
            "ambiguous",
            "workspace",
            "take",
            "mine",
            "conflicts",
        ],
        checkpoints::preview,
    ),
    named(
        "checkpoint:diff",
        &["from", "to", "paths", "workspace", "patchBytes", "by"],
        checkpoints::differences,
    ),
    named("checkpoint:fork", &["point", "folder", "count", "all", "workspace"], forks::fork),
    named("checkpoint:compare", &["folders", "workspace"], forks::compare),
    named("history:blame", &["path", "lines", "workspace"], history::blame),
    named("history:bisect", &["command", "good", "bad", "with", "workspace"], history::bisect),
    named("history:why", &["line", "workspace"], history::why),
    named("history:path", &["path", "limit", "workspace"], history::path),
    named("history:cat", &["file", "workspace", "lines", "maxBytes"], history::file),
    named("history:stats", &["range", "since", "workspace"], history::counts),
    named("checkpoint:undo", doing!("exact"; "operation", "conflicts"), checkpoints::undo),
    named("checkpoint:redo", doing!("exact"), checkpoints::redo),
    named(
        "checkpoint:revert",
        doing!("what", "paths", "sessions", "allAgents", "ambiguous", "conflicts"; "mark"),
        actions::revert,
    ),
    named("checkpoint:restore", doing!("paths", "from"; "mark"), actions::restore),
    named("checkpoint:adopt", doing!("folder", "paths", "conflicts"; "mark"), actions::adopt),
    named("checkpoint:conflicts", &["workspace"], actions::open),
    named("checkpoint:resolve", doing!("paths", "take", "choices"; "mark"), actions::resolve),
    named("checkpoint:verify", &["workspace"], checkpoints::verify),
    named(
        "point:list",
        &[
            "limit",
            "session",
            "all",
            "workspace",
            "paths",
            "ops",
            "by",
            "since",
            "until",
            "grep",
            "text",
            "tool",
        ],
        points::list,
    ),
    named("point:show", &["point", "workspace"], points::show),
    named(
        "point:rewind",
        doing!("point", "paths", "exact", "sessions", "allAgents", "ambiguous"; "mark", "take", "mine", "conflicts"),
        points::rewind,
    ),
    named("point:subscribe", &["all", "workspace"], watch::subscribe),
    named("point:unsubscribe", &["workspace"], watch::unsubscribe),
    named("session:list", &["limit", "workspace"], sessions::list),
    named("session:archive", &["sessionId", "workspace"], sessions::archive),
    named("session:delete", &["sessionId", "workspace"], sessions::delete),
    named("state:save", &["checkpoint", "session", "files", "workspace"], states::save),
    named(
        "state:list",
        &["executionId", "branch", "all", "after", "limit", "workspace"],
        states::list,
    ),
    named("state:show", &["id", "workspace"], states::show),
    named(
        "state:resume",
        &["id", "branch", "fromStep", "maxRetries", "lastMessages", "workspace"],
        states::resume,
    ),
    named(
        "state:rollback",
        doing!("id", "exact", "partial", "stateOnly"; "ambiguous"),
        states::rollback,
    ),
    named("state:fork", &["id", "branch", "workspace"], states::fork),
    named("state:delete", &["id", "dryRun", "workspace"], states::delete),
    Method {
        name: "event:record",
        params: &["event", "workspace"],
        run: Run::Event(events::record),
    },
    named("event:hook", &["agent", "payload", "event", "pid", "workspace"], events::hook),
    named("server:info", &[], server::info),
    named("status", &["workspace"], server::status),
];

pub(super) fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_in_the_document_with_its_parameters_and_no_other() {
        let document = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/design/protocol.md"
        ))
        .unwrap();
        let (_, tables) = document.split_once("## Methods").unwrap();
        let (tables, _) = tables.split_once("## Errors").unwrap();
        let mut documented: Vec<(&str, Vec<&str>)> = tables
            .lines()
            .filter_map(|line| {
                let mut cells = line.strip_prefix("| `")?.split('|');
                let name = cells.next()?.trim().trim_end_matches('`');
                let words = cells.next()?.split(',').map(|word| word.trim().trim_matches('`'));
                let names = words.map(|word| word.trim_end_matches('?'));
                Some((name, names.filter(|name| !name.is_empty()).collect()))
            })
            .collect();
        let mut methods: Vec<(&str, Vec<&str>)> =
            METHODS.iter().map(|method| (method.name, method.params.to_vec())).collect();
        documented.sort();
        methods.sort();
        assert_eq!(documented, methods);
    }

    #[test]
    fn every_method_has_a_result_in_the_schema() {
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema.json");
        let schema = std::fs::read_to_string(schema).unwrap();
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        let results: Vec<&str> =
            schema["methods"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut methods: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
        methods.sort_unstable();
        assert_eq!(results, methods);
    }
}
