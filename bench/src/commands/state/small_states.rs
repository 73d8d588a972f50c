//! Saves of small states per second: Takeback with one writer and with eight, next to plain SQLite.

use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde_json::json;
use takeback_store::state::Values;

use super::agent::{Agent, open};
use crate::Result;
use crate::driver::sqlite::{PlainSqlite, Table};
use crate::measure::flush_disk;
use crate::report::{Goal, Row, Unit};
use crate::rounds::in_turn;
use crate::scratch::make_empty;
use crate::text::{TextKind, Writer};

const STATE_BYTES: usize = 1024;
const WRITERS: usize = 8;
/// The stores take turns block by block.
const BLOCKS: usize = 6;
const BLOCK: usize = 480;
/// The first blocks do not count: puts cost twice as much until the write-ahead log has its full size,
/// after about a thousand.
const WARM_UP: usize = 3;

pub(super) fn measure_small_states(folder: &Path, round: usize) -> Result<[Row; 4]> {
    let part = |name: &str| {
        let part = folder.join(name);
        make_empty(&part).map(|()| part)
    };
    let mut states = States(Writer::new(TextKind::Prose, 2 + u64::try_from(round)?), 0);
    let keyed = PlainSqlite::open(&part("keyed")?, Table::Keyed)?;
    let bare = PlainSqlite::open(&part("bare")?, Table::Bare)?;
    let (one, many) = (open(&part("one")?)?, open(&part("many")?)?);
    let mut writer = Agent::new(&*one, "bench")?;
    let mut writers = (0..WRITERS)
        .map(|number| Agent::new(&*many, &format!("bench-{number}")))
        .collect::<Result<Vec<_>>>()?;
    let mut spent = [Duration::ZERO; 4];
    flush_disk()?;
    for block in 0..WARM_UP + BLOCKS {
        for store in in_turn(spent.len(), round + block) {
            let time = match store {
                0 => put_rows(&keyed, block, &states.take(BLOCK))?,
                1 => put_rows(&bare, block, &states.take(BLOCK))?,
                2 => put_all(std::slice::from_mut(&mut writer), &states.take(BLOCK))?,
                _ => put_all(&mut writers, &states.take(WRITERS * BLOCK))?,
            };
            if block >= WARM_UP {
                spent[store] += time;
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "some thousand puts")]
    let rate = |store: usize, puts: usize| (BLOCKS * puts) as f64 / spent[store].as_secs_f64();
    let (keyed, bare) = (rate(0, BLOCK), rate(1, BLOCK));
    let (one, eight) = (rate(2, BLOCK), rate(3, WRITERS * BLOCK));
    let row = |name: &str, ours: f64, theirs: f64| {
        Row::new(name, &[ours], "plain SQLite", &[theirs]).unit(Unit::PerSecond)
    };
    Ok([
        row("1 KB states, one writer", one, keyed).goal(Goal::AtLeast(0.9)),
        row("1 KB states, 8 writers", eight, keyed).goal(Goal::AtLeast(4.0)),
        row("1 KB states, one writer, compared with rows without a key", one, bare),
        row("1 KB states, 8 writers, compared with rows without a key", eight, bare),
    ])
}

fn put_rows(sqlite: &PlainSqlite, block: usize, values: &[Values]) -> Result<Duration> {
    let rows: Vec<String> = values.iter().map(|values| values.state.to_string()).collect();
    let start = Instant::now();
    for (at, row) in rows.iter().enumerate() {
        sqlite.put(block * BLOCK + at, row)?;
    }
    Ok(start.elapsed())
}

/// Every writer puts its share at the same time; the time until the last one is done.
fn put_all(writers: &mut [Agent<'_>], values: &[Values]) -> Result<Duration> {
    let barrier = Barrier::new(writers.len() + 1);
    std::thread::scope(|scope| {
        let shares = values.chunks(values.len() / writers.len());
        let threads: Vec<_> = writers
            .iter_mut()
            .zip(shares)
            .map(|(writer, share)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    share.iter().try_for_each(|values| {
                        writer.put(values).map(drop).map_err(|error| error.to_string())
                    })
                })
            })
            .collect();
        let start = Instant::now();
        barrier.wait();
        for thread in threads {
            match thread.join() {
                Ok(done) => done?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(start.elapsed())
    })
}

/// Small states, no two of them equal.
struct States(Writer, usize);

impl States {
    fn take(&mut self, count: usize) -> Vec<Values> {
        let state = |_| {
            self.1 += 1;
            let around = json!({"n": self.1, "text": ""}).to_string().len();
            let text = self.0.text(STATE_BYTES - around);
            Values { state: json!({"n": self.1, "text": text}), ..Values::default() }
        };
        (0..count).map(state).collect()
    }
}
