//! Opens every file that ctrace writes.
//!
//! ctrace is root, and often writes where others can write as well: /tmp, or the home of the
//! target's user. They could put a symbolic link there, and root would write wherever it leads. So
//! a path is walked folder by folder ([`walk`]), and a link is followed only if nobody but root
//! could have put it there ([`trust`]). The file is then opened, renamed or removed as an entry of
//! an open folder ([`Place`]), so that nothing can be swapped in between.

mod error;
mod owner;
mod place;
mod socket;
mod temporary;
#[cfg(test)]
mod tests;
mod trust;
mod walk;

pub(crate) use error::FileError;
pub(crate) use owner::Owner;
pub(crate) use place::{FileId, Place};
pub(crate) use socket::{SocketFile, judge_socket};
pub(crate) use temporary::replaced_by;
pub(crate) use trust::is_from_us;
pub(crate) use walk::make_folder;
