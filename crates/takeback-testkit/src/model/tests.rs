//! Requests to a real server.

use std::io::{Read as _, Write as _};

use super::*;

fn ask(server: &ModelServer, method: &str, path: &str, body: &Value) -> String {
    let body = body.to_string();
    send(server, &format!("{method} {path}"), &format!("Content-Length: {}", body.len()), &body)
}

fn send(server: &ModelServer, request: &str, header: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let sent = format!("{request} HTTP/1.1\r\n{header}\r\n\r\n{body}");
    stream.write_all(sent.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn events(answer: &str) -> Vec<Value> {
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|event| serde_json::from_str(event).ok()).collect()
}

fn whole(answer: &str) -> Value {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

const PROMPT: &str = r#"<<LAB [["Now:",{"id":"c","name":"Write","input":{"a":"b"}}]] LAB>>"#;

#[test]
fn both_routes_with_messages_say_the_same_whole_and_as_a_stream() {
    let server = ModelServer::start();
    for path in ["/v1/messages", "/v1/chat/completions"] {
        let mut body = json!({"messages": [{"role": "user", "content": PROMPT}]});
        let whole = ask(&server, "POST", path, &body);
        assert!(whole.contains("Now:") && whole.contains("Write"), "{whole}");
        body["stream"] = json!(true);
        let events = ask(&server, "POST", path, &body);
        assert!(events.contains("event-stream") && events.contains("Write"), "{events}");
        assert_eq!(server.asked().last(), Some(&body));
    }
    let head = ask(&server, "HEAD", "/", &Value::Null);
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    let count = ask(&server, "POST", "/v1/messages/count_tokens", &json!({}));
    assert!(count.ends_with(r#"{"input_tokens":100}"#), "{count}");
    assert_eq!((server.requests().len(), server.asked().len()), (6, 4));
}

#[test]
fn responses_are_items_whole_and_as_events() {
    let server = ModelServer::start();
    let prompt = r#"<<LAB [["Now:",{"id":"c","name":"run","input":{"a":"b"}},
        {"id":"d","name":"patch","input":"*** Begin"}], "end"] LAB>>"#;
    let content = json!([{"type": "input_text", "text": prompt}]);
    let others = json!([{"type": "namespace", "name": "shell", "tools": [{"name": "run"}]}]);
    let mut body = json!({
        "model": "m", "tools": [{"type": "custom", "name": "patch"}],
        "input": [
            {"type": "additional_tools", "role": "developer", "tools": others},
            {"type": "message", "role": "user", "content": content},
        ],
    });
    let output = |number: usize| {
        let id = |kind: &str, at: usize| format!("{kind}_{:022}", number + at);
        let content = json!([{"type": "output_text", "text": "Now:", "annotations": []}]);
        json!([
            {"type": "message", "id": id("msg", 1), "role": "assistant", "status": "completed",
             "content": content},
            {"type": "function_call", "id": id("fc", 2), "call_id": "c", "name": "run",
             "namespace": "shell", "status": "completed", "arguments": r#"{"a":"b"}"#},
            {"type": "custom_tool_call", "id": id("ctc", 3), "call_id": "d", "name": "patch",
             "status": "completed", "input": "*** Begin"},
        ])
    };
    let whole = whole(&ask(&server, "POST", "/v1/responses", &body));
    assert_eq!((&whole["output"], &whole["status"]), (&output(0), &json!("completed")));

    body["stream"] = json!(true);
    let streamed = events(&ask(&server, "POST", "/v1/responses", &body));
    let kinds: Vec<&str> = streamed.iter().filter_map(|event| event["type"].as_str()).collect();
    let item = |delta| ["response.output_item.added", delta, delta, "response.output_item.done"];
    let mut expected = vec!["response.created"];
    expected.extend(item("response.output_text.delta"));
    expected.extend(item("response.function_call_arguments.delta"));
    expected.extend(item("response.custom_tool_call_input.delta"));
    expected.push("response.completed");
    assert_eq!(kinds, expected);
    let done = streamed.iter().filter(|event| event["type"] == "response.output_item.done");
    let done: Vec<Value> = done.map(|event| event["item"].clone()).collect();
    assert_eq!(json!(done), output(4));
    assert_eq!(streamed.last().unwrap()["response"]["output"], output(4));

    let said = body["input"].as_array_mut().unwrap();
    said.extend(done);
    said.push(json!({"type": "function_call_output", "call_id": "c", "output": ""}));
    said.push(json!({"type": "custom_tool_call_output", "call_id": "d", "output": ""}));
    let last = events(&ask(&server, "POST", "/v1/responses", &body));
    let last = &last.last().unwrap()["response"]["output"];
    assert_eq!((&last[0]["content"][0]["text"], &last[1]), (&json!("end"), &Value::Null));
}

#[test]
fn gemini_gets_parts_whole_and_as_pieces() {
    let server = ModelServer::start();
    let model = "/v1beta/models/gemini-m";
    let mut body = json!({"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]});
    let call = json!({"functionCall": {"id": "c", "name": "Write", "args": {"a": "b"}}});
    let said = whole(&ask(&server, "POST", &format!("{model}:generateContent"), &body));
    let content = json!({"role": "model", "parts": [{"text": "Now:"}, call]});
    let candidate = json!([{"index": 0, "finishReason": "STOP", "content": content}]);
    assert_eq!(said["candidates"], candidate);

    let streaming = format!("{model}:streamGenerateContent?alt=sse");
    let pieces = events(&ask(&server, "POST", &streaming, &body));
    let parts: Vec<Value> = pieces
        .iter()
        .map(|piece| {
            let candidate = &piece["candidates"][0];
            json!([candidate["content"]["parts"], candidate["finishReason"]])
        })
        .collect();
    let expected = json!([
        [[{"text": "No"}], null], [[{"text": "w:"}], null], [[call], "STOP"],
    ]);
    assert_eq!(json!(parts), expected);

    let contents = body["contents"].as_array_mut().unwrap();
    contents.push(content);
    contents.push(json!({"role": "user", "parts": [{"functionResponse": {}}]}));
    let last = events(&ask(&server, "POST", &streaming, &body));
    assert_eq!(last.last().unwrap()["candidates"][0]["content"]["parts"], json!([{"text": "ne"}]));
}

#[test]
fn a_routing_decision_uses_no_step_and_no_answer() {
    let server = ModelServer::start();
    server.answer(Answer::says("queued"));
    let path = "/v1beta/models/m:generateContent";
    let mut body = json!({"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]});
    body["generationConfig"] = json!({"responseMimeType": "application/json"});
    let decided = whole(&ask(&server, "POST", path, &body));
    let decided = decided["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(decided).unwrap()["model_choice"], "flash");
    let streamed = ask(&server, "POST", "/v1beta/models/m:streamGenerateContent", &body);
    assert_eq!(events(&streamed).len(), 1);
    let counted = whole(&ask(&server, "POST", "/v1beta/models/m:countTokens", &body));
    assert_eq!((counted, server.asked().len()), (json!({"totalTokens": 100}), 0));
    body["generationConfig"] = json!({});
    assert!(ask(&server, "POST", path, &body).contains("queued"));
}

#[test]
fn a_body_may_come_in_chunks() {
    let server = ModelServer::start();
    let body = json!({"messages": [{"role": "user", "content": PROMPT}]}).to_string();
    let (first, second) = body.split_at(20);
    let (more, less) = (first.len(), second.len());
    let chunks = format!("{more:x}\r\n{first}\r\n{less:X};note=1\r\n{second}\r\n0\r\n\r\n");
    let said = send(&server, "POST /v1/messages", "Transfer-Encoding: Chunked", &chunks);
    assert_eq!(whole(&said)["content"][1]["name"], "Write");
}

#[test]
fn queued_answers_come_first() {
    let server = ModelServer::start();
    server.answer(Answer::refuses(529, "overloaded_error", "later"));
    server.answer(Answer::Breaks { blocks: vec![Block::text("half")], after: 3 });
    let body = json!({"stream": true, "messages": []});
    let refused = ask(&server, "POST", "/v1/messages", &body);
    assert!(refused.starts_with("HTTP/1.1 529 ") && refused.contains("later"), "{refused}");
    let broken = ask(&server, "POST", "/v1/messages", &body);
    assert!(broken.contains("\"ha\"") && !broken.contains("\"lf\""), "{broken}");
    assert!(ask(&server, "POST", "/v1/messages", &body).contains("ok"));
}
