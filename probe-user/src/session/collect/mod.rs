//! Brings records from the rings and from marker buffers to the session's loop, from a thread of
//! its own.

pub(crate) mod bell;
pub(crate) mod buffers;
pub(crate) mod memory;
pub(crate) mod pace;
pub(crate) mod reader;
pub(crate) mod readings;
pub(crate) mod room;
pub(crate) mod timetable;
