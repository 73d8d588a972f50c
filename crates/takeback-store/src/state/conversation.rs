//! Finds where a conversation can be cut: never between a tool call and its result. Pure.
//!
//! A model rejects a conversation in which a call has no result, or a result no call, so a cut
//! never separates a pair. Messages are plain JSON. The known shapes of calls and results are those
//! of Anthropic (`tool_use` and `tool_result` blocks), of OpenAI (`tool_calls` and `tool_call_id`;
//! `function_call` and `function_call_output` items) and of LangChain (as OpenAI's; also below
//! `data` or `kwargs`). Any other message is a plain one.

use std::collections::HashMap;

use serde_json::Value;

/// The number of messages to keep from the beginning: the most up to `n` that separate no pair. If
/// the first group is larger than `n`, that whole group: something is kept unless `n` is 0.
#[must_use]
pub fn keep_first(messages: &[Value], n: usize) -> usize {
    let clean = clean_cuts(messages);
    let n = n.min(messages.len());
    let mut fewer = (1..=n).rev().filter(|end| clean[*end]);
    let mut more = (n..=messages.len()).filter(|end| n > 0 && clean[*end]);
    fewer.next().or_else(|| more.next()).unwrap_or(0)
}

/// The index of the first message to keep at the end, so that at most `n` are kept and no pair is
/// separated. If the last group is larger than `n`, the start of that group: something is kept
/// unless `n` is 0.
#[must_use]
pub fn keep_last(messages: &[Value], n: usize) -> usize {
    let clean = clean_cuts(messages);
    let length = messages.len();
    let from = length - n.min(length);
    let mut fewer = (from..length).filter(|begin| clean[*begin]);
    let mut more = (0..=from).rev().filter(|begin| n > 0 && clean[*begin]);
    fewer.next().or_else(|| more.next()).unwrap_or(length)
}

/// For each position before, between and after the messages, whether a cut there separates no pair.
fn clean_cuts(messages: &[Value]) -> Vec<bool> {
    // Pairs that begin minus pairs that end at a position: the running sum counts the pairs that a
    // cut there would separate.
    let mut change = vec![0_i64; messages.len() + 2];
    let mut pair = |a: usize, b: usize| {
        change[a.min(b) + 1] += 1;
        change[a.max(b) + 1] -= 1;
    };
    // Some agents reuse ids. A result belongs to the last earlier call with its id, or else to the
    // first later one.
    let mut calls: HashMap<&str, usize> = HashMap::new();
    let mut early: HashMap<&str, Vec<usize>> = HashMap::new();
    for (position, message) in messages.iter().enumerate() {
        let ids = ids_of(message);
        for call in ids.calls {
            calls.insert(call, position);
            for result in early.remove(call).unwrap_or_default() {
                pair(result, position);
            }
        }
        for result in ids.results {
            match calls.get(result) {
                Some(call) => pair(*call, position),
                None => early.entry(result).or_default().push(position),
            }
        }
    }
    let mut open = 0;
    change
        .iter()
        .take(messages.len() + 1)
        .map(|change| {
            open += change;
            open == 0
        })
        .collect()
}

/// The ids of the calls and results in a message.
#[derive(Default)]
struct Ids<'a> {
    calls: Vec<&'a str>,
    results: Vec<&'a str>,
}

fn ids_of(message: &Value) -> Ids<'_> {
    let mut ids = Ids::default();
    // LangChain and the transcripts of some agents wrap messages in an envelope.
    let wrapped = ["data", "kwargs", "message"].into_iter().filter_map(|name| message.get(name));
    for message in std::iter::once(message).chain(wrapped) {
        let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        ids.calls.extend(calls.filter_map(|call| text(call, "id")));
        ids.results.extend(text(message, "tool_call_id"));
        match (text(message, "type"), text(message, "call_id")) {
            (Some("function_call"), Some(id)) => ids.calls.push(id),
            (Some("function_call_output"), Some(id)) => ids.results.push(id),
            _ => {}
        }
        let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
        for block in blocks {
            // Includes `server_tool_use` and `mcp_tool_use`; their results also have a
            // `tool_use_id`.
            if text(block, "type").is_some_and(|kind| kind.ends_with("tool_use")) {
                ids.calls.extend(text(block, "id"));
            }
            ids.results.extend(text(block, "tool_use_id"));
        }
    }
    ids
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plain() -> Value {
        json!({ "role": "user", "content": "hello" })
    }

    fn anthropic() -> Vec<Value> {
        vec![
            plain(),
            json!({ "role": "assistant", "content": [
                { "type": "text", "text": "both" },
                { "type": "tool_use", "id": "a", "name": "Read", "input": {} },
                { "type": "tool_use", "id": "b", "name": "Bash", "input": {} },
            ]}),
            json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "text" },
                { "type": "tool_result", "tool_use_id": "b", "content": [], "is_error": true },
            ]}),
            json!({ "role": "assistant", "content": [{ "type": "text", "text": "done" }] }),
        ]
    }

    fn openai() -> Vec<Value> {
        vec![
            plain(),
            json!({ "role": "assistant", "content": null, "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "read", "arguments": "{}" } },
                { "id": "b", "type": "function", "function": { "name": "bash", "arguments": "{}" } },
            ]}),
            json!({ "role": "tool", "tool_call_id": "a", "content": "text" }),
            json!({ "role": "tool", "tool_call_id": "b", "content": "text" }),
            json!({ "role": "assistant", "content": "done" }),
        ]
    }

    fn langchain() -> Vec<Value> {
        vec![
            json!({ "type": "human", "content": "hello" }),
            json!({ "type": "ai", "content": "", "tool_calls": [
                { "name": "read", "args": {}, "id": "a", "type": "tool_call" },
            ]}),
            json!({ "type": "tool", "content": "text", "tool_call_id": "a" }),
            json!({ "type": "ai", "data": { "content": "", "tool_calls": [{ "id": "b" }] } }),
            json!({ "type": "tool", "data": { "content": "", "tool_call_id": "b" } }),
        ]
    }

    fn items() -> Vec<Value> {
        vec![
            plain(),
            json!({ "type": "function_call", "call_id": "a", "id": "fc_1", "name": "read" }),
            json!({ "type": "function_call_output", "call_id": "a", "output": "text" }),
            plain(),
        ]
    }

    #[test]
    fn every_shape_is_known() {
        for (messages, first, last) in [
            (anthropic(), vec![0, 1, 1, 3, 4, 4], vec![4, 3, 3, 1, 0, 0]),
            (openai(), vec![0, 1, 1, 1, 4, 5, 5], vec![5, 4, 4, 4, 1, 0, 0]),
            (langchain(), vec![0, 1, 1, 3, 3, 5], vec![5, 3, 3, 3, 1, 0]),
            (items(), vec![0, 1, 1, 3, 4], vec![4, 3, 3, 1, 0]),
        ] {
            let kept = |keep: fn(&[Value], usize) -> usize, count: usize| -> Vec<usize> {
                (0..count).map(|n| keep(&messages, n)).collect()
            };
            assert_eq!(kept(keep_first, first.len()), first);
            assert_eq!(kept(keep_last, last.len()), last);
        }
    }

    #[test]
    fn the_first_and_last_group_are_kept_whole() {
        let messages = &openai()[1..4];
        for n in 1..=3 {
            assert_eq!((keep_first(messages, n), keep_last(messages, n)), (3, 0));
        }
        assert_eq!((keep_first(messages, 0), keep_last(messages, 0)), (0, 3));
        assert_eq!((keep_first(&[], 5), keep_last(&[], 5)), (0, 0));
    }

    #[test]
    fn a_message_without_a_partner_can_be_cut_off() {
        let mut messages = openai();
        // The result of b has not come yet; the result of a has.
        messages.remove(3);
        assert_eq!(keep_first(&messages, 2), 1);
        messages.remove(2);
        assert_eq!((keep_first(&messages, 2), keep_last(&messages, 1)), (2, 2));
        let alone = [plain(), json!({ "role": "tool", "tool_call_id": "z" }), plain()];
        assert_eq!((keep_first(&alone, 2), keep_last(&alone, 2)), (2, 1));
    }

    #[test]
    fn a_reused_id_is_another_pair() {
        let twice = [openai(), openai()].concat();
        assert_eq!((keep_first(&twice, 5), keep_last(&twice, 5)), (5, 5));
        assert_eq!((keep_first(&twice, 8), keep_last(&twice, 8)), (6, 4));
    }

    #[test]
    fn odd_messages_are_plain_ones() {
        let odd = [
            json!(null),
            json!("text"),
            json!([{ "tool_use_id": "a" }]),
            json!({ "content": { "type": "tool_use", "id": "a" } }),
            json!({ "content": [1, null, { "type": 7, "id": "a" }, { "type": "text", "id": "a" }] }),
            json!({ "tool_calls": "a" }),
            json!({ "tool_calls": [{ "id": 1 }, null], "tool_call_id": 1 }),
            json!({ "tool_call_id": "a" }),
        ];
        for n in 0..=odd.len() {
            assert_eq!((keep_first(&odd, n), keep_last(&odd, n)), (n, odd.len() - n));
        }
    }

    /// A random conversation and its pairs of messages.
    fn conversation(seed: u64) -> (Vec<Value>, Vec<(usize, usize)>) {
        let mut state = seed;
        let mut random = |below: usize| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            usize::try_from((mixed ^ (mixed >> 31)) % below as u64).unwrap()
        };
        let (mut messages, mut pairs, mut number) = (Vec::new(), Vec::new(), 0);
        while messages.len() < 5 + random(20) {
            let call = messages.len();
            let ids: Vec<_> = (0..random(4))
                .map(|_| {
                    number += 1;
                    format!("call {number}")
                })
                .collect();
            let shape = random(3);
            messages.push(match shape {
                _ if ids.is_empty() => plain(),
                0 => json!({ "role": "assistant", "content": ids.iter().map(|id| json!({ "type": "tool_use", "id": id })).collect::<Vec<_>>() }),
                1 => json!({ "role": "assistant", "tool_calls": ids.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>() }),
                _ => json!({ "type": "ai", "data": { "tool_calls": ids.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>() } }),
            });
            for id in ids {
                // Plain messages in between, calls without a result, and calls with two results.
                for _ in 0..[1, 1, 1, 1, 0, 2][random(6)] {
                    if random(5) == 0 {
                        messages.push(plain());
                    }
                    pairs.push((call, messages.len()));
                    messages.push(match shape {
                        0 => json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id }] }),
                        1 => json!({ "role": "tool", "tool_call_id": id }),
                        _ => json!({ "type": "tool", "data": { "tool_call_id": id } }),
                    });
                }
            }
        }
        (messages, pairs)
    }

    #[test]
    fn no_pair_is_ever_separated_and_no_more_is_dropped_than_must_be() {
        let mut larger = 0;
        for seed in 0..3000 {
            let (messages, pairs) = conversation(seed);
            let length = messages.len();
            let separates = |cut: usize| pairs.iter().any(|(a, b)| (*a < cut) != (*b < cut));
            for n in 0..=length + 1 {
                let (end, begin) = (keep_first(&messages, n), keep_last(&messages, n));
                assert!(!separates(end) && !separates(begin), "{seed}, {n}");
                let n = n.min(length);
                if end <= n {
                    assert!((end + 1..=n).all(separates), "{seed}: {end} of {n}");
                    assert!(end > 0 || n == 0, "{seed}: nothing of {n}");
                } else {
                    larger += 1;
                    assert!((1..end).all(separates), "{seed}: {end} of {n}");
                }
                let kept = length - begin;
                if kept <= n {
                    assert!((length - n..begin).all(separates), "{seed}: {kept} of {n}");
                    assert!(kept > 0 || n == 0, "{seed}: nothing of {n}");
                } else {
                    larger += 1;
                    assert!((begin + 1..length).all(separates), "{seed}: {kept} of {n}");
                }
            }
        }
        assert!(larger > 100, "{larger}");
    }
}
