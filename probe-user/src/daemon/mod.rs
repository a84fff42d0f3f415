//! `ctrace daemon`: traces chosen processes for as long as they live and the machine runs.
//!
//! [`supervisor`] is the one thread that decides. [`choosing`] picks the processes to trace, and
//! [`commands`] keeps it from waiting for any. Everything reaches it as an [`event`]. [`finder`]
//! reports processes. Each traced process has a [`session`] on its own threads, which works like
//! `ctrace attach`. The sessions' reports go through the [`hub`] to files and to clients
//! ([`control`]).

pub(crate) mod accounts;
pub(crate) mod backoff;
pub(crate) mod choosing;
mod commands;
pub(crate) mod config;
pub(crate) mod control;
pub(crate) mod event;
pub(crate) mod finder;
mod fleet;
pub(crate) mod flight;
pub(crate) mod hub;
pub(crate) mod ids;
pub(crate) mod limits;
pub(crate) mod looks;
pub(crate) mod metrics;
pub(crate) mod notify;
pub(crate) mod once;
pub(crate) mod post;
pub(crate) mod profiles;
mod random_ids;
pub(crate) mod recordings;
pub(crate) mod reports;
pub(crate) mod requests;
pub(crate) mod session;
pub(crate) mod signals;
mod source;
pub(crate) mod spans;
mod split;
pub(crate) mod supervisor;
pub(crate) mod totals;
mod turns;
mod waiting;

pub(crate) use supervisor::run;

/// Returns why a daemon with this configuration would not start, or would not do all of it.
pub(crate) fn refusal(config: &config::Config) -> Option<String> {
    let start = config.refusal().map(|why| format!("a daemon would not start: {why}"));
    start.or_else(|| {
        fleet::refusal(&config.fleet).map(|why| format!("a daemon would send no tables: {why}"))
    })
}
