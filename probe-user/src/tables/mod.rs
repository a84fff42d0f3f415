//! Files of the tables of a fleet, for the daemon that writes them and for commands that look after them.

pub(crate) mod claims;
pub(crate) mod compact;
mod folders;
#[cfg(test)]
pub(crate) mod samples;

pub(crate) use folders::{entries, folders, linked_folders};

/// Returns the name of this machine, unless its daemon is told another.
pub(crate) fn own_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
