//! The second stage: the files of one row with ticks, a diff, and what is to go back.

use super::{FilePreview, Preview, What};
use crate::keys::Key;
use std::collections::HashSet;

pub(super) struct Detail {
    id: String,
    conversation: bool,
    file: usize,
    /// Paths that are to stay as they are.
    unticked: HashSet<String>,
    /// The first line of the diff that is shown; drawing keeps it within the diff.
    pub(super) scroll: usize,
    /// How many lines there was room for.
    pub(super) page: usize,
    /// Which of the choices is selected, once they are shown. A preview that comes meanwhile may leave
    /// fewer of them, but never puts another one under the cursor.
    choosing: Option<What>,
    notice: Option<&'static str>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Stay,
    Back,
    Restore { what: What, paths: Option<Vec<String>> },
}

type Known<'a> = Option<&'a Result<Preview, String>>;

impl Detail {
    pub(super) fn new(id: String, conversation: bool) -> Self {
        Self {
            id,
            conversation,
            file: 0,
            unticked: HashSet::new(),
            scroll: 0,
            page: 10,
            choosing: None,
            notice: None,
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn file(&self) -> usize {
        self.file
    }

    pub(super) fn choosing(&self) -> Option<What> {
        self.choosing
    }

    pub(super) fn notice(&self) -> Option<&'static str> {
        self.notice
    }

    pub(super) fn is_ticked(&self, file: &FilePreview) -> bool {
        file.fate.changes() && !self.unticked.contains(&file.path)
    }

    /// What can go back: without a tick no files, and without a preview that works neither.
    pub(super) fn choices(&self, known: Known) -> Vec<What> {
        let files = match known {
            None => true,
            Some(Err(_)) => false,
            Some(Ok(preview)) => preview.files.iter().any(|file| self.is_ticked(file)),
        };
        let mut choices = Vec::new();
        if files && self.conversation {
            choices.push(What::FilesAndConversation);
        }
        if files {
            choices.push(What::Files);
        }
        if self.conversation {
            choices.push(What::Conversation);
        }
        choices
    }

    pub(super) fn press(&mut self, key: &Key, known: Known) -> Outcome {
        self.notice = None;
        match self.choosing {
            Some(selected) => self.press_choosing(selected, key, known),
            None => self.press_looking(key, known),
        }
    }

    fn press_looking(&mut self, key: &Key, known: Known) -> Outcome {
        let files = match known {
            Some(Ok(preview)) => preview.files.as_slice(),
            _ => &[],
        };
        let last = files.len().saturating_sub(1);
        match key {
            Key::Esc | Key::Char('q' | 'h') | Key::Left => return Outcome::Back,
            Key::Up | Key::Char('k') => self.go(self.file.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.go((self.file + 1).min(last)),
            Key::Home => self.go(0),
            Key::End => self.go(last),
            Key::PageDown | Key::Ctrl('d') => self.scroll += self.page.max(1),
            Key::PageUp | Key::Ctrl('u') => {
                self.scroll = self.scroll.saturating_sub(self.page.max(1));
            }
            Key::Char(' ') => self.tick(files.get(self.file)),
            Key::Char('a') => {
                let changing = files.iter().filter(|file| file.fate.changes());
                if self.unticked.is_empty() {
                    self.unticked = changing.map(|file| file.path.clone()).collect();
                } else {
                    self.unticked.clear();
                }
            }
            Key::Enter | Key::Right | Key::Char('l') => {
                self.choosing = self.choices(known).first().copied();
                if self.choosing.is_none() {
                    self.notice = Some("There is nothing to restore.");
                }
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn press_choosing(&mut self, selected: What, key: &Key, known: Known) -> Outcome {
        let choices = self.choices(known);
        let at = choices.iter().position(|what| *what == selected);
        let chosen = match key {
            Key::Esc | Key::Char('q' | 'h') | Key::Left => {
                self.choosing = None;
                return Outcome::Stay;
            }
            Key::Up | Key::Char('k') => {
                let above = at.map_or(0, |at| at.saturating_sub(1));
                self.choosing = choices.get(above).copied();
                return Outcome::Stay;
            }
            Key::Down | Key::Char('j') => {
                let below = at.map_or(0, |at| (at + 1).min(choices.len() - 1));
                self.choosing = choices.get(below).copied();
                return Outcome::Stay;
            }
            Key::Enter => selected,
            Key::Char(c) => match choices.iter().find(|what| what.key() == *c) {
                Some(what) => *what,
                None => return Outcome::Stay,
            },
            _ => return Outcome::Stay,
        };
        if choices.contains(&chosen) {
            return Outcome::Restore { what: chosen, paths: self.paths(chosen, known) };
        }
        self.choosing = choices.first().copied();
        self.notice = Some("That is not possible here.");
        Outcome::Stay
    }

    fn tick(&mut self, file: Option<&FilePreview>) {
        let Some(file) = file else { return };
        if !file.fate.changes() {
            self.notice = Some("This file stays as it is.");
        } else if !self.unticked.remove(&file.path) {
            self.unticked.insert(file.path.clone());
        }
    }

    fn go(&mut self, file: usize) {
        self.file = file;
        self.scroll = 0;
    }

    fn paths(&self, what: What, known: Known) -> Option<Vec<String>> {
        let Some(Ok(preview)) = known else { return None };
        if what == What::Conversation || self.unticked.is_empty() {
            return None;
        }
        let ticked = preview.files.iter().filter(|file| self.is_ticked(file));
        Some(ticked.map(|file| file.path.clone()).collect())
    }
}
