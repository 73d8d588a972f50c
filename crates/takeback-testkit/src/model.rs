//! A model with a script in place of a mind, on a port of this machine. It speaks four formats: that of
//! the Anthropic Messages API, OpenAI's chat completions and responses, and Gemini's `generateContent`.
//!
//! What it answers to a request: the next [`Answer`] that the test has queued; else the step of the
//! script that the last prompt carries (see [`script`]); else `ok`. Every request is kept for the test
//! to look at. Programs that ask for anything else (`GET`, `HEAD`, the count of tokens, an object to
//! decide by) are answered with as little as keeps them going.

pub mod script;
mod anthropic;
mod format;
mod gemini;
mod http;
mod openai;
mod responses;

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

pub use self::format::Format;
pub use self::http::Request;

/// A part of what the model says.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    Text(String),
    /// `id`: made up if there is none.
    Tool {
        id: Option<String>,
        name: String,
        input: Value,
    },
}

impl Block {
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    #[must_use]
    pub fn tool(name: &str, input: Value) -> Self {
        Self::Tool { id: None, name: name.to_owned(), input }
    }
}

/// What a request for a message gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Says(Vec<Block>),
    /// A status other than 200, with headers and a body as they are.
    Refuses {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// The connection ends after so many events of the stream; after none, before the headers.
    Breaks {
        blocks: Vec<Block>,
        after: usize,
    },
    /// After so many events nothing more comes, until the client or this server goes.
    Stalls {
        blocks: Vec<Block>,
        after: usize,
    },
    /// A stream with these very bytes.
    Raw(String),
    Later(Duration, Box<Self>),
}

impl Answer {
    #[must_use]
    pub fn says(text: &str) -> Self {
        Self::Says(vec![Block::text(text)])
    }

    #[must_use]
    pub fn calls(name: &str, input: Value) -> Self {
        Self::Says(vec![Block::tool(name, input)])
    }

    /// An error in the words of either API.
    #[must_use]
    pub fn refuses(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}});
        Self::Refuses { status, headers: Vec::new(), body: body.to_string() }
    }
}

/// Answers until it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Answer>,
    requests: Vec<Request>,
    made_up: u64,
    is_over: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelServer {
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
        let address = listener.local_addr().expect("the port has a number");
        let shared = Arc::new(Shared::default());
        let to_share = Arc::clone(&shared);
        let listening = std::thread::spawn(move || listen(&listener, &to_share));
        Self { address, shared, listening: Some(listening) }
    }

    /// Without a path: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Queues an answer, which goes before what a prompt carries.
    pub fn answer(&self, answer: Answer) {
        self.shared.state().answers.push_back(answer);
    }

    /// Every request so far, in the order in which they came.
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

    /// Waits until so many messages were asked for.
    pub fn wait_for(&self, messages: usize) {
        let asked =
            |state: &State| state.requests.iter().filter(|request| request.wants_message()).count();
        let state = self.shared.state();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, PATIENCE, |state| asked(state) < messages);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "only {} messages were asked for", asked(&state));
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
        // Wakes the listener, which then sees that it is over.
        drop(TcpStream::connect(self.address));
        if let Some(listening) = self.listening.take() {
            drop(listening.join());
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.state().is_over {
            return;
        }
        let Ok(mut stream) = stream else { continue };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || {
            // A client that has gone is what some tests are about.
            drop(serve(&mut stream, &shared));
        });
    }
}

fn serve(stream: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    let Some(request) = http::read(stream)? else { return Ok(()) };
    let answer = {
        let mut state = shared.state();
        state.requests.push(request.clone());
        if request.wants_message() { state.answers.pop_front() } else { None }
    };
    shared.changed.notify_all();
    if let Some(answer) = answer {
        return give(stream, shared, &request, answer);
    }
    let Some(format) = request.format() else {
        return http::write_json(stream, &request, 200, &beside(&request));
    };
    if format.is_aside(&request.body) {
        let aside = gemini::aside();
        return if request.is_streamed() {
            say(stream, &[gemini::event(&aside)])
        } else {
            http::write_json(stream, &request, 200, &aside)
        };
    }
    let answer = match script::step(format, &request.body) {
        Ok(blocks) => Answer::Says(blocks),
        Err(why) => Answer::refuses(400, "invalid_request_error", &why),
    };
    give(stream, shared, &request, answer)
}

/// What is said to those who want no message.
fn beside(request: &Request) -> Value {
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

fn give(
    stream: &mut TcpStream,
    shared: &Shared,
    request: &Request,
    answer: Answer,
) -> io::Result<()> {
    match answer {
        Answer::Later(delay, answer) => {
            wait(shared, delay);
            give(stream, shared, request, *answer)
        }
        Answer::Refuses { status, headers, body } => http::write(stream, status, &headers, &body),
        Answer::Raw(bytes) => {
            http::begin_stream(stream)?;
            http::write_piece(stream, &bytes)
        }
        Answer::Says(blocks) => {
            let reply = reply(shared, request, &blocks);
            if request.is_streamed() {
                say(stream, &reply.events)
            } else {
                http::write_json(stream, request, 200, &reply.whole)
            }
        }
        Answer::Breaks { blocks, after } => {
            say(stream, cut(&reply(shared, request, &blocks).events, after))
        }
        Answer::Stalls { blocks, after } => {
            say(stream, cut(&reply(shared, request, &blocks).events, after))?;
            wait(shared, PATIENCE);
            Ok(())
        }
    }
}

/// The same message in two forms.
struct Reply {
    whole: Value,
    events: Vec<String>,
}

fn reply(shared: &Shared, request: &Request, blocks: &[Block]) -> Reply {
    let mut name = |kind: &str| {
        let mut state = shared.state();
        state.made_up += 1;
        format!("{kind}_{:022}", state.made_up)
    };
    match request.format() {
        Some(Format::Chat) => openai::reply(&request.body, blocks, &mut name),
        Some(Format::Responses) => responses::reply(&request.body, blocks, &mut name),
        Some(Format::Gemini) => gemini::reply(blocks, &mut name),
        Some(Format::Messages) | None => anthropic::reply(&request.body, blocks, &mut name),
    }
}

fn say(stream: &mut TcpStream, events: &[String]) -> io::Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    http::begin_stream(stream)?;
    events.iter().try_for_each(|event| http::write_piece(stream, event))
}

fn cut(events: &[String], after: usize) -> &[String] {
    &events[..after.min(events.len())]
}

fn wait(shared: &Shared, time: Duration) {
    let waited = shared.changed.wait_timeout_while(shared.state(), time, |state| !state.is_over);
    drop(waited.unwrap_or_else(PoisonError::into_inner));
}

/// Two halves, so that whoever reads has to put them together.
fn halves(text: &str) -> [&str; 2] {
    let middle = (text.len() / 2..text.len()).find(|at| text.is_char_boundary(*at));
    let (first, second) = text.split_at(middle.unwrap_or(0));
    [first, second]
}

#[cfg(test)]
mod tests;
