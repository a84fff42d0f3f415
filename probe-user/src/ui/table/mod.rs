//! Draws rows: as tables, as trees, and side by side with bars.
//!
//! Views choose the rows and columns. The forms are here, so that they are the same in all views.

pub(crate) mod armed;
pub(crate) mod forest;
pub(crate) mod grid;
pub(crate) mod net;
pub(crate) mod number;
pub(crate) mod place;
pub(crate) mod plot;
pub(crate) mod row_names;
pub(crate) mod stack;
