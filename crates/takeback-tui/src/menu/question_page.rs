//! A question (who wrote each line of a file, how much each author wrote) and its answer, as a page over the
//! menu. Esc closes it.

use super::RowId;
use crate::keys::Key;

/// What can be asked in the menu. Files are named as the preview shows them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MenuQuestion {
    /// Who wrote each line of a file.
    Blame {
        /// The file.
        path: String,
    },
    /// What happened to a file.
    History {
        /// The file.
        path: String,
    },
    /// Why a line of a file is there.
    Why {
        /// The file.
        path: String,
        /// The number of the line, from 1.
        line: usize,
    },
    /// A file as it was at the point of a row.
    Cat {
        /// The row.
        row: RowId,
        /// The file.
        path: String,
    },
    /// Who wrote how much since the point of a row.
    Stats {
        /// The row.
        row: RowId,
    },
    /// How to find what broke a command since the point of a row. A search may take long and needs a command,
    /// so it is not run here.
    Bisect {
        /// The row.
        row: RowId,
    },
}

/// The text of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MenuAnswer {
    /// One entry per row.
    pub text: Vec<String>,
    /// Of a blame: how many of the first rows are lines of the file, in order.
    pub file_lines: usize,
}

/// What the menu must do after a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PageAction {
    Stay,
    Back,
    Help,
    Ask(MenuQuestion),
}

pub(super) struct QuestionPage {
    question: MenuQuestion,
    /// `None` until it arrives.
    answer: Option<Result<MenuAnswer, String>>,
    /// The selected row of a blame. Other answers have no selection: it is their first visible row.
    pub(super) row: usize,
    /// The first visible row and how many fit, as of the last frame.
    pub(super) top: usize,
    pub(super) page: usize,
}

impl QuestionPage {
    pub(super) fn new(question: MenuQuestion) -> Self {
        Self { question, answer: None, row: 0, top: 0, page: 10 }
    }

    pub(super) fn question(&self) -> &MenuQuestion {
        &self.question
    }

    pub(super) fn answer(&self) -> Option<&Result<MenuAnswer, String>> {
        self.answer.as_ref()
    }

    pub(super) fn set_answer(&mut self, answer: Result<MenuAnswer, String>) {
        self.answer = Some(answer);
    }

    /// Whether a row is selected, of which `why` can be asked.
    pub(super) fn has_selection(&self) -> bool {
        self.is_blame() && self.rows() > 0
    }

    pub(super) fn is_blame(&self) -> bool {
        matches!(self.question, MenuQuestion::Blame { .. })
    }

    /// How many rows the cursor can be on.
    fn rows(&self) -> usize {
        match &self.answer {
            Some(Ok(answer)) if self.is_blame() => answer.file_lines,
            Some(Ok(answer)) => answer.text.len().saturating_sub(self.page.saturating_sub(1)),
            _ => 0,
        }
    }

    /// Where the row ends. The notes of a blame belong to its last row.
    pub(super) fn end_of(&self, row: usize) -> usize {
        match &self.answer {
            Some(Ok(answer)) if row + 1 == answer.file_lines => answer.text.len(),
            _ => row + 1,
        }
    }

    pub(super) fn press(&mut self, key: &Key) -> PageAction {
        let last = self.rows().saturating_sub(1);
        let page = self.page.saturating_sub(1).max(1);
        match key {
            Key::Esc | Key::Left | Key::Char('q' | 'h') => return PageAction::Back,
            Key::Char('?') => return PageAction::Help,
            Key::Up | Key::Char('k') => self.row = self.row.saturating_sub(1),
            Key::Down | Key::Char('j') => self.row = (self.row + 1).min(last),
            Key::PageUp | Key::Ctrl('u') => self.row = self.row.saturating_sub(page),
            Key::PageDown | Key::Ctrl('d') => self.row = (self.row + page).min(last),
            Key::Home => self.row = 0,
            Key::End => self.row = last,
            Key::Char('w') | Key::Enter if self.has_selection() => {
                if let MenuQuestion::Blame { path } = &self.question {
                    let (path, line) = (path.clone(), self.row + 1);
                    return PageAction::Ask(MenuQuestion::Why { path, line });
                }
            }
            _ => {}
        }
        PageAction::Stay
    }
}
