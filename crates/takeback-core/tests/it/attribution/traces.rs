//! Agent Trace records.

use serde_json::{Value, json};
use takeback_core::attribution::{TraceReport, TraceRequest, traces};
use takeback_core::exchange::IgnoredPaths;
use takeback_core::history::{LineAuthor, LineSource};
use takeback_store::{Evidence, SessionId};

use super::notes::lines_in;
use super::repository::{Project, git};

impl Project {
    fn traces(&self, session: Option<&str>) -> TraceReport {
        let session = session.map(SessionId::from);
        let request = TraceRequest {
            session: session.as_ref(),
            point: None,
            ignored: IgnoredPaths::LeaveOut,
            written_at: "2026-11-19T20:00:00Z",
        };
        let report = traces(&self.sandbox.workspace, &request).unwrap();
        assert_eq!((&report.not_followed[..], report.problems.len()), (&[][..], 0));
        report.records.iter().for_each(is_valid);
        report
    }
}

/// What the published schema asks of a record.
fn is_valid(record: &takeback_core::attribution::AgentTrace) {
    let record = serde_json::to_value(record).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{record:#}")).to_owned();
    assert_eq!(text(&record["version"]), "0.1.0");
    let id = text(&record["id"]);
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    assert_eq!((lengths, &id[14..15]), (vec![8, 4, 4, 4, 12], "4"), "{id}");
    assert!(text(&record["timestamp"]).ends_with('Z'));
    if let Some(vcs) = record.get("vcs") {
        assert_eq!((text(&vcs["type"]).as_str(), text(&vcs["revision"]).len()), ("git", 40));
    }
    for file in record["files"].as_array().unwrap() {
        text(&file["path"]);
        for conversation in file["conversations"].as_array().unwrap() {
            let kind = text(&conversation["contributor"]["type"]);
            assert!(["human", "ai", "mixed", "unknown"].contains(&kind.as_str()), "{kind}");
            assert!(conversation.get("url").is_none());
            for range in conversation["ranges"].as_array().unwrap() {
                let line = |name: &str| range[name].as_u64().unwrap();
                assert!(line("start_line") >= 1 && line("end_line") >= line("start_line"));
            }
        }
    }
    assert!(record["metadata"].is_object());
}

/// Revision, path, contributor, model and ranges of everything that the records say.
fn said(report: &TraceReport) -> Vec<Value> {
    let mut all = Vec::new();
    for record in &report.records {
        for file in &record.files {
            for conversation in &file.conversations {
                let contributor = conversation.contributor.as_ref().unwrap();
                let ranges: Vec<_> =
                    conversation.ranges.iter().map(|r| (r.start_line, r.end_line)).collect();
                let revision = record.vcs.as_ref().map(|vcs| vcs.revision.clone());
                all.push(json!([
                    revision,
                    file.path,
                    contributor.kind,
                    contributor.model_id,
                    ranges
                ]));
            }
        }
    }
    all
}

#[test]
fn each_line_is_in_the_record_of_the_commit_that_added_it() {
    let mut project = Project::new("one\n");
    project.sandbox.start("s");
    project.agent_turn("s", "claude-opus-5-5", "a.txt", "one\ntwo\nthree\n");
    project.commit("first");
    let first = project.git("rev-parse HEAD").trim().to_owned();
    project.you_write("a.txt", "zero\none\ntwo\nthree\n");
    project.commit("second");
    let second = project.git("rev-parse HEAD").trim().to_owned();
    project.agent_turn("s", "gpt-6", "a.txt", "zero\none\nnew\ntwo\nthree\n");
    project.agent_turn("s", "other", "b.txt", "only here\n");
    let report = project.traces(None);
    let mut expected = vec![
        // Their numbers in that commit, not now.
        json!([first, "a.txt", "ai", "anthropic/claude-opus-5-5", [[2, 3]]]),
        json!([second, "a.txt", "human", null, [[1, 1]]]),
        json!([null, "a.txt", "ai", "openai/gpt-6", [[3, 3]]]),
        json!([null, "b.txt", "ai", "other", [[1, 1]]]),
    ];
    // The commits are of one second.
    if report.records[0].vcs.as_ref().is_some_and(|vcs| vcs.revision == second) {
        expected.swap(0, 1);
    }
    assert_eq!(said(&report), expected);
    assert_eq!((report.files, report.ai, report.human, report.unknown), (2, 4, 1, 0));
    let of_yours = serde_json::to_value(
        &report.records
            [usize::from(report.records[1].vcs.as_ref().is_some_and(|vcs| vcs.revision == second))]
        .metadata,
    )
    .unwrap();
    assert_eq!(of_yours["io.github.takeback"]["lines"], json!([]));
    project.sandbox.start("t");
    assert_eq!(said(&project.traces(Some("t"))), Vec::<Value>::new());
    assert_eq!(project.traces(Some("s")).human, 0);
}

#[test]
fn doubt_is_in_the_metadata_and_unknown_stays_unknown() {
    let mut project = Project::new("one\n");
    project.sandbox.start("s");
    project.sandbox.prompt("s", "generate");
    project.sandbox.agent_runs("s", "generate", |sandbox| sandbox.write("a.txt", "one\ntwo\n"));
    // It never ends.
    project.sandbox.before_shell("s", "serve");
    project.you_write("c.txt", "perhaps mine\n");
    let report = project.traces(None);
    assert_eq!((report.ai, report.doubtful, report.unknown), (1, 1, 1));
    let expected = [
        json!([null, "a.txt", "ai", null, [[2, 2]]]),
        json!([null, "c.txt", "unknown", null, [[1, 1]]]),
    ];
    assert_eq!(said(&report), expected);
    let metadata = serde_json::to_value(&report.records[0].metadata).unwrap();
    let lines = &metadata["io.github.takeback"]["lines"];
    assert_eq!(lines[0]["doubtful"], true);
    assert_eq!((&lines[0]["session"], &lines[0]["evidence"]), (&json!("s"), &json!("window")));
    assert_eq!(lines[1]["evidence"], "openWindow");
}

#[test]
fn a_clone_without_a_log_reads_the_records() {
    let mut project = Project::new("one\n");
    project.sandbox.start("s");
    project.agent_turn("s", "claude-opus-5-5", "a.txt", "one\nby agent\n");
    project.sandbox.prompt("s", "generate");
    project.sandbox.agent_runs("s", "generate", |sandbox| {
        sandbox.write("a.txt", "one\nby agent\ngenerated\n");
    });
    project.sandbox.turn_end("s");
    project.commit("work");
    let records = project.traces(None).records;
    let lines: Vec<String> =
        records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let clone = folder.path().join("clone");
    git(folder.path(), &format!("clone -q {} clone", project.sandbox.root().display()));
    std::fs::create_dir(clone.join(".agent-trace")).unwrap();
    std::fs::write(clone.join(".agent-trace/traces.jsonl"), lines.join("\n")).unwrap();
    let agent = |evidence| {
        let model = Some("anthropic/claude-opus-5-5".to_owned());
        (LineAuthor::Agent, LineSource::Trace, evidence, model)
    };
    let expected = [
        (LineAuthor::Other, LineSource::Git, None, None),
        agent(None),
        agent(Some(Evidence::Window)),
    ];
    assert_eq!(lines_in(&clone.join("a.txt")), expected);
}
