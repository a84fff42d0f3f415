//! Connections of programs that ctrace does not know, for its sockets and its HTTP servers.

pub(crate) mod http;
pub(crate) mod places;
