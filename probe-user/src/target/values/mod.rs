//! Values that the user asks for: what is asked, and where a program finds it when a function begins
//! or ends.

pub(crate) mod abi;
pub(crate) mod asked;
mod asked_parts;
mod asked_place;
pub(crate) mod condition;
mod joined;
mod literal;
pub(crate) mod locks;
pub(crate) mod named;
mod part;
mod place;
pub(crate) mod python;
