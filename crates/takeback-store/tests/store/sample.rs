//! Sample commits that cover the whole format of a store, and a dump to compare.

use std::path::Path;

use takeback_store::{
    Author, Call, CallKind, CallState, Change, Digest, Entry, Evidence, GitState, Head,
    NotCapturedReason, PackedBlob, Point, PointBasis, PointId, PointKind, Process, RewindId,
    RewindKind, RewindRecord, RewindState, Seq, Session, Store, StoreError, StoredPlan, Timestamp,
    Turn, TurnId, WorkPath, Write,
};

/// A person's change of a path that was not there before.
pub(crate) fn change(seq: Seq, path: &str, after: Entry) -> Change {
    Change {
        seq,
        path: WorkPath::new(path).expect("a plain path"),
        before: Entry::Absent,
        after,
        author: Author::Human,
        evidence: Evidence::Named,
        time: Timestamp(1),
        changed_at: None,
        correction: None,
        cancels: Vec::new(),
    }
}

/// Everything in a store, as text that is easy to compare and to read.
pub(crate) fn dump(store: &dyn Store) -> Result<String, StoreError> {
    use std::fmt::Write as _;
    let mut dump = String::new();
    let mut add = |what: &dyn std::fmt::Debug| {
        writeln!(dump, "{what:?}").expect("memory can be written");
    };
    add(&store.head()?);
    for change in store.changes_after(Seq(0))? {
        for digest in [change.before.digest(), change.after.digest()].into_iter().flatten() {
            let contents = store.contents(&digest)?;
            add(&(contents.len(), Digest::of(&contents)));
        }
        add(&change);
    }
    add(&store.latest()?);
    add(&store.points()?);
    add(&store.sessions()?);
    for number in 1..10 {
        add(&store.turn(TurnId(number))?);
        add(&store.call(&"parser".into(), &format!("call-{number}").as_str().into())?);
    }
    add(&store.live_calls()?);
    add(&store.rewinds()?);
    add(&store.last_scan()?);
    Ok(dump)
}

/// Commits the sample with this number, from 1. Each has a record of every kind.
pub(crate) fn commit(store: &mut dyn Store, number: u64) -> Result<Head, StoreError> {
    let head = store.head()?;
    let before = put(store, format!("fn main() {{ {number} }}\n").repeat(50).as_bytes())?;
    let after = put(store, &noise(number, 2000))?;
    // The first is large enough to be cut into chunks.
    let times = if number == 1 { 5 << 16 } else { 100 };
    let large = put(store, &b"0123456789abcdef".repeat(times))?;
    let time = Timestamp(1_700_000_000_000 + number.cast_signed());
    let session = format!("session-{number}");
    let agent = Author::Agent {
        session: session.as_str().into(),
        turn: TurnId(number),
        call: format!("call-{number}").as_str().into(),
        tool: "Edit".to_owned(),
    };
    let link = Entry::Symlink { target: b"../caf\xe9".to_vec() };
    let suspects = vec!["parser".into(), session.as_str().into()];
    let rewind = Author::Rewind { id: RewindId(number) };
    let not_captured = Entry::NotCaptured { reason: NotCapturedReason::TooLarge };
    let steps = [
        (&b"src/main.rs"[..], before, after, agent),
        (b"link", Entry::Absent, link, Author::Human),
        (b"caf\xe9", Entry::Unknown, large, Author::Ambiguous { sessions: suspects }),
        (b"out", not_captured, Entry::Dir { mode: 0o755 }, Author::Deleted),
        (b"link", Entry::Dir { mode: 0o700 }, Entry::Absent, rewind),
    ];
    let mut writes = Vec::new();
    let mut seq = head.seq;
    for (path, before, after, author) in steps {
        let cancels = if matches!(author, Author::Rewind { .. }) {
            vec![Seq(seq.0 - 2), seq]
        } else {
            vec![]
        };
        let path = WorkPath::new(path).expect("a plain path");
        let evidence = if seq.0.is_multiple_of(2) { Evidence::Named } else { Evidence::Window };
        seq = seq.next();
        let change = change(seq, "changed", after);
        let change = Change { path, before, author, evidence, time, cancels, ..change };
        writes.push(Write::Change(change));
    }
    writes.extend(session_writes(number, &session, time));
    writes.push(Write::Point(Point {
        id: PointId(number),
        seq,
        session: Some(session.as_str().into()),
        kind: PointKind::Prompt,
        description: format!("prompt {number}"),
        label: Some("label".to_owned()),
        pinned: number.is_multiple_of(2),
        created_at: time,
        message_ids: vec![format!("message-{number}"), "prompt".to_owned()],
        git: Some(GitState { head: Some("abc".to_owned()), branch: None }),
        basis: PointBasis::Scan,
    }));
    writes.push(Write::Rewind(RewindRecord {
        id: RewindId(number),
        kind: RewindKind::Rewind { point: PointId(number) },
        state: RewindState::Done,
        began_at: head.seq,
        safety_point: PointId(number),
        created_at: time,
        plan: StoredPlan::of_text("{}").expect("it fits in memory"),
        receipt: Some("{}".to_owned()),
    }));
    writes.push(Write::ScanTime(time));
    store.commit(head, &writes)
}

fn session_writes(number: u64, session: &str, time: Timestamp) -> [Write; 4] {
    let call = Call {
        session: "parser".into(),
        id: format!("call-{number}").as_str().into(),
        turn: TurnId(number),
        tool: "Edit".to_owned(),
        kind: CallKind::Edit { paths: vec![WorkPath::new("src/main.rs").expect("a plain path")] },
        state: CallState::Done,
        opened_at: time,
        began_at: None,
        active_at: None,
        closed_at: Some(time),
    };
    let shell = Call {
        session: session.into(),
        kind: CallKind::Shell { command: Some("cargo test".to_owned()), paths: Vec::new() },
        state: CallState::Open,
        closed_at: None,
        ..call.clone()
    };
    [
        Write::Session(Session {
            id: session.into(),
            agent: Some("claude".to_owned()),
            parent: Some("parser".into()),
            owner: Some(Process { pid: 7, started: 70 }),
            started_at: time,
            ended_at: None,
            archived_at: None,
            open_turn: Some(TurnId(number)),
            model: Some("claude-opus-5-5".to_owned()),
        }),
        Write::Turn(Turn {
            id: TurnId(number),
            session: session.into(),
            message: Some(format!("message-{number}")),
            prompt: "fix the parser".to_owned(),
            opened_at: time,
            closed_at: None,
            model: Some("claude-opus-5-5".to_owned()),
        }),
        Write::Call(call),
        Write::Call(shell),
    ]
}

fn put(store: &mut dyn Store, contents: &[u8]) -> Result<Entry, StoreError> {
    let mut blobs = Vec::new();
    let (digest, size) = PackedBlob::stream(&mut &contents[..], &mut |blob| blobs.push(blob))
        .expect("memory can be read");
    blobs.into_iter().try_for_each(|blob| store.put(blob))?;
    Ok(Entry::File { digest, size, mode: 0o644 })
}

/// Bytes that do not compress and that depend on `seed`.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Copies a store as it is on disk at this moment.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let to = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy(&file.path(), &to);
        } else {
            std::fs::copy(file.path(), to).unwrap();
        }
    }
}
