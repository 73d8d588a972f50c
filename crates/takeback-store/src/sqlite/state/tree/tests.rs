use std::collections::HashMap;

use serde_json::{Value, json};

use super::pieces::{COMPRESSED_FROM, pack};
use super::*;
use crate::blob::Digest;

/// Nodes in memory.
#[derive(Default)]
struct Nodes {
    numbers: HashMap<Digest, u64>,
    bodies: Vec<(Digest, Vec<u8>)>,
    /// Bytes added by the last value.
    added: usize,
}

impl Nodes {
    fn keep(&mut self, new: NewNodes) {
        self.added = 0;
        for node in new.nodes {
            let part = node.part.clone();
            let number = *self.numbers.entry(part.digest).or_insert_with(|| {
                let body = node.body.packed();
                self.added += body.len();
                self.bodies.push((part.digest, body));
                self.bodies.len() as u64
            });
            part.set_number(number);
        }
    }

    /// Saves `value` over `kept` and returns its bytes and its digest.
    fn save(&mut self, kept: &mut SavedValue, value: &Value) -> (Vec<u8>, Digest) {
        let mut nodes = NewNodes::default();
        kept.update(value, &mut Path::root("state"), &mut nodes).unwrap();
        self.keep(nodes);
        let mut pieces = Pieces::default();
        kept.write(&mut pieces);
        (pieces.numbered(), pieces.digest())
    }

    fn read(&mut self, body: &[u8]) -> Result<(Value, Digest), TreeError> {
        let mut hasher = blake3::Hasher::new();
        let mut values = read(body, 1, &mut hasher, self)?;
        Ok((values.pop().unwrap(), Digest(*hasher.finalize().as_bytes())))
    }
}

impl Fetch for Nodes {
    type Error = TreeError;

    fn node(&mut self, number: u64) -> Result<Node, TreeError> {
        let at = usize::try_from(number).unwrap().checked_sub(1).ok_or(TreeError::Bytes("none"))?;
        let (digest, packed) = self.bodies.get(at).ok_or(TreeError::Bytes("none"))?;
        Node::unpacked(*digest, packed)
    }
}

/// Pseudo-random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn text(&mut self, length: u64) -> String {
        (0..length).map(|_| char::from(b'a' + self.roll(26) as u8)).collect()
    }

    fn value(&mut self, depth: u64) -> Value {
        match self.roll(if depth == 0 { 7 } else { 10 }) {
            0 => Value::Null,
            1 => json!(self.roll(2) == 0),
            2 => json!(self.roll(u64::MAX)),
            3 => json!(-(self.roll(1 << 62) as i64) - 1),
            4 => json!(self.roll(1 << 50) as f64 / 7.0),
            5 => {
                let length = self.roll(40);
                json!(self.text(length))
            }
            6 => {
                let length = self.roll(4000);
                json!(self.text(length))
            }
            7 | 8 => {
                let count = self.roll(60);
                (0..count).map(|_| self.value(depth - 1)).collect()
            }
            _ => {
                let count = self.roll(40);
                let items = (0..count).map(|_| {
                    let length = 1 + self.roll(3);
                    (self.text(length), self.value(depth - 1))
                });
                Value::Object(items.collect())
            }
        }
    }

    /// Changes something somewhere.
    fn change(&mut self, value: &mut Value) {
        match value {
            Value::Array(items) if !items.is_empty() && self.roll(4) > 0 => {
                let at = self.roll(items.len() as u64) as usize;
                match self.roll(5) {
                    0 => drop(items.remove(at)),
                    1 => items.insert(at, json!("inserted")),
                    2 => items.push(json!(self.text(2000))),
                    _ => self.change(&mut items[at]),
                }
            }
            Value::Object(items) if !items.is_empty() && self.roll(4) > 0 => {
                let at = self.roll(items.len() as u64) as usize;
                let key = items.keys().nth(at).unwrap().clone();
                match self.roll(4) {
                    0 => drop(items.remove(&key)),
                    1 => drop(items.insert(self.text(4), json!(1))),
                    _ => self.change(&mut items[&key]),
                }
            }
            other => *other = self.value(1),
        }
    }
}

#[test]
fn every_value_reads_back_and_its_digest_depends_on_nothing_else() {
    let mut dice = Dice(7);
    for _ in 0..60 {
        let mut nodes = Nodes::default();
        let mut kept = SavedValue::default();
        let mut value = dice.value(3);
        for _ in 0..8 {
            let (body, digest) = nodes.save(&mut kept, &value);
            assert_eq!(nodes.read(&body), Ok((value.clone(), digest)));
            let (_, anew) = Nodes::default().save(&mut SavedValue::default(), &value);
            assert_eq!(anew, digest);
            dice.change(&mut value);
        }
    }
}

#[test]
fn long_and_odd_values_read_back() {
    let mut dice = Dice(1);
    let mut nodes = Nodes::default();
    let deep = (0..120).fold(json!("x".repeat(3000)), |inner, _| json!([inner]));
    let wide: Value = (0..40_000).collect();
    let map: Value = Value::Object((0..5_000).map(|n| (format!("key {n}"), json!(n))).collect());
    for value in [
        json!(dice.text(1 << 20)),
        json!("ü".repeat(100_000)),
        json!("\0".repeat(70_000)),
        json!([u64::MAX, i64::MIN, i64::MAX, -1, 0, 1e308, -0.0, 5e-324]),
        json!({"": {"": []}, "\0": null}),
        deep,
        wide,
        map,
    ] {
        let (body, digest) = nodes.save(&mut SavedValue::default(), &value);
        assert_eq!(nodes.read(&body), Ok((value, digest)));
    }
}

#[test]
fn a_value_that_is_nested_too_deep_is_refused() {
    let deep = (0..140).fold(json!(1), |inner, _| json!({ "a/b": [inner] }));
    let mut nodes = NewNodes::default();
    let error =
        SavedValue::default().update(&deep, &mut Path::root("state"), &mut nodes).unwrap_err();
    let StateError::Unserialisable { path, why } = error else { panic!("{error}") };
    assert!(path.starts_with("/state/a~1b/0/a~1b/0/"), "{path}");
    assert_eq!(why, "it is nested too deep");
}

#[test]
fn a_conversation_costs_what_is_added_to_it() {
    let mut dice = Dice(3);
    let mut nodes = Nodes::default();
    let mut kept = SavedValue::default();
    let mut messages = Vec::new();
    let mut bodies = 0;
    for step in 0..1200 {
        messages.push(json!({ "role": "user", "content": dice.text(2000) }));
        let value = json!({ "messages": messages });
        let (body, _) = nodes.save(&mut kept, &value);
        assert!(nodes.added < 3000, "step {step}: {} bytes", nodes.added);
        assert!(body.len() < INLINE + 100, "step {step}: {} bytes", body.len());
        bodies += body.len();
    }
    assert!(bodies < 1200 * 150, "{bodies} bytes");
}

#[test]
fn short_messages_do_not_cost_their_whole_run_each() {
    let mut dice = Dice(3);
    let mut nodes = Nodes::default();
    let mut kept = SavedValue::default();
    let mut messages = Vec::new();
    let mut added = 0;
    for _ in 0..1000 {
        messages.push(json!({ "role": "user", "content": dice.text(200) }));
        nodes.save(&mut kept, &json!({ "messages": messages }));
        added += nodes.added;
    }
    assert!(added < 1000 * 200 * 5, "{added} bytes");
}

#[test]
fn one_place_in_a_large_text_costs_few_chunks() {
    let mut text = Dice(3).text(1 << 20);
    let mut nodes = Nodes::default();
    let mut kept = SavedValue::default();
    nodes.save(&mut kept, &json!(text));
    text.insert_str(1 << 19, "inserted");
    nodes.save(&mut kept, &json!(text));
    assert!(nodes.added < 3 * CHUNK_MAX, "{} bytes", nodes.added);
}

#[test]
fn no_flipped_bit_and_no_lost_byte_goes_unnoticed() {
    let mut dice = Dice(5);
    let messages: Value =
        (0..200).map(|_| json!({ "role": "user", "content": dice.text(1700) })).collect();
    let mut nodes = Nodes::default();
    let (body, digest) = nodes.save(&mut SavedValue::default(), &messages);
    let right = Ok((messages, digest));
    assert_eq!(nodes.read(&body), right);
    for at in (0..nodes.bodies.len()).step_by(9) {
        let whole = nodes.bodies[at].1.clone();
        for byte in (0..whole.len()).step_by(97) {
            nodes.bodies[at].1[byte] ^= 1 << (byte % 8);
            assert_ne!(nodes.read(&body), right, "node {at}, byte {byte}");
            nodes.bodies[at].1.truncate(byte);
            assert_ne!(nodes.read(&body), right, "node {at}, cut at {byte}");
            nodes.bodies[at].1 = whole.clone();
        }
    }
    for byte in 0..body.len() {
        let mut body = body.clone();
        body[byte] ^= 1;
        assert_ne!(nodes.read(&body), right, "byte {byte}");
    }
    assert_eq!(nodes.read(&body), right);
}

#[test]
fn a_node_that_refers_to_itself_is_noticed() {
    let mut nodes = Nodes::default();
    nodes.bodies.push((Digest([0; 32]), pack(&[1, LIST_TREE, 0, 1, 1], COMPRESSED_FROM)));
    let found = nodes.read(&[LIST_TREE, 0, 1, 1]);
    assert_eq!(found, Err(TreeError::Order { number: 1, below: 1 }));
}

#[test]
fn every_node_of_a_value_is_visited() {
    let mut dice = Dice(11);
    for _ in 0..40 {
        let mut nodes = Nodes::default();
        let (body, _) = nodes.save(&mut SavedValue::default(), &dice.value(3));
        let mut met = std::collections::HashSet::new();
        parts_of(&body, &mut nodes, &mut |number, _| met.insert(number)).unwrap();
        assert_eq!(met.len(), nodes.bodies.len());
    }
}

#[test]
fn the_bytes_are_those_of_the_documented_format() {
    let mut nodes = Nodes::default();
    let value = json!({"b": [null, false, true, 300, -2, "é"], "a": 0.5});
    let (body, digest) = nodes.save(&mut SavedValue::default(), &value);
    let mut expected = vec![MAP, 2, 1, b'a', FLOAT];
    expected.extend_from_slice(&0.5_f64.to_le_bytes());
    expected.extend([1, b'b', LIST, 6, NULL, FALSE, TRUE, UNSIGNED, 0xac, 2, NEGATIVE, 2]);
    expected.extend([TEXT, 2, 0xc3, 0xa9]);
    assert_eq!(body, expected);
    assert_eq!(digest, Digest::of(&expected));
    let (body, _) = nodes.save(&mut SavedValue::default(), &json!("x".repeat(2000)));
    assert_eq!(body, [TEXT_TREE, 0, 1, 1]);
    assert_eq!(nodes.bodies[0].0, Digest::of("x".repeat(2000).as_bytes()));
}
