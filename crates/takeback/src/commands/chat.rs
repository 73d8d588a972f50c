//! `chat`: a person works with an agent, and goes back at any moment by pressing Esc twice.

mod host;
mod restore;
mod session;
mod slash;
mod work;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

use serde_json::Value;
use takeback_agents::builtin::{self, Builtin, Driver, Endpoint, Scenario};
use takeback_agents::capture::Capture;
use takeback_agents::claude::{self, Claude, ClaudeOptions};
use takeback_agents::hook::Plugged;
use takeback_agents::metadata::{self, Metadata, SetAside};
use takeback_agents::talk::{Agent, Said};
use takeback_core::process;
use takeback_store::SessionId;
use takeback_store::state::ExecutionId;
use takeback_tui::chat::{Activity, Chat, ChatOptions, Status};
use takeback_tui::keys::parse_key;
use takeback_tui::terminal::{Terminal, TerminalEvent};
use takeback_tui::theme::Theme;
use takeback_tui::transcript::Tone;

use self::host::Host;
use self::session::Kept;
use self::work::{Done, Worker};
use super::cleanup::when_due;
use super::state::save::SESSION_VARIABLE;
use crate::args::{AgentName, ChatArgs, Options};
use crate::error::{CommandError, Kind};
use crate::log_file::LogFile;
use crate::place::{self, Place, Store, environment, random};
use crate::plugs;
use crate::progress;
use crate::screen::{CARE, HINT, NAME, count, is_interactive, plain};
use crate::stores;
use crate::time::{clock, zone_warning};

/// What the SDK wants to see before it keeps copies of files.
const CHECKPOINTING: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";

/// Something that the session has to do with.
enum Happening {
    Terminal(TerminalEvent),
    Said(Said),
    Done(Box<Done>),
}

pub(crate) fn chat(options: &Options, args: &ChatArgs) -> Result<u8, CommandError> {
    if !is_interactive() || options.json {
        return Err(CommandError::new(Kind::Usage, "chat needs a terminal")
            .hint("`takeback run -- CMD` protects a command without one."));
    }
    let mut place = place::open_mended(options, Store::Create)?;
    when_due(&mut place, options);
    let key_name = place.settings.rewind_key().to_lowercase();
    let rewind_key = parse_key(place.settings.rewind_key()).map_err(|error| {
        CommandError::new(Kind::Usage, error).hint("Mend rewindKey in your settings.")
    })?;
    let warnings = warnings(&place);
    for line in warnings {
        writeln!(anstream::stderr().lock(), "{CARE}{line}{CARE:#}")?;
    }
    let kept = match (&args.resume, args.continue_last) {
        (None, false) => None,
        (id, _) => Some(session::to_continue(&*place.workspace.states, id.as_deref())?),
    };
    if let Some(kept) = &kept {
        check_alone(&place, kept)?;
    }
    let session = match &kept {
        Some(kept) => SessionId(kept.session.clone()),
        None => SessionId(format!("chat-{:08x}", random() >> 32)),
    };
    let home = place::home(options)?;
    let log = LogFile::new(&home, |name| environment(name)?.into_string().ok());
    let sessions = stores::sessions_in(&home);
    let keep = place.settings.checkpoint_keep_count();
    let recording = place.settings.is_enabled();
    let (metadata, set_aside) = if recording {
        let failed = |error| CommandError::new(Kind::Error, error);
        let (mut metadata, set_aside) =
            Metadata::open(&sessions, &session.0, keep).map_err(failed)?;
        let known = match &kept {
            Some(kept) if metadata.list().is_empty() => {
                let store = &*place.workspace.store;
                metadata::in_log(store, &session, kept.session_of_agent(), clock)?
            }
            _ => Vec::new(),
        };
        let listed = metadata.refill(known).map_err(failed)?;
        (Some(metadata), set_aside.map(|aside| (aside, listed)))
    } else {
        (None, None)
    };

    let (send, receive) = channel();
    let agent = start_agent(options, args, &session, kept.as_ref(), recording, &send)?;
    // From here on what takes long is seen in the session, not beside it.
    progress::hide();
    place.workspace.ambient.watch = None;
    let double_ms = place.settings.double_esc_ms();
    let history = session::entered(&*place.workspace.states)?;
    let handle = Arc::clone(&agent);
    let (jobs, working) =
        Worker::start(place, options.clone(), session.clone(), handle, send.clone())?;
    let theme = if super::has_colour() { Theme::colour() } else { Theme::plain() };
    let status = Status {
        agent: agent.name().to_owned(),
        session: session.0.clone(),
        points: recording.then_some(0),
        hint: format!("{key_name} {key_name} rewinds"),
        ..Status::default()
    };
    let chat = Chat::new(
        ChatOptions { commands: slash::registry(), theme, rewind_key, double_ms, history },
        status,
    );
    let mut host = Host::new(chat, agent, session, jobs, (metadata, keep), log);
    host.greet(args, &key_name, kept.as_ref(), set_aside);
    for line in warnings {
        host.say(Tone::Care, *line);
    }
    if let Some(line) = zone_warning() {
        host.say(Tone::Care, line);
    }
    let terminal_says = send.clone();
    drop(send);
    let mut terminal = Terminal::enter(move |event| {
        // Nobody reads any more when the session is over.
        drop(terminal_says.send(Happening::Terminal(event)));
    })?;
    // Until the agent is there, what is said to it waits.
    host.chat.activity = Activity::Working(host.now());
    host.chat.queued.extend(args.prompt.clone());
    let ran = host.run(&mut terminal, &receive);
    drop(terminal);
    let signal = host.signal;
    host.end(working);
    ran?;
    // As whoever is ended by a signal says it.
    Ok(signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(0))
}

impl Host {
    fn greet(
        &mut self,
        args: &ChatArgs,
        key: &str,
        kept: Option<&Kept>,
        set_aside: Option<(SetAside, usize)>,
    ) {
        if let Some(kept) = kept {
            self.show(kept);
            let points = count(self.prompts.len(), "prompt");
            self.say(Tone::Hint, format!("Continued after {points}."));
        } else {
            let said =
                format!("Press {key} twice to go back to any prompt. /help lists the commands.");
            self.say(Tone::Hint, said);
            if self.agent.name() == "builtin" && args.agent.is_none() && args.scenario.is_none() {
                self.say(Tone::Hint, "The built-in agent answers: `claude` was not found.");
            }
        }
        if let Some((SetAside { path, why }, listed)) = set_aside {
            let again = match listed {
                0 => "the log has no checkpoints of this session".to_owned(),
                1 => "1 checkpoint is listed again from the log".to_owned(),
                listed => format!("{listed} checkpoints are listed again from the log"),
            };
            let path = path.display();
            let said = format!("metadata.json was damaged ({why}) and is now {path}; {again}");
            self.note_error(&said);
            self.say(Tone::Care, said);
        }
        if self.chat.status.points.is_none() {
            self.say(Tone::Care, "Nothing is recorded: enableFileCheckpointing is false.");
        }
    }

    /// Ends everything in order; says how to go on.
    fn end(self, working: std::thread::JoinHandle<()>) {
        self.agent.close();
        let kept = Box::new(self.kept());
        let prompts = self.prompts.len();
        if prompts > 0 {
            self.job(work::Job::Keep(kept));
        }
        if !self.entered.is_empty() {
            self.job(work::Job::Remember(self.entered.clone()));
        }
        let session = self.session.0.clone();
        drop(self);
        // What the worker was about to keep is kept.
        drop(working.join());
        if prompts > 0 {
            let mut out = anstream::stdout().lock();
            let said = writeln!(
                out,
                "{HINT}{} in{HINT:#} {NAME}{session}{NAME:#}{HINT}; go on with{HINT:#} takeback chat --continue",
                count(prompts, "prompt"),
            );
            drop(said);
        }
    }
}

/// Two that go on with one conversation would each lose what the other says.
fn check_alone(place: &Place, kept: &Kept) -> Result<(), CommandError> {
    let session = place.workspace.store.session(&SessionId(kept.session.clone()))?;
    match session.filter(|session| session.ended_at.is_none()).and_then(|session| session.owner) {
        Some(owner) if process::is_alive(owner) => Err(CommandError::new(
            Kind::Error,
            format!("the conversation {} is open in process {}", kept.session, owner.pid),
        )
        .hint("Leave it there first, or begin another with `takeback chat`.")),
        _ => Ok(()),
    }
}

/// What is said if a settings file asks for checkpoints and the SDK has not been told. It is told all
/// the same.
const NOT_TOLD: [&str; 2] = [
    "Warning: File checkpointing enabled but environment variable not set",
    "Set CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1 to enable SDK checkpointing",
];

fn warnings(place: &Place) -> &'static [&'static str] {
    let is_told = environment(CHECKPOINTING).is_some_and(|value| value == "1" || value == "true");
    if place.settings.is_enabled_by_a_file() && !is_told { &NOT_TOLD } else { &[] }
}

/// The user's choice, or whoever is there: `claude`, a model behind an endpoint, the tour.
fn start_agent(
    options: &Options,
    args: &ChatArgs,
    session: &SessionId,
    kept: Option<&Kept>,
    recording: bool,
    send: &Sender<Happening>,
) -> Result<Arc<dyn Agent>, CommandError> {
    let place = place::open(options, Store::Create)?;
    let folder = place.workspace.root.path().to_owned();
    let say = said_to(send)?;
    let tools = place.settings.tools();
    let mut workspace = place.workspace;
    workspace.ambient.watch = None;
    let formatter = plugs::has_formatter(Plugged::Claude, Some(&folder));
    let capture = Capture {
        workspace,
        session: session.clone(),
        tools,
        say: say.clone(),
        recording,
        formatter,
    };
    let program = claude::locate(environment("PATH").as_deref(), args.program.as_deref());
    let wanted = args.agent.or_else(|| match kept.map(|kept| kept.agent.as_str()) {
        Some("claude") => Some(AgentName::Claude),
        Some("builtin") => Some(AgentName::Builtin),
        _ if args.scenario.is_some() => Some(AgentName::Builtin),
        _ if args.program.is_some() => Some(AgentName::Claude),
        _ => None,
    });
    let memory = kept.map_or(Value::Null, |kept| kept.memory.clone());
    let failed = |error| CommandError::new(Kind::CannotStart, error);
    match (wanted, program) {
        (Some(AgentName::Claude), None) => Err(CommandError::new(
            Kind::CannotStart,
            match &args.program {
                Some(program) => format!("{} is not a program", plain(&program.to_string_lossy())),
                None => "`claude` was not found".to_owned(),
            },
        )
        .hint("Install it and see that it is on PATH, or name it with --program FILE.")
        .hint("`takeback chat --agent builtin` goes without it.")),
        (Some(AgentName::Claude) | None, Some(program)) => {
            let options = ClaudeOptions {
                program,
                extra_args: args.extra.clone(),
                folder,
                model: args.model.clone(),
                environment: recorded_here(claude::environment_for(all_variables()), session),
                checkpointing: recording,
                resume: memory,
            };
            Ok(Arc::new(Claude::start(options, capture, say).map_err(failed)?))
        }
        (Some(AgentName::Builtin), _) | (None, None) => {
            let driver = driver(args)?;
            let mut options = builtin::Options::new(driver);
            // Saved at each step, and so newer than what was kept if the last one was killed.
            let execution = ExecutionId::new(session.0.as_str())
                .map_err(|error| CommandError::new(Kind::Usage, error))?;
            let last = kept.map(|_| builtin::last_memory(&*capture.workspace.states, &execution));
            options.memory = last.transpose()?.flatten().unwrap_or(memory);
            Ok(Arc::new(Builtin::start(options, capture, say).map_err(failed)?))
        }
    }
}

/// What the built-in agent is driven by.
fn driver(args: &ChatArgs) -> Result<Driver, CommandError> {
    if let Some(file) = &args.scenario {
        let unusable =
            |why: String| CommandError::new(Kind::Usage, format!("{}: {why}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
        let scenario = Scenario::parse(&text).map_err(|error| unusable(error.to_string()))?;
        return Ok(Driver::Scenario(scenario));
    }
    let get = |name: &str| environment(name).and_then(|value| value.into_string().ok());
    let endpoint =
        Endpoint::from_variables(get).map_err(|error| CommandError::new(Kind::Usage, error))?;
    Ok(match endpoint {
        Some(mut endpoint) => {
            if let Some(model) = &args.model {
                endpoint.model.clone_from(model);
            }
            Driver::Endpoint(endpoint)
        }
        None => Driver::Tour,
    })
}

/// Agents speak of nothing but themselves.
fn said_to(send: &Sender<Happening>) -> io::Result<Sender<Said>> {
    let (say, said) = channel();
    let send = send.clone();
    Builder::new().spawn(move || {
        for word in said {
            if send.send(Happening::Said(word)).is_err() {
                return;
            }
        }
    })?;
    Ok(say)
}

/// The agent's hooks have nothing to record: this session does.
fn recorded_here(
    mut environment: Vec<(OsString, OsString)>,
    session: &SessionId,
) -> Vec<(OsString, OsString)> {
    environment.retain(|(name, _)| name != SESSION_VARIABLE);
    environment.push((SESSION_VARIABLE.into(), session.0.clone().into()));
    environment
}

#[expect(
    clippy::disallowed_methods,
    reason = "an agent gets the environment of whoever started it"
)]
fn all_variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os()
}
