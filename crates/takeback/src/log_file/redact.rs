//! Removes secrets from a text: known values, and anything that looks like a key or password.
//!
//! When in doubt it redacts: a lost word in a log costs less than a leaked key.

const HIDDEN: &str = "[redacted]";

/// Names before `:` or `=` that mark the value as a secret.
const NAMES: [&str; 11] = [
    "authorization",
    "x-api-key",
    "api_key",
    "api-key",
    "apikey",
    "access_token",
    "auth_token",
    "oauth_token",
    "refresh_token",
    "client_secret",
    "password",
];

/// Prefixes of keys that are recognizable without a name.
const KEYS: [&str; 7] = ["sk-", "ghp_", "gho_", "ghs_", "github_pat_", "xoxb-", "AKIA"];
/// Anything shorter after such a prefix is a word.
const SHORTEST_KEY: usize = 8;

/// The text without secrets. `secrets`: longest first, none empty.
pub(super) fn redacted(text: &str, secrets: &[String]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        text = text.replace(secret.as_str(), HIDDEN);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut in_word = false;
    while let Some(c) = rest.chars().next() {
        // Names match inside words (`ANTHROPIC_AUTH_TOKEN`), key prefixes do not (`task-`).
        let found = named_value(rest).or_else(|| login(rest));
        let found = found.or_else(|| if in_word { None } else { looks_secret(rest) });
        if let Some((before, secret)) = found {
            shown.push_str(&rest[..before]);
            shown.push_str(HIDDEN);
            rest = &rest[before + secret..];
            in_word = false;
        } else {
            shown.push(c);
            rest = &rest[c.len_utf8()..];
            in_word = c.is_ascii_alphanumeric();
        }
    }
    shown
}

/// The number of bytes to keep, and the number of secret bytes after them.
type SecretSpan = Option<(usize, usize)>;

fn looks_secret(text: &str) -> SecretSpan {
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if let Some(start) = KEYS.iter().find(|start| text.starts_with(**start)) {
        let length = length_while(text, is_of_key);
        return (length >= start.len() + SHORTEST_KEY).then_some((0, length));
    }
    for scheme in ["bearer", "basic"] {
        if starts_with(text, scheme) {
            let spaces = length_while(&text[scheme.len()..], |c| c == ' ');
            let before = scheme.len() + spaces;
            let token = length_while(&text[before..], |c| !ends_value(c));
            // `basic` is also a word.
            let is_token = scheme == "bearer" || token >= 2 * SHORTEST_KEY;
            return (spaces > 0 && token > 0 && is_token).then_some((before, token));
        }
    }
    None
}

/// `https://user:password@host`
fn login(text: &str) -> SecretSpan {
    let after = text.strip_prefix("://")?;
    let login = length_while(after, |c| !ends_value(c) && !matches!(c, '/' | '@' | '?' | '#'));
    (login > 0 && after[login..].starts_with('@')).then_some((3, login))
}

/// `x-api-key: …`, `"password": "…"`, `api_key=…`
fn named_value(text: &str) -> SecretSpan {
    let name = NAMES.iter().find(|name| starts_with(text, name))?;
    let gap = |text: &str| length_while(text, |c| matches!(c, ' ' | '"' | '\'' | '\\'));
    let mut before = name.len();
    before += gap(&text[before..]);
    if !text[before..].starts_with([':', '=']) {
        return None;
    }
    before += 1;
    before += gap(&text[before..]);
    let is_quoted = text[..before].ends_with(['"', '\'']);
    // The first word of an authorization is only its scheme.
    let has_spaces = is_quoted || *name == "authorization";
    let is_of_value = |c: char| !ends_value(c) || (has_spaces && c == ' ');
    let value = length_while(&text[before..], is_of_value);
    (value > 0 && !text[before..].starts_with(HIDDEN)).then_some((before, value))
}

fn ends_value(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '"' | '\'' | '\\' | ',' | ';' | '&' | '}' | ')')
}

fn starts_with(text: &str, name: &str) -> bool {
    text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}

fn length_while(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_secret_is_hidden() {
        for (text, shown) in [
            ("sk-ant-api03-AbC_123 failed", "[redacted] failed"),
            ("key=sk-proj-0123456789.", "key=[redacted]."),
            ("Authorization: Bearer abc.def-1", "Authorization: [redacted]"),
            ("sent bearer   abc.def", "sent bearer   [redacted]"),
            (r#"{"x-api-key": "k1", "a": 1}"#, r#"{"x-api-key": "[redacted]", "a": 1}"#),
            (r#"{\"password\":\"a b\"}"#, r#"{\"password\":\"[redacted]\"}"#),
            ("ANTHROPIC_API_KEY=k1 ./run", "ANTHROPIC_API_KEY=[redacted] ./run"),
            ("?api_key=k1&b=2", "?api_key=[redacted]&b=2"),
            ("get https://me:pw@host/a@b", "get https://[redacted]@host/a@b"),
            ("Basic dXNlcjpwYXNzd29yZA==", "Basic [redacted]"),
            ("ghp_0123456789abcdef", "[redacted]"),
            ("好sk-ant-0123456789", "好[redacted]"),
        ] {
            assert_eq!(redacted(text, &[]), shown, "{text}");
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "",
            "task-1234567890, risk-assessment",
            "sk-short",
            "a basic idea",
            "the bearer",
            "https://host/path?x=1 and me@host",
            "password must be set",
            "authorization:",
            "äöü 好 \u{1f600}",
        ] {
            assert_eq!(redacted(text, &[]), text);
        }
    }

    #[test]
    fn known_values_are_hidden_wherever_they_stand() {
        let secrets = ["abcdef".to_owned(), "abc".to_owned()];
        assert_eq!(
            redacted("xabcdefx abc password=abc", &secrets),
            "x[redacted]x [redacted] password=[redacted]"
        );
    }
}
