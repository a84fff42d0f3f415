//! Where text goes: terminals, pagers and the log, with their widths, colours and clock.
//!
//! Only this folder looks at the machine. All else in `ui` renders to strings.

pub(crate) mod live;
pub(crate) mod log;
pub(crate) mod pager;
pub(crate) mod slow;
pub(crate) mod style;
pub(crate) mod terminal;
pub(crate) mod title;
pub(crate) mod wall;
