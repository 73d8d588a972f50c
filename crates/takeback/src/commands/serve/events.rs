//! `event:*`: records an agent's events.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use serde::Deserialize;
use takeback_agents::agent_named;
use takeback_core::process;
use takeback_ipc::{Fault, NamedParams, Outcome, Outlet, Params, RawValue};

use super::client::{Client, result};
use super::fault::{self, fault};
use crate::answers::HookAnswer;
use crate::commands::hook::{HookInput, HookRun, Recorder, record_hook};
use crate::commands::record::without_files;
use crate::place::{self, Store};

/// The parameter next to an event.
#[derive(Deserialize)]
struct WireWhere {
    workspace: Option<PathBuf>,
}

/// The parameters are the object of one line of `record`, or a list of it and a workspace.
pub(super) fn record(client: &mut Client, params: &Params) -> Outcome {
    let wrong = |error: serde_json::Error| Fault::invalid_params(error.to_string());
    let text = params.text();
    let (event, workspace) = if text.starts_with('[') {
        let given: Vec<Box<RawValue>> = serde_json::from_str(text).map_err(wrong)?;
        if given.len() > 2 {
            return Err(Fault::invalid_params("expected at most 2 parameters"));
        }
        let workspace = match given.get(1) {
            Some(folder) => serde_json::from_str(folder.get()).map_err(wrong)?,
            None => None,
        };
        let event = given.into_iter().next();
        let event = event.ok_or_else(|| Fault::invalid_params("the parameter event is missing"))?;
        (event.get().to_owned(), workspace)
    } else {
        let WireWhere { workspace } = serde_json::from_str(text).map_err(wrong)?;
        (without_workspace(text).map_err(wrong)?, workspace)
    };
    let options = client.options_at(workspace.as_deref());
    let line = event.as_bytes();
    if let Some(refusal) = place::not_enabled(&options)? {
        return result(&without_files(line, &refusal, || {
            Ok(&mut client.opened(options, Store::Create)?.handle.place)
        }));
    }
    let at = client.opened(options, Store::Create)?;
    result(&at.handle.recording.answer(&mut at.handle.place, line))
}

/// The event without the parameter next to it, and with its values as they were written.
fn without_workspace(text: &str) -> Result<String, serde_json::Error> {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text)?;
    match fields.remove("workspace") {
        Some(_) => serde_json::to_string(&fields),
        None => Ok(text.to_owned()),
    }
}

/// Records a hook payload in the agent's own format. As with `record`, a refused event is an answer, not an
/// error.
pub(super) fn hook(client: &mut Client, params: &NamedParams, _: &Outlet) -> Outcome {
    let begun = Instant::now();
    let name: String = params.required("agent")?;
    let payload: Box<RawValue> = params.required("payload")?;
    let event: Option<String> = params.optional("event")?;
    let pid: Option<u32> = params.optional("pid")?;
    let folder = match params.optional::<PathBuf>("workspace")? {
        Some(folder) => client.folder().join(folder),
        None => client.folder().to_owned(),
    };
    let agent = agent_named(&name)
        .ok_or_else(|| fault(fault::UNKNOWN_AGENT, format!("unknown agent {name}")))?;
    let input = HookInput {
        agent,
        payload: payload.get().as_bytes(),
        event: event.as_deref(),
        folder: Some(&folder),
        run: HookRun { agent: pid.and_then(process::started), at: None },
        begun,
        recorder: Recorder::Hook,
        watchlist: client.watchlist(),
    };
    let outcome = record_hook(client.home(), &input);
    let error = outcome.recorded.err();
    result(&HookAnswer { ok: error.is_none(), error, context: outcome.context })
}
