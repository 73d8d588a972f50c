//! The `takeback` program. Everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    takeback::run()
}
