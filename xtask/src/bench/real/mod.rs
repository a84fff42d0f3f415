//! Real programs of Debian under load, with ctrace, with bpftrace on the same functions, and with
//! nobody. Programs of our own do not show how often the cheap ways of tracing can be taken.

mod nginx;
mod postgres;
mod process;
mod python;
mod redis;
mod shares;
mod tracers;
mod turns;
mod unwinding;

use super::Row;
use anyhow::Result;

pub(super) fn run() -> Result<Vec<Row>> {
    let mut all = Vec::new();
    for part in [redis::run, postgres::run, nginx::run, python::run, unwinding::run, shares::run] {
        all.extend(part()?);
    }
    Ok(all)
}
