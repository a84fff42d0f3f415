//! The owners of new files.

use crate::user::{UserError, caller};
use rustix::process::{Gid, Uid};

/// Only the owner and the group may read data about a target.
pub(super) const PRIVATE: u32 = 0o640;
/// For manual pages.
pub(super) const PUBLIC: u32 = 0o644;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The caller of sudo, if there is one.
    Caller,
    /// The user that ctrace runs as.
    Ours,
}

/// The ids of the owner. `None` keeps the process's own.
pub(super) type Ids = Option<(Uid, Gid)>;

impl Owner {
    pub(super) fn ids(self) -> Result<Ids, UserError> {
        match self {
            Self::Ours => Ok(None),
            Self::Caller => Ok(caller()?.map(|caller| (caller.rights.uid, caller.rights.gid))),
        }
    }
}
