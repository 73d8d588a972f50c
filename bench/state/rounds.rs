//! The cases, each in rounds: all in turn, another one first every time.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use takeback_bench::Result;
use takeback_bench::measure::{disk_usage, median, millis, settle_disk};
use takeback_store::state::{StateStore, Values};

use crate::make_empty;
use crate::peer::{Peer, Waiting};
use crate::raw::{Raw, Table};
use crate::takeback::{Agent, open};
use crate::text::{Kind, Writer, packs};

const STEPS: usize = 1000;
const STEP_BYTES: usize = 2048;
/// How many puts at each end of a conversation are compared.
pub(crate) const ENDS: usize = 50;
const SMALL_BYTES: usize = 1024;
const WRITERS: usize = 8;
/// Small states are put in blocks, and the stores take turns block by block.
const BLOCKS: usize = 6;
const BLOCK: usize = 480;
const STATIC_BYTES: usize = 100 << 10;
const STATIC_STEPS: usize = 100;
const FORKED_STEPS: [u32; 2] = [100, 10_000];
const FORKS: u32 = 20;

#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    /// Of a write of 4 KB behind the end of a file, in each round.
    pub(crate) fsync_ms: Vec<f64>,
    /// How many times smaller zstd makes the conversation: message by message, and at once.
    pub(crate) prose_packs: [f64; 2],
    pub(crate) prose: Vec<Conversation>,
    /// The same with text that cannot be packed.
    pub(crate) random: Vec<Conversation>,
    pub(crate) latest: Vec<Latest>,
    pub(crate) small: Vec<Small>,
    pub(crate) static_prose: Vec<Static>,
    pub(crate) static_random: Vec<Static>,
    pub(crate) moves: Vec<Moves>,
}

/// A conversation, saved whole at each of its steps.
#[derive(Debug, Serialize)]
pub(crate) struct Conversation {
    /// Of the last state as JSON.
    pub(crate) unique_bytes: usize,
    pub(crate) takeback: Appended,
    pub(crate) peer: Option<Appended>,
    /// Only where the peer does not wait for the disk as it comes.
    pub(crate) peer_full: Option<Appended>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Appended {
    pub(crate) disk_bytes: u64,
    pub(crate) puts_per_second: f64,
    /// The medians of both ends.
    pub(crate) first_ms: f64,
    pub(crate) last_ms: f64,
    pub(crate) slowest_ms: f64,
}

/// Reading the newest state, in milliseconds; medians.
#[derive(Debug, Serialize)]
pub(crate) struct Latest {
    pub(crate) takeback_fresh: f64,
    /// The part of that in which the store was opened.
    pub(crate) takeback_open: f64,
    pub(crate) takeback_warm: f64,
    pub(crate) peer_fresh: Option<f64>,
    pub(crate) peer_warm: Option<f64>,
}

/// Puts of small states a second.
#[derive(Debug, Serialize)]
pub(crate) struct Small {
    /// Rows that can be found by their key.
    pub(crate) raw: f64,
    /// Rows and nothing else.
    pub(crate) bare: f64,
    pub(crate) one_writer: f64,
    pub(crate) eight_writers: f64,
}

/// A large value that stays, in every step.
#[derive(Debug, Serialize)]
pub(crate) struct Static {
    pub(crate) unique_bytes: usize,
    pub(crate) takeback: Grown,
    pub(crate) peer: Option<Grown>,
}

/// What a store takes on disk with nothing in it, and then.
#[derive(Debug, Serialize)]
pub(crate) struct Grown {
    pub(crate) empty_bytes: u64,
    pub(crate) bytes: u64,
}

/// Forks, rollbacks and their undoing, in milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Moves {
    pub(crate) steps: u32,
    pub(crate) fork: Vec<f64>,
    pub(crate) rollback: Vec<f64>,
    pub(crate) undo: Vec<f64>,
}

pub(crate) fn run(scratch: &Path, rounds: usize, peer: Option<Peer>) -> Result<Measured> {
    let mut bench = Bench { scratch: scratch.join("states"), peer };
    make_empty(&bench.scratch)?;
    let prose = bench.conversation(Kind::Prose)?;
    let random = bench.conversation(Kind::Random)?;
    let texts: Vec<String> = prose.messages.iter().map(Value::to_string).collect();
    let mut measured = Measured {
        fsync_ms: Vec::new(),
        prose_packs: [packs(&texts)?, packs(&[texts.concat()])?],
        prose: Vec::new(),
        random: Vec::new(),
        latest: Vec::new(),
        small: Vec::new(),
        static_prose: Vec::new(),
        static_random: Vec::new(),
        moves: Vec::new(),
    };
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        measured.fsync_ms.push(bench.fsync_ms()?);
        measured.prose.push(bench.append(&prose, round)?);
        measured.latest.push(bench.latest(&prose, round)?);
        measured.small.push(bench.small(round)?);
        measured.static_prose.push(bench.static_value(Kind::Prose)?);
    }
    eprintln!("text that does not pack");
    measured.random.push(bench.append(&random, 0)?);
    measured.static_random.push(bench.static_value(Kind::Random)?);
    eprintln!("forks and rollbacks");
    measured.moves = bench.moves()?;
    std::fs::remove_dir_all(&bench.scratch)?;
    Ok(measured)
}

struct Bench {
    /// Emptied before and after.
    scratch: PathBuf,
    peer: Option<Peer>,
}

/// What a conversation comes to, and the file in which the peer finds it.
struct Input {
    messages: Vec<Value>,
    file: PathBuf,
    unique_bytes: usize,
}

impl Bench {
    fn conversation(&self, kind: Kind) -> Result<Input> {
        let mut writer = Writer::new(kind, 1);
        let messages = (0..STEPS)
            .map(|number| writer.message(number, STEP_BYTES))
            .collect::<Result<Vec<Value>>>()?;
        let file = self.scratch.join(format!("{kind:?}.json"));
        std::fs::write(&file, serde_json::to_vec(&messages)?)?;
        let unique_bytes = serde_json::to_string(&json!({"messages": messages}))?.len();
        Ok(Input { messages, file, unique_bytes })
    }

    fn fsync_ms(&self) -> Result<f64> {
        settle_disk()?;
        let mut file = File::create(self.scratch.join("fsync"))?;
        let times = (0..100)
            .map(|_| {
                file.write_all(&[1; 4096])?;
                let began = Instant::now();
                file.sync_data()?;
                Ok(millis(began.elapsed()))
            })
            .collect::<Result<Vec<f64>>>()?;
        Ok(median(times))
    }

    /// Leaves both databases of the last round to be read.
    fn append(&mut self, input: &Input, round: usize) -> Result<Conversation> {
        let waits = self.peer.as_ref().is_some_and(|peer| peer.facts.is_full());
        let peer_full = if waits { None } else { self.peer_appends(input, Waiting::Full)? };
        let (takeback, peer) = if round.is_multiple_of(2) {
            let takeback = self.takeback_appends(input)?;
            (takeback, self.peer_appends(input, Waiting::AsItComes)?)
        } else {
            let peer = self.peer_appends(input, Waiting::AsItComes)?;
            (self.takeback_appends(input)?, peer)
        };
        Ok(Conversation { unique_bytes: input.unique_bytes, takeback, peer, peer_full })
    }

    fn takeback_appends(&self, input: &Input) -> Result<Appended> {
        let folder = self.folder("takeback")?;
        settle_disk()?;
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
            return Err("Takeback gave back another conversation".into());
        }
        drop(store);
        Appended::new(&put_ms, &folder)
    }

    fn peer_appends(&mut self, input: &Input, waiting: Waiting) -> Result<Option<Appended>> {
        let folder = self.folder("peer")?;
        let Some(peer) = &mut self.peer else { return Ok(None) };
        settle_disk()?;
        let answer = peer.append(&folder.join("peer.db"), &input.file, waiting)?;
        Appended::new(&answer.put_ms, &folder).map(Some)
    }

    /// Of the conversation that [`Self::append`] left.
    fn latest(&mut self, input: &Input, round: usize) -> Result<Latest> {
        const TURNS: usize = 6;
        const TIMES: usize = 5;
        let last = input.messages.last().ok_or("no messages")?;
        let (mut fresh, mut opened, mut warm) = (Vec::new(), Vec::new(), Vec::new());
        let (mut peer_fresh, mut peer_warm) = (Vec::new(), Vec::new());
        settle_disk()?;
        for turn in 0..2 * TURNS {
            if (round + turn).is_multiple_of(2) {
                let db = self.scratch.join("peer/peer.db");
                let Some(peer) = &mut self.peer else { continue };
                let answer = peer.latest(&db, TIMES)?;
                if answer.messages != input.messages.len() || answer.last != last["content"] {
                    return Err("the peer gave back another conversation".into());
                }
                peer_fresh.extend(answer.fresh_ms);
                peer_warm.extend(answer.warm_ms);
            } else {
                for _ in 0..TIMES {
                    let began = Instant::now();
                    let store = open(&self.scratch.join("takeback"))?;
                    let open_ms = millis(began.elapsed());
                    let agent = Agent::new(&*store, "bench")?;
                    let first = agent.latest()?;
                    fresh.push(millis(began.elapsed()));
                    opened.push(open_ms);
                    let began = Instant::now();
                    let second = agent.latest()?;
                    warm.push(millis(began.elapsed()));
                    for values in [first, second] {
                        if values.state["messages"].as_array() != Some(&input.messages) {
                            return Err("Takeback gave back another conversation".into());
                        }
                    }
                }
            }
        }
        let measured = |times: Vec<f64>| (!times.is_empty()).then(|| median(times));
        Ok(Latest {
            takeback_fresh: median(fresh),
            takeback_open: median(opened),
            takeback_warm: median(warm),
            peer_fresh: measured(peer_fresh),
            peer_warm: measured(peer_warm),
        })
    }

    fn small(&self, round: usize) -> Result<Small> {
        let mut states = States(Writer::new(Kind::Prose, 2 + u64::try_from(round)?), 0);
        let raw = Raw::open(&self.folder("raw")?, Table::Keyed)?;
        let bare = Raw::open(&self.folder("bare")?, Table::Bare)?;
        let one = open(&self.folder("one")?)?;
        let many = open(&self.folder("many")?)?;
        let mut writer = Agent::new(&*one, "bench")?;
        let mut writers = (0..WRITERS)
            .map(|number| Agent::new(&*many, &format!("bench-{number}")))
            .collect::<Result<Vec<_>>>()?;
        let mut spent = [Duration::ZERO; 4];
        settle_disk()?;
        // The first blocks do not count: a write-ahead log that still grows costs twice as much, and
        // comes to its size after about a thousand puts.
        const UNCOUNTED: usize = 3;
        for block in 0..UNCOUNTED + BLOCKS {
            for turn in 0..spent.len() {
                let who = (round + block + turn) % spent.len();
                let took = match who {
                    0 | 3 => {
                        let raw = if who == 0 { &raw } else { &bare };
                        let values = states.take(BLOCK);
                        let rows: Vec<String> =
                            values.iter().map(|values| values.state.to_string()).collect();
                        let began = Instant::now();
                        for (at, row) in rows.iter().enumerate() {
                            raw.put(block * BLOCK + at, row)?;
                        }
                        began.elapsed()
                    }
                    1 => {
                        let values = states.take(BLOCK);
                        let began = Instant::now();
                        for values in &values {
                            writer.put(values)?;
                        }
                        began.elapsed()
                    }
                    2.. => all_put(&mut writers, &states.take(WRITERS * BLOCK))?,
                };
                if block >= UNCOUNTED {
                    spent[who] += took;
                }
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "some thousand puts")]
        let rate = |who: usize, puts: usize| (BLOCKS * puts) as f64 / spent[who].as_secs_f64();
        Ok(Small {
            raw: rate(0, BLOCK),
            bare: rate(3, BLOCK),
            one_writer: rate(1, BLOCK),
            eight_writers: rate(2, WRITERS * BLOCK),
        })
    }

    fn static_value(&mut self, kind: Kind) -> Result<Static> {
        let document = Writer::new(kind, 3).text(STATIC_BYTES);
        let folder = self.folder("takeback")?;
        drop(open(&folder)?);
        settle_disk()?;
        let empty_bytes = disk_usage(&folder)?;
        let store = open(&folder)?;
        let mut agent = Agent::new(&*store, "bench")?;
        let mut values = Values::default();
        let mut unique_bytes = 0;
        for step in 1..=STATIC_STEPS {
            values.state = json!({"document": document, "counter": step});
            unique_bytes += step.to_string().len();
            agent.put(&values)?;
        }
        unique_bytes += serde_json::to_string(&json!({"document": document}))?.len();
        if agent.latest()? != values {
            return Err("Takeback gave back another value".into());
        }
        drop(store);
        settle_disk()?;
        let takeback = Grown { empty_bytes, bytes: disk_usage(&folder)? };
        let folder = self.folder("peer")?;
        let file = self.scratch.join("static.json");
        std::fs::write(&file, serde_json::to_vec(&document)?)?;
        let peer = match &mut self.peer {
            Some(peer) => {
                let mut after = |steps| -> Result<u64> {
                    peer.static_value(&folder.join("peer.db"), &file, steps)?;
                    settle_disk()?;
                    disk_usage(&folder)
                };
                Some(Grown { empty_bytes: after(0)?, bytes: after(STATIC_STEPS)? })
            }
            None => None,
        };
        Ok(Static { unique_bytes, takeback, peer })
    }

    fn moves(&self) -> Result<Vec<Moves>> {
        let store = open(&self.folder("takeback")?)?;
        FORKED_STEPS.into_iter().map(|steps| moves(&*store, steps)).collect()
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.scratch.join(name);
        make_empty(&folder)?;
        Ok(folder)
    }
}

impl Appended {
    /// The database in the folder must be closed.
    fn new(put_ms: &[f64], folder: &Path) -> Result<Self> {
        settle_disk()?;
        let total_ms: f64 = put_ms.iter().sum();
        #[expect(clippy::cast_precision_loss, reason = "a thousand puts")]
        let puts = put_ms.len() as f64;
        Ok(Self {
            disk_bytes: disk_usage(folder)?,
            puts_per_second: puts / total_ms * 1000.0,
            first_ms: median(put_ms[..ENDS].iter().copied()),
            last_ms: median(put_ms[put_ms.len() - ENDS..].iter().copied()),
            slowest_ms: put_ms.iter().copied().fold(0.0, f64::max),
        })
    }
}

/// Small states, no two of them equal.
struct States(Writer, usize);

impl States {
    fn take(&mut self, number: usize) -> Vec<Values> {
        (0..number)
            .map(|_| {
                self.1 += 1;
                let around = json!({"n": self.1, "text": ""}).to_string().len();
                let text = self.0.text(SMALL_BYTES - around);
                Values { state: json!({"n": self.1, "text": text}), ..Values::default() }
            })
            .collect()
    }
}

/// Every writer puts its share at the same time; how long it took the last one.
fn all_put(writers: &mut [Agent<'_>], values: &[Values]) -> Result<Duration> {
    let start = Barrier::new(writers.len() + 1);
    std::thread::scope(|scope| {
        let shares = values.chunks(values.len() / writers.len());
        let threads: Vec<_> = writers
            .iter_mut()
            .zip(shares)
            .map(|(writer, share)| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    share.iter().try_for_each(|values| {
                        writer.put(values).map(drop).map_err(|error| error.to_string())
                    })
                })
            })
            .collect();
        let began = Instant::now();
        start.wait();
        for thread in threads {
            match thread.join() {
                Ok(done) => done?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(began.elapsed())
    })
}

fn moves(store: &dyn StateStore, steps: u32) -> Result<Moves> {
    let mut agent = Agent::new(store, &format!("bench-{steps}"))?;
    for step in 0..steps {
        let state = json!({"step": step});
        agent.put(&Values { state, ..Values::default() })?;
    }
    settle_disk()?;
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
    Ok(Moves { steps, fork, rollback, undo })
}
