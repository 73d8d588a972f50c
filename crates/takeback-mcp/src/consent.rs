//! The user's permission to change files: the question, how a client asks it, and what it was about.
//!
//! A client of the `initialize` era is sent `elicitation/create` and answers; a stateless one gets
//! `input_required` back, asks, and calls again with the answer. In both, the permission is for what was
//! shown: the preview has a mark, `takeback` carries out only a plan with the same mark, and another mark is
//! another question. A permission is valid once: an answer closes its question.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, InputResponses, ProtocolVersion,
};
use rmcp::service::RequestContext;

use crate::action::{Action, ActionPlan};
use crate::outputs::OmittedCounts;
use crate::text::{self, Tense};

/// Open questions to stateless clients, each valid for one answer.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: Mutex<PendingQuestions>,
    /// Makes names that cannot be guessed.
    random: RandomState,
}

#[derive(Debug, Default)]
struct PendingQuestions {
    put: u64,
    /// The name and subject of each question, oldest first.
    waiting: VecDeque<(String, String)>,
}

/// Which question an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionMatch {
    /// The question about this plan.
    Same,
    /// A question about an earlier plan.
    Changed,
    /// No open question: made up, answered before, dropped, or of another process.
    Unknown,
}

impl Questions {
    /// More than a user can be asked at the same time.
    const MOST: usize = 64;

    /// Adds a question. Returns the name that a client sends back with the answer.
    fn put(&self, plan: &ActionPlan) -> String {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.put += 1;
        let halves = [self.random.hash_one((open.put, 0)), self.random.hash_one((open.put, 1))];
        let name = format!("{:016x}{:016x}", halves[0], halves[1]);
        if open.waiting.len() == Self::MOST {
            open.waiting.pop_front();
        }
        open.waiting.push_back((name.clone(), plan.identity()));
        name
    }

    /// Closes the question.
    pub(crate) fn take(&self, name: Option<&str>, plan: &ActionPlan) -> QuestionMatch {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let at = open.waiting.iter().position(|(one, _)| Some(one.as_str()) == name);
        match at.and_then(|at| open.waiting.remove(at)) {
            Some((_, subject)) if subject == plan.identity() => QuestionMatch::Same,
            Some(_) => QuestionMatch::Changed,
            None => QuestionMatch::Unknown,
        }
    }
}

/// How a client can ask its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elicitation {
    /// `elicitation/create`, while the call waits.
    Request,
    /// An `input_required` result, and the call again with the answer.
    Result,
    Unsupported,
}

pub(crate) fn elicitation(context: &RequestContext<RoleServer>) -> Elicitation {
    let capabilities = context.client_capabilities();
    if !capabilities.as_ref().is_some_and(has_forms) {
        return Elicitation::Unsupported;
    }
    match context.protocol_version() {
        Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => {
            Elicitation::Result
        }
        _ => Elicitation::Request,
    }
}

/// A capability that names no mode means forms.
fn has_forms(capabilities: &ClientCapabilities) -> bool {
    capabilities
        .elicitation
        .as_ref()
        .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

/// Whether the question is asked for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    First,
    /// The plan changed after the first question.
    Repeat,
}

/// Accept or decline: the form has no fields.
pub(crate) fn question(plan: &ActionPlan, round: Round) -> ElicitRequest {
    ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message(plan, round),
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    })
}

/// Paths listed in a question; the rest is only counted.
const MOST: usize = 10;

/// The plan comes first. Text that an agent chose comes last, quoted and on its own lines, so that it cannot
/// be mistaken for the question.
fn message(plan: &ActionPlan, round: Round) -> String {
    let mut message = match round {
        Round::First => String::new(),
        Round::Repeat => {
            "Something changed in the meantime. This is what it would do now.\n".to_owned()
        }
    };
    message += &plan.sentence();
    message.push('\n');
    if matches!(&plan.action, Action::Rewind(input) if input.exact) {
        message += "Everything since then would be taken back, also what you and others changed.\n";
    }
    message.push('\n');
    message += &text::receipt(&plan.preview, &OmittedCounts::new(), Tense::Would);
    message += "\n`takeback undo` takes it back.";
    if let Some(name) = &plan.subject.name {
        message += &format!("\n\nThe point is called:\n{}", text::quoted(name, 120));
    }
    let paths = plan.action.paths();
    if !paths.is_empty() {
        message += "\n\nThe agent asks for these paths only:";
        for path in paths.iter().take(MOST) {
            message += &format!("\n- {}", text::quoted(path, 80));
        }
        if let Some(more) = paths.len().checked_sub(MOST).filter(|more| *more > 0) {
            message += &format!("\n- … and {more} more");
        }
    }
    message
}

/// The one question of an `input_required` result.
const KEY: &str = "rewind";

pub(crate) fn input_required(
    questions: &Questions,
    plan: &ActionPlan,
    round: Round,
) -> InputRequiredResult {
    let question = InputRequest::Elicitation(question(plan, round));
    let requests = BTreeMap::from([(KEY.to_owned(), question)]);
    InputRequiredResult::new(Some(requests), Some(questions.put(plan)))
}

/// What the user said, if this call brings an answer.
pub(crate) fn answer(responses: Option<&InputResponses>) -> Option<ElicitationAction> {
    let response = responses?.get(KEY)?.clone();
    let result: ElicitResult = serde_json::from_value(response).ok()?;
    Some(result.action)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use takeback_answers::{
        ByAuthor, FilePath, Id, Note, Point, PointBasis, PointKind, Receipt, TakenBack, Time,
    };

    use super::*;
    use crate::action::Subject;
    use crate::inputs::{Restore, Revert, Rewind};

    fn plan(action: Action, label: &str) -> ActionPlan {
        let point = Point {
            id: Id::new("450e234ecd6f81a9"),
            seq: 1,
            kind: PointKind::Manual,
            session: None,
            message_ids: Vec::new(),
            description: String::new(),
            label: Some(label.to_owned()),
            pinned: false,
            created_at: Time("2026-11-15T22:29:31Z".to_owned()),
            files_changed: 0,
            insertions: 0,
            deletions: 0,
            not_captured: 0,
            unreadable: 0,
            has_state: false,
            basis: PointBasis::Scan,
            by_author: ByAuthor::default(),
            taken_back: TakenBack::No,
            of: None,
            git_moved: None,
        };
        let path = FilePath { file_path: "c.txt".to_owned(), file_path_base64: None };
        let receipt = Receipt {
            point: Some(Id::new("450e234ecd6f81a9")),
            restored_files: vec!["a.txt".to_owned()],
            deleted_files: vec!["b\n.txt".to_owned()],
            kept_files: vec![Note { path, reason: "changed by you".to_owned() }],
            ..Receipt::default()
        };
        let subject = Subject::new(&[point]);
        ActionPlan { action, subject, preview: receipt, mark: "abc".to_owned() }
    }

    #[test]
    fn the_question_shows_what_would_be_done() {
        let input =
            Rewind { point: "first".to_owned(), paths: vec!["src".to_owned()], exact: true };
        assert_eq!(
            message(&plan(Action::Rewind(input), "first"), Round::Repeat),
            "Something changed in the meantime. This is what it would do now.\n\
             The agent asks to rewind files to point 450e234ecd6f81a9 of 2026-11-15T22:29:31Z.\n\
             Everything since then would be taken back, also what you and others changed.\n\
             \n\
             Would restore (1):\n- a.txt\n\
             Would delete (not there at the point) (1):\n- b\\n.txt\n\
             Would keep (1):\n- c.txt: changed by you\n\
             \n\
             `takeback undo` takes it back.\n\
             \n\
             The point is called:\n“first”\n\
             \n\
             The agent asks for these paths only:\n- “src”"
        );
    }

    #[test]
    fn words_of_the_agent_come_last_and_stay_in_quotes() {
        let paths: Vec<String> =
            (1..=12).map(|n| format!("{n}”.\nNothing is lost\u{3164}")).collect();
        let input = Rewind { point: "first".to_owned(), paths, exact: false };
        let plan = plan(Action::Rewind(input), "x” of now.\nIt only shows what there is.");
        let message = message(&plan, Round::First);
        let (_, chosen) = message.split_once("`takeback undo` takes it back.").unwrap();
        let lines: Vec<&str> = chosen.lines().collect();
        assert_eq!(
            lines[2..7],
            [
                "The point is called:",
                "“x\\u{201d} of now.\\nIt only shows what there is.”",
                "",
                "The agent asks for these paths only:",
                "- “1\\u{201d}.\\nNothing is lost\\u{3164}”",
            ]
        );
        assert_eq!(lines.len(), 6 + MOST + 1);
        assert_eq!(lines.last(), Some(&"- … and 2 more"));
    }

    #[test]
    fn each_action_is_one_sentence() {
        let asked = |action| {
            let plan = plan(action, "first");
            (plan.sentence(), plan.command())
        };
        let point = "point 450e234ecd6f81a9 of 2026-11-15T22:29:31Z";
        let revert = |what: &str| {
            let (sentence, command) =
                asked(Action::Revert(Revert { what: what.to_owned(), paths: Vec::new() }));
            assert_eq!(command, format!("takeback revert {what}"));
            sentence
        };
        assert_eq!(
            revert("450e"),
            format!(
                "The agent asks to take back the turn of {point}, and to keep what came later."
            )
        );
        assert_eq!(
            revert("450e.2"),
            format!(
                "The agent asks to take back tool call 2 of the turn of {point}, and to keep what came later."
            )
        );
        assert_eq!(
            revert("450e.."),
            format!(
                "The agent asks to take back what agents did since {point}, and to keep what came later."
            )
        );
        let paths = vec!["$(boom)".to_owned()];
        assert_eq!(
            asked(Action::Restore(Restore { paths, from: "450e".to_owned() })),
            (
                format!(
                    "The agent asks to bring files back as they were at {point}, whoever changed them since."
                ),
                "takeback restore PATH --from 450e".to_owned()
            )
        );
    }

    #[test]
    fn forms_are_what_is_asked_with() {
        let can = |capabilities: Value| has_forms(&serde_json::from_value(capabilities).unwrap());
        assert!(can(json!({"elicitation": {}})));
        assert!(can(json!({"elicitation": {"form": {}, "url": {}}})));
        assert!(!can(json!({"elicitation": {"url": {}}})));
        assert!(!can(json!({"sampling": {}})));
    }
}
