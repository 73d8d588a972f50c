//! Notes in git-ai's format.

use std::path::Path;

use takeback_core::attribution::{
    AI_NOTES, AiNote, ForeignNotes, NoteOutcome, NotedAuthor, NotesReport, NotesRequest,
    session_key, write_notes,
};
use takeback_core::history::{LineAuthor, LineSource, committed_lines};
use takeback_store::Evidence;

use super::repository::{Project, git};

impl Project {
    fn notes(&self, range: &str, foreign: ForeignNotes) -> NotesReport {
        let request = NotesRequest { range, foreign, is_dry_run: false };
        write_notes(&self.sandbox.workspace, &self.repository, request).unwrap()
    }

    /// Writes the note of HEAD: its outcome.
    #[track_caller]
    fn note(&self) -> NoteOutcome {
        let report = self.notes("HEAD", ForeignNotes::Keep);
        assert_eq!(report.commits.len(), 1);
        report.commits[0].outcome
    }

    /// The lines of a file that the note of a commit names, with their authors.
    fn noted(&self, commit: &str, path: &str) -> Vec<(usize, String)> {
        let note = git(&self.sandbox.root(), &format!("notes --ref=ai show {commit}"));
        let note = AiNote::parse(note.as_bytes()).unwrap();
        assert_eq!(note.commit, self.git(&format!("rev-parse {commit}")).trim());
        let author = |author| match author {
            NotedAuthor::Agent { tool, conversation, model, is_doubtful } => {
                let text = |text: Option<String>| text.unwrap_or_default();
                let doubt = if is_doubtful { "?" } else { "" };
                format!("{} {} {}{doubt}", text(tool), text(conversation), text(model))
            }
            NotedAuthor::Person { name } => name.unwrap_or_default(),
        };
        let lines =
            (1..100).filter_map(|line| Some((line, note.author_of(path.as_bytes(), line)?)));
        lines.map(|(line, who)| (line, author(who))).collect()
    }

    #[track_caller]
    fn expect(&self, commit: &str, path: &str, expected: &[(usize, &str)]) {
        let found = self.noted(commit, path);
        let found: Vec<(usize, &str)> = found.iter().map(|(at, who)| (*at, who.as_str())).collect();
        assert_eq!(found, expected);
    }
}

const ME: &str = "Me <me@example.com>";

fn started(text: &str) -> Project {
    let mut project = Project::new(text);
    project.sandbox.start("s");
    project
}

#[test]
fn a_note_names_the_lines_that_the_commit_added_and_the_log_explains() {
    let mut project = started("one\ntwo\n");
    project.agent_turn("s", "opus", "a.txt", "one\nby agent\ntwo\n");
    project.you_write("a.txt", "zero\none\nby agent\ntwo\n");
    project.agent_turn("s", "opus", "with space.txt", "b\n");
    project.commit("work");
    assert_eq!(project.note(), NoteOutcome::Written);
    project.expect("HEAD", "a.txt", &[(1, ME), (3, "agent s opus")]);
    project.expect("HEAD", "with space.txt", &[(1, "agent s opus")]);
    let note = project.git("notes --ref=ai show HEAD");
    assert!(note.contains(&format!("  {}::t_", session_key("agent", "s"))), "{note}");
    assert_eq!(project.note(), NoteOutcome::Unchanged);
    // Older than the log.
    let report = project.notes("HEAD~1", ForeignNotes::Keep);
    assert_eq!(report.commits[0].outcome, NoteOutcome::NothingKnown);
    assert_eq!(report.commits[0].count.unexplained, 2);
}

#[test]
fn only_the_reference_of_the_notes_changes() {
    let mut project = started("one\n");
    project.agent_turn("s", "opus", "a.txt", "one\nby agent\n");
    project.commit("work");
    project.git("tag v1");
    // Something is staged, and something is not.
    project.sandbox.write("staged.txt", "x\n");
    project.git("add staged.txt");
    project.sandbox.write("a.txt", "one\nby agent\nmore\n");
    let state = |project: &Project| {
        let refs = project.git("for-each-ref");
        let refs: Vec<String> =
            refs.lines().filter(|line| !line.ends_with(AI_NOTES)).map(str::to_owned).collect();
        let file = |path: &str| std::fs::read(project.sandbox.at(path)).unwrap();
        let files = [".git/index", ".git/HEAD", ".git/config", "a.txt", "staged.txt"].map(file);
        let mut names: Vec<_> = std::fs::read_dir(project.sandbox.at(".git"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        (refs, files, names)
    };
    let before = state(&project);
    assert_eq!(project.note(), NoteOutcome::Written);
    assert_eq!(state(&project), before);
    assert_eq!(project.git("status --porcelain"), " M a.txt\nA  staged.txt\n");
}

#[test]
fn a_dry_run_writes_nothing() {
    let mut project = started("one\n");
    project.agent_turn("s", "opus", "a.txt", "one\nby agent\n");
    project.commit("work");
    let request = NotesRequest { range: "HEAD", foreign: ForeignNotes::Keep, is_dry_run: true };
    let report = write_notes(&project.sandbox.workspace, &project.repository, request).unwrap();
    assert_eq!(report.commits[0].outcome, NoteOutcome::Written);
    assert!(report.commits[0].note.as_ref().unwrap().starts_with("a.txt\n  s_"));
    assert_eq!(project.git("for-each-ref refs/notes"), "");
}

#[test]
fn the_note_of_another_tool_stays_unless_you_say_so() {
    let mut project = started("one\n");
    project.agent_turn("s", "opus", "a.txt", "one\nby agent\n");
    project.commit("work");
    let theirs =
        "---\n{\"schema_version\":\"authorship/3.0.0\",\"base_commit_sha\":\"x\",\"prompts\":{}}";
    for theirs in [theirs, "not even a note"] {
        let file = project.sandbox.at(".git/theirs");
        std::fs::write(&file, theirs).unwrap();
        project.git(&format!("notes --ref=ai add -f -F {}", file.display()));
        assert_eq!(project.note(), NoteOutcome::LeftForeign);
        assert_eq!(project.git("notes --ref=ai show HEAD").trim(), theirs);
    }
    let report = project.notes("HEAD", ForeignNotes::Replace);
    assert_eq!(report.commits[0].outcome, NoteOutcome::Replaced);
    project.expect("HEAD", "a.txt", &[(2, "agent s opus")]);
}

#[test]
fn rewritten_commits_have_the_same_authors() {
    let mut project = started("one\n");
    project.git("checkout -q -b feature");
    project.agent_turn("s", "opus", "a.txt", "one\nfirst by agent\n");
    project.commit("first");
    project.sandbox.start("t");
    project.agent_turn("t", "gpt", "a.txt", "one\nfirst by agent\nsecond by agent\n");
    project.commit("second");
    let report = project.notes("main..HEAD", ForeignNotes::Keep);
    assert_eq!(
        report.commits.iter().map(|note| note.outcome).collect::<Vec<_>>(),
        [NoteOutcome::Written; 2]
    );
    project.expect("HEAD", "a.txt", &[(3, "agent t gpt")]);
    // Rebased onto lines above.
    project.git("checkout -q main");
    project.you_write("a.txt", "zero\none\n");
    project.commit("zero");
    project.git("checkout -q feature");
    project.git("rebase -q -X theirs main");
    project.notes("main..HEAD", ForeignNotes::Keep);
    project.expect("HEAD", "a.txt", &[(4, "agent t gpt")]);
    project.expect("HEAD~1", "a.txt", &[(3, "agent s opus")]);
    // Squashed.
    project.git("reset -q --soft main");
    project.commit("squashed");
    assert_eq!(project.note(), NoteOutcome::Written);
    project.expect("HEAD", "a.txt", &[(3, "agent s opus"), (4, "agent t gpt")]);
    // Amended.
    project.you_write("a.txt", "zero\none\nfirst by agent\nmine\nsecond by agent\n");
    project.git("commit -qa --amend -m amended");
    assert_eq!(project.note(), NoteOutcome::Written);
    project.expect("HEAD", "a.txt", &[(3, "agent s opus"), (4, ME), (5, "agent t gpt")]);
}

#[test]
fn a_merge_has_only_what_it_resolved() {
    let mut project = started("one\nmiddle\n");
    project.git("checkout -q -b side");
    project.you_write("a.txt", "one\nside\n");
    project.commit("side");
    project.git("checkout -q main");
    project.agent_turn("s", "opus", "a.txt", "one\nby agent\n");
    project.commit("main");
    project.git("merge -q -s ours --no-commit side");
    project.agent_turn("s", "opus", "a.txt", "one\nby agent\nside\nboth by agent\n");
    project.commit("merged");
    assert_eq!(project.note(), NoteOutcome::Written);
    project.expect("HEAD", "a.txt", &[(4, "agent s opus")]);
}

#[test]
fn lines_of_others_and_of_commands_are_not_claimed_as_certain() {
    let mut project = started("one\n");
    project.sandbox.prompt("s", "generate");
    project.sandbox.agent_runs("s", "generate", |sandbox| {
        sandbox.write("a.txt", "one\ngenerated\n");
    });
    project.sandbox.turn_end_by("s", "opus");
    project.you_write("b.txt", "mine\n");
    project.git("add -A");
    // Another person commits it: who typed it is not known.
    project.git("-c user.name=Bob -c user.email=bob@example.com commit -qm work");
    let report = project.notes("HEAD", ForeignNotes::Keep);
    let count = report.commits[0].count;
    assert_eq!((count.agent, count.doubtful, count.you, count.unexplained), (1, 1, 0, 1));
    project.expect("HEAD", "a.txt", &[(2, "agent s opus?")]);
}

#[test]
fn models_of_one_session_are_told_apart() {
    let mut project = started("one\n");
    project.agent_turn("s", "opus", "a.txt", "one\ntwo\n");
    project.agent_turn("s", "haiku", "a.txt", "one\ntwo\nthree\n");
    project.commit("work");
    assert_eq!(project.note(), NoteOutcome::Written);
    project.expect("HEAD", "a.txt", &[(2, "agent s opus"), (3, "agent s haiku")]);
}

#[test]
fn renamed_files_and_files_outside_have_their_own_paths() {
    let mut project = started("one\ntwo\nthree\nfour\n");
    project.agent_turn("s", "opus", "a.txt", "one\ntwo\nthree\nfour\nby agent\n");
    project.git("mv a.txt b.txt");
    project.you_write("b.txt", "one\ntwo\nthree\nfour\nby agent\nmine\n");
    project.commit("renamed");
    assert_eq!(project.note(), NoteOutcome::Written);
    project.expect("HEAD", "b.txt", &[(5, "agent s opus"), (6, ME)]);
}

#[test]
fn a_clone_without_a_log_reads_the_note() {
    let mut project = started("one\n");
    project.agent_turn("s", "opus", "a.txt", "one\nby agent\n");
    project.sandbox.prompt("s", "generate");
    project.sandbox.agent_runs("s", "generate", |sandbox| {
        sandbox.write("a.txt", "one\nby agent\ngenerated\n");
    });
    project.sandbox.turn_end_by("s", "opus");
    project.commit("work");
    project.note();
    let folder = tempfile::tempdir().unwrap();
    let clone = folder.path().join("clone");
    git(folder.path(), &format!("clone -q {} clone", project.sandbox.root().display()));
    git(&clone, &format!("fetch -q origin {AI_NOTES}:{AI_NOTES}"));
    std::fs::write(clone.join("a.txt"), "one\nby agent\nnot committed\ngenerated\n").unwrap();
    let found = lines_in(&clone.join("a.txt"));
    let agent = |evidence| (LineAuthor::Agent, LineSource::Note, evidence, Some("opus".to_owned()));
    let expected = [
        (LineAuthor::Other, LineSource::Git, None, None),
        agent(None),
        (LineAuthor::Unknown, LineSource::Log, None, None),
        agent(Some(Evidence::Window)),
    ];
    assert_eq!(found, expected);
}

type Line = (LineAuthor, LineSource, Option<Evidence>, Option<String>);

pub(super) fn lines_in(file: &Path) -> Vec<Line> {
    let found = committed_lines(file).unwrap();
    assert_eq!(found.problems, Vec::<String>::new());
    let line = |line: &takeback_core::history::AuthoredLine| {
        let writer = &line.writer;
        (writer.author, writer.source, writer.evidence, writer.model.clone())
    };
    found.lines.iter().map(line).collect()
}
