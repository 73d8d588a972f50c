//! One file per command.

mod completions;
mod demo;
mod help;
mod purge;
mod run;
mod unreadable;
mod chat;
mod record;
mod hook;
mod finish_event;
mod serve;
mod init;
mod doctor;
mod mcp;
mod checkpoint;
mod log;
mod show;
pub(crate) mod diff;
pub(crate) mod adopt;
pub(crate) mod bisect;
pub(crate) mod fork;
pub(crate) mod compare;
pub(crate) mod blame;
mod why;
pub(crate) mod history;
pub(crate) mod cat;
pub(crate) mod stats;
mod hunk_view;
pub(crate) mod resolve;
pub(crate) mod restore;
pub(crate) mod revert;
mod rewind;
mod label;
mod sessions;
mod cleanup;
mod disk_limits;
mod du;
mod status;
mod recover;
mod verify;
mod config;
mod conversation;
mod workspaces;
mod export;
mod export_series;
mod export_trace;
mod notes;
mod state;
mod import;
mod filediff;
mod patch;
mod word_diff;
mod receipt;
mod menu;
mod choose;

use crate::answer_writer::{AnswerWriter, BrokenPipePolicy};
use crate::args::{Args, Command, StateCommand, StatusArgs};
use crate::error::CommandError;
use crate::screen::Screen;

/// Runs the command and returns the exit code.
pub(crate) fn run(args: Args) -> Result<u8, CommandError> {
    let options = &args.options;
    let mut screen = Screen::new(options);
    let on_broken_pipe = match &args.command {
        Command::Demo
        | Command::Log(_)
        | Command::Show(_)
        | Command::Diff(_)
        | Command::Blame(_)
        | Command::Why(_)
        | Command::History(_)
        | Command::Cat(_)
        | Command::Stats(_)
        | Command::Sessions(_)
        | Command::Du(_)
        | Command::Status(_)
        | Command::Config(_)
        | Command::Completions(_)
        | Command::Workspaces
        | Command::State(
            StateCommand::List(_)
            | StateCommand::Show(_)
            | StateCommand::Diff(_)
            | StateCommand::Export(_),
        ) => BrokenPipePolicy::Stop,
        _ => BrokenPipePolicy::Continue,
    };
    screen.out = Box::new(AnswerWriter { to: screen.out, on_broken_pipe });
    let code = match args.command {
        Command::Demo => demo::demo(&mut screen)?,
        Command::Run(run) => return run::run(options, &run),
        Command::Chat(chat) => return chat::chat(options, &chat),
        Command::Record(args) => record::record(options, &args, &mut screen)?,
        Command::Init(init) => init::init(options, &init, &mut screen)?,
        Command::Uninstall(init) => init::uninstall(options, &init, &mut screen)?,
        Command::Doctor(args) => doctor::doctor(options, &args, &mut screen)?,
        Command::Hook(hook) => return Ok(hook::hook(options, &hook)),
        Command::FinishEvent(args) => return Ok(finish_event::finish_event(options, &args)),
        Command::WatchForStart => return Ok(hook::watch_command()),
        Command::Serve(serve) => serve::serve(options, &serve, &mut screen)?,
        Command::Mcp(args) => return mcp::mcp(options, &args),
        Command::Checkpoint(checkpoint) => {
            checkpoint::checkpoint(options, &checkpoint, &mut screen)?
        }
        Command::Log(log) => log::log(options, &log, &mut screen)?,
        Command::Show(show) => show::show(options, &show, &mut screen)?,
        Command::Diff(diff) => diff::diff(options, &diff, &mut screen)?,
        Command::Blame(args) => blame::blame(options, &args, &mut screen)?,
        Command::Why(args) => why::why(options, &args, &mut screen)?,
        Command::History(args) => history::history(options, &args, &mut screen)?,
        Command::Cat(args) => cat::cat(options, &args, &mut screen)?,
        Command::Stats(args) => stats::stats(options, &args, &mut screen)?,
        Command::Bisect(args) => bisect::bisect(options, &args, &mut screen)?,
        Command::Fork(args) => fork::fork(options, &args, &mut screen)?,
        Command::Compare(args) => compare::compare(options, &args, &mut screen)?,
        Command::Rewind(rewind) => rewind::rewind(options, &rewind, &mut screen)?,
        Command::Revert(args) => revert::revert(options, &args, &mut screen)?,
        Command::Restore(args) => restore::restore(options, &args, &mut screen)?,
        Command::Resolve(args) => resolve::resolve(options, &args, &mut screen)?,
        Command::Adopt(args) => adopt::adopt(options, &args, &mut screen)?,
        Command::Undo(undo) => rewind::undo(options, &undo, &mut screen)?,
        Command::Redo(redo) => rewind::redo(options, &redo, &mut screen)?,
        Command::Label(label) => label::label(options, &label, &mut screen)?,
        Command::Pin(pin) => label::pin(options, &pin, &mut screen)?,
        Command::Unpin(unpin) => label::unpin(options, &unpin, &mut screen)?,
        Command::Sessions(sessions) => sessions::sessions(options, &sessions, &mut screen)?,
        Command::Session(command) => sessions::session(options, &command, &mut screen)?,
        Command::Cleanup(cleanup) => cleanup::cleanup(options, &cleanup, &mut screen)?,
        Command::Du(du) => du::du(options, &du, &mut screen)?,
        Command::Status(StatusArgs { line: true }) => status::line(options, &mut screen)?,
        Command::Status(StatusArgs { line: false }) => status::status(options, &mut screen)?,
        Command::Recover(recover) => recover::recover(options, &recover, &mut screen)?,
        Command::Verify => verify::verify(options, &mut screen)?,
        Command::Config(config) => config::config(options, &config, &mut screen)?,
        Command::Completions(args) => completions::completions(&args, &mut screen)?,
        Command::Complete(args) => completions::complete(&args, &mut screen)?,
        Command::Workspaces => workspaces::workspaces(options, &mut screen)?,
        Command::Forget(forget) => workspaces::forget(options, &forget, &mut screen)?,
        Command::Purge(purge) => purge::purge(options, &purge, &mut screen)?,
        Command::Relocate(relocate) => workspaces::relocate(options, &relocate, &mut screen)?,
        Command::Export(export) if export.agent_trace => {
            export_trace::export_trace(options, &export, &mut screen)?
        }
        Command::Export(export) if export.patch => {
            export_series::export_patch_series(options, &export, &mut screen)?
        }
        Command::Export(export) if export.git => {
            export_series::export_commits(options, &export, &mut screen)?
        }
        Command::Export(export) => export::export(options, &export, &mut screen)?,
        Command::Notes(command) => notes::notes(options, &command, &mut screen)?,
        Command::Import(import) => import::import(options, &import, &mut screen)?,
        Command::State(command) => state::state(options, &command, &mut screen)?,
        Command::Help(help) => help::help(&help, &mut screen)?,
    };
    screen.out.flush()?;
    Ok(code)
}

/// Whether the terminal and its user want colours.
fn has_colour() -> bool {
    anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
}
