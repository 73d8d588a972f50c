//! `demo`: the main job, really done, in a temporary folder.

use crate::error::CommandError;
use crate::screen::Screen;

pub(crate) fn demo(_screen: &mut Screen) -> Result<u8, CommandError> {
    Ok(0)
}
