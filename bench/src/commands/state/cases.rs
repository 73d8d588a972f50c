//! The cases: long conversations, reading them, a large value that stays, forks and rollbacks.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Value, json};
use takeback_store::state::Values;

use super::agent::{Agent, close, open};
use super::small_states::measure_small_states;
use crate::Result;
use crate::driver::langgraph::{Langgraph, Sync};
use crate::measure::{disk_usage, flush_disk, timed};
use crate::report::{Goal, Metric, Row, Unit};
use crate::rounds::median;
use crate::scratch::make_empty;
use crate::text::{TextKind, Writer, compression};

const STEP_BYTES: usize = 2048;
/// Puts at each end of a conversation that are compared.
const ENDS: usize = 50;
const STATIC_BYTES: usize = 100 << 10;
const STATIC_STEPS: usize = 100;
const FORKS: u32 = 20;
const PEER: &str = "langgraph";

pub(super) struct Bench {
    scratch: PathBuf,
    prose: Rc<Conversation>,
    peer: Option<Langgraph>,
    /// Whether the peer's answers are durable by default.
    is_full: bool,
    pub(super) fsync_ms: Vec<f64>,
    pub(super) compression: [f64; 2],
    pub(super) rows: Vec<Row>,
}

/// Messages, and the file that passes them to the peer.
struct Conversation {
    messages: Vec<Value>,
    file: PathBuf,
    /// Of the last state as JSON.
    unique_bytes: usize,
}

/// What saving a conversation after each of its messages took.
struct AppendCosts {
    disk_over_unique: f64,
    per_second: f64,
    /// The last puts divided by the first.
    slowdown: f64,
    slowest_ms: f64,
}

impl Bench {
    pub(super) fn new(
        scratch: &Path,
        steps: usize,
        peer: Option<Langgraph>,
        is_full: bool,
    ) -> Result<Self> {
        make_empty(scratch)?;
        let prose = Conversation::write(scratch, TextKind::Prose, steps)?;
        let texts: Vec<String> = prose.messages.iter().map(Value::to_string).collect();
        Ok(Self {
            scratch: scratch.to_owned(),
            prose: Rc::new(prose),
            peer,
            is_full,
            fsync_ms: Vec::new(),
            compression: [compression(&texts)?, compression(&[texts.concat()])?],
            rows: Vec::new(),
        })
    }

    pub(super) fn round(&mut self, round: usize) -> Result<()> {
        self.fsync_ms.push(self.measure_fsync()?);
        let prose = Rc::clone(&self.prose);
        self.append(&prose, TextKind::Prose, round)?;
        self.read_latest(&prose, round)?;
        let small = measure_small_states(&self.scratch.join("small"), round)?;
        self.add(small);
        self.static_value(TextKind::Prose)
    }

    /// The cases that are measured once, after all rounds.
    pub(super) fn once(&mut self) -> Result<()> {
        eprintln!("text that does not compress");
        let random =
            Conversation::write(&self.scratch, TextKind::Random, self.prose.messages.len())?;
        self.append(&random, TextKind::Random, 0)?;
        self.static_value(TextKind::Random)?;
        eprintln!("forks and rollbacks");
        for steps in [10_000, 100] {
            let rows = self.measure_moves(steps)?;
            self.add(rows);
        }
        Ok(fs::remove_dir_all(&self.scratch)?)
    }

    /// Adds rows, or their values to the rows of earlier rounds.
    fn add(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            match self.rows.iter_mut().find(|known| known.name == row.name) {
                Some(known) => {
                    known.ours.extend(row.ours);
                    known.theirs.extend(row.theirs);
                }
                None => self.rows.push(row),
            }
        }
    }

    fn measure_fsync(&self) -> Result<f64> {
        flush_disk()?;
        let mut file = File::create(self.scratch.join("fsync"))?;
        let one = |_| {
            file.write_all(&[1; 4096])?;
            Ok(timed(|| Ok(file.sync_data()?))?.1)
        };
        Ok(median((0..100).map(one).collect::<Result<Vec<f64>>>()?))
    }

    /// Leaves both databases for [`Self::read_latest`].
    fn append(&mut self, input: &Conversation, kind: TextKind, round: usize) -> Result<()> {
        let full = if self.is_full { None } else { self.append_to_peer(input, Sync::Full)? };
        let (ours, theirs) = if round.is_multiple_of(2) {
            let ours = self.append_to_takeback(input)?;
            (ours, self.append_to_peer(input, Sync::Default)?)
        } else {
            let theirs = self.append_to_peer(input, Sync::Default)?;
            (self.append_to_takeback(input)?, theirs)
        };
        let plain = match kind {
            TextKind::Prose => "",
            TextKind::Random => " that do not compress",
        };
        let steps = input.messages.len();
        let row = |what: &str, theirs: &Option<AppendCosts>, of: fn(&AppendCosts) -> f64| {
            let name = format!("{steps} steps of 2 KB{plain}: {what}");
            Row::new(name, &[of(&ours)], PEER, theirs.as_ref().map(of).as_slice())
        };
        let disk_row = row("disk over unique bytes", &theirs, |puts| puts.disk_over_unique);
        let disk_row = disk_row.unit(Unit::Times).judged(Metric::Ours);
        let puts = |name, theirs| row(name, theirs, |puts| puts.per_second).unit(Unit::PerSecond);
        let rows = match kind {
            TextKind::Prose => {
                let what = format!("last {ENDS} puts over the first {ENDS}");
                let slowdown = row(&what, &theirs, |puts| puts.slowdown);
                let slowdown = slowdown.unit(Unit::Times).judged(Metric::Ours);
                let mut rows = vec![
                    disk_row.goal(Goal::AtMost(1.0)),
                    slowdown.goal(Goal::AtMost(2.0)),
                    puts("puts", &theirs).goal(Goal::AtLeast(3.0)),
                    row("slowest put", &theirs, |puts| puts.slowest_ms),
                ];
                rows.extend(full.is_some().then(|| puts("puts, the peer set to FULL", &full)));
                rows
            }
            TextKind::Random => vec![disk_row, puts("puts", &theirs)],
        };
        self.add(rows);
        Ok(())
    }

    fn append_to_takeback(&self, input: &Conversation) -> Result<AppendCosts> {
        let folder = self.folder("takeback")?;
        flush_disk()?;
        let store = open(&folder)?;
        let mut agent = Agent::new(&*store, "bench")?;
        let mut values = Values { state: json!({"messages": []}), ..Values::default() };
        let mut put_ms = Vec::new();
        for message in &input.messages {
            let messages = values.state["messages"].as_array_mut().ok_or("no list of messages")?;
            messages.push(message.clone());
            put_ms.push(agent.put(&values)?);
        }
        if agent.latest()? != values {
            return Err("Takeback returned another conversation".into());
        }
        close(store)?;
        AppendCosts::new(&put_ms, &folder, input)
    }

    fn append_to_peer(&mut self, input: &Conversation, sync: Sync) -> Result<Option<AppendCosts>> {
        let folder = self.folder("peer")?;
        let Some(peer) = &mut self.peer else { return Ok(None) };
        flush_disk()?;
        let puts = peer.append(&folder.join("peer.db"), &input.file, sync)?;
        AppendCosts::new(&puts.put_ms, &folder, input).map(Some)
    }

    fn read_latest(&mut self, input: &Conversation, round: usize) -> Result<()> {
        const TURNS: usize = 6;
        const TIMES: usize = 5;
        let last = input.messages.last().ok_or("no messages")?;
        let (mut fresh, mut opened, mut warm) = (Vec::new(), Vec::new(), Vec::new());
        let (mut peer_fresh, mut peer_warm) = (Vec::new(), Vec::new());
        flush_disk()?;
        for turn in 0..2 * TURNS {
            if (round + turn).is_multiple_of(2) {
                let db = self.scratch.join("peer/peer.db");
                let Some(peer) = &mut self.peer else { continue };
                let reads = peer.latest(&db, TIMES)?;
                if reads.messages != input.messages.len() || reads.last != last["content"] {
                    return Err("the peer returned another conversation".into());
                }
                peer_fresh.extend(reads.fresh_ms);
                peer_warm.extend(reads.warm_ms);
                continue;
            }
            for _ in 0..TIMES {
                let (store, open_ms) = timed(|| open(&self.scratch.join("takeback")))?;
                let agent = Agent::new(&*store, "bench")?;
                let (first, first_ms) = timed(|| agent.latest())?;
                let (second, second_ms) = timed(|| agent.latest())?;
                opened.push(open_ms);
                fresh.push(open_ms + first_ms);
                warm.push(second_ms);
                for values in [first, second] {
                    if values.state["messages"].as_array() != Some(&input.messages) {
                        return Err("Takeback returned another conversation".into());
                    }
                }
            }
        }
        let steps = input.messages.len();
        let row = |what: &str, ours: Vec<f64>, theirs: Vec<f64>| {
            let theirs = Some(median(theirs)).filter(|theirs| !theirs.is_nan());
            let name = format!("newest state after {steps} steps of 2 KB, {what}");
            Row::new(name, &[median(ours)], PEER, theirs.as_slice()).judged(Metric::Speedup)
        };
        self.add([
            row("newly opened", fresh, peer_fresh).goal(Goal::AtLeast(1.0)),
            row("read again", warm, peer_warm).goal(Goal::AtLeast(1.0)),
            Row::alone("the opening alone of that", &[median(opened)], Unit::Ms),
        ]);
        Ok(())
    }

    /// A large value that stays, and a counter, in every step.
    fn static_value(&mut self, kind: TextKind) -> Result<()> {
        let document = Writer::new(kind, 3).text(STATIC_BYTES);
        let folder = self.folder("takeback")?;
        close(open(&folder)?)?;
        flush_disk()?;
        let empty_bytes = disk_usage(&folder)?;
        let store = open(&folder)?;
        let mut agent = Agent::new(&*store, "bench")?;
        let mut values = Values::default();
        let mut unique_bytes = serde_json::to_string(&json!({"document": document}))?.len();
        for step in 1..=STATIC_STEPS {
            values.state = json!({"document": document, "counter": step});
            unique_bytes += step.to_string().len();
            agent.put(&values)?;
        }
        if agent.latest()? != values {
            return Err("Takeback returned another value".into());
        }
        close(store)?;
        flush_disk()?;
        let ours = [empty_bytes, disk_usage(&folder)?];
        let folder = self.folder("peer")?;
        let file = self.scratch.join("static.json");
        fs::write(&file, serde_json::to_vec(&document)?)?;
        let theirs = match &mut self.peer {
            None => None,
            Some(peer) => {
                let mut bytes_after = |steps| {
                    peer.static_value(&folder.join("peer.db"), &file, steps)?;
                    flush_disk()?;
                    disk_usage(&folder)
                };
                Some([bytes_after(0)?, bytes_after(STATIC_STEPS)?])
            }
        };
        let plain = match kind {
            TextKind::Prose => "",
            TextKind::Random => ", which do not compress",
        };
        let row = |what: &str, of: fn([u64; 2]) -> u64| {
            let over = |bytes| times(of(bytes), unique_bytes);
            let name = format!(
                "100 KB that stay{plain}, in {STATIC_STEPS} steps: {what} over unique bytes"
            );
            let row = Row::new(name, &[over(ours)], PEER, theirs.map(over).as_slice());
            row.unit(Unit::Times).judged(Metric::Ours)
        };
        let added = row("added on disk", |[empty, full]| full.saturating_sub(empty));
        let is_judged = kind == TextKind::Prose;
        let added = if is_judged { added.goal(Goal::AtMost(1.5)) } else { added };
        self.add([added, row("the whole store", |[_, full]| full)]);
        Ok(())
    }

    /// Judged with the most steps; with fewer, to see that the time is constant.
    fn measure_moves(&self, steps: u32) -> Result<[Row; 3]> {
        let store = open(&self.folder("takeback")?)?;
        let mut agent = Agent::new(&*store, &format!("bench-{steps}"))?;
        for step in 0..steps {
            agent.put(&Values { state: json!({"step": step}), ..Values::default() })?;
        }
        flush_disk()?;
        let (mut fork, mut rollback, mut undo) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..FORKS {
            // From all over the execution, the beginning included.
            let key = agent.key(1 + number * (steps - 1) / FORKS)?;
            let (back_ms, undo_ms) = agent.roll_back(&key)?;
            rollback.push(back_ms);
            undo.push(undo_ms);
            fork.push(agent.fork(&key, &format!("fork-{number}"))?);
            agent.switch("main")?;
        }
        let row = |what: &str, ms: &[f64], is_judged: bool| {
            let worst = ms.iter().copied().fold(0.0, f64::max);
            let name = format!("{what} at {steps} steps");
            let row = Row::new(name, ms, "worst", &[worst]).judged(Metric::Ours);
            if is_judged && steps >= 10_000 { row.goal(Goal::Below(5.0)) } else { row }
        };
        Ok([
            row("fork", &fork, true),
            row("rollback", &rollback, true),
            row("undo of a rollback", &undo, false),
        ])
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.scratch.join(name);
        make_empty(&folder)?;
        Ok(folder)
    }
}

impl Conversation {
    fn write(folder: &Path, kind: TextKind, steps: usize) -> Result<Self> {
        let mut writer = Writer::new(kind, 1);
        let messages = (0..steps)
            .map(|number| writer.message(number, STEP_BYTES))
            .collect::<Result<Vec<Value>>>()?;
        let file = folder.join(format!("{kind:?}.json"));
        fs::write(&file, serde_json::to_vec(&messages)?)?;
        let unique_bytes = serde_json::to_string(&json!({"messages": messages}))?.len();
        Ok(Self { messages, file, unique_bytes })
    }
}

impl AppendCosts {
    /// The database in the folder must be closed.
    fn new(put_ms: &[f64], folder: &Path, input: &Conversation) -> Result<Self> {
        flush_disk()?;
        let ends = ENDS.min(put_ms.len());
        let [first, last] = [&put_ms[..ends], &put_ms[put_ms.len() - ends..]]
            .map(|end| median(end.iter().copied()));
        #[expect(clippy::cast_precision_loss, reason = "a thousand puts")]
        let puts = put_ms.len() as f64;
        Ok(Self {
            disk_over_unique: times(disk_usage(folder)?, input.unique_bytes),
            per_second: puts / put_ms.iter().sum::<f64>() * 1000.0,
            slowdown: last / first,
            slowest_ms: put_ms.iter().copied().fold(0.0, f64::max),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes on a disk are far below 2^52")]
fn times(disk: u64, unique: usize) -> f64 {
    disk as f64 / unique as f64
}
