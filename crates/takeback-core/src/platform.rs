//! Every call of this crate that only Linux has in this form, behind functions whose contracts a port
//! can keep by other means. The few that change the disk are in `takeback-store/src/platform.rs`.
//! `docs/design/porting.md` lists what other systems have instead and which tests prove a port.

pub(crate) mod clock;
pub(crate) mod folder;
pub(crate) mod processes;
pub(crate) mod watches;
