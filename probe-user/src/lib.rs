//! The `ctrace` program as a library, so that its parts can be tested one by one.
//!
//! Data flows one way: `target` decides where probes go, `bpf` puts them there and brings records
//! back, `ctrace_core` turns records into a report, `ui` shows it; `session` connects them and
//! `cmd` has one file per subcommand.

pub mod bpf;
pub mod cli;
pub mod cmd;
pub mod daemon;
pub mod files;
pub mod heal;
pub mod inherited;
pub mod limits;
pub mod session;
pub mod target;
pub mod top;
pub mod ui;
pub mod user;
pub mod values;
pub mod writing;
