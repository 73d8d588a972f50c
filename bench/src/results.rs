//! The files in `bench/results`: everything that was measured, and on which machine.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::measure::text_of;

#[derive(clap::Args)]
pub(crate) struct ResultsArgs {
    /// Print the tables without writing to bench/results
    #[arg(long, global = true)]
    no_results: bool,
    /// Date in the name of the results file [default: today]
    #[arg(long, global = true)]
    date: Option<String>,
}

/// Where the measurements of this run end up.
pub(crate) struct Results {
    date: String,
    load: String,
    pub(crate) is_saved: bool,
}

/// A file of results.
#[derive(Serialize, Deserialize)]
pub(crate) struct ResultsFile<T> {
    pub(crate) date: String,
    takeback: String,
    machine: Machine,
    load: Load,
    pub(crate) measured: T,
}

#[derive(Serialize, Deserialize)]
struct Machine {
    cores: usize,
    processor: String,
    kernel: String,
}

/// Load averages of the last one, five and fifteen minutes.
#[derive(Serialize, Deserialize)]
struct Load {
    before: String,
    after: String,
}

impl Results {
    pub(crate) fn new(args: ResultsArgs) -> Result<Self> {
        let is_debug = cfg!(debug_assertions);
        let date = args.date.map_or_else(|| text_of("date", &["-u", "+%F"]), Ok)?;
        Ok(Self { date, load: load_average()?, is_saved: !args.no_results && !is_debug })
    }

    /// Prints the machine below the tables, and writes what was measured to `DATE-NAME.json`.
    pub(crate) fn finish<T: Serialize>(&self, name: &str, measured: T) -> Result<ResultsFile<T>> {
        let saved = ResultsFile {
            date: self.date.clone(),
            takeback: env!("CARGO_PKG_VERSION").to_owned(),
            machine: Machine::this()?,
            load: Load { before: self.load.clone(), after: load_average()? },
            measured,
        };
        println!("{}", saved.machine());
        if cfg!(debug_assertions) {
            println!("This is a debug build: its times mean nothing, and were not saved.");
        }
        if self.is_saved {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
            fs::create_dir_all(&folder)?;
            let text = serde_json::to_string(&saved)? + "\n";
            fs::write(folder.join(format!("{}-{name}.json", self.date)), text)?;
        }
        Ok(saved)
    }
}

impl<T> ResultsFile<T> {
    pub(crate) fn machine(&self) -> String {
        let Machine { cores, kernel, .. } = &self.machine;
        let Load { before, after } = &self.load;
        format!("{cores} cores, {kernel}; load {before} before, {after} after.")
    }
}

impl<T: DeserializeOwned> ResultsFile<T> {
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(serde_json::from_str(&text)?)
    }
}

impl Machine {
    fn this() -> Result<Self> {
        let processors = fs::read_to_string("/proc/cpuinfo")?;
        let processor = processors.lines().find_map(|line| line.strip_prefix("model name"));
        Ok(Self {
            cores: std::thread::available_parallelism()?.get(),
            processor: processor.unwrap_or_default().trim_matches(['\t', ' ', ':']).to_owned(),
            kernel: text_of("uname", &["-sr"])?,
        })
    }
}

fn load_average() -> Result<String> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}
