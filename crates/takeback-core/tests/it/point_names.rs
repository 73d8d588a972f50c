//! A point that is looked for in a store is the one that is found among all points.

use takeback_core::{PointNameError, find_point, find_stored_point};
use takeback_store::{
    Point, PointBasis, PointId, PointKind, Seq, Session, StoreError, Timestamp, Write,
};
use takeback_testkit::Sandbox;

#[derive(Debug, PartialEq)]
enum LookupError {
    Name(PointNameError),
    Store(String),
}

impl From<StoreError> for LookupError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

fn point(id: u64, session: Option<&str>) -> Point {
    Point {
        id: PointId(id),
        seq: Seq(0),
        session: session.map(Into::into),
        kind: PointKind::Prompt,
        description: String::new(),
        label: None,
        pinned: false,
        created_at: Timestamp(i64::try_from(id % 1000).unwrap()),
        message_ids: Vec::new(),
        git: None,
        basis: PointBasis::Scan,
    }
}

fn labelled(id: u64, session: Option<&str>, label: &str) -> Point {
    Point { label: Some(label.to_owned()), ..point(id, session) }
}

fn messaged(id: u64, session: &str, message: &str) -> Point {
    Point { message_ids: vec!["first".to_owned(), message.to_owned()], ..point(id, Some(session)) }
}

/// Names that mean one, several, or none of them.
fn names(points: &[Point]) -> Vec<String> {
    let mut names: Vec<String> =
        ["", "@", "@~x", "nope", "abc", "abcd", "ABCD", "500", "10", "s:", ":"]
            .map(str::to_owned)
            .to_vec();
    names.extend((0..12).map(|back| format!("@~{back}")));
    for point in points {
        let id = point.id.to_string();
        names.extend((3..=16).map(|digits| id[..digits].to_owned()));
        names.extend(point.label.clone());
        for message in &point.message_ids {
            names.push(message.clone());
            names.push(format!("s:{message}"));
            names.extend(point.session.iter().map(|session| format!("{session}:{message}")));
        }
    }
    names
}

#[test]
fn a_store_finds_the_same_point_as_a_search_of_all_points() {
    let here = "imported-000000ab";
    let safety = Point { kind: PointKind::Safety, ..point(0xabcd_0000_0000_0003, None) };
    let own = vec![
        point(0xabcd_0000_0000_0001, Some("s")),
        labelled(0xabcd_0000_0000_0002, None, "here"),
        safety,
        messaged(0x1234_5678_0000_0400, "s", "m:1"),
        messaged(0x1234_5678_0000_0500, "t", "m:1"),
        labelled(7, Some("t"), "1234"),
        labelled(8, Some("t"), "10"),
    ];
    let imported = vec![
        labelled(0xfeed_0000_0000_0001, Some(here), "here"),
        labelled(0xfeed_0000_0000_0002, Some(here), "there"),
        messaged(0xfeed_0000_0000_0003, here, "elsewhere"),
        labelled(0xfeed_0000_0000_0004, Some(here), "abcd"),
        labelled(0xfeed_0000_0000_0005, Some(here), "500"),
    ];
    let mixed = [own.clone(), imported.clone()].concat();
    for (points, make) in [
        (Vec::new(), Sandbox::in_memory as fn() -> Sandbox),
        (own.clone(), Sandbox::in_memory),
        (own, Sandbox::new),
        (imported, Sandbox::new),
        (mixed, Sandbox::new),
    ] {
        let mut sandbox = make();
        let store = &mut *sandbox.workspace.store;
        let sessions = ["s", "t", here].map(|id| {
            Write::Session(Session {
                id: id.into(),
                agent: None,
                parent: None,
                owner: None,
                started_at: Timestamp(1),
                ended_at: None,
                archived_at: None,
                open_turn: None,
                model: None,
            })
        });
        let writes: Vec<Write> =
            sessions.into_iter().chain(points.into_iter().map(Write::Point)).collect();
        store.commit(store.head().unwrap(), &writes).unwrap();
        let points = store.points().unwrap();
        let time_of = |text: &str| text.parse().ok().map(Timestamp);
        for name in names(&points) {
            let expected = find_point(&points, &name, &time_of).cloned().map_err(LookupError::Name);
            let found =
                find_stored_point(store, &name, &time_of, |error, _| LookupError::Name(error));
            assert_eq!(found, expected, "{name:?} of {} points", points.len());
        }
    }
}
