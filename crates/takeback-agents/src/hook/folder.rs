//! The working folder of a shell after the first part of a command, as far as plain `cd`s determine it.

use std::path::PathBuf;

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// A word whose value only the shell knows.
    Unknown,
    /// The end of a simple command.
    End,
}

/// The folder after all `cd`s in `text`. `None`: there is no `cd`, or its target is unknown.
pub(super) fn folder_after(text: &str) -> Option<PathBuf> {
    let tokens = tokens(text);
    let mut folder = None;
    for command in tokens.split(|token| *token == Token::End) {
        let Some((Token::Word(first), rest)) = command.split_first() else { continue };
        if first != "cd" && first != "pushd" {
            continue;
        }
        let is_option =
            |token: &&Token| matches!(token, Token::Word(word) if word.starts_with('-'));
        let options = rest.iter().take_while(is_option).count();
        let Some(Token::Word(word)) = rest.get(options) else { return None };
        folder = Some(folder.unwrap_or_else(PathBuf::new).join(word));
    }
    folder
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut is_known = true;
    let mut rest = text.chars();
    let end = |word: &mut Option<String>, is_known: &mut bool, tokens: &mut Vec<Token>| {
        let known = std::mem::replace(is_known, true);
        tokens.extend(word.take().map(|w| if known { Token::Word(w) } else { Token::Unknown }));
    };
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => match rest.as_str().split_once(c) {
                Some((inside, behind)) => {
                    is_known &= c == '\'' || !inside.contains(['$', '`', '\\']);
                    word.get_or_insert_default().push_str(inside);
                    rest = behind.chars();
                }
                // The text starts inside a quote, as in `sh -c`.
                None => {
                    end(&mut word, &mut is_known, &mut tokens);
                    tokens.push(Token::End);
                }
            },
            '\\' => word.get_or_insert_default().extend(rest.next()),
            '\n' | ';' | '&' | '|' | '(' | '{' => {
                end(&mut word, &mut is_known, &mut tokens);
                tokens.push(Token::End);
            }
            c if c.is_whitespace() => end(&mut word, &mut is_known, &mut tokens),
            c => {
                let is_home = c == '~' && word.is_none();
                is_known &= !is_home && !"$`*?[".contains(c);
                word.get_or_insert_default().push(c);
            }
        }
    }
    end(&mut word, &mut is_known, &mut tokens);
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_folders_are_followed_and_no_others() {
        let cases = [
            ("cd sub && apply_patch <<'EOF'\n", Some("sub")),
            ("cd sub; apply_patch <<EOF\n", Some("sub")),
            ("cd sub\napply_patch <<EOF\n", Some("sub")),
            ("set -e; cd -P 'my dir' && apply_patch <<EOF\n", Some("my dir")),
            ("cd \"my dir\" && apply_patch <<EOF\n", Some("my dir")),
            (r"cd my\ dir && apply_patch", Some("my dir")),
            ("cd a && cd ../b && apply_patch", Some("a/../b")),
            ("cd a && cd /w/b && apply_patch", Some("/w/b")),
            ("(cd sub && apply_patch", Some("sub")),
            ("bash -lc \"cd sub && apply_patch <<'EOF'\n", Some("sub")),
            ("cd $HOME && apply_patch", None),
            ("cd \"$dir\" && apply_patch", None),
            ("cd ~/x && apply_patch", None),
            ("cd && apply_patch", None),
            ("cd - && apply_patch", None),
            ("echo cd sub && apply_patch", None),
            ("apply_patch <<'EOF'\n", None),
        ];
        for (text, folder) in cases {
            assert_eq!(folder_after(text), folder.map(PathBuf::from), "{text}");
        }
    }
}
