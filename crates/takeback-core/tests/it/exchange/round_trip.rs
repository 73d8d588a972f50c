//! A bundle restores the same points elsewhere.

use super::*;

#[test]
fn every_point_is_restored_exactly_in_an_empty_folder() {
    let (mut there, trees) = busy();
    let file = everything(&mut there);
    let mut here = Sandbox::new();
    let imported = imported(&mut here, &file);
    let was: Vec<PointId> = imported.points.iter().map(|point| point.was).collect();
    assert_eq!(was, trees.iter().map(|(id, _)| *id).collect::<Vec<_>>());
    for order in [[0, 1, 2, 3, 4], [3, 1, 4, 0, 2]] {
        for at in order {
            let receipt = here.rewind(&exactly(imported.points[at].id)).unwrap();
            assert!(receipt.success, "{:?}", report(&receipt));
            assert_eq!(here.tree(), trees[at].1, "point {at}");
        }
    }
    // Before the first import the folder was empty.
    while here.rewind(&RewindRequest::new(Target::Undo)).is_ok() {}
    assert_eq!(here.tree(), Tree::new());
}

#[test]
fn imported_points_sessions_turns_and_authors_get_new_names() {
    let (mut there, _) = busy();
    let file = everything(&mut there);
    let mut here = Sandbox::in_memory();
    here.days_pass(1.0);
    let imported = imported(&mut here, &file);
    let import = imported.sessions[0].id.clone();
    assert!(import.0.starts_with("imported-0000"), "{import}");
    let named = |old: &str| SessionId(format!("{import}-{old}"));
    let sessions: Vec<_> =
        imported.sessions.iter().map(|session| (session.id.clone(), session.was.clone())).collect();
    let expected = vec![
        (import.clone(), None),
        (named("s"), Some(SessionId::from("s"))),
        (named("t"), Some(SessionId::from("t"))),
    ];
    assert_eq!(sessions, expected);

    let originals = points(&there).into_iter().filter(|point| point.kind != PointKind::Safety);
    for (point, original) in points(&here).into_iter().zip(originals) {
        let session = original.session.as_ref().map_or(import.clone(), |session| named(&session.0));
        let same = Point { id: point.id, seq: point.seq, session: Some(session), ..original };
        assert_eq!(point, same);
    }

    let name = |author: &Author| match author {
        Author::Agent { session, call, tool, .. } => format!("{session} {call} {tool}"),
        Author::Ambiguous { sessions } => format!("{sessions:?}"),
        Author::Rewind { .. } => "rewind".to_owned(),
        Author::Human | Author::Deleted | Author::Import => "no agent".to_owned(),
    };
    let steps = |sandbox: &Sandbox, of: &str| -> Vec<(Entry, Entry, String)> {
        let changes = history(sandbox, of);
        let seen = changes.iter().filter(|change| change.before != Entry::Unknown);
        seen.map(|change| (change.before.clone(), change.after.clone(), name(&change.author)))
            .collect()
    };
    for of in ["a.txt", "whose", "gone again", "mine", "large"] {
        let mut expected: Vec<_> = steps(&there, of)
            .into_iter()
            .map(|(before, after, author)| {
                let author = author
                    .replace("s call", &format!("{import}-s call"))
                    .replace("t call", &format!("{import}-t call"))
                    .replace("(\"", &format!("(\"{import}-"));
                (before, after, author)
            })
            .collect();
        // The path was absent here: the import leads to the first state, and back at the end.
        let first = &history(&there, of)[0];
        if first.before == Entry::Unknown {
            expected.insert(0, (Entry::Absent, first.after.clone(), "no agent".to_owned()));
        }
        let last = expected.last().unwrap().1.clone();
        if last != Entry::Absent {
            expected.push((last, Entry::Absent, "no agent".to_owned()));
        }
        assert_eq!(steps(&here, of), expected, "{of}");
    }
    let turn = log(&here).into_iter().find_map(|change| match change.author {
        Author::Agent { turn, .. } => here.workspace.store.turn(turn).unwrap(),
        _ => None,
    });
    let turn = turn.unwrap();
    assert_eq!((turn.prompt.as_str(), turn.session), ("first", named("s")));
}

/// Rewinds to each point in copies of both and compares.
#[test]
fn an_imported_session_is_rewound_like_the_original() {
    let (mut there, trees) = busy();
    let file = everything(&mut there);
    let last = there.tree();
    let there = there.freeze();
    let mut here = Sandbox::new();
    copy(&there.thaw(), &here);
    assert_eq!(here.tree(), last);
    let imported = imported(&mut here, &file);
    let here = here.freeze();
    for (at, (point, _)) in trees.iter().enumerate() {
        let (mut there, mut here) = (there.thaw(), here.thaw());
        for sandbox in [&there, &here] {
            sandbox.write("a.txt", sandbox.read("a.txt").replace("2\n", "2 and mine\n"));
        }
        let original = there.rewind_to(*point);
        let receipt = here.rewind_to(imported.points[at].id);
        assert_eq!(here.tree(), there.tree(), "point {at}");
        assert_eq!(receipt.restored_files, original.restored_files, "point {at}");
        assert_eq!(receipt.deleted_files, original.deleted_files, "point {at}");
        if receipt.rewind.is_some() {
            assert!(here.undo().success);
        }
    }
}

#[test]
fn a_local_point_is_not_affected_by_an_import() {
    let (mut there, _) = busy();
    let file = everything(&mut there);
    let mut here = Sandbox::new();
    copy(&there, &here);
    here.write("local", "0\n");
    let by_hand = checkpoint(&mut here.workspace, Some("here")).unwrap().point.unwrap();
    let prompt = here.prompt("mine", "go");
    here.agent_writes("mine", "local", "1\n");
    here.turn_end("mine");
    imported(&mut here, &file);
    let here = here.freeze();
    for point in [by_hand, prompt] {
        let mut here = here.thaw();
        let receipt = here.rewind_to(point);
        assert_eq!(report(&receipt), ["success", "restored local"]);
        assert_eq!(here.read("local"), "0\n");
    }
    let mut here = here.thaw();
    let receipt = here.rewind(&exactly(by_hand)).unwrap();
    assert_eq!(report(&receipt), ["success", "restored local"]);
}

#[test]
fn all_agents_of_an_imported_point_are_the_imported_ones() {
    let mut there = Sandbox::in_memory();
    there.write("a", "0\n");
    there.prompt("s", "go");
    there.agent_writes("s", "a", "1\n");
    there.agent_writes("t", "b", "made\n");
    let file = everything(&mut there);
    let mut here = Sandbox::in_memory();
    here.write("a", "1\n");
    here.write("b", "made\n");
    let imported = imported(&mut here, &file);
    let all = RewindRequest {
        scope: Some(RewindScope::AllAgents),
        ..RewindRequest::new(Target::Point(imported.points[0].id))
    };
    assert_eq!(report(&here.rewind(&all).unwrap()), ["success", "restored a", "deleted b"]);
}
