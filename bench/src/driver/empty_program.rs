//! An empty Rust program: the floor of everything that starts a process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;
use crate::measure::Commands;

/// Reads its input, as a hook must, and ends.
const SOURCE: &str =
    "fn main() { drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink())); }";

pub(crate) struct EmptyProgram {
    program: PathBuf,
}

impl EmptyProgram {
    /// Compiles the program into `folder`. This program, doing nothing, would not do: it is large, and
    /// the linker has to relocate it at every start.
    pub(crate) fn build(folder: &Path) -> Result<Self> {
        let (source, program) = (folder.join("empty.rs"), folder.join("empty"));
        std::fs::write(&source, SOURCE)?;
        let mut rustc = Command::new("rustc");
        rustc.args(["-O", "-C", "strip=symbols", "-o"]).arg(&program).arg(&source);
        rustc.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
        crate::measure::output_of(&mut rustc)?;
        Ok(Self { program })
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn commands(&self, folder: &Path) -> Commands {
        Commands::new(&self.program, folder, []).run(&[])
    }
}
