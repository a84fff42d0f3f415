//! Brings records from the rings and from marker buffers to the loop of the session, from a thread
//! of its own.

pub mod bell;
pub mod buffers;
pub mod memory;
pub mod pace;
pub mod reader;
pub mod readings;
mod room;
pub mod timetable;
