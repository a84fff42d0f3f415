//! Every file that ctrace writes is opened here.
//!
//! ctrace is root, and often writes where others can write as well: /tmp, the home of whoever runs
//! the target. They could put a symbolic link there, and root would write wherever it leads. So a
//! path is gone through folder by folder ([`walk`]), and a link is followed only if nobody but root
//! could have put it there ([`trust`]). What is opened, renamed or removed then is an entry of an
//! open folder ([`Place`]), so that nothing can be swapped in between.

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
pub(crate) use walk::make_folder;
