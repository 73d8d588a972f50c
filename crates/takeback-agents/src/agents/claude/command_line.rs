//! Finds `claude`, and builds its arguments and environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::ClaudeOptions;
use super::conversation::Conversation;

/// Makes the program keep copies of the files that its own tools edit.
pub(super) const CHECKPOINTING: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";

/// `explicit`, or the first `claude` on the path.
#[must_use]
pub fn find_claude(path_variable: Option<&OsStr>, explicit: Option<&Path>) -> Option<PathBuf> {
    let runs = |path: &Path| {
        path.metadata()
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if let Some(explicit) = explicit {
        return runs(explicit).then(|| explicit.to_owned());
    }
    let folders = std::env::split_paths(path_variable?);
    folders.map(|folder| folder.join("claude")).find(|program| runs(program))
}

/// The environment for the program: without the variables that an enclosing `claude` session set
/// for itself, but with those that users set.
pub fn claude_environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let kept = |name: &OsStr| {
        let name = name.as_bytes();
        let theirs = name.starts_with(b"CLAUDE") || name.starts_with(b"ANTHROPIC");
        let is = |kept: &&str| match kept.strip_suffix('*') {
            Some(start) => name.starts_with(start.as_bytes()),
            None => name == kept.as_bytes(),
        };
        !theirs || KEPT_VARIABLES.iter().any(is)
    };
    variables.into_iter().filter(|(name, _)| kept(name)).collect()
}

const KEPT_VARIABLES: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL*",
    "ANTHROPIC_DEFAULT_*",
    "ANTHROPIC_BEDROCK_*",
    "ANTHROPIC_VERTEX_*",
    "ANTHROPIC_FOUNDRY_*",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
    "CLAUDE_CODE_CLIENT_*",
    "CLAUDE_CODE_DISABLE_*",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_SKIP_*",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_USE_*",
];

/// Arguments that the driver depends on, each passed once even if the user passes it too.
const REQUIRED_ARGUMENTS: &[&[&str]] = &[
    &["-p"],
    &["--input-format", "stream-json"],
    &["--output-format", "stream-json"],
    &["--verbose"],
    &["--replay-user-messages"],
    &["--include-partial-messages"],
];

/// Options that choose the conversation. The user's apply until the driver has a session.
const CONVERSATION_OPTIONS: &[(&str, OptionKind)] = &[
    ("--continue", OptionKind::Flag),
    ("-c", OptionKind::Flag),
    ("--resume", OptionKind::WithValue),
    ("-r", OptionKind::WithValue),
    ("--session-id", OptionKind::WithValue),
    ("--resume-session-at", OptionKind::WithValue),
    ("--fork-session", OptionKind::Flag),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionKind {
    Flag,
    WithValue,
}

/// The arguments of the program: the required ones, then the user's.
pub(super) fn arguments(options: &ClaudeOptions, conversation: &Conversation) -> Vec<OsString> {
    let extra = &options.extra_args;
    let mut arguments: Vec<OsString> =
        REQUIRED_ARGUMENTS.iter().copied().flatten().map(|part| (*part).into()).collect();
    if !has_option(extra, "--permission-prompt-tool") {
        arguments.extend(["--permission-prompt-tool", "stdio"].map(OsString::from));
    }
    if let Some(model) = options.model.as_ref().filter(|_| !has_option(extra, "--model")) {
        arguments.extend(["--model".into(), model.into()]);
    }
    let mut left_out: Vec<(&str, OptionKind)> = REQUIRED_ARGUMENTS
        .iter()
        .map(|required| {
            (required[0], if required.len() > 1 { OptionKind::WithValue } else { OptionKind::Flag })
        })
        .chain([("--print", OptionKind::Flag)])
        .collect();
    if let Some(session) = &conversation.session {
        arguments.extend(["--resume".into(), session.into()]);
        if let Some(last) = &conversation.up_to {
            arguments.extend(["--resume-session-at".into(), last.into()]);
        }
        // Resuming a session in its middle deletes what came after. A fork keeps the original, and
        // has the same ids for messages and file copies.
        arguments.push("--fork-session".into());
        left_out.extend(CONVERSATION_OPTIONS);
    }
    arguments.extend(without_options(extra, &left_out));
    arguments
}

/// Whether an option is among the arguments, as `--option` or `--option=value`.
fn has_option(arguments: &[OsString], option: &str) -> bool {
    arguments.iter().any(|argument| is_option(argument, option))
}

fn is_option(argument: &OsStr, option: &str) -> bool {
    argument == option || has_value(argument, option)
}

fn has_value(argument: &OsStr, option: &str) -> bool {
    let rest = argument.as_bytes().strip_prefix(option.as_bytes());
    option.starts_with("--") && rest.is_some_and(|rest| rest.starts_with(b"="))
}

fn without_options(arguments: &[OsString], left_out: &[(&str, OptionKind)]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter().peekable();
    while let Some(argument) = rest.next() {
        let Some((option, kind)) = left_out.iter().find(|(option, _)| is_option(argument, option))
        else {
            kept.push(argument.clone());
            continue;
        };
        if *kind == OptionKind::WithValue && !has_value(argument, option) {
            rest.next_if(|next| !next.as_bytes().starts_with(b"-"));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(extra: &[&str]) -> ClaudeOptions {
        ClaudeOptions {
            program: PathBuf::from("claude"),
            extra_args: extra.iter().map(OsString::from).collect(),
            folder: PathBuf::from("/proj"),
            model: None,
            environment: Vec::new(),
            checkpointing: true,
            resume: serde_json::Value::Null,
        }
    }

    const BASE: &str = "-p --input-format stream-json --output-format stream-json --verbose \
                        --replay-user-messages --include-partial-messages";
    const ASKED: &str = "--permission-prompt-tool stdio";

    fn line(options: &ClaudeOptions, conversation: &Conversation) -> String {
        let arguments = arguments(options, conversation);
        arguments.iter().map(|one| one.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn extra_arguments_are_kept_and_required_ones_appear_once() {
        let fresh = Conversation::default();
        let cases: &[(&[&str], String)] = &[
            (&[], format!("{BASE} {ASKED}")),
            (
                &["--permission-mode", "acceptEdits", "--add-dir", "../lib", "--foo=bar"],
                format!("{BASE} {ASKED} --permission-mode acceptEdits --add-dir ../lib --foo=bar"),
            ),
            (
                &["--replay-user-messages", "--print", "--output-format", "json", "--x"],
                format!("{BASE} {ASKED} --x"),
            ),
            (&["--output-format=json", "--verbose", "-p", "y"], format!("{BASE} {ASKED} y")),
            (
                &["--permission-prompt-tool", "mcp__a__b"],
                format!("{BASE} --permission-prompt-tool mcp__a__b"),
            ),
            (&["--resume", "S"], format!("{BASE} {ASKED} --resume S")),
        ];
        for (extra, expected) in cases {
            assert_eq!(line(&options(extra), &fresh), *expected, "{extra:?}");
        }
    }

    #[test]
    fn the_drivers_conversation_replaces_the_users_options() {
        let conversation = Conversation {
            session: Some("S".to_owned()),
            up_to: Some("U".to_owned()),
            prompts: Vec::new(),
        };
        let resumed = format!("{BASE} {ASKED} --resume S --resume-session-at U --fork-session");
        assert_eq!(line(&options(&[]), &conversation), resumed);
        let extra =
            ["--continue", "--resume=T", "-r", "T", "--fork-session", "--x", "--session-id", "I"];
        assert_eq!(line(&options(&extra), &conversation), format!("{resumed} --x"));
    }

    #[test]
    fn the_users_model_option_wins() {
        let fresh = Conversation::default();
        let named =
            |extra: &[&str]| ClaudeOptions { model: Some("m".to_owned()), ..options(extra) };
        assert_eq!(line(&named(&[]), &fresh), format!("{BASE} {ASKED} --model m"));
        assert_eq!(line(&named(&["--model=n"]), &fresh), format!("{BASE} {ASKED} --model=n"));
    }

    #[test]
    fn variables_of_an_enclosing_session_are_removed() {
        let names = [
            "PATH",
            "CLAUDECODE",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_SSE_PORT",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_MODEL",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_DEFAULT_OPUS_MODEL",
            "ANTHROPIC_SOMETHING",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING",
        ];
        let given = names.iter().map(|name| (OsString::from(name), OsString::from("1")));
        let kept: Vec<String> = claude_environment(given)
            .into_iter()
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect();
        let expected = [
            "PATH",
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_MODEL",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_DEFAULT_OPUS_MODEL",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
        ];
        assert_eq!(kept, expected);
    }

    #[test]
    fn the_program_is_found_by_path_or_on_the_search_path() {
        let sh = Path::new("/bin/sh");
        assert_eq!(find_claude(None, Some(sh)), Some(sh.to_owned()));
        assert_eq!(find_claude(Some(OsStr::new("/bin")), Some(Path::new("/nowhere/claude"))), None);
        assert_eq!(find_claude(Some(OsStr::new("/nowhere:/proc")), None), None);
        assert_eq!(find_claude(None, None), None);
    }
}
