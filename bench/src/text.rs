//! Contents for files and states, the same in every run: random bytes, text that compresses like source
//! code, prose that compresses like English, and text that does not compress.

use serde_json::{Value, json};

use crate::Result;

/// Bytes that do not compress.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Text that is never the same twice, and compresses like source code.
pub(crate) struct Code(Random);

impl Code {
    pub(crate) fn new() -> Self {
        Self(Random(1))
    }

    pub(crate) fn text(&mut self, length: usize) -> Vec<u8> {
        const WORDS: [&str; 16] = [
            "let ", "self.", "fn ", "match ", "return ", "value", "index", "store", "(", ")",
            " = ", ";\n    ", ".map(", "Some(", "&mut ", "entry",
        ];
        let mut text = String::with_capacity(length + 64);
        while text.len() < length {
            text.extend((0..6).map(|_| WORDS[self.0.below(16)]));
            text.push_str(&format!("{:x}", self.0.below(0x1_0000)));
        }
        text.truncate(length);
        text.into_bytes()
    }
}

/// Which text a state contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Prose,
    /// Base64 of random bytes: the worst case.
    Random,
}

pub(crate) struct Writer {
    kind: TextKind,
    random: Random,
    words: Vec<String>,
    /// For each word, its frequency plus those of the words before it.
    weights: Vec<f64>,
}

/// The most frequent words of English, in order; the rest is made of syllables.
const COMMON: &str = "the of and to a in that is was he for it with as his on be at by i this had \
    not are but from or have an they which one you were all her she there would their we him been \
    has when who will no more if out so up said what its about than into them can only other time \
    new some could these two may first then do any like my now over such our man me even most made \
    after also did many must before back through years where much your way well down should \
    because each just those people how too little state good very make world still see own men \
    work long get here between both life being under never day same another know while last might \
    us great old year off come since against go came right used take three";
const SYLLABLES: [&str; 32] = [
    "re", "con", "ti", "al", "in", "er", "de", "com", "pro", "ly", "ment", "ing", "ex", "tion",
    "per", "ble", "ter", "ver", "ac", "is", "en", "ar", "po", "mi", "su", "ca", "lo", "ta", "ne",
    "ve", "ous", "ness",
];
const VOCABULARY: usize = 6000;
/// Words that a piece of text repeats.
const TOPIC: usize = 14;

impl Writer {
    pub(crate) fn new(kind: TextKind, seed: u64) -> Self {
        let mut random = Random(0x7a6b);
        let mut words: Vec<String> = COMMON.split_whitespace().map(str::to_owned).collect();
        while words.len() < VOCABULARY {
            let syllables = 2 + random.below(3);
            words.push((0..syllables).map(|_| SYLLABLES[random.below(32)]).collect());
        }
        let mut sum = 0.0;
        let weights = (0..u32::try_from(words.len()).unwrap_or(u32::MAX))
            .map(|rank| {
                sum += 1.0 / (f64::from(rank) + 2.7);
                sum
            })
            .collect();
        Self { kind, random: Random(seed), words, weights }
    }

    /// ASCII of exactly this length.
    pub(crate) fn text(&mut self, length: usize) -> String {
        let mut text = match self.kind {
            TextKind::Prose => self.prose(length),
            TextKind::Random => {
                const LETTERS: &[u8; 64] =
                    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
                (0..length).map(|_| char::from(LETTERS[self.random.below(64)])).collect()
            }
        };
        text.truncate(length);
        text
    }

    /// A message of a conversation, of this many bytes as JSON with the comma behind it.
    pub(crate) fn message(&mut self, number: usize, length: usize) -> Result<Value> {
        let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
        let around = serde_json::to_string(&json!({"role": role, "content": ""}))?.len() + 1;
        Ok(json!({"role": role, "content": self.text(length - around)}))
    }

    fn prose(&mut self, length: usize) -> String {
        let mut text = String::with_capacity(length + 64);
        let topic: Vec<usize> = (0..TOPIC).map(|_| self.pick()).collect();
        while text.len() < length {
            for at in 0..7 + self.random.below(14) {
                let rare = self.random.below(100) < 25;
                let word = if rare { topic[self.random.below(TOPIC)] } else { self.pick() };
                if at > 0 {
                    text.push_str(if self.random.below(14) == 0 { ", " } else { " " });
                    text.push_str(&self.words[word]);
                } else {
                    let word = &self.words[word];
                    text.push_str(&word[..1].to_uppercase());
                    text.push_str(&word[1..]);
                }
            }
            text.push_str(". ");
        }
        text
    }

    /// A word, the frequent ones more often.
    fn pick(&mut self) -> usize {
        let all = self.weights.last().copied().unwrap_or_default();
        let at = self.random.unit() * all;
        self.weights.partition_point(|sum| *sum <= at).min(self.words.len() - 1)
    }
}

/// How many times smaller zstd makes it at level 3.
pub(crate) fn compression(pieces: &[impl AsRef<[u8]>]) -> Result<f64> {
    let (mut plain, mut compressed) = (0, 0);
    for piece in pieces {
        plain += piece.as_ref().len();
        compressed += zstd::bulk::compress(piece.as_ref(), 3)?.len();
    }
    #[expect(clippy::cast_precision_loss, reason = "some megabytes of text")]
    Ok(plain as f64 / compressed as f64)
}

/// The generator SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or_default() % end
    }

    fn unit(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap_or_default()) / 4_294_967_296.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_compresses_like_english_and_random_text_like_base64() {
        let pieces = |kind| {
            let mut writer = Writer::new(kind, 1);
            (0..200).map(|_| writer.text(2048)).collect::<Vec<_>>()
        };
        // English at this level: 2.06 to 2.12 by pieces of 2 KB, 2.75 as a whole.
        let prose = pieces(TextKind::Prose);
        let (alone, whole) =
            (compression(&prose).unwrap(), compression(&[prose.concat()]).unwrap());
        assert!((2.0..2.15).contains(&alone), "{alone}, {whole}");
        assert!((2.3..2.8).contains(&whole), "{alone}, {whole}");
        let random = pieces(TextKind::Random);
        let alone = compression(&random).unwrap();
        assert!((1.2..1.35).contains(&alone), "{alone}");
        assert!(random.iter().chain(&prose).all(|text| text.len() == 2048));
    }

    #[test]
    fn a_message_has_the_length_asked_for_and_is_the_same_in_every_run() {
        let first = Writer::new(TextKind::Prose, 7).message(3, 2048).unwrap();
        assert_eq!(serde_json::to_string(&first).unwrap().len() + 1, 2048);
        assert_eq!(Writer::new(TextKind::Prose, 7).message(3, 2048).unwrap(), first);
        assert_ne!(Writer::new(TextKind::Prose, 8).message(3, 2048).unwrap(), first);
    }
}
