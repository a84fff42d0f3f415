//! Decides the rights of commands that ctrace starts, and the owner of files that it writes.
//!
//! ctrace needs root; its targets rarely do. So under sudo the command runs as the user who called
//! sudo. [`caller`] finds that user, [`account`] asks the host's name services, [`identity`]
//! decides, and [`rights`] gives up all others for good. [`for_files`] lets a thread access files
//! with the user's rights.

mod account;
mod caller;
mod error;
mod for_files;
mod identity;
pub(crate) mod rights;

pub(crate) use account::Account;
pub(crate) use caller::caller;
pub(crate) use error::UserError;
pub use identity::Identity;
