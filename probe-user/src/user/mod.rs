//! Whose rights a command gets that ctrace starts, and whose the files are that ctrace writes.
//!
//! ctrace needs root; what it traces rarely does. Under sudo the command therefore runs as the user
//! who called sudo: [`caller`] finds out who that is, [`account`] asks the host's name services
//! about them, [`identity`] decides, and [`rights`] gives up all others, for good. While ctrace looks
//! at files on their behalf, [`for_files`] has a thread do so with their rights.

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
