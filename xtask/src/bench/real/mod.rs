//! Real programs of Debian under load, with ctrace, with bpftrace on the same functions, and with
//! nobody. Programs of our own do not show how often the cheap ways of tracing can be taken.

mod compare;
mod exits;
mod nginx;
mod postgres;
mod process;
mod python;
mod redis;
mod tracers;
mod turns;
mod unwinding;

pub(super) use exits::run as exits;
pub(super) use nginx::run as nginx;
pub(super) use postgres::run as postgres;
pub(super) use python::run as python;
pub(super) use redis::run as redis;
pub(super) use unwinding::run as unwinding;
