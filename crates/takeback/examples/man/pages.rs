//! The manual pages: one for the program and one for each command, from what `--help` says.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use takeback::command_line::{examples, groups, program};

pub(crate) struct Page {
    /// `takeback-state-save.1`
    pub(crate) name: String,
    pub(crate) text: Vec<u8>,
}

pub(crate) fn pages() -> Vec<Page> {
    let mut root = program();
    root.build();
    let mut pages = Vec::new();
    collect(&root, &[], &mut pages);
    pages
}

/// The page of `command`, whose full name is `names`, and those below it.
fn collect(command: &Command, names: &[&str], pages: &mut Vec<Page>) {
    pages.push(page(command, names));
    for sub in visible(command) {
        collect(sub, &[names, &[sub.get_name()]].concat(), pages);
    }
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set())
}

fn page(command: &Command, names: &[&str]) -> Page {
    let title = [&["takeback"], names].concat().join("-");
    let man = Man::new(command.clone().display_name(&title))
        .title(title.to_uppercase())
        .source(format!("takeback {}", env!("CARGO_PKG_VERSION")))
        .manual("Takeback Manual");
    let mut text = Vec::new();
    let written = man
        .render_title(&mut text)
        .and_then(|()| man.render_name_section(&mut text))
        .and_then(|()| synopsis(command).to_writer(&mut text))
        .and_then(|()| man.render_description_section(&mut text))
        .and_then(|()| commands(command, names).to_writer(&mut text))
        .and_then(|()| man.render_options_section(&mut text))
        .and_then(|()| end(command, names).to_writer(&mut text));
    written.expect("a vector takes everything");
    Page { name: format!("{title}.1"), text }
}

/// What `--help` calls the usage.
fn synopsis(command: &Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    let usage = command.clone().render_usage().to_string();
    for (at, line) in usage.trim_start_matches("Usage:").lines().enumerate() {
        if at > 0 {
            roff.control("br", []);
        }
        roff.text([roman(line.trim())]);
    }
    roff
}

/// The commands below this one: the program's in groups.
fn commands(command: &Command, names: &[&str]) -> Roff {
    let mut roff = Roff::new();
    let row = |roff: &mut Roff, name: &str| {
        let sub = command.find_subcommand(name).expect("a listed command exists");
        let page = [&["takeback"], names, &[name]].concat().join("-");
        roff.control("TP", []).text([bold(page), roman("(1)")]);
        roff.text([roman(sub.get_about().map(ToString::to_string).unwrap_or_default())]);
    };
    if names.is_empty() {
        roff.control("SH", ["COMMANDS"]);
        for (title, group) in groups() {
            roff.control("SS", [*title]);
            group.iter().for_each(|name| row(&mut roff, name));
        }
    } else if visible(command).next().is_some() {
        roff.control("SH", ["COMMANDS"]);
        visible(command).for_each(|sub| row(&mut roff, sub.get_name()));
    }
    roff
}

fn end(command: &Command, names: &[&str]) -> Roff {
    let mut roff = Roff::new();
    let lines = examples(&names.join(" "));
    if !lines.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
        for (line, meaning) in lines {
            roff.control("TP", []).text([bold(*line)]).text([roman(*meaning)]);
        }
    }
    roff.control("SH", ["SEE ALSO"]);
    let above = names.split_last().map(|(_, above)| [&["takeback"], above].concat().join("-"));
    let below = visible(command).filter(|_| !names.is_empty());
    let below = below.map(|sub| [&["takeback"], names, &[sub.get_name()]].concat().join("-"));
    let mut others: Vec<Inline> = Vec::new();
    for page in above.into_iter().chain(below) {
        if !others.is_empty() {
            others.push(roman(", "));
        }
        others.extend([bold(page), roman("(1)")]);
    }
    if others.is_empty() {
        others.extend([roman("The reference, "), italic("docs/reference.md"), roman(".")]);
    }
    roff.text(others);
    roff
}
