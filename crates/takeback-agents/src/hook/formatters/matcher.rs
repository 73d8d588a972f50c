//! Whether the matcher of a hook can match a tool.
//!
//! Agents read a matcher as a list of names (`Edit|Write`) or as a regular expression that need not match
//! the whole name (`mcp__.*`). Of expressions, alternatives, `.*`, `^` and `$` are understood;
//! anything else counts as a match.

/// `None`, the empty one and `*` match every tool.
#[must_use]
pub(super) fn can_match(matcher: Option<&str>, tool: &str) -> bool {
    let matcher = matcher.unwrap_or_default().trim();
    if matches!(matcher, "" | "*") {
        return true;
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ');
    if matcher.chars().all(|c| is_name(c) || matches!(c, '|' | ',')) {
        return matcher.split(['|', ',']).any(|name| name.trim() == tool);
    }
    let bare = matcher.trim_start_matches(['^', '(']).trim_end_matches(['$', ')']);
    if !bare.replace(".*", "").chars().all(|c| is_name(c) || matches!(c, '|' | '^' | '$')) {
        return true;
    }
    let whole = matcher.starts_with('^') && matcher.ends_with('$');
    bare.split('|').any(|alternative| matches_one(alternative, tool, whole))
}

fn matches_one(alternative: &str, tool: &str, whole: bool) -> bool {
    let starts = whole || alternative.starts_with('^');
    let ends = whole || alternative.ends_with('$');
    let mut pieces = alternative.trim_matches(['^', '$']).split(".*").peekable();
    let mut rest = tool;
    let mut is_first = true;
    while let Some(piece) = pieces.next() {
        let is_last = pieces.peek().is_none();
        let at = match (is_first && starts, is_last && ends) {
            (true, true) => (rest == piece).then_some(0),
            (true, false) => rest.starts_with(piece).then_some(0),
            (false, true) => rest.ends_with(piece).then(|| rest.len() - piece.len()),
            (false, false) => rest.find(piece),
        };
        let Some(at) = at else { return false };
        rest = &rest[at + piece.len()..];
        is_first = false;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_tools_and_an_expression_need_not_match_the_whole_name() {
        let cases = [
            ("", true),
            ("*", true),
            (".*", true),
            ("Edit", true),
            ("Write|Edit", true),
            ("Write, Edit", true),
            ("Edit.*", true),
            ("^Edit$", true),
            ("^(Write|Edit)$", true),
            ("(Multi|)Edit", true),
            ("[A-Z]dit", true),
            ("Edit(*.ts)", true),
            (".*dit$", true),
            ("Bash", false),
            ("MultiEdit", false),
            ("edit", false),
            ("Write|MultiEdit|Read", false),
            ("mcp__.*", false),
            ("^mcp__.*|^Bash$", false),
            ("^Ed$", false),
            ("Edit.*Notebook", false),
        ];
        for (matcher, expected) in cases {
            assert_eq!(can_match(Some(matcher), "Edit"), expected, "{matcher}");
        }
        assert!(can_match(None, "Edit"));
    }
}
