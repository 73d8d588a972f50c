//! Whatever happens, a settings file is whole: as it was, or as it is to be.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::thread;

use super::{bin, home, settings, takeback, with_agents, write_settings};

const MINE: &str = "{\n  \"model\": \"opus\"\n}\n";

#[test]
fn a_file_that_is_no_json_is_left_and_the_others_go_on() {
    let user = with_agents(&[("claude", "2")]);
    for (text, place) in [
        ("{\n  \"a\": 1,\n  oops\n}\n", "line 3, column 3"),
        ("{\n  \"a\": 1\n  \"b\": 2\n}\n", "line 2, column 9"),
        ("{", "line 1, column 1"),
        ("[]", "the file is not an object"),
        ("{\"hooks\": []}", "hooks is not an object"),
        ("{\"hooks\": {\"Stop\": {}}}", "hooks.Stop is not a list"),
        ("{\"hooks\": {}, \"hooks\": {}}", "hooks stands in it twice"),
    ] {
        write_settings(&user, text);
        let before = home(&user);
        let answer = takeback(&user, &["init", "-y"]);
        assert_eq!(answer.code, 3, "{text}: {answer:?}");
        assert!(answer.out.contains(place), "{place}: {answer:?}");
        assert_eq!(home(&user), before);
    }
    fs::write(settings(&user), b"{\"a\": \"\xff\"}").expect("settings");
    assert!(takeback(&user, &["init", "-y"]).out.contains("not text"));
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
    assert_eq!(takeback(&user, &["init", "-y"]).code, 0);
    assert!(settings(&user).is_symlink());
    let text = fs::read_to_string(dotfiles.join("claude.json")).expect("it is there");
    assert!(text.contains("hook --agent claude"));
    assert_eq!(takeback(&user, &["uninstall", "-y"]).code, 0);
    assert_eq!(home(&user), before);
    fs::remove_file(dotfiles.join("claude.json")).expect("it goes");
    let answer = takeback(&user, &["init", "-y"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    assert!(answer.out.contains("which is not there"), "{answer:?}");
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
fn a_folder_that_cannot_be_written_to_is_said() {
    let user = with_agents(&[("claude", "2")]);
    write_settings(&user, MINE);
    user.give_up_privileges();
    let folder = user.home().join(".claude");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).expect("a mode");
    let answer = user.unprivileged(&["init", "-y", "--agent", "claude"]);
    assert_eq!(answer.code, 3, "{answer:?}");
    assert!(answer.out.contains("writable for you"), "{answer:?}");
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
fn many_at_once_end_as_one() {
    let user = with_agents(&[("claude", "2")]);
    write_settings(&user, MINE);
    let before = home(&user);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let answer = takeback(&user, &["init", "-y"]);
                let one_was_faster = answer.out.contains("changed by somebody else");
                assert!(answer.code == 0 || answer.code == 3 && one_was_faster, "{answer:?}");
            });
        }
    });
    assert!(takeback(&user, &["init", "-y"]).out.contains("Nothing to do"));
    assert_eq!(takeback(&user, &["uninstall", "-y"]).code, 0);
    assert_eq!(home(&user), before);
}
