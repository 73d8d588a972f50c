//! Writes the manual pages of all commands into a folder: `scripts/man [DIR]`.

#![expect(clippy::disallowed_methods, reason = "a tool of the build, with a folder of its own")]

mod pages;

use std::io;
use std::path::PathBuf;

fn main() -> io::Result<()> {
    let folder = std::env::args_os().nth(1).map_or_else(|| "target/man".into(), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    for page in pages::pages() {
        std::fs::write(folder.join(page.name), page.text)?;
    }
    Ok(())
}
