//! The call of this crate that only Linux has in this form; `docs/design/porting.md` lists what other
//! systems have instead.

use std::os::unix::net::UnixStream;

/// Whether the peer is a process of the same user. A peer that cannot be identified is not.
pub(crate) fn is_own(stream: &UnixStream) -> bool {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}
