//! The machine that something was measured on.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::measure::answer_of;

#[derive(Debug, Serialize, Deserialize)]
pub struct Machine {
    pub cores: usize,
    pub processor: String,
    pub kernel: String,
}

impl Machine {
    pub fn this() -> Result<Self> {
        let processors = std::fs::read_to_string("/proc/cpuinfo")?;
        let processor = processors.lines().find_map(|line| line.strip_prefix("model name"));
        Ok(Self {
            cores: std::thread::available_parallelism()?.get(),
            processor: processor
                .unwrap_or_default()
                .trim_start_matches(['\t', ' ', ':'])
                .to_owned(),
            kernel: answer_of("uname", &["-sr"])?,
        })
    }
}

/// Of the last one, five and fifteen minutes.
pub fn load_average() -> Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

/// Today's, which names the file of results.
pub fn date() -> Result<String> {
    answer_of("date", &["-u", "+%F"])
}
