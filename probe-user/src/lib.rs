//! The `ctrace` program as a library, so that its parts can be tested one by one.
//!
//! Data flows one way: `target` decides where probes go, `bpf` puts them there and brings records
//! back, `ctrace_core` turns records into a report, `ui` shows it; `session` connects them and
//! `cmd` has one file per subcommand.

mod auxv;
mod bpf;
mod cli;
mod cmd;
mod connections;
mod daemon;
mod files;
mod heal;
mod host_name;
mod inherited;
mod limits;
mod process_status;
mod program;
mod session;
mod tables;
mod target;
mod timeline_server;
mod top;
mod ui;
mod user;
mod values;
mod writing;

pub mod testing;

pub use bpf::Memory;
pub use program::main;
