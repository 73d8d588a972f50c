//! The second stage: the files of one row with ticks, a diff, and the choice of what to restore.
//!
//! An execution is restored as a whole: its files have no ticks.

use std::collections::{HashMap, HashSet};

use super::{
    FilePreview, FileSelection, Mark, Marks, MenuAction, MenuCoverage, MenuQuestion, Preview,
    PreviewRequest, RestoreChoice, RestoreScope, RowId,
};
use crate::keys::Key;

pub(super) struct Detail {
    row: RowId,
    coverage: MenuCoverage,
    conversation: bool,
    /// The selected file.
    file: usize,
    /// Paths that stay as they are.
    unticked: HashSet<String>,
    /// By path.
    ///
    /// A mark does not recompute the preview: that scans the tree, and rows would move under the cursor
    /// at every key. The receipt shows its effect.
    marks: HashMap<String, Mark>,
    /// The first visible line of the diff; drawing limits it to the diff's length.
    pub(super) scroll: usize,
    /// How many lines of the diff fit.
    pub(super) page: usize,
    /// The selected choice, once the choices are shown. A preview that arrives later may remove choices, but
    /// never moves the cursor to another one.
    choice: Option<Choice>,
    notice: Option<&'static str>,
}

/// What the menu must do after a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DetailAction {
    Stay,
    /// To the list.
    Back,
    Restore(MenuAction),
    /// Take back the changes of others too, or no longer.
    CycleCoverage,
    /// Take back the turn alone, or what came later too.
    ToggleTurn,
    /// Show the answer to a question.
    Ask(MenuQuestion),
}

/// An answer to "what to restore".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Point(RestoreScope),
    Execution,
}

impl Choice {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Point(scope) => scope.title(),
            Self::Execution => "State and files",
        }
    }

    /// The key that chooses it directly.
    pub(super) fn key(self) -> char {
        match self {
            Self::Point(scope) => scope.key(),
            Self::Execution => 's',
        }
    }
}

/// `None` until the preview arrives.
type PreviewResult<'a> = Option<&'a Result<Preview, String>>;

impl Detail {
    pub(super) fn new(of: PreviewRequest, conversation: bool) -> Self {
        Self {
            row: of.row,
            coverage: of.coverage,
            conversation,
            file: 0,
            unticked: HashSet::new(),
            marks: HashMap::new(),
            scroll: 0,
            page: 10,
            choice: None,
            notice: None,
        }
    }

    pub(super) fn row(&self) -> &RowId {
        &self.row
    }

    /// The preview that it shows.
    pub(super) fn request(&self) -> PreviewRequest {
        PreviewRequest::new(self.row.clone(), self.coverage)
    }

    /// Shows another preview of the same row: marks and ticks were about the files of the last one.
    pub(super) fn set_coverage(&mut self, coverage: MenuCoverage) {
        self.coverage = coverage;
        self.marks.clear();
        self.unticked.clear();
        self.select(0);
    }

    pub(super) fn coverage(&self) -> MenuCoverage {
        self.coverage
    }

    pub(super) fn has_ticks(&self) -> bool {
        matches!(self.row, RowId::Point(_))
    }

    pub(super) fn file(&self) -> usize {
        self.file
    }

    pub(super) fn choice(&self) -> Option<Choice> {
        self.choice
    }

    pub(super) fn notice(&self) -> Option<&'static str> {
        self.notice
    }

    pub(super) fn can_mark(&self) -> bool {
        self.coverage.can_mark()
    }

    pub(super) fn mark_of(&self, file: &FilePreview) -> Option<Mark> {
        self.marks.get(&file.path).copied()
    }

    /// Whether the file can be ticked: a mark decides instead.
    pub(super) fn has_tick(&self, file: &FilePreview) -> bool {
        file.action.changes_file() && !self.marks.contains_key(&file.path)
    }

    pub(super) fn is_ticked(&self, file: &FilePreview) -> bool {
        self.has_tick(file) && !self.unticked.contains(&file.path)
    }

    /// What can be restored. Files need a tick or a mark, and a preview that did not fail.
    pub(super) fn choices(&self, preview: PreviewResult) -> Vec<Choice> {
        if let RowId::Execution(_) = self.row {
            // Its state can be restored even if no file would change.
            let possible = !matches!(preview, Some(Err(_)));
            return possible.then_some(Choice::Execution).into_iter().collect();
        }
        let files = match preview {
            None => true,
            Some(Err(_)) => false,
            Some(Ok(preview)) => {
                preview.files.iter().any(|file| self.is_ticked(file)) || !self.marks.is_empty()
            }
        };
        let mut choices = Vec::new();
        // Later prompts stay in the conversation if their changes stay.
        let conversation = self.conversation && self.coverage != MenuCoverage::Turn;
        if files && conversation {
            choices.push(Choice::Point(RestoreScope::FilesAndConversation));
        }
        if files {
            choices.push(Choice::Point(RestoreScope::Files));
        }
        if conversation {
            choices.push(Choice::Point(RestoreScope::Conversation));
        }
        choices
    }

    pub(super) fn press(&mut self, key: &Key, preview: PreviewResult) -> DetailAction {
        self.notice = None;
        match self.choice {
            Some(selected) => self.press_in_choices(selected, key, preview),
            None => self.press_in_files(key, preview),
        }
    }

    fn press_in_files(&mut self, key: &Key, preview: PreviewResult) -> DetailAction {
        let files = match preview {
            Some(Ok(preview)) => preview.files.as_slice(),
            _ => &[],
        };
        let last = files.len().saturating_sub(1);
        match key {
            Key::Esc | Key::Char('q' | 'h') | Key::Left => return DetailAction::Back,
            Key::Up | Key::Char('k') => self.select(self.file.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.select((self.file + 1).min(last)),
            Key::Home => self.select(0),
            Key::End => self.select(last),
            Key::PageDown | Key::Ctrl('d') => self.scroll += self.page.max(1),
            Key::PageUp | Key::Ctrl('u') => {
                self.scroll = self.scroll.saturating_sub(self.page.max(1));
            }
            Key::Char(' ' | 'a' | 't' | 'm' | 'S' | 'R') if !self.has_ticks() => {
                self.notice = Some("An execution is restored as a whole.");
            }
            Key::Char(key @ ('b' | 'H' | 'c')) => {
                if let Some(file) = files.get(self.file) {
                    let (row, path) = (self.row.clone(), file.path.clone());
                    return DetailAction::Ask(match key {
                        'b' => MenuQuestion::Blame { path },
                        'H' => MenuQuestion::History { path },
                        _ => MenuQuestion::Cat { row, path },
                    });
                }
            }
            Key::Char('s') => {
                return DetailAction::Ask(MenuQuestion::Stats { row: self.row.clone() });
            }
            Key::Char('S') => return DetailAction::CycleCoverage,
            Key::Char('R') => return DetailAction::ToggleTurn,
            Key::Char('B') => {
                return DetailAction::Ask(MenuQuestion::Bisect { row: self.row.clone() });
            }
            Key::Char(' ') => self.tick(files.get(self.file)),
            Key::Char('t') => self.mark(files.get(self.file), Mark::Take),
            Key::Char('m') => self.mark(files.get(self.file), Mark::Mine),
            Key::Char('a') if self.unticked.is_empty() => {
                let changing = files.iter().filter(|file| file.action.changes_file());
                self.unticked = changing.map(|file| file.path.clone()).collect();
            }
            Key::Char('a') => self.unticked.clear(),
            Key::Enter | Key::Right | Key::Char('l') => {
                self.choice = self.choices(preview).first().copied();
                if self.choice.is_none() {
                    self.notice = Some("Nothing to restore.");
                }
            }
            _ => {}
        }
        DetailAction::Stay
    }

    fn press_in_choices(
        &mut self,
        selected: Choice,
        key: &Key,
        preview: PreviewResult,
    ) -> DetailAction {
        let choices = self.choices(preview);
        let at = choices.iter().position(|choice| *choice == selected);
        let choice = match key {
            Key::Esc | Key::Char('q' | 'h') | Key::Left => {
                self.choice = None;
                return DetailAction::Stay;
            }
            Key::Up | Key::Char('k') => {
                let above = at.map_or(0, |at| at.saturating_sub(1));
                self.choice = choices.get(above).copied();
                return DetailAction::Stay;
            }
            Key::Down | Key::Char('j') => {
                let below = at.map_or(0, |at| (at + 1).min(choices.len() - 1));
                self.choice = choices.get(below).copied();
                return DetailAction::Stay;
            }
            Key::Enter => selected,
            Key::Char(c) => match choices.iter().find(|choice| choice.key() == *c) {
                Some(choice) => *choice,
                None => return DetailAction::Stay,
            },
            _ => return DetailAction::Stay,
        };
        if choices.contains(&choice) {
            return DetailAction::Restore(self.restore(choice, preview));
        }
        self.choice = choices.first().copied();
        self.notice = Some("Not possible here.");
        DetailAction::Stay
    }

    fn tick(&mut self, file: Option<&FilePreview>) {
        let Some(file) = file else { return };
        if self.marks.contains_key(&file.path) {
            self.notice = Some("This file is marked; press the same key to remove the mark.");
        } else if !file.action.changes_file() {
            self.notice = Some("This file would not change.");
        } else if !self.unticked.remove(&file.path) {
            self.unticked.insert(file.path.clone());
        }
    }

    fn mark(&mut self, file: Option<&FilePreview>, mark: Mark) {
        let Some(file) = file else { return };
        if !self.can_mark() {
            self.notice = Some("Files cannot be marked here; S chooses whose changes.");
        } else if self.mark_of(file) == Some(mark) {
            self.marks.remove(&file.path);
        } else if let Some(refusal) = mark.refusal(file.action) {
            self.notice = Some(refusal);
        } else {
            self.marks.insert(file.path.clone(), mark);
        }
    }

    fn select(&mut self, file: usize) {
        self.file = file;
        self.scroll = 0;
    }

    fn restore(&self, choice: Choice, preview: PreviewResult) -> MenuAction {
        match (&self.row, choice) {
            (RowId::Point(point), Choice::Point(scope)) => {
                let files = match preview {
                    Some(Ok(preview)) if scope != RestoreScope::Conversation => {
                        self.selection(preview)
                    }
                    _ => FileSelection::default(),
                };
                let (point, coverage) = (point.clone(), self.coverage);
                MenuAction::Restore(RestoreChoice { point, coverage, scope, files })
            }
            (RowId::Execution(name), Choice::Execution) => {
                MenuAction::RestoreExecution(name.clone())
            }
            (RowId::Point(_), Choice::Execution) | (RowId::Execution(_), Choice::Point(_)) => {
                MenuAction::Stay
            }
        }
    }

    fn selection(&self, preview: &Preview) -> FileSelection {
        let ticked = preview.files.iter().filter(|file| self.is_ticked(file));
        let ticked = ticked.map(|file| file.path.clone());
        let paths = (!self.unticked.is_empty()).then(|| ticked.collect());
        let mut marks = Marks::default();
        let mut seen = HashSet::new();
        // A file that is only partly unclear has two rows.
        for file in preview.files.iter().filter(|file| seen.insert(&file.path)) {
            match self.mark_of(file) {
                Some(Mark::Take) => marks.take.push(file.path.clone()),
                Some(Mark::Mine) => marks.mine.push(file.path.clone()),
                None => {}
            }
        }
        FileSelection { paths, marks }
    }
}
