//! `chat`: an interactive session with an agent, in which Esc Esc goes back to any prompt.
//!
//! Three threads and a loop: the terminal, the agent and the [`worker`] send [`Event`]s, the [`host`]
//! handles them one by one and draws the screen.

mod agent;
mod conversation;
mod host;
mod restore;
mod slash;
mod worker;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use takeback_agents::{ChatEvent, DamagedMetadata, Metadata, checkpoints_in_log};
use takeback_core::{process, system_random};
use takeback_store::SessionId;
use takeback_tui::{
    Activity, Chat, ChatOptions, Key, StatusLine, Terminal, TerminalEvent, Theme, Tone, parse_key,
};

use self::agent::AgentStart;
use self::conversation::Conversation;
use self::host::{Host, HostOptions};
use self::worker::{Job, JobResult, Worker};
use super::cleanup::clean_up_if_due;
use crate::args::{ChatArgs, Options};
use crate::error::{CommandError, Kind};
use crate::log_file::LogFile;
use crate::place::{self, Place, Store, environment};
use crate::progress;
use crate::screen::{HINT, NAME, WARNING, count, is_interactive};
use crate::stores;
use crate::time::{clock, zone_warning};

/// Makes the Claude Agent SDK keep copies of files.
const CHECKPOINTING: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";

/// Printed if a settings file enables checkpoints and the variable is not set; the agent gets it anyway.
const VARIABLE_WARNING: [&str; 2] = [
    "Warning: File checkpointing enabled but environment variable not set",
    "Set CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1 to enable SDK checkpointing",
];

/// What the session's loop waits for.
enum Event {
    Terminal(TerminalEvent),
    Agent(ChatEvent),
    Worker(Box<JobResult>),
}

pub(crate) fn chat(options: &Options, args: &ChatArgs) -> Result<u8, CommandError> {
    if !is_interactive() || options.json {
        return Err(CommandError::new(Kind::Usage, "chat needs a terminal")
            .hint("Use `takeback run -- CMD` to protect a command without a terminal."));
    }
    let mut place = place::open_recovered(options, Store::Create)?;
    clean_up_if_due(&mut place, options);
    let rewind_key = rewind_key(&place)?;
    let warnings = warnings(&place);
    for line in warnings {
        writeln!(anstream::stderr().lock(), "{WARNING}{line}{WARNING:#}")?;
    }
    let previous = previous_conversation(&place, args)?;
    let session = match &previous {
        Some(previous) => SessionId(previous.session.clone()),
        None => SessionId(format!("chat-{:08x}", system_random() >> 32)),
    };
    let home = place::home(options)?;
    let log = LogFile::new(&home, |name| environment(name)?.into_string().ok());
    let list = CheckpointList::open(&home, &place, &session, previous.as_ref())?;

    let (events, inbox) = channel();
    let previous = previous.as_ref();
    let recording = list.metadata.is_some();
    let agent = AgentStart { options, args, session: &session, previous, recording };
    let agent = agent.start(&events)?;
    // From here on, progress is shown inside the session.
    progress::hide();
    place.workspace.ambient.watch = None;
    let key_name = place.settings.rewind_key().to_lowercase();
    let status = StatusLine {
        agent: agent.name().to_owned(),
        session: session.0.clone(),
        points: recording.then_some(0),
        hint: format!("{key_name} {key_name} rewinds"),
        ..StatusLine::default()
    };
    let chat_options = ChatOptions {
        commands: slash::registry(),
        theme: if super::has_colour() { Theme::colour() } else { Theme::plain() },
        rewind_key,
        double_ms: place.settings.double_esc_ms(),
        history: conversation::history(&*place.workspace.states)?,
    };
    let keep = place.settings.checkpoint_keep_count();
    let worker =
        Worker::new(place, options.clone(), session.clone(), Arc::clone(&agent), events.clone());
    let (jobs, worker) = worker.start()?;
    let chat = Chat::new(chat_options, status);
    let CheckpointList { metadata, damage } = list;
    let mut host = Host::new(HostOptions { chat, agent, session, jobs, metadata, keep, log });
    host.greet(args, &key_name, previous, damage);
    for line in warnings.iter().copied().map(str::to_owned).chain(zone_warning()) {
        host.say(Tone::Warning, line);
    }
    let mut terminal = Terminal::enter(move |event| {
        // After the session the channel has no receiver.
        drop(events.send(Event::Terminal(event)));
    })?;
    // Prompts wait until the agent is ready.
    host.chat.activity = Activity::Working(host.now());
    host.chat.queued.extend(args.prompt.clone());
    let result = host.run(&mut terminal, &inbox);
    drop(terminal);
    let signal = host.signal;
    host.end(worker);
    result?;
    // The exit code of a program that a signal ended.
    Ok(signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(0))
}

fn rewind_key(place: &Place) -> Result<Key, CommandError> {
    parse_key(place.settings.rewind_key()).map_err(|error| {
        CommandError::new(Kind::Usage, error).hint("Fix rewindKey in your settings.")
    })
}

fn warnings(place: &Place) -> &'static [&'static str] {
    let is_set = environment(CHECKPOINTING).is_some_and(|value| value == "1" || value == "true");
    if place.settings.is_enabled_by_a_file() && !is_set { &VARIABLE_WARNING } else { &[] }
}

/// The conversation that `--continue` or `--resume` names.
fn previous_conversation(
    place: &Place,
    args: &ChatArgs,
) -> Result<Option<Conversation>, CommandError> {
    if args.resume.is_none() && !args.continue_last {
        return Ok(None);
    }
    let previous = conversation::find(&*place.workspace.states, args.resume.as_deref())?;
    check_not_open(place, &previous)?;
    Ok(Some(previous))
}

/// Two processes in one conversation would each lose what the other adds.
fn check_not_open(place: &Place, previous: &Conversation) -> Result<(), CommandError> {
    let session = place.workspace.store.session(&SessionId(previous.session.clone()))?;
    match session.filter(|session| session.ended_at.is_none()).and_then(|session| session.owner) {
        Some(owner) if process::is_alive(owner) => Err(CommandError::new(
            Kind::Error,
            format!("the conversation {} is open in process {}", previous.session, owner.pid),
        )
        .hint("Close it there first, or start a new one with `takeback chat`.")),
        _ => Ok(()),
    }
}

/// The session's `metadata.json`.
struct CheckpointList {
    /// `None` if nothing is recorded.
    metadata: Option<Metadata>,
    /// A damaged file that was moved away, and how many entries the log had.
    damage: Option<(DamagedMetadata, usize)>,
}

impl CheckpointList {
    fn open(
        home: &Path,
        place: &Place,
        session: &SessionId,
        previous: Option<&Conversation>,
    ) -> Result<Self, CommandError> {
        if !place.settings.is_enabled() {
            return Ok(Self { metadata: None, damage: None });
        }
        let failed = |error| CommandError::new(Kind::Error, error);
        let keep = place.settings.checkpoint_keep_count();
        let folder = stores::sessions_in(home);
        let (mut metadata, damage) = Metadata::open(&folder, &session.0, keep).map_err(failed)?;
        let from_log = match previous {
            Some(previous) if metadata.list().is_empty() => {
                let store = &*place.workspace.store;
                checkpoints_in_log(store, session, previous.agent_session(), clock)?
            }
            _ => Vec::new(),
        };
        let refilled = metadata.refill(from_log).map_err(failed)?;
        Ok(Self { metadata: Some(metadata), damage: damage.map(|damage| (damage, refilled)) })
    }
}

impl Host {
    fn greet(
        &mut self,
        args: &ChatArgs,
        key: &str,
        previous: Option<&Conversation>,
        damage: Option<(DamagedMetadata, usize)>,
    ) {
        if let Some(previous) = previous {
            self.show(previous);
            let prompts = count(self.prompts.len(), "prompt");
            self.say(Tone::Hint, format!("Continued after {prompts}."));
        } else {
            let text =
                format!("Press {key} twice to go back to any prompt. /help lists the commands.");
            self.say(Tone::Hint, text);
            if self.agent.name() == "builtin" && args.agent.is_none() && args.scenario.is_none() {
                self.say(Tone::Hint, "`claude` was not found; the built-in agent answers.");
            }
        }
        if let Some((DamagedMetadata { path, why }, refilled)) = damage {
            let refilled = match refilled {
                0 => "the log has no checkpoints of this session".to_owned(),
                1 => "1 checkpoint was restored from the log".to_owned(),
                n => format!("{n} checkpoints were restored from the log"),
            };
            let path = path.display();
            let text =
                format!("metadata.json was damaged ({why}) and was moved to {path}; {refilled}");
            self.log_error(&text);
            self.say(Tone::Warning, text);
        }
        if !self.is_recording() {
            self.say(Tone::Warning, "Nothing is recorded: enableFileCheckpointing is false.");
        }
    }

    /// Stops the agent and the worker in order, and prints how to continue.
    fn end(self, worker: JoinHandle<()>) {
        self.agent.close();
        let prompts = self.prompts.len();
        if prompts > 0 {
            self.save_session();
        }
        if !self.entered.is_empty() {
            self.job(Job::AddToHistory(self.entered.clone()));
        }
        let session = self.session.0.clone();
        drop(self);
        // The worker finishes its jobs; a panic in one of them was reported.
        drop(worker.join());
        if prompts > 0 {
            let mut out = anstream::stdout().lock();
            // Standard output may be closed by now.
            drop(writeln!(
                out,
                "{HINT}{} in{HINT:#} {NAME}{session}{NAME:#}{HINT}; continue with{HINT:#} takeback chat --continue",
                count(prompts, "prompt"),
            ));
        }
    }
}
