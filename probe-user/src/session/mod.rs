//! One tracing session: plans probes, attaches them, moves records into the engine, ends.

pub mod arm;
mod before;
pub mod behind;
pub mod bell;
pub mod budget;
pub mod buffers;
pub mod calibrate;
pub mod costs;
pub mod flight;
pub mod groups;
pub mod jump_room;
pub mod launch;
pub mod live;
pub mod markers;
pub mod memory;
mod nothing_chosen;
pub mod output;
pub mod pace;
pub mod plan;
pub mod reader;
pub mod readings;
pub mod recording;
mod release;
mod room;
pub mod setup;
pub mod signals;
pub mod sink;
pub mod slowdown;
pub mod spill;
pub mod status;
pub mod timetable;
pub mod trace;
pub mod tracer;
pub mod unarmed;

pub use setup::{Setup, describe, filter, planner};
