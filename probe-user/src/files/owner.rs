//! Whose a new file is.

use crate::user::{UserError, caller};
use rustix::process::{Gid, Uid};

/// Nobody else but them and their group reads what was seen of a target.
pub(super) const PRIVATE: u32 = 0o640;
/// For manual pages.
pub(super) const PUBLIC: u32 = 0o644;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Whoever called sudo, if somebody did.
    Caller,
    /// Whoever ctrace runs as.
    Ours,
}

/// Who that is; none: as it comes.
pub(super) type Ids = Option<(Uid, Gid)>;

impl Owner {
    pub(super) fn ids(self) -> Result<Ids, UserError> {
        match self {
            Self::Ours => Ok(None),
            Self::Caller => Ok(caller()?.map(|caller| (caller.rights.uid, caller.rights.gid))),
        }
    }
}
