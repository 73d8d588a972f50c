//! The scripted model, for a program that you start by hand:
//!
//! ```sh
//! cargo run -p takeback-testkit --example model [REQUESTS]
//! ```
//!
//! Prints its address, serves until its input ends, and then writes the requests to REQUESTS, one per line.

#![expect(clippy::print_stdout, reason = "the caller needs the address")]
#![expect(clippy::disallowed_methods, reason = "it writes the file that the caller named")]

use std::io;

use serde_json::json;
use takeback_testkit::model::ModelServer;

fn main() -> io::Result<()> {
    let server = ModelServer::start();
    println!("{}", server.url());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    let Some(file) = std::env::args_os().nth(1) else { return Ok(()) };
    let requests = server.requests().into_iter().map(|request| {
        let line = json!({"method": request.method, "path": request.path, "body": request.body});
        format!("{line}\n")
    });
    std::fs::write(file, requests.collect::<String>())
}
