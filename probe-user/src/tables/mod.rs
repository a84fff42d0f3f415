//! Files of the tables of a fleet, for the daemon that writes them and for commands that look after them.

pub(crate) mod claims;
pub(crate) mod compact;
mod folders;
#[cfg(test)]
pub(crate) mod samples;

pub(crate) use folders::{entries, folders, linked_folders};
