//! A request to an endpoint and the stream that answers it, with retries.
//!
//! Reading blocks, and a turn must end when it is to. So a thread of its own reads, and whoever waits for
//! it can turn away: the thread ends with its next piece, or when the endpoint has been silent too long.

mod answer;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::Builder;
use std::time::Duration;

use serde_json::Value;
use ureq::http::HeaderValue;

use self::answer::{Received, read_answer, refusal};
use super::draft::Draft;
use super::endpoint::{ApiKey, Endpoint};
use super::model::{Heard, ModelError, Reply};
use super::signals::Signals;

/// How long an endpoint may say nothing at all.
const SILENCE: Duration = Duration::from_secs(300);

const CONNECT: Duration = Duration::from_secs(30);

/// No server is obeyed that wants a longer wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How often it is looked whether the turn is to end.
const GLANCE: Duration = Duration::from_millis(20);

/// One of the routes of an endpoint.
pub(super) struct Line {
    agent: ureq::Agent,
    url: String,
    headers: Vec<(&'static str, String)>,
    host: String,
    pub(super) key: Option<ApiKey>,
    retries: u32,
    first_wait: Duration,
}

/// Puts the data of one event into a draft. Why not: the endpoint says that something is wrong, or it
/// makes no sense.
pub(super) type Take = fn(&mut Draft, &str, &mut dyn FnMut(Heard<'_>)) -> Result<(), Wrong>;

pub(super) enum Wrong {
    Reported(String),
    Malformed(String),
}

/// Why one try failed.
struct Fault {
    error: ModelError,
    /// Whether another try may do better.
    is_passing: bool,
    /// What the server asks for.
    wait: Option<Duration>,
}

enum Streamed {
    Whole,
    Interrupted,
}

impl Line {
    pub(super) fn new(
        endpoint: &Endpoint,
        route: &str,
        headers: Vec<(&'static str, String)>,
    ) -> Self {
        Self {
            agent: agent(endpoint),
            url: format!("{}{route}", endpoint.base_url),
            headers,
            host: endpoint.host().to_owned(),
            key: endpoint.key.clone(),
            retries: endpoint.retries,
            first_wait: endpoint.first_wait,
        }
    }

    pub(super) fn ask(
        &self,
        body: &Value,
        take: Take,
        signals: &Signals,
        hear: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Reply, ModelError> {
        let interrupted = |draft: Draft| Reply { content: draft.content(), is_interrupted: true };
        let mut wait = self.first_wait;
        let mut tries = 0;
        loop {
            let mut draft = Draft::default();
            let streamed = self.stream(body, take, &mut draft, signals, hear);
            draft.end_text(hear);
            let fault = match streamed {
                Ok(Streamed::Whole) => {
                    return Ok(Reply { content: draft.content(), is_interrupted: false });
                }
                Ok(Streamed::Interrupted) => return Ok(interrupted(draft)),
                Err(fault) => fault,
            };
            tries += 1;
            if !fault.is_passing || draft.was_heard() || tries > self.retries {
                return Err(fault.error);
            }
            let now = fault.wait.unwrap_or(wait).min(LONGEST_WAIT);
            hear(Heard::Note(format!("{}; trying again in {} s", fault.error, now.as_secs())));
            if !signals.sleep(now) {
                return Ok(interrupted(draft));
            }
            wait *= 2;
        }
    }

    fn stream(
        &self,
        body: &Value,
        take: Take,
        draft: &mut Draft,
        signals: &Signals,
        hear: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Streamed, Fault> {
        let received = self.send(body.to_string())?;
        let mut has_begun = false;
        loop {
            if signals.is_interrupted() {
                return Ok(Streamed::Interrupted);
            }
            match received.recv_timeout(GLANCE) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Received::Event(data)) => {
                    has_begun = true;
                    take(draft, &data, hear).map_err(|wrong| self.wrong(wrong))?;
                    if draft.is_finished {
                        return Ok(Streamed::Whole);
                    }
                }
                Ok(Received::Refused { status, wait, body }) => {
                    return Err(self.refused(status, wait, &body));
                }
                Ok(Received::Unreachable(why)) => {
                    let error =
                        ModelError::Unreachable { host: self.host(), why: self.hidden(why) };
                    return Err(Fault { error, is_passing: true, wait: None });
                }
                Ok(Received::Ended(None)) if draft.is_whole => return Ok(Streamed::Whole),
                Ok(Received::Ended(None)) if !has_begun => {
                    let why = "it is no stream of events".to_owned();
                    return Err(self.wrong(Wrong::Malformed(why)));
                }
                Ok(Received::Ended(why)) => {
                    let why = why.unwrap_or_else(|| "the connection ended".to_owned());
                    let error = ModelError::BrokeOff { host: self.host(), why: self.hidden(why) };
                    return Err(Fault { error, is_passing: true, wait: None });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let why = "nobody reads it".to_owned();
                    let error = ModelError::BrokeOff { host: self.host(), why };
                    return Err(Fault { error, is_passing: false, wait: None });
                }
            }
        }
    }

    fn send(&self, body: String) -> Result<Receiver<Received>, Fault> {
        let (told, received) = mpsc::channel();
        let mut request = self.agent.post(&self.url).content_type("application/json");
        for (name, value) in &self.headers {
            let mut value = HeaderValue::from_str(value).map_err(|_which| {
                let why = "the key has characters that cannot be sent".to_owned();
                let error = ModelError::Unreachable { host: self.host(), why };
                Fault { error, is_passing: false, wait: None }
            })?;
            // So that no log of the library has it.
            value.set_sensitive(true);
            request = request.header(*name, value);
        }
        let ask = move || match request.send(body) {
            Ok(response) => read_answer(response, &told),
            Err(error) => tell(&told, Received::Unreachable(plain(&error))),
        };
        Builder::new().spawn(ask).map_err(|error| {
            let error = ModelError::Unreachable { host: self.host(), why: error.to_string() };
            Fault { error, is_passing: false, wait: None }
        })?;
        Ok(received)
    }

    fn refused(&self, status: u16, wait: Option<Duration>, body: &str) -> Fault {
        let (host, why) = (self.host(), self.hidden(refusal(body)));
        let is_passing = matches!(status, 408 | 429 | 500..);
        let error = match status {
            401 | 403 => ModelError::BadKey { host, status, why },
            _ => ModelError::Refused { host, status, why },
        };
        Fault { error, is_passing, wait }
    }

    fn wrong(&self, wrong: Wrong) -> Fault {
        let host = self.host();
        let (error, is_passing) = match wrong {
            Wrong::Reported(why) => {
                (ModelError::Reported { host, why: self.hidden(one_line(&why)) }, true)
            }
            Wrong::Malformed(why) => {
                (ModelError::Malformed { host, why: self.hidden(one_line(&why)) }, false)
            }
        };
        Fault { error, is_passing, wait: None }
    }

    fn host(&self) -> String {
        self.host.clone()
    }

    pub(super) fn hidden(&self, text: String) -> String {
        match &self.key {
            Some(key) => key.hidden_in(text),
            None => text,
        }
    }
}

fn tell(told: &Sender<Received>, received: Received) {
    // Nobody waits for it any more.
    drop(told.send(received));
}

fn agent(endpoint: &Endpoint) -> ureq::Agent {
    let proxy = endpoint.proxy.as_ref().and_then(|address| {
        let proxy = ureq::Proxy::new(&address.url).ok()?;
        let mut builder =
            ureq::Proxy::builder(proxy.protocol()).host(proxy.host()).port(proxy.port());
        if let Some(user) = proxy.username() {
            builder = builder.username(user);
        }
        if let Some(password) = proxy.password() {
            builder = builder.password(password);
        }
        if let Some(except) = &address.except {
            builder = builder.no_proxy(except);
        }
        builder.build().ok()
    });
    ureq::Agent::config_builder()
        // Otherwise the environment is asked.
        .proxy(proxy)
        .http_status_as_error(false)
        // The key goes to one host only.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(CONNECT))
        .timeout_per_read(Some(SILENCE))
        .user_agent(concat!("takeback/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// What went wrong with a connection, without the words of the library around it.
fn plain(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => one_line(&error.to_string()),
        error => one_line(&error.to_string()),
    }
}

/// What an error says, in one line that is not too long.
fn one_line(text: &str) -> String {
    const MOST: usize = 300;
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
