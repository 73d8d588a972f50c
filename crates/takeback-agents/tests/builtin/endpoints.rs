//! Both styles of endpoint, against a scripted server.

use serde_json::json;
use takeback_agents::{ApiKey, ApiStyle, Decision, Endpoint, Permissions, ProxyAddress};
use takeback_testkit::model::{Answer, Block, ModelServer};

use super::*;

pub(crate) const STYLES: [ApiStyle; 2] = [ApiStyle::Anthropic, ApiStyle::OpenAi];

const KEY: &str = "sk-very-secret-0123456789";

pub(crate) fn endpoint(server: &ModelServer, style: ApiStyle) -> Endpoint {
    let base_url = match style {
        ApiStyle::Anthropic => server.url(),
        ApiStyle::OpenAi => format!("{}/v1", server.url()),
    };
    let mut endpoint = Endpoint::new(style, &base_url, "test-model", Some(ApiKey::new(KEY)));
    endpoint.first_wait = Duration::from_millis(1);
    endpoint
}

pub(crate) fn options(server: &ModelServer, style: ApiStyle) -> BuiltinOptions {
    let mut options = BuiltinOptions::new(ModelSource::Endpoint(endpoint(server, style)));
    options.permissions = Permissions::AllowAll;
    options
}

#[test]
fn tools_run_text_streams_and_the_history_is_right() {
    for style in STYLES {
        let server = ModelServer::start();
        let sandbox = Sandbox::new();
        let mut talk = ChatFixture::start(&sandbox, options(&server, style));
        let write = json!({"path": "é.txt", "content": "eins\n"});
        server.answer(Answer::Says(vec![
            Block::text("I write it."),
            Block::tool("write_file", write.clone()),
            Block::tool("shell", json!({"command": "cat é.txt; exit 3"})),
        ]));
        server.answer(Answer::says("That was all."));
        let events = talk.turn("Write a file.");
        assert_eq!(text(&events), "I write it.\nThat was all.\n", "{style:?}");
        let pieces = events.iter().filter(|event| matches!(event, ChatEvent::Text(_))).count();
        assert_eq!(pieces, 4, "as they came");
        assert_eq!(
            tools(&events),
            [
                called("Write é.txt", true, "created, 1 line"),
                called("$ cat é.txt; exit 3", false, "exit 3: eins"),
            ]
        );
        assert_eq!(ending(&events), &TurnResult::Done);
        assert_eq!(sandbox.read("é.txt"), "eins\n");
        talk.turn("Thanks.");

        let requests = server.requests();
        let asked = server.asked();
        assert_eq!(asked.len(), 3);
        let memory = talk.agent.memory();
        let id = |at: usize| memory["messages"][1]["content"][at]["id"].clone();
        let last = &asked[2]["messages"];
        match style {
            ApiStyle::Anthropic => {
                assert_eq!(requests[0].path, "/v1/messages");
                assert_eq!(requests[0].header("x-api-key"), Some(KEY));
                assert_eq!(requests[0].header("anthropic-version"), Some("2023-06-01"));
                let expected = json!([
                    {"role": "user", "content": [{"type": "text", "text": "Write a file."}]},
                    {"role": "assistant", "content": [
                        {"type": "text", "text": "I write it."},
                        {"type": "tool_use", "id": id(1), "name": "write_file", "input": write},
                        {"type": "tool_use", "id": id(2), "name": "shell",
                         "input": {"command": "cat é.txt; exit 3"}},
                    ]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": id(1),
                         "content": "é.txt was created.", "is_error": false},
                        {"type": "tool_result", "tool_use_id": id(2),
                         "content": "eins\n[exit code 3]", "is_error": true},
                    ]},
                    {"role": "assistant", "content": [{"type": "text", "text": "That was all."}]},
                    {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
                ]);
                assert_eq!(last, &expected);
            }
            ApiStyle::OpenAi => {
                assert_eq!(requests[0].path, "/v1/chat/completions");
                assert_eq!(requests[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
                let call = |at: usize, name: &str, input: &Value| {
                    let function = json!({"name": name, "arguments": input.to_string()});
                    json!({"id": id(at), "type": "function", "function": function})
                };
                let expected = json!([
                    {"role": "system", "content": asked[0]["messages"][0]["content"]},
                    {"role": "user", "content": "Write a file."},
                    {"role": "assistant", "content": "I write it.", "tool_calls": [
                        call(1, "write_file", &write),
                        call(2, "shell", &json!({"command": "cat é.txt; exit 3"})),
                    ]},
                    {"role": "tool", "tool_call_id": id(1), "content": "é.txt was created."},
                    {"role": "tool", "tool_call_id": id(2), "content": "eins\n[exit code 3]"},
                    {"role": "assistant", "content": "That was all."},
                    {"role": "user", "content": "Thanks."},
                ]);
                assert_eq!(last, &expected);
            }
        }
        for body in &asked {
            assert_eq!((&body["model"], &body["stream"]), (&json!("test-model"), &json!(true)));
            assert_eq!(body["tools"].as_array().unwrap().len(), 5);
        }
    }
}

#[test]
fn an_invalid_call_is_answered_and_the_turn_continues() {
    for style in STYLES {
        let server = ModelServer::start();
        let sandbox = Sandbox::new();
        let mut talk = ChatFixture::start(&sandbox, options(&server, style));
        server.answer(Answer::Says(vec![
            Block::tool("Write", json!({"file_path": "a"})),
            Block::tool("write_file", json!({"path": "a"})),
        ]));
        server.answer(Answer::says("I see."));
        let events = talk.turn("go");
        let known = "the tools are read_file, write_file, edit_file, list_files, shell";
        assert_eq!(
            tools(&events),
            [
                called("Write", false, &format!("there is no tool Write; {known}")),
                called(
                    "write_file",
                    false,
                    "the input of write_file is invalid: missing field `content`"
                ),
            ]
        );
        assert_eq!(ending(&events), &TurnResult::Done);
        assert_eq!(sandbox.tree().len(), 0);
    }
}

#[test]
fn edits_and_commands_wait_for_permission() {
    let server = ModelServer::start();
    let sandbox = Sandbox::new();
    let mut options = options(&server, ApiStyle::Anthropic);
    options.permissions = Permissions::Ask;
    let mut talk = ChatFixture::start(&sandbox, options);
    let write = |name: &str| Block::tool("write_file", json!({"path": name, "content": "x\n"}));
    let shell = |command: &str| Block::tool("shell", json!({"command": command}));
    server.answer(Answer::Says(vec![
        Block::tool("list_files", json!({})),
        write("a"),
        write("b"),
        write("c"),
        shell("touch d\ntouch e"),
    ]));
    server.answer(Answer::says("Fine."));
    talk.prompt("go");
    let mut asked = Vec::new();
    for decision in [Decision::Deny("not a".to_owned()), Decision::AllowAlways, Decision::Allow] {
        let events = talk.until(|event| matches!(event, ChatEvent::PermissionRequest(_)));
        let Some(ChatEvent::PermissionRequest(permission)) = events.last() else {
            panic!("{events:?}")
        };
        asked.push((permission.title.clone(), permission.detail.clone()));
        assert!(talk.agent.decide("something else", Decision::Allow).is_err());
        talk.agent.decide(&permission.request, decision).unwrap();
    }
    assert_eq!(ending(&talk.to_the_end()), &TurnResult::Done);
    let ask = |title: &str, detail: &str| (title.to_owned(), detail.to_owned());
    assert_eq!(
        asked,
        [ask("Write a", "x\n"), ask("Write b", "x\n"), ask("$ touch d …", "touch d\ntouch e")]
    );
    let there: Vec<bool> = ["a", "b", "c", "d", "e"].map(|name| sandbox.exists(name)).to_vec();
    assert_eq!(there, [false, true, true, true, true]);
    let results = &server.asked()[1]["messages"][2]["content"];
    assert_eq!(results[1]["content"], "the user refused this: not a");
}

#[test]
fn accepting_edits_does_not_allow_commands() {
    let server = ModelServer::start();
    let sandbox = Sandbox::new();
    let mut options = options(&server, ApiStyle::OpenAi);
    options.permissions = Permissions::AcceptEdits;
    let mut talk = ChatFixture::start(&sandbox, options);
    server.answer(Answer::Says(vec![
        Block::tool("write_file", json!({"path": "a", "content": ""})),
        Block::tool("shell", json!({"command": "touch b"})),
    ]));
    talk.prompt("go");
    let events = talk.until(|event| matches!(event, ChatEvent::PermissionRequest(_)));
    assert!(sandbox.exists("a"), "{events:?}");
    talk.agent.interrupt().unwrap();
    assert_eq!(ending(&talk.to_the_end()), &TurnResult::Interrupted);
    assert!(!sandbox.exists("b"));
}

#[test]
fn the_key_is_never_shown_or_saved() {
    for style in STYLES {
        let server = ModelServer::start();
        let sandbox = Sandbox::new();
        let options = options(&server, style);
        assert!(!format!("{options:?}").contains("secret"));
        let mut talk = ChatFixture::start(&sandbox, options);
        server.answer(Answer::refuses(401, "authentication_error", &format!("bad key {KEY}")));
        let mut all = talk.turn("one");
        server
            .answer(Answer::calls("shell", json!({"command": format!("echo {KEY}; echo {KEY}")})));
        server.answer(Answer::refuses(400, "x", &format!("{KEY} again")));
        all.extend(talk.turn("two"));
        let TurnResult::Failed(why) = ending(&all) else { panic!("{all:?}") };
        assert!(why.ends_with("answered 400: [key] again"), "{why}");
        // The model itself wrote the key in its command; the tool's result does not repeat it.
        let ends: Vec<&ChatEvent> =
            all.iter().filter(|event| !matches!(event, ChatEvent::Tool { .. })).collect();
        assert!(!format!("{ends:?}").contains("secret"), "{ends:?}");
        let results =
            talk.agent.memory()["messages"].to_string().replace(&format!("echo {KEY}"), "");
        assert!(!results.contains("secret"), "{results}");
    }
}

#[test]
fn each_text_is_a_paragraph() {
    let server = ModelServer::start();
    let sandbox = Sandbox::new();
    let mut talk = ChatFixture::start(&sandbox, options(&server, ApiStyle::Anthropic));
    server.answer(Answer::Says(vec![Block::text("One."), Block::text("Two.")]));
    assert_eq!(text(&talk.turn("go")), "One.\nTwo.\n");
}

#[test]
fn a_proxy_is_used_unless_the_host_is_an_exception() {
    for (except, expected) in [(None, Some("CONNECT")), (Some("example.invalid"), None)] {
        let server = ModelServer::start();
        let sandbox = Sandbox::new();
        let mut endpoint = Endpoint::new(ApiStyle::OpenAi, "http://example.invalid/v1", "m", None);
        endpoint.retries = 0;
        let except = except.map(str::to_owned);
        endpoint.proxy = Some(ProxyAddress { url: server.url(), except });
        let mut talk =
            ChatFixture::start(&sandbox, BuiltinOptions::new(ModelSource::Endpoint(endpoint)));
        assert!(matches!(ending(&talk.turn("go")), TurnResult::Failed(_)));
        let requests = server.requests();
        assert_eq!(requests.first().map(|request| request.method.as_str()), expected);
    }
}
