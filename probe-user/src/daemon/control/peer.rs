//! Identifies the other end of the socket, as the kernel knows it.

use crate::daemon::accounts;
use rustix::net::sockopt::socket_peercred;
use std::os::unix::net::UnixStream;

/// Admits root, and the members of a group if there is one.
pub(super) fn check(stream: &UnixStream, group: Option<u32>) -> Result<(), String> {
    let peer = socket_peercred(stream).map_err(|error| format!("who asks is unknown: {error}"))?;
    may_ask(peer.uid.as_raw(), peer.gid.as_raw(), group)
}

fn may_ask(user: u32, own_group: u32, group: Option<u32>) -> Result<(), String> {
    let is_in = |group| own_group == group || accounts::is_member(user, group);
    if user == 0 || group.is_some_and(is_in) {
        return Ok(());
    }
    Err(format!(
        "user {user} may not ask the daemon: root may, and the members of `group` in [daemon]"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_refused() {
        assert!(may_ask(0, 0, None).is_ok());
        assert!(may_ask(54321, 4711, Some(4711)).is_ok());
        assert!(may_ask(54321, 1, Some(4711)).is_err());
        assert!(may_ask(54321, 0, None).is_err());
    }
}
