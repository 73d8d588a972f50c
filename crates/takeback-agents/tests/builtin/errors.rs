//! Errors of a model: one clear line, a failed step, and the next prompt works.

use serde_json::json;
use takeback_agents::{ApiStyle, Endpoint};
use takeback_testkit::model::{Answer, Block, ModelServer};

use super::endpoints::{STYLES, endpoint, options};
use super::*;

fn host(server: &ModelServer) -> String {
    server.url().replace("http://", "")
}

fn failed(events: &[ChatEvent]) -> &str {
    match ending(events) {
        TurnResult::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_error_is_one_line_and_the_session_continues() {
    for style in STYLES {
        let server = ModelServer::start();
        let sandbox = Sandbox::new();
        let mut talk = ChatFixture::start(&sandbox, options(&server, style));
        let host = host(&server);
        let half = vec![Block::text("half a word")];
        for (answer, expected) in [
            (
                Answer::refuses(401, "authentication_error", "invalid\nkey"),
                format!("{host} does not accept the key (401): invalid key"),
            ),
            (
                Answer::refuses(404, "x", "no such model"),
                format!("{host} answered 404: no such model"),
            ),
            (
                Answer::Refuses { status: 302, headers: vec![], body: String::new() },
                format!("{host} answered 302: no reason given"),
            ),
            (
                Answer::Raw("<html>hello</html>".to_owned()),
                format!("cannot parse the response of {host}: it is not an event stream"),
            ),
            (
                Answer::Raw("data: {\"type\":\n\n".to_owned()),
                format!(
                    "cannot parse the response of {host}: EOF while parsing a value at line 1 \
                     column 8"
                ),
            ),
            (
                Answer::Breaks { blocks: half.clone(), after: 3 },
                format!("the response of {host} broke off: the connection ended"),
            ),
        ] {
            let before = talk.agent.memory()["messages"].as_array().unwrap().len();
            let asked = server.asked().len();
            server.answer(answer);
            let events = talk.turn("go");
            assert_eq!(failed(&events), expected, "{style:?}");
            assert!(is_between_turns(&sandbox));
            assert_eq!(server.asked().len(), asked + 1, "it is not tried again");
            let messages = talk.agent.memory()["messages"].clone();
            assert_eq!(messages.as_array().unwrap().len(), before + 1, "only the prompt is kept");
            assert_eq!(step_names(&sandbox).last().unwrap(), "model (failed)");
            assert_eq!(steps(&sandbox).last().unwrap().error.as_deref(), Some(&*expected));
        }
        server.answer(Answer::says("Here I am."));
        let events = talk.turn("And now?");
        assert_eq!((text(&events).as_str(), ending(&events)), ("Here I am.\n", &TurnResult::Done));
    }
}

#[test]
fn temporary_errors_are_retried() {
    for style in STYLES {
        let server = ModelServer::start();
        let sandbox = Sandbox::new();
        let mut talk = ChatFixture::start(&sandbox, options(&server, style));
        let wait = vec![("retry-after".to_owned(), "0".to_owned())];
        server.answer(Answer::Refuses { status: 429, headers: wait, body: "slowly".to_owned() });
        server.answer(Answer::refuses(529, "overloaded_error", "too much"));
        server.answer(Answer::Breaks { blocks: vec![Block::text("never heard")], after: 1 });
        server.answer(Answer::says("At last."));
        let events = talk.turn("go");
        assert_eq!((text(&events).as_str(), ending(&events)), ("At last.\n", &TurnResult::Done));
        let notes: Vec<&str> = events
            .iter()
            .filter_map(|event| match event {
                ChatEvent::Note(note) => Some(note.as_str()),
                _ => None,
            })
            .collect();
        let host = host(&server);
        assert_eq!(
            notes,
            [
                format!("{host} answered 429: slowly; trying again in 0 s"),
                format!("{host} answered 529: too much; trying again in 0 s"),
                format!(
                    "the response of {host} broke off: the connection ended; trying again in 0 s"
                ),
            ]
        );

        for _ in 0..4 {
            server.answer(Answer::refuses(500, "api_error", "broken"));
        }
        let events = talk.turn("go");
        assert_eq!(failed(&events), format!("{host} answered 500: broken"));
        assert_eq!(ending(&talk.turn("go on")), &TurnResult::Done);
    }
}

#[test]
fn an_error_in_the_middle_of_a_stream_is_reported() {
    let server = ModelServer::start();
    let sandbox = Sandbox::new();
    let mut options = options(&server, ApiStyle::Anthropic);
    options.source =
        ModelSource::Endpoint(Endpoint { retries: 0, ..endpoint(&server, ApiStyle::Anthropic) });
    let mut talk = ChatFixture::start(&sandbox, options);
    let error =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    server.answer(Answer::Raw(format!("event: error\ndata: {error}\n\n")));
    let events = talk.turn("go");
    assert_eq!(failed(&events), format!("{} reported an error: Overloaded", host(&server)));
}

#[test]
fn an_unreachable_server_is_one_line_too() {
    let sandbox = Sandbox::new();
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut endpoint = Endpoint::new(ApiStyle::OpenAi, &format!("http://{address}/v1"), "m", None);
    endpoint.retries = 0;
    let mut talk =
        ChatFixture::start(&sandbox, BuiltinOptions::new(ModelSource::Endpoint(endpoint)));
    let events = talk.turn("hello?");
    let why = failed(&events);
    assert!(why.starts_with(&format!("cannot reach {address}: ")), "{why}");
    assert!(!why.contains('\n'));
    assert!(talk.agent.is_live());
}

#[test]
fn after_an_error_the_results_of_finished_calls_remain() {
    for style in STYLES {
        let server = ModelServer::start();
        let sandbox = Sandbox::new();
        let mut talk = ChatFixture::start(&sandbox, options(&server, style));
        server.answer(Answer::calls("write_file", json!({"path": "a", "content": "a"})));
        server.answer(Answer::refuses(400, "x", "no"));
        failed(&talk.turn("write"));
        assert_eq!(
            step_names(&sandbox),
            ["start", "prompt", "model", "tool write_file", "model (failed)"]
        );
        assert_eq!(ending(&talk.turn("go on")), &TurnResult::Done);
        let last = server.asked().pop().unwrap()["messages"].to_string();
        assert!(last.contains("a was created.") && last.contains("go on"), "{last}");
    }
}

#[test]
fn a_complete_answer_needs_no_end_of_stream_event() {
    let server = ModelServer::start();
    let sandbox = Sandbox::new();
    let mut talk = ChatFixture::start(&sandbox, options(&server, ApiStyle::OpenAi));
    let event = json!({"choices": [{"delta": {"content": "short"}, "finish_reason": "stop"}]});
    server.answer(Answer::Raw(format!("data: {event}\r\n\r\n")));
    let events = talk.turn("go");
    assert_eq!((text(&events).as_str(), ending(&events)), ("short\n", &TurnResult::Done));
}

#[test]
fn an_endless_turn_is_ended() {
    let server = ModelServer::start();
    let sandbox = Sandbox::new();
    let mut options = options(&server, ApiStyle::Anthropic);
    options.most_messages = 3;
    let mut talk = ChatFixture::start(&sandbox, options);
    for _ in 0..3 {
        server.answer(Answer::calls("list_files", json!({})));
    }
    assert_eq!(failed(&talk.turn("go")), "the turn was ended after 3 messages of the model");
    assert_eq!(ending(&talk.turn("go on")), &TurnResult::Done);
}
