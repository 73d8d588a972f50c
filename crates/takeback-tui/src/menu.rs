//! The rewind menu: a list of points, a preview of each, and the choice of what to restore.
//!
//! [`Menu::press`] takes a key and returns what the caller must do; [`Menu::draw`] renders the menu. The
//! caller makes the previews: [`MenuAction::Preview`] names the row, [`Menu::set_preview`] takes the
//! result. The same with questions: [`MenuAction::Ask`] and [`Menu::set_answer`]. Nothing here
//! restores anything.

mod choice;
mod coverage;
mod detail;
mod question_page;
mod list;
mod preview;
mod row;
mod view;

use std::collections::HashMap;

use ratatui::Frame;
use ratatui::layout::Rect;

use self::choice::Mark;
pub use self::choice::{FileSelection, Marks, RestoreChoice, RestoreScope};
pub use self::coverage::{MenuCoverage, PreviewRequest};
use self::detail::{Detail, DetailAction};
use self::list::{Entry, Item, List, ListAction};
pub use self::preview::{FileAction, FilePreview, Preview};
pub use self::question_page::{MenuAnswer, MenuQuestion};
use self::question_page::{PageAction, QuestionPage};
pub use self::row::{ExecutionRow, OperationRow, Origin, PartyCount, PointRow, RowId, TakenBack};
use crate::keys::Key;
use crate::theme::Theme;

/// The open menu.
pub struct Menu {
    points: Vec<PointRow>,
    operations: Vec<OperationRow>,
    executions: Vec<ExecutionRow>,
    options: MenuOptions,
    tab: Tab,
    point_list: List,
    execution_list: List,
    /// The second stage, once a row is chosen.
    detail: Option<Detail>,
    /// Questions, the last one on top.
    pages: Vec<QuestionPage>,
    help: bool,
    notice: Option<String>,
    /// Whose changes previews and restores of points take back.
    coverage: MenuCoverage,
    previews: HashMap<PreviewRequest, Result<Preview, String>>,
    /// The preview that was requested last and has not arrived.
    pending: Option<PreviewRequest>,
}

/// How a menu behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MenuOptions {
    /// How many rows are shown before `older…`, not counting those of other sessions.
    pub keep: usize,
    /// What these rows belong to.
    pub scope: MenuScope,
    /// Whether the conversation can be restored too.
    pub conversation: bool,
    /// Whether there is a rewind to undo.
    pub can_undo: bool,
    /// Whose changes are taken back at first.
    pub coverage: MenuCoverage,
}

/// What the rows belong to that come before those of other sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MenuScope {
    /// The current session, and points made by hand.
    Session,
    /// The whole workspace: no session is open.
    Folder,
}

/// What the caller must do after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MenuAction {
    /// Nothing.
    Stay,
    /// Make this preview. Earlier requests are obsolete.
    Preview(PreviewRequest),
    /// Answer this question, by [`Menu::set_answer`].
    Ask(MenuQuestion),
    /// Close the menu.
    Cancel,
    /// Restore a point.
    Restore(RestoreChoice),
    /// Restore the last successful step of this execution.
    RestoreExecution(String),
    /// Undo the last rewind.
    Undo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Points,
    Executions,
}

/// How many previews are cached; with their diffs they are large.
const PREVIEWS_MAX: usize = 32;

impl Menu {
    /// `points`: newest first; those of other sessions are moved to the end.
    #[must_use]
    pub fn new(points: Vec<PointRow>, executions: Vec<ExecutionRow>, options: MenuOptions) -> Self {
        let (mut points, others): (Vec<PointRow>, Vec<PointRow>) =
            points.into_iter().partition(|row| row.origin != Origin::OtherSession);
        points.extend(others);
        let point_list = List::new(points.iter().map(Item::of_point).collect(), options.keep);
        let execution_items = executions.iter().map(Item::of_execution).collect();
        let tab = match points.is_empty() && !executions.is_empty() {
            true => Tab::Executions,
            false => Tab::Points,
        };
        Self {
            points,
            operations: Vec::new(),
            executions,
            options,
            tab,
            point_list,
            execution_list: List::new(execution_items, usize::MAX),
            detail: None,
            pages: Vec::new(),
            help: false,
            notice: None,
            coverage: options.coverage,
            previews: HashMap::new(),
            pending: None,
        }
    }

    /// Adds the operations between the points, newest first. One whose point is not listed is left out.
    #[must_use]
    pub fn with_operations(mut self, operations: Vec<OperationRow>) -> Self {
        let own = self.points.iter().take_while(|row| row.origin != Origin::OtherSession).count();
        let index =
            |row: &OperationRow| self.points[..own].iter().position(|point| point.id == row.above);
        let placed = operations.into_iter().filter_map(|row| Some((index(&row)?, row)));
        let mut placed: Vec<(usize, OperationRow)> = placed.collect();
        placed.sort_by_key(|(above, _)| *above);
        let (above, operations) = placed.into_iter().unzip();
        self.operations = operations;
        self.point_list.set_operations(above);
        self
    }

    /// Opens the second stage of this point.
    pub fn open(&mut self, point: &str) -> MenuAction {
        let Some(row) = self.points.iter().find(|row| row.id == point) else {
            return MenuAction::Stay;
        };
        let detail = self.point_detail(row);
        let request = detail.request();
        self.detail = Some(detail);
        self.request_preview(request)
    }

    /// Opens the second stage of this point, to take back its turn alone.
    pub fn open_turn(&mut self, point: &str) -> MenuAction {
        let Some(row) = self.points.iter().find(|row| row.id == point) else {
            return MenuAction::Stay;
        };
        let detail = self.point_detail(row);
        self.cover(detail, MenuCoverage::Turn)
    }

    /// Handles a key.
    pub fn press(&mut self, key: &Key) -> MenuAction {
        self.notice = None;
        if std::mem::take(&mut self.help) {
            return MenuAction::Stay;
        }
        if *key == Key::Ctrl('c') {
            return MenuAction::Cancel;
        }
        if let Some(page) = self.pages.last_mut() {
            return match page.press(key) {
                PageAction::Stay => MenuAction::Stay,
                PageAction::Back => {
                    self.pages.pop();
                    MenuAction::Stay
                }
                PageAction::Help => {
                    self.help = true;
                    MenuAction::Stay
                }
                PageAction::Ask(question) => self.ask(question),
            };
        }
        match self.detail.take() {
            Some(detail) => self.press_in_detail(detail, key),
            None => self.press_in_list(key),
        }
    }

    /// Sets a preview, or the reason why there is none.
    pub fn set_preview(
        &mut self,
        request: impl Into<PreviewRequest>,
        preview: Result<Preview, String>,
    ) {
        let request = request.into();
        if self.pending.as_ref() == Some(&request) {
            self.pending = None;
        }
        if self.previews.len() >= PREVIEWS_MAX {
            let open = self.detail.as_ref().map(|detail| detail.row().clone());
            let selected = open.or_else(|| self.selected());
            self.previews.retain(|cached, _| Some(&cached.row) == selected.as_ref());
        }
        self.previews.insert(request, preview);
    }

    /// Sets the answer to a question, or the reason why there is none. Ignored if the question was closed.
    pub fn set_answer(&mut self, question: &MenuQuestion, answer: Result<MenuAnswer, String>) {
        if let Some(page) = self.pages.iter_mut().find(|page| page.question() == question) {
            page.set_answer(answer);
        }
    }

    fn ask(&mut self, question: MenuQuestion) -> MenuAction {
        self.pages.push(QuestionPage::new(question.clone()));
        MenuAction::Ask(question)
    }

    /// Draws the menu, and remembers how many rows fit, for the page keys.
    pub fn draw(&mut self, frame: &mut Frame, area: Rect, theme: &Theme) {
        view::draw(self, frame, area, theme);
    }

    fn press_in_detail(&mut self, mut detail: Detail, key: &Key) -> MenuAction {
        if *key == Key::Char('?') {
            self.help = true;
            self.detail = Some(detail);
            return MenuAction::Stay;
        }
        match detail.press(key, self.previews.get(&detail.request())) {
            DetailAction::CycleCoverage => {
                if detail.coverage() != MenuCoverage::Turn {
                    self.coverage = self.coverage.next();
                }
                self.cover(detail, self.coverage)
            }
            DetailAction::ToggleTurn => {
                let coverage = match detail.coverage() {
                    MenuCoverage::Turn => self.coverage,
                    _ => MenuCoverage::Turn,
                };
                self.cover(detail, coverage)
            }
            DetailAction::Stay => {
                self.detail = Some(detail);
                MenuAction::Stay
            }
            // The list may show another coverage than the row did.
            DetailAction::Back => self.preview_selected(),
            DetailAction::Restore(action) => action,
            DetailAction::Ask(question) => {
                self.detail = Some(detail);
                self.ask(question)
            }
        }
    }

    fn press_in_list(&mut self, key: &Key) -> MenuAction {
        if *key == Key::Tab || *key == Key::BackTab {
            self.tab = match self.tab {
                Tab::Points => Tab::Executions,
                Tab::Executions => Tab::Points,
            };
            return self.preview_selected();
        }
        match self.list_mut().press(key) {
            ListAction::Stay => MenuAction::Stay,
            ListAction::Move => self.preview_selected(),
            ListAction::Cancel => MenuAction::Cancel,
            ListAction::Choose(index) => {
                self.detail = Some(match self.tab {
                    Tab::Points => self.point_detail(&self.points[index]),
                    Tab::Executions => {
                        let execution = self.executions[index].execution.clone();
                        Detail::new(PreviewRequest::from(RowId::Execution(execution)), false)
                    }
                });
                self.preview_selected()
            }
            ListAction::Unhandled => match key {
                Key::Char('u') if self.options.can_undo => MenuAction::Undo,
                Key::Char('u') => {
                    self.notice = Some("There is no rewind to undo.".to_owned());
                    MenuAction::Stay
                }
                Key::Char('?') => {
                    self.help = true;
                    MenuAction::Stay
                }
                Key::Char('S') if self.tab == Tab::Points => {
                    self.coverage = self.coverage.next();
                    self.notice = Some(self.coverage.title().to_owned());
                    self.preview_selected()
                }
                Key::Char('R') if self.tab == Tab::Points => self.open_selected_turn(),
                Key::Char('S' | 'R') => {
                    self.notice = Some("An execution is restored as a whole.".to_owned());
                    MenuAction::Stay
                }
                Key::Char(key @ ('s' | 'B')) => match (self.selected(), key) {
                    (Some(row), 's') => self.ask(MenuQuestion::Stats { row }),
                    (Some(row), _) => self.ask(MenuQuestion::Bisect { row }),
                    (None, _) => {
                        self.notice = Some("Select a row first.".to_owned());
                        MenuAction::Stay
                    }
                },
                _ => MenuAction::Stay,
            },
        }
    }

    fn point_detail(&self, row: &PointRow) -> Detail {
        let conversation = self.options.conversation && row.origin != Origin::OtherSession;
        let row = RowId::Point(row.id.clone());
        Detail::new(PreviewRequest::new(row, self.coverage), conversation)
    }

    /// Opens the second stage of the selected point, to take back its turn alone.
    fn open_selected_turn(&mut self) -> MenuAction {
        let Some(Entry::Item(index)) = self.list().selected() else {
            self.notice = Some("Select a row first.".to_owned());
            return MenuAction::Stay;
        };
        let detail = self.point_detail(&self.points[index]);
        self.cover(detail, MenuCoverage::Turn)
    }

    /// Shows the second stage with this coverage.
    fn cover(&mut self, mut detail: Detail, coverage: MenuCoverage) -> MenuAction {
        detail.set_coverage(coverage);
        let request = detail.request();
        self.detail = Some(detail);
        self.request_preview(request)
    }

    fn list(&self) -> &List {
        match self.tab {
            Tab::Points => &self.point_list,
            Tab::Executions => &self.execution_list,
        }
    }

    fn list_mut(&mut self) -> &mut List {
        match self.tab {
            Tab::Points => &mut self.point_list,
            Tab::Executions => &mut self.execution_list,
        }
    }

    fn selected(&self) -> Option<RowId> {
        let Some(Entry::Item(index)) = self.list().selected() else { return None };
        Some(match self.tab {
            Tab::Points => RowId::Point(self.points.get(index)?.id.clone()),
            Tab::Executions => RowId::Execution(self.executions.get(index)?.execution.clone()),
        })
    }

    fn preview_selected(&mut self) -> MenuAction {
        match self.selected() {
            Some(row) => self.request_preview(PreviewRequest::new(row, self.coverage)),
            None => MenuAction::Stay,
        }
    }

    fn request_preview(&mut self, request: PreviewRequest) -> MenuAction {
        if self.previews.contains_key(&request) || self.pending.as_ref() == Some(&request) {
            return MenuAction::Stay;
        }
        self.pending = Some(request.clone());
        MenuAction::Preview(request)
    }

    /// Describes the hidden rows: the last `hidden` before those of other sessions.
    fn describe_older(&self, hidden: usize) -> String {
        let own = self.points.iter().take_while(|row| row.origin != Origin::OtherSession).count();
        let older = &self.points[own.saturating_sub(hidden)..own];
        let manual = older.iter().filter(|row| row.origin == Origin::Manual).count();
        match (self.options.scope, hidden - manual) {
            (MenuScope::Folder, _) => format!("{hidden} more"),
            (MenuScope::Session, 0) => format!("{hidden} more made by hand"),
            (MenuScope::Session, _) if manual == 0 => format!("{hidden} more in this session"),
            (MenuScope::Session, own) => {
                format!("{hidden} more: {own} in this session, {manual} by hand")
            }
        }
    }
}
