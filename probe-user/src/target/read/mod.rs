//! Safe readers of files that a target or a stranger wrote: regular files only, inside the root of a
//! container, by part, within a budget.

pub(crate) mod budget;
pub(crate) mod regular;
pub(super) mod root;
pub(crate) mod source;
