//! The history of the same work, as two versions of the program recorded it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use takeback_agents::{PastSession, claude_transcript, claude_transcripts, past_session};
use takeback_core::exchange::{HistoryPrompt, SavedFile};
use tempfile::TempDir;

const VERSIONS: [&str; 2] = ["2.1.197", "2.1.325"];
const ROOT: &str = "/home/user/project";

fn recorded(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claude/recorded/history").join(version)
}

/// The session and its fork.
fn sessions(config: &Path) -> [PastSession; 2] {
    let files = claude_transcripts(config, Path::new(ROOT)).unwrap();
    let read = |file: &PathBuf| past_session(config, file).unwrap().unwrap();
    let mut read: Vec<PastSession> = files.iter().map(read).collect();
    read.sort_by_key(|past| past.session.ended_at);
    read.try_into().unwrap()
}

/// Describes a prompt: the files before it and after its calls, without the folder.
fn describe(prompt: &HistoryPrompt) -> Vec<String> {
    let name = |path: &Path| path.strip_prefix("/home/user").unwrap().display().to_string();
    let kept = |kept: &SavedFile| match kept {
        SavedFile::Absent => "absent".to_owned(),
        SavedFile::Copy(file) => format!("{:?}", fs::read_to_string(file).unwrap()),
        SavedFile::Bytes { bytes, mode } => {
            format!("{mode:o} {:?}", std::str::from_utf8(bytes).unwrap())
        }
        SavedFile::Lost => "lost".to_owned(),
    };
    let all = |files: &BTreeMap<PathBuf, SavedFile>, what: &str| {
        let described =
            files.iter().map(|(path, file)| format!("{what} {} {}", name(path), kept(file)));
        described.collect::<Vec<_>>()
    };
    let edits = prompt.edits.iter().map(|(path, edit)| format!("{} {}", edit.tool, name(path)));
    let event = prompt.text.split(" <<").next().unwrap_or_default().to_owned();
    let commands = prompt.ran_commands.then(|| "commands".to_owned());
    let mut describe = vec![event];
    describe.extend(all(&prompt.files, "at").into_iter().chain(edits).chain(commands));
    describe.extend(all(&prompt.left, "left"));
    describe
}

#[test]
fn both_formats_give_the_same_history() {
    for version in VERSIONS {
        let [past, fork] = sessions(&recorded(version));
        let described: Vec<Vec<String>> = past.session.prompts.iter().map(describe).collect();
        let expected: [&[&str]; 4] = [
            &[
                "make it",
                r#"at project/a.txt "one\ntwo\nthree\n""#,
                "at project/src/new.txt absent",
                "Edit project/a.txt",
                "Write project/src/new.txt",
                r#"left project/a.txt 644 "one\nTWO\nthree\n""#,
                r#"left project/src/new.txt 644 "new\n""#,
            ],
            &[
                "change it",
                r#"at outside/o.txt "o0\n""#,
                r#"at project/a.txt "one\nTWO\nthree\nmine\n""#,
                r#"at project/crlf.txt "c0\r\nd0\r\n""#,
                r#"at project/src/b.txt "b0\n""#,
                r#"at project/src/new.txt "new\n""#,
                "Edit outside/o.txt",
                "Edit project/a.txt",
                "Edit project/crlf.txt",
                "Edit project/src/b.txt",
                "commands",
                r#"left outside/o.txt 644 "o1\n""#,
                r#"left project/a.txt 644 "one\nTWO\nTHREE\nmine\n""#,
                r#"left project/crlf.txt 644 "c1\r\nd0\r\n""#,
                r#"left project/src/b.txt 755 "b1\n""#,
            ],
            &[
                "say hi",
                r#"at outside/o.txt "o1\n""#,
                r#"at project/a.txt "one\nTWO\nTHREE\nmine\n""#,
                r#"at project/crlf.txt "c1\r\nd0\r\n""#,
                r#"at project/src/b.txt "b1\n""#,
                "at project/src/new.txt absent",
            ],
            &[
                "and once more",
                r#"at outside/o.txt "o1\n""#,
                r#"at project/a.txt "one\nTWO\nTHREE\nmine\n""#,
                r#"at project/crlf.txt "c1\r\nd0\r\n""#,
                r#"at project/src/b.txt "b1\n""#,
                "at project/src/new.txt absent",
                "Edit project/a.txt",
                r#"left project/a.txt 644 "ONE\nTWO\nTHREE\nmine\n""#,
            ],
        ];
        assert_eq!(described, expected, "{version}");
        let ids: Vec<usize> = past.session.prompts.iter().map(|p| p.message_ids.len()).collect();
        assert_eq!((past.without_files, past.damaged_lines, ids), (0, 0, vec![2; 4]), "{version}");
        assert_eq!(past.folder, Path::new(ROOT));
        let described: Vec<Vec<String>> = fork.session.prompts.iter().map(describe).collect();
        let last = described.last().unwrap();
        assert_eq!((last[0].as_str(), last.last().unwrap().as_str()), FORKED, "{version}");
        // 2.1.325 gives copied prompts the id of the fork's own prompt. The id means that one.
        let ids: Vec<&String> =
            fork.session.prompts.iter().flat_map(|prompt| &prompt.message_ids).collect();
        let unique: BTreeSet<&String> = ids.iter().copied().collect();
        assert_eq!(unique.len(), ids.len(), "{version}");
        assert_eq!(fork.session.prompts.last().unwrap().message_ids.len(), 2, "{version}");
    }
}

const FORKED: (&str, &str) = ("another way", r#"left project/other.txt 644 "other\n""#);

/// A copy of a version's recorded history that a test can damage.
fn damaged_copy(version: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    copy(&recorded(version), folder.path());
    let [past, _] = sessions(folder.path());
    let file = claude_transcript(folder.path(), &past.session.id.0).unwrap().unwrap();
    (folder, file)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn damaged_lines_are_skipped_and_counted() {
    for version in VERSIONS {
        let (folder, file) = damaged_copy(version);
        let [whole, _] = sessions(&recorded(version));
        let text = fs::read_to_string(&file).unwrap();
        let mut bytes = b"\n{\"type\":\"user\",\"uuid\":3}\nno json\n\xff\xfe\n".to_vec();
        bytes.extend_from_slice(text.as_bytes());
        bytes.extend_from_slice(b"{\"type\":\"file-history-delta\",\"snapshotMess");
        fs::write(&file, bytes).unwrap();
        let past = past_session(folder.path(), &file).unwrap().unwrap();
        assert_eq!(past.damaged_lines, 4, "{version}");
        let texts =
            |past: &PastSession| past.session.prompts.iter().map(describe).collect::<Vec<_>>();
        assert_eq!(texts(&past), texts(&whole), "{version}");
    }
}

#[test]
fn a_prompt_without_files_is_skipped_and_counted() {
    let (folder, file) = damaged_copy("2.1.325");
    let text = fs::read_to_string(&file).unwrap();
    let [whole, _] = sessions(folder.path());
    let first = whole.session.prompts[0].message_ids[0].clone();
    let kept =
        text.lines().filter(|line| !(line.contains("file-history") && line.contains(&first)));
    fs::write(&file, kept.collect::<Vec<_>>().join("\n")).unwrap();
    let past = past_session(folder.path(), &file).unwrap().unwrap();
    assert_eq!((past.session.prompts.len(), past.without_files), (3, 1));
    assert_eq!(past.session.prompts[0].text, whole.session.prompts[1].text);
}

#[test]
fn a_copy_outside_its_folder_counts_as_lost() {
    let (folder, file) = damaged_copy("2.1.325");
    let text = fs::read_to_string(&file).unwrap();
    let [whole, _] = sessions(folder.path());
    let Some(SavedFile::Copy(copy)) =
        whole.session.prompts[0].files.get(&Path::new(ROOT).join("a.txt"))
    else {
        panic!("{:?}", whole.session.prompts[0]);
    };
    let name = copy.file_name().unwrap().to_str().unwrap();
    fs::write(&file, text.replace(name, "../../../project/a.txt")).unwrap();
    let past = past_session(folder.path(), &file).unwrap().unwrap();
    let kept = &past.session.prompts[0].files[&Path::new(ROOT).join("a.txt")];
    assert_eq!(*kept, SavedFile::Lost);
}

#[test]
fn sessions_are_found_by_folder_and_by_id() {
    let config = recorded("2.1.325");
    let found = |root: &str| claude_transcripts(&config, Path::new(root)).unwrap().len();
    assert_eq!(found(ROOT), 2);
    // A session below the workspace belongs to it; one in a folder next to it does not.
    assert_eq!(found("/home/user"), 2);
    assert_eq!(found("/home/user/proj"), 0);
    assert_eq!(found("/home/user/project/src"), 0);
    let [past, _] = sessions(&config);
    assert!(claude_transcript(&config, &past.session.id.0).unwrap().is_some());
    for name in ["", "..", "nobody", "../projects"] {
        assert_eq!(claude_transcript(&config, name).unwrap(), None, "{name}");
    }
    assert_eq!(
        claude_transcripts(Path::new("/nowhere"), Path::new(ROOT)).unwrap(),
        Vec::<PathBuf>::new()
    );
}
