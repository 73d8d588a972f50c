//! Every method, with its parameters in the order in which they stand by position.

use takeback_ipc::params::Named;
use takeback_ipc::{Outcome, Outlet, Params};

use super::client::Client;
use super::{checkpoints, events, points};

pub(super) struct Method {
    pub(super) name: &'static str,
    pub(super) params: &'static [&'static str],
    pub(super) run: Run,
}

pub(super) enum Run {
    Named(fn(&mut Client, &Named, &Outlet) -> Outcome),
    /// The parameters are an event, which may say whatever it likes.
    Event(fn(&mut Client, &Params) -> Outcome),
}

const fn named(
    name: &'static str,
    params: &'static [&'static str],
    run: fn(&mut Client, &Named, &Outlet) -> Outcome,
) -> Method {
    Method { name, params, run: Run::Named(run) }
}

pub(super) const METHODS: &[Method] = &[
    named("checkpoint:list", &["sessionId", "workspace"], checkpoints::list),
    named("checkpoint:rewind", &["sessionId", "messageId", "workspace"], checkpoints::rewind),
    named("checkpoint:cleanup", &["trustClock", "workspace"], checkpoints::cleanup),
    named("point:list", &["limit", "session", "all", "workspace"], points::list),
    Method {
        name: "event:record",
        params: &["event", "workspace"],
        run: Run::Event(events::record),
    },
];

pub(super) fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}
