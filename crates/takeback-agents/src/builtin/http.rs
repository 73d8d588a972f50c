//! A request to an endpoint and the stream that answers it, with retries.
//!
//! Reading blocks, but an interrupted turn must end at once. So another thread reads, and the turn can stop
//! waiting for it: that thread ends with its next piece, or after [`SILENCE`].

mod answer;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::Builder;
use std::time::Duration;

use serde_json::Value;
use ureq::http::HeaderValue;

use self::answer::{ResponsePart, read_answer, refusal};
use super::conversation::Conversation;
use super::draft::Draft;
use super::endpoint::{ApiKey, Endpoint};
use super::model::{Model, ModelError, ModelOutput, Reply};
use super::signals::Signals;

/// How long an endpoint may send nothing.
const SILENCE: Duration = Duration::from_secs(300);

const CONNECT: Duration = Duration::from_secs(30);

/// The longest wait before a retry, even if the server asks for more.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How often to check for an interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A model behind an endpoint.
pub(super) struct HttpModel {
    pub(super) model: String,
    pub(super) system: String,
    pub(super) route: Route,
    /// The body of a request for the next message.
    pub(super) request: fn(&Self, &Conversation) -> Value,
}

/// One URL of an endpoint, with its headers, event decoder and retry policy.
pub(super) struct Route {
    agent: ureq::Agent,
    url: String,
    headers: Vec<(&'static str, String)>,
    decode: EventDecoder,
    host: String,
    key: Option<ApiKey>,
    retries: u32,
    first_wait: Duration,
}

/// Adds the data of one event to a draft.
pub(super) type EventDecoder =
    fn(&mut Draft, &str, &mut dyn FnMut(ModelOutput<'_>)) -> Result<(), StreamError>;

/// Why an event cannot be added to a draft.
pub(super) enum StreamError {
    /// The endpoint reports an error.
    Reported(String),
    /// The data cannot be parsed.
    Malformed(String),
}

/// Why one attempt failed.
struct RequestFailure {
    error: ModelError,
    /// Whether another attempt may succeed.
    is_retryable: bool,
    /// How long the server asks to wait.
    wait: Option<Duration>,
}

enum StreamEnd {
    Whole,
    Interrupted,
}

impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.model
    }

    fn next(
        &mut self,
        conversation: &Conversation,
        signals: &Signals,
        emit: &mut dyn FnMut(ModelOutput<'_>),
    ) -> Result<Reply, ModelError> {
        self.route.ask(&(self.request)(self, conversation), signals, emit)
    }

    fn redact(&self, text: String) -> String {
        self.route.redact(text)
    }
}

impl Route {
    pub(super) fn new(
        endpoint: &Endpoint,
        route: &str,
        headers: Vec<(&'static str, String)>,
        decode: EventDecoder,
    ) -> Self {
        Self {
            agent: agent(endpoint),
            url: format!("{}{route}", endpoint.base_url),
            headers,
            decode,
            host: endpoint.host().to_owned(),
            key: endpoint.key.clone(),
            retries: endpoint.retries,
            first_wait: endpoint.first_wait,
        }
    }

    fn ask(
        &self,
        body: &Value,
        signals: &Signals,
        emit: &mut dyn FnMut(ModelOutput<'_>),
    ) -> Result<Reply, ModelError> {
        let interrupted = |draft: Draft| Reply { content: draft.content(), is_interrupted: true };
        let mut wait = self.first_wait;
        let mut tries = 0;
        loop {
            let mut draft = Draft::default();
            let streamed = self.stream(body, &mut draft, signals, emit);
            draft.end_text(emit);
            let failure = match streamed {
                Ok(StreamEnd::Whole) => {
                    return Ok(Reply { content: draft.content(), is_interrupted: false });
                }
                Ok(StreamEnd::Interrupted) => return Ok(interrupted(draft)),
                Err(failure) => failure,
            };
            tries += 1;
            if !failure.is_retryable || draft.was_shown() || tries > self.retries {
                return Err(failure.error);
            }
            let now = failure.wait.unwrap_or(wait).min(LONGEST_WAIT);
            emit(ModelOutput::Note(format!(
                "{}; trying again in {} s",
                failure.error,
                now.as_secs()
            )));
            if !signals.sleep(now) {
                return Ok(interrupted(draft));
            }
            wait *= 2;
        }
    }

    fn stream(
        &self,
        body: &Value,
        draft: &mut Draft,
        signals: &Signals,
        emit: &mut dyn FnMut(ModelOutput<'_>),
    ) -> Result<StreamEnd, RequestFailure> {
        let received = self.send(body.to_string())?;
        let mut has_begun = false;
        loop {
            if signals.is_interrupted() {
                return Ok(StreamEnd::Interrupted);
            }
            match received.recv_timeout(POLL_INTERVAL) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(ResponsePart::Event(data)) => {
                    has_begun = true;
                    (self.decode)(draft, &data, emit).map_err(|error| self.stream_error(error))?;
                    if draft.is_finished {
                        return Ok(StreamEnd::Whole);
                    }
                }
                Ok(ResponsePart::Refused { status, wait, body }) => {
                    return Err(self.refused(status, wait, &body));
                }
                Ok(ResponsePart::Unreachable(why)) => {
                    let error =
                        ModelError::Unreachable { host: self.host(), why: self.redact(why) };
                    return Err(RequestFailure { error, is_retryable: true, wait: None });
                }
                Ok(ResponsePart::Ended(None)) if draft.is_whole => return Ok(StreamEnd::Whole),
                Ok(ResponsePart::Ended(None)) if !has_begun => {
                    let why = "it is not an event stream".to_owned();
                    return Err(self.stream_error(StreamError::Malformed(why)));
                }
                Ok(ResponsePart::Ended(why)) => {
                    let why = why.unwrap_or_else(|| "the connection ended".to_owned());
                    let error = ModelError::BrokeOff { host: self.host(), why: self.redact(why) };
                    return Err(RequestFailure { error, is_retryable: true, wait: None });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let why = "the reading thread ended".to_owned();
                    let error = ModelError::BrokeOff { host: self.host(), why };
                    return Err(RequestFailure { error, is_retryable: false, wait: None });
                }
            }
        }
    }

    fn send(&self, body: String) -> Result<Receiver<ResponsePart>, RequestFailure> {
        let (parts, received) = mpsc::channel();
        let mut request = self.agent.post(&self.url).content_type("application/json");
        for (name, value) in &self.headers {
            let mut value = HeaderValue::from_str(value).map_err(|_which| {
                let why = "the key has characters that cannot be sent".to_owned();
                let error = ModelError::Unreachable { host: self.host(), why };
                RequestFailure { error, is_retryable: false, wait: None }
            })?;
            // Keeps it out of the library's logs.
            value.set_sensitive(true);
            request = request.header(*name, value);
        }
        let ask = move || match request.send(body) {
            Ok(response) => read_answer(response, &parts),
            Err(error) => send_part(&parts, ResponsePart::Unreachable(describe_error(&error))),
        };
        Builder::new().spawn(ask).map_err(|error| {
            let error = ModelError::Unreachable { host: self.host(), why: error.to_string() };
            RequestFailure { error, is_retryable: false, wait: None }
        })?;
        Ok(received)
    }

    fn refused(&self, status: u16, wait: Option<Duration>, body: &str) -> RequestFailure {
        let (host, why) = (self.host(), self.redact(refusal(body)));
        let is_retryable = matches!(status, 408 | 429 | 500..);
        let error = match status {
            401 | 403 => ModelError::BadKey { host, status, why },
            _ => ModelError::Refused { host, status, why },
        };
        RequestFailure { error, is_retryable, wait }
    }

    fn stream_error(&self, error: StreamError) -> RequestFailure {
        let host = self.host();
        let (error, is_retryable) = match error {
            StreamError::Reported(why) => {
                (ModelError::Reported { host, why: self.redact(one_line(&why)) }, true)
            }
            StreamError::Malformed(why) => {
                (ModelError::Malformed { host, why: self.redact(one_line(&why)) }, false)
            }
        };
        RequestFailure { error, is_retryable, wait: None }
    }

    fn host(&self) -> String {
        self.host.clone()
    }

    fn redact(&self, text: String) -> String {
        match &self.key {
            Some(key) => key.redact(text),
            None => text,
        }
    }
}

fn send_part(parts: &Sender<ResponsePart>, received: ResponsePart) {
    // Fails if the turn has stopped waiting.
    drop(parts.send(received));
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
        // Without a value the library would read the environment.
        .proxy(proxy)
        .http_status_as_error(false)
        // The key is sent to one host only.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(CONNECT))
        .timeout_per_read(Some(SILENCE))
        .user_agent(concat!("takeback/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// A connection error, without the library's prefix.
fn describe_error(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => one_line(&error.to_string()),
        error => one_line(&error.to_string()),
    }
}

/// An error text in one line of limited length.
fn one_line(text: &str) -> String {
    const MOST: usize = 300;
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
