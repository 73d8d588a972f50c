//! What an agent can ask to have done to files, and the plan of it that the user agrees to.

use serde_json::{Value, json};
use takeback_answers::{Point, Receipt};

use crate::inputs::{Restore, Revert, Rewind};
use crate::text;

/// What the agent asks for.
#[derive(Debug)]
pub(crate) enum Action {
    Rewind(Rewind),
    Revert(Revert),
    Restore(Restore),
}

impl Action {
    /// The method that previews it, with its parameters.
    pub(crate) fn preview(&self) -> (&'static str, Value) {
        match self {
            Self::Rewind(input) => ("checkpoint:preview", json!(input)),
            _ => {
                let (method, mut params) = self.method();
                params["dryRun"] = json!(true);
                (method, params)
            }
        }
    }

    /// The method that does what its preview with this mark showed, with its parameters.
    pub(crate) fn apply(&self, mark: &str) -> (&'static str, Value) {
        let (method, mut params) = self.method();
        params["mark"] = json!(mark);
        (method, params)
    }

    fn method(&self) -> (&'static str, Value) {
        match self {
            Self::Rewind(input) => ("point:rewind", json!(input)),
            Self::Revert(input) => ("checkpoint:revert", json!(input)),
            Self::Restore(input) => ("checkpoint:restore", json!(input)),
        }
    }

    pub(crate) fn paths(&self) -> &[String] {
        match self {
            Self::Rewind(input) => &input.paths,
            Self::Revert(input) => &input.paths,
            Self::Restore(input) => &input.paths,
        }
    }

    /// The points that it names.
    pub(crate) fn point_names(&self) -> Vec<String> {
        match self {
            Self::Rewind(input) => vec![input.point.clone()],
            Self::Restore(input) => vec![input.from.clone()],
            Self::Revert(input) => Reverted::of(&input.what).points(),
        }
    }

    /// Names these points by their ids.
    pub(crate) fn set_points(&mut self, points: &[Point]) {
        let ids: Vec<String> = points.iter().map(|point| point.id.to_string()).collect();
        match (self, ids.as_slice()) {
            (Self::Rewind(input), [id]) => input.point.clone_from(id),
            (Self::Restore(input), [id]) => input.from.clone_from(id),
            (Self::Revert(input), [_, ..]) => {
                input.what = match (Reverted::of(&input.what), ids.as_slice()) {
                    (Reverted::Range { to: Some(_), .. }, [from, to]) => format!("{from}..{to}"),
                    (Reverted::Range { .. }, [from, ..]) => format!("{from}.."),
                    (Reverted::Call { number, .. }, [point, ..]) => format!("{point}.{number}"),
                    (Reverted::Turn(_), [point, ..]) => point.clone(),
                    (_, []) => return,
                };
            }
            _ => {}
        }
    }
}

/// The parts of what is to be reverted.
enum Reverted<'a> {
    Turn(&'a str),
    Call { point: &'a str, number: &'a str },
    Range { from: &'a str, to: Option<&'a str> },
}

impl<'a> Reverted<'a> {
    fn of(what: &'a str) -> Self {
        if let Some((from, to)) = what.split_once("..") {
            return Self::Range { from, to: Some(to).filter(|to| !to.is_empty()) };
        }
        match what.rsplit_once('.') {
            Some((point, number)) if number.parse::<usize>().is_ok() => {
                Self::Call { point, number }
            }
            _ => Self::Turn(what),
        }
    }

    fn points(&self) -> Vec<String> {
        let names = match self {
            Self::Turn(point) | Self::Call { point, .. } => vec![*point],
            Self::Range { from, to } => [*from].into_iter().chain(*to).collect(),
        };
        names.into_iter().map(str::to_owned).collect()
    }
}

/// The points that an action is about.
#[derive(Debug)]
pub(crate) struct Subject {
    /// Their ids, and when they were made: nothing that an agent chose.
    titles: Vec<String>,
    /// The label or the prompt of the first: words that an agent may have chosen.
    pub(crate) name: Option<String>,
}

impl Subject {
    /// Empty: the action names a call.
    pub(crate) fn new(points: &[Point]) -> Self {
        let name = points.first().and_then(text::name_of).map(ToOwned::to_owned);
        Self { titles: points.iter().map(text::title).collect(), name }
    }
}

/// What the user would agree to.
#[derive(Debug)]
pub(crate) struct ActionPlan {
    pub(crate) action: Action,
    pub(crate) subject: Subject,
    pub(crate) preview: Receipt,
    pub(crate) mark: String,
}

impl ActionPlan {
    /// What the user is asked about: equal for the same plan of the same action.
    pub(crate) fn identity(&self) -> String {
        format!("{}:{}", self.action.method().1, self.mark)
    }

    /// The request in one sentence, without words of the agent.
    pub(crate) fn sentence(&self) -> String {
        let title = |at: usize| self.subject.titles.get(at).map_or("now", String::as_str);
        match &self.action {
            Action::Rewind(_) => format!("The agent asks to rewind files to point {}.", title(0)),
            Action::Restore(_) => format!(
                "The agent asks to bring files back as they were at point {}, whoever changed them \
                 since.",
                title(0)
            ),
            Action::Revert(input) => {
                let what = match Reverted::of(&input.what) {
                    _ if self.subject.titles.is_empty() => "one tool call".to_owned(),
                    Reverted::Turn(_) => format!("the turn of point {}", title(0)),
                    Reverted::Call { number, .. } => {
                        format!("tool call {number} of the turn of point {}", title(0))
                    }
                    Reverted::Range { to: None, .. } => {
                        format!("what agents did since point {}", title(0))
                    }
                    Reverted::Range { .. } => {
                        format!("what agents did from point {} to point {}", title(0), title(1))
                    }
                };
                format!("The agent asks to take back {what}, and to keep what came later.")
            }
        }
    }

    /// What the user can run, without words of the agent.
    pub(crate) fn command(&self) -> String {
        match &self.action {
            Action::Rewind(input) => format!("takeback rewind {}", input.point),
            Action::Restore(input) => format!("takeback restore PATH --from {}", input.from),
            Action::Revert(_) if self.subject.titles.is_empty() => {
                "takeback revert CALL".to_owned()
            }
            Action::Revert(input) => format!("takeback revert {}", input.what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revert_names_points_calls_and_ranges() {
        let points = |what| Reverted::of(what).points();
        assert_eq!(points("@~2"), ["@~2"]);
        assert_eq!(points("@~2.3"), ["@~2"]);
        assert_eq!(points("v1.x"), ["v1.x"]);
        assert_eq!(points("@~5..@~2"), ["@~5", "@~2"]);
        assert_eq!(points("@~5.."), ["@~5"]);
    }
}
