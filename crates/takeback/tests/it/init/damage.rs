//! A settings file always stays complete: as before, or with the change.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::thread;

use super::{bin, exits, home, settings, takeback, with_agents, write_settings};
use crate::user::User;

const MINE: &str = "{\n  \"model\": \"opus\"\n}\n";

#[test]
fn an_invalid_file_is_left_and_other_agents_are_configured() {
    let user = with_agents(&[("claude", "2")]);
    for (text, place) in [
        ("{\n  \"a\": 1,\n  oops\n}\n", "line 3, column 3"),
        ("{\n  \"a\": 1\n  \"b\": 2\n}\n", "line 2, column 9"),
        ("{", "line 1, column 1"),
        ("[]", "the file is not an object"),
        ("{\"hooks\": []}", "hooks is not an object"),
        ("{\"hooks\": {\"Stop\": {}}}", "hooks.Stop is not a list"),
        ("{\"hooks\": {}, \"hooks\": {}}", "hooks appears twice in it"),
    ] {
        write_settings(&user, text);
        let before = home(&user);
        let answer = takeback(&user, &["init", "-y"]);
        assert_eq!(answer.code, 3, "{text}: {answer:?}");
        assert!(answer.out.contains(place), "{place}: {answer:?}");
        assert_eq!(home(&user), before);
    }
    fs::write(settings(&user), b"{\"a\": \"\xff\"}").expect("settings");
    assert!(takeback(&user, &["init", "-y"]).out.contains("not UTF-8 text"));
}

#[test]
fn a_linked_file_stays_where_it_is() {
    let user = with_agents(&[("claude", "2")]);
    let dotfiles = user.home().join("dotfiles");
    fs::create_dir_all(&dotfiles).expect("a folder");
    fs::create_dir_all(user.home().join(".claude")).expect("a folder");
    fs::write(dotfiles.join("claude.json"), MINE).expect("settings");
    symlink("../dotfiles/claude.json", settings(&user)).expect("a link");
    let before = home(&user);
    exits(&user, 0, &["init", "-y"]);
    assert!(settings(&user).is_symlink());
    let text = fs::read_to_string(dotfiles.join("claude.json")).expect("it is there");
    assert!(text.contains("hook --agent claude"));
    exits(&user, 0, &["uninstall", "-y"]);
    assert_eq!(home(&user), before);
    fs::remove_file(dotfiles.join("claude.json")).expect("it goes");
    let answer = exits(&user, 3, &["init", "-y"]);
    assert!(answer.out.contains("which does not exist"), "{answer:?}");
}

#[test]
fn a_file_with_two_names_is_refused() {
    let user = with_agents(&[("claude", "2")]);
    write_settings(&user, MINE);
    fs::hard_link(settings(&user), user.home().join("other")).expect("a link");
    let before = home(&user);
    let answer = takeback(&user, &["init", "-y"]);
    assert_eq!((answer.code, home(&user)), (3, before), "{answer:?}");
}

#[test]
fn a_read_only_folder_is_reported() {
    let user = with_agents(&[("claude", "2")]);
    write_settings(&user, MINE);
    user.drop_privileges();
    let folder = user.home().join(".claude");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).expect("a mode");
    let answer = user.unprivileged(&["init", "-y", "--agent", "claude"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    assert!(answer.out.contains("writable"), "{answer:?}");
    let names = fs::read_dir(&folder).expect("a folder").count();
    assert_eq!((names, fs::read_to_string(settings(&user)).expect("it")), (1, MINE.to_owned()));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("a mode");
    if fs::metadata(bin(&user)).expect("it").uid() != 0 && is_root() {
        let answer = takeback(&user, &["init", "-y", "--agent", "claude"]);
        assert!(answer.out.contains("belongs to another user"), "{answer:?}");
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").expect("it is there").uid() == 0
}

#[test]
fn parallel_runs_have_the_effect_of_one() {
    let user = with_agents(&[("claude", "2")]);
    write_settings(&user, MINE);
    let before = home(&user);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let answer = takeback(&user, &["init", "-y"]);
                let one_was_faster = answer.out.contains("just changed by another program");
                assert!(answer.code == 0 || answer.code == 3 && one_was_faster, "{answer:?}");
            });
        }
    });
    assert!(takeback(&user, &["init", "-y"]).out.contains("Nothing to do"));
    exits(&user, 0, &["uninstall", "-y"]);
    assert_eq!(home(&user), before);
}

/// The settings file is as before or complete; another `init` completes it, and `uninstall` restores it.
fn assert_complete(user: &User, before: &[(String, String)], what: &str) {
    let text = fs::read_to_string(settings(user)).expect("it is there");
    let is_new = text.contains("hook --agent claude") && text.ends_with("}\n");
    assert!(text == MINE || is_new, "{what}: {text}");
    let again = takeback(user, &["init", "-y", "--agent", "claude"]);
    assert_eq!(again.code, 0, "{what}: {again:?}");
    assert_eq!(takeback(user, &["uninstall", "-y", "--agent", "claude"]).code, 0);
    assert_eq!(home(user), before, "{what}");
}

#[test]
fn a_full_disk_changes_nothing() {
    for rule in [
        "fdatasync:error=ENOSPC:when=1+",
        "fdatasync:error=ENOSPC:when=2+",
        "fdatasync:error=ENOSPC:when=3+",
        "renameat2:error=ENOSPC:when=1+",
        "renameat2:error=ENOSPC:when=2+",
        "rename:error=ENOSPC:when=1+",
        "fchmod:error=EPERM:when=1+",
        "renameat2:error=EINVAL:when=2+",
    ] {
        let user = with_agents(&[]);
        write_settings(&user, MINE);
        let before = home(&user);
        let answer = user.with_failing(rule, None, &["init", "-y", "--agent", "claude"]);
        if answer.code != 0 {
            assert_eq!(answer.code, 3, "{rule}: {answer:?}");
            assert_eq!(fs::read_to_string(settings(&user)).expect("it"), MINE, "{rule}");
            let names = fs::read_dir(user.home().join(".claude")).expect("a folder");
            let names: Vec<_> = names.map(|name| name.expect("it").file_name()).collect();
            assert!(names.iter().all(|name| !name.to_string_lossy().contains(".new")), "{names:?}");
        }
        assert_complete(&user, &before, rule);
    }
}

#[test]
fn hooks_removed_by_hand_are_tidied_up() {
    let user = with_agents(&[]);
    write_settings(&user, MINE);
    let before = home(&user);
    exits(&user, 0, &["init", "-y", "--agent", "claude"]);
    fs::write(settings(&user), MINE).expect("settings");
    let answer = takeback(&user, &["uninstall", "-y"]);
    assert!(answer.out.contains("Nothing to do"), "{answer:?}");
    assert_eq!(home(&user), before);
}

#[test]
fn killed_at_any_step_the_file_is_complete() {
    let steps = ["fdatasync", "renameat2", "rename", "fchmod", "unlink", "fsync"];
    for (args, most) in [(["init", "-y"], 4), (["uninstall", "-y"], 3)] {
        for step in steps {
            for n in 1..=most {
                let user = with_agents(&[]);
                write_settings(&user, MINE);
                let before = home(&user);
                if args[0] == "uninstall" {
                    exits(&user, 0, &["init", "-y", "--agent", "claude"]);
                }
                let rule = format!("{step}:signal=KILL:when={n}");
                let killed =
                    user.killed_unprivileged(&rule, &[&args[..], &["--agent", "claude"]].concat());
                assert_complete(&user, &before, &format!("{args:?} {step} {n} {killed}"));
                if !killed {
                    break;
                }
            }
        }
    }
}
