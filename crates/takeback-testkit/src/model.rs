//! A scripted model: an HTTP server on this machine that speaks four formats: the Anthropic Messages API,
//! OpenAI's chat completions and responses, and Gemini's `generateContent`.
//!
//! It answers with the next [`Answer`] that the test queued, else with the step of the script in the last
//! prompt (see `script.rs`), else with `ok`. The test can read every request, and hold the answers back. Other requests (`GET`,
//! `HEAD`, token counts, routing decisions) get a minimal valid answer.

mod anthropic;
mod format;
mod gemini;
mod http;
mod openai;
mod responses;
mod script;

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

pub use self::format::Format;
pub use self::http::Request;

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Text.
    Text(String),
    /// A tool call.
    Tool {
        /// Generated if there is none.
        id: Option<String>,
        /// The tool.
        name: String,
        /// Its arguments.
        input: Value,
    },
}

impl Block {
    /// Text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// A tool call with a generated id.
    #[must_use]
    pub fn tool(name: &str, input: Value) -> Self {
        Self::Tool { id: None, name: name.to_owned(), input }
    }
}

/// The answer to a request for a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A message.
    Says(Vec<Block>),
    /// An error status.
    Refuses {
        /// Other than 200.
        status: u16,
        /// Additional headers.
        headers: Vec<(String, String)>,
        /// The body, verbatim.
        body: String,
    },
    /// The connection closes in the middle of the stream; with 0 events, before the headers.
    Breaks {
        /// The message.
        blocks: Vec<Block>,
        /// How many events are sent.
        after: usize,
    },
    /// The stream stops without an end, until the client or the server closes it.
    Stalls {
        /// The message.
        blocks: Vec<Block>,
        /// How many events are sent.
        after: usize,
    },
    /// A stream with these bytes.
    Raw(String),
    /// An answer after a delay.
    Later(Duration, Box<Self>),
}

impl Answer {
    /// A message with this text.
    #[must_use]
    pub fn says(text: &str) -> Self {
        Self::Says(vec![Block::text(text)])
    }

    /// A message with this tool call.
    #[must_use]
    pub fn calls(name: &str, input: Value) -> Self {
        Self::Says(vec![Block::tool(name, input)])
    }

    /// An error in the format of the APIs.
    #[must_use]
    pub fn refuses(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Self::Refuses { status, headers: Vec::new(), body: body.to_string() }
    }
}

/// The server, until it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<SharedState>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct SharedState {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Answer>,
    requests: Vec<Request>,
    ids: u64,
    held: bool,
    closed: bool,
}

impl SharedState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelServer {
    /// Starts it on a free port.
    #[must_use]
    pub fn start() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = socket.local_addr().expect("the port has a number");
        let shared = Arc::new(SharedState::default());
        let state = Arc::clone(&shared);
        let listener = std::thread::spawn(move || listen(&socket, &state));
        Self { address, shared, listener: Some(listener) }
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Queues an answer; it has priority over scripts in prompts.
    pub fn answer(&self, answer: Answer) {
        self.shared.state().answers.push_back(answer);
    }

    /// Every request so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// The bodies of the requests for a message.
    #[must_use]
    pub fn asked(&self) -> Vec<Value> {
        let requests = self.requests().into_iter();
        requests.filter(Request::wants_message).map(|request| request.body).collect()
    }

    /// Answers no request for a message until [`Self::release`].
    pub fn hold(&self) {
        self.shared.state().held = true;
    }

    /// Answers the requests that were held, and all later ones.
    pub fn release(&self) {
        self.shared.state().held = false;
        self.shared.changed.notify_all();
    }

    /// Waits until this many messages were requested.
    pub fn wait_for(&self, messages: usize) {
        let asked =
            |state: &State| state.requests.iter().filter(|request| request.wants_message()).count();
        let state = self.shared.state();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, PATIENCE, |state| asked(state) < messages);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "only {} messages were requested", asked(&state));
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.state().closed = true;
        self.shared.changed.notify_all();
        // Wakes the listener, which then ends.
        drop(TcpStream::connect(self.address));
        if let Some(listener) = self.listener.take() {
            drop(listener.join());
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<SharedState>) {
    for stream in listener.incoming() {
        if shared.state().closed {
            return;
        }
        let Ok(mut stream) = stream else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // Some tests close the connection early.
            drop(serve(&mut stream, &shared));
        });
    }
}

fn serve(stream: &mut TcpStream, shared: &SharedState) -> io::Result<()> {
    let Some(request) = http::read(stream)? else { return Ok(()) };
    let answer = {
        let mut state = shared.state();
        state.requests.push(request.clone());
        if request.wants_message() { state.answers.pop_front() } else { None }
    };
    shared.changed.notify_all();
    if request.wants_message() {
        let is_held = |state: &mut State| state.held && !state.closed;
        drop(shared.changed.wait_while(shared.state(), is_held));
    }
    if let Some(answer) = answer {
        return send(stream, shared, &request, answer);
    }
    let Some(format) = request.format() else {
        return http::write_json(stream, &request, 200, &other_answer(&request));
    };
    if format.is_decision(&request.body) {
        let decision = gemini::decision();
        return if request.is_streamed() {
            stream_events(stream, &[gemini::event(&decision)])
        } else {
            http::write_json(stream, &request, 200, &decision)
        };
    }
    let answer = match script::step(format, &request.body) {
        Ok(blocks) => Answer::Says(blocks),
        Err(why) => Answer::refuses(400, "invalid_request_error", &why),
    };
    send(stream, shared, &request, answer)
}

/// The answer to a request that wants no message.
fn other_answer(request: &Request) -> Value {
    if request.method != "POST" {
        json!({"object": "list", "data": [], "models": [], "has_more": false})
    } else if request.path.ends_with("/count_tokens") {
        json!({"input_tokens": 100})
    } else if request.path.ends_with(":countTokens") {
        json!({"totalTokens": 100})
    } else {
        json!({})
    }
}

fn send(
    stream: &mut TcpStream,
    shared: &SharedState,
    request: &Request,
    answer: Answer,
) -> io::Result<()> {
    match answer {
        Answer::Later(delay, answer) => {
            wait(shared, delay);
            send(stream, shared, request, *answer)
        }
        Answer::Refuses { status, headers, body } => http::write(stream, status, &headers, &body),
        Answer::Raw(bytes) => {
            http::begin_stream(stream)?;
            http::write_piece(stream, &bytes)
        }
        Answer::Says(blocks) => {
            let reply = reply(shared, request, &blocks);
            if request.is_streamed() {
                stream_events(stream, &reply.events)
            } else {
                http::write_json(stream, request, 200, &reply.whole)
            }
        }
        Answer::Breaks { blocks, after } => {
            stream_events(stream, cut(&reply(shared, request, &blocks).events, after))
        }
        Answer::Stalls { blocks, after } => {
            stream_events(stream, cut(&reply(shared, request, &blocks).events, after))?;
            wait(shared, PATIENCE);
            Ok(())
        }
    }
}

/// A message as one object and as a stream.
struct Reply {
    whole: Value,
    events: Vec<String>,
}

fn reply(shared: &SharedState, request: &Request, blocks: &[Block]) -> Reply {
    let mut name = |kind: &str| {
        let mut state = shared.state();
        state.ids += 1;
        format!("{kind}_{:022}", state.ids)
    };
    match request.format() {
        Some(Format::Chat) => openai::reply(&request.body, blocks, &mut name),
        Some(Format::Responses) => responses::reply(&request.body, blocks, &mut name),
        Some(Format::Gemini) => gemini::reply(blocks, &mut name),
        Some(Format::Messages) | None => anthropic::reply(&request.body, blocks, &mut name),
    }
}

fn stream_events(stream: &mut TcpStream, events: &[String]) -> io::Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    http::begin_stream(stream)?;
    events.iter().try_for_each(|event| http::write_piece(stream, event))
}

fn cut(events: &[String], after: usize) -> &[String] {
    &events[..after.min(events.len())]
}

fn wait(shared: &SharedState, time: Duration) {
    let waited = shared.changed.wait_timeout_while(shared.state(), time, |state| !state.closed);
    drop(waited.unwrap_or_else(PoisonError::into_inner));
}

/// Splits a text in two, so that the client has to join the parts.
fn halves(text: &str) -> [&str; 2] {
    let middle = (text.len() / 2..text.len()).find(|at| text.is_char_boundary(*at));
    let (first, second) = text.split_at(middle.unwrap_or(0));
    [first, second]
}

#[cfg(test)]
mod tests;
