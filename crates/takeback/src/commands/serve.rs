//! `serve`: what the commands do, for other programs, as `docs/design/protocol.md` specifies it.

mod client;
mod checkpoints;
mod events;
mod fault;
mod methods;
mod points;

use std::io;

use takeback_ipc::Limits;

use self::client::Client;
use crate::args::{Options, ServeArgs};
use crate::error::{CommandError, Kind};
use crate::progress;

pub(crate) fn serve(options: &Options, _: &ServeArgs) -> Result<u8, CommandError> {
    progress::hide();
    let mut client = Client::new(options)?;
    let (input, output) = (io::stdin().lock(), io::stdout());
    // Who does not read keeps only itself waiting.
    let hang_up = || {};
    takeback_ipc::serve(input, output, &Limits::default(), hang_up, &mut |call, outlet| {
        client.answer(call, outlet)
    })
    .map_err(|error| CommandError::new(Kind::Error, error))?;
    Ok(0)
}
