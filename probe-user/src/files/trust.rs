//! Decides who could have put an entry into a folder.

use rustix::fs::Stat;
use rustix::process::geteuid;

const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Returns whether somebody else can add entries to the folder. Access lists show up in the group's
/// mode.
pub(super) fn others_write(folder: &Stat) -> bool {
    !is_ours(folder) || folder.st_mode & OTHERS_WRITE != 0
}

/// Returns whether others can remove and rename our entries in the folder.
pub(super) fn others_remove(folder: &Stat) -> bool {
    others_write(folder) && !(is_ours(folder) && folder.st_mode & STICKY != 0)
}

/// Returns whether nobody else can have put the entry into the folder or can take it away.
pub(crate) fn is_from_us(folder: &Stat, entry: &Stat) -> bool {
    is_ours(folder) && (!others_write(folder) || !others_remove(folder) && is_ours(entry))
}

/// Returns whether an entry is root's or our user's.
pub(super) fn is_ours(entry: &Stat) -> bool {
    entry.st_uid == 0 || entry.st_uid == geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(uid: u32, mode: u32) -> Stat {
        let mut stat = rustix::fs::stat("/").unwrap();
        (stat.st_uid, stat.st_mode) = (uid, mode);
        stat
    }

    #[test]
    fn links_are_from_us_where_nobody_else_could_put_them() {
        let (ours, theirs) = (entry(0, 0o777), entry(4_000_000, 0o777));
        for (folder, of_ours, of_theirs) in [
            (entry(0, 0o755), true, true),
            (entry(0, 0o1777), true, false),
            (entry(0, 0o777), false, false),
            (entry(0, 0o775), false, false),
            (entry(4_000_000, 0o755), false, false),
            (entry(4_000_000, 0o1777), false, false),
        ] {
            let seen = (is_from_us(&folder, &ours), is_from_us(&folder, &theirs));
            assert_eq!(seen, (of_ours, of_theirs), "{} {:o}", folder.st_uid, folder.st_mode);
        }
    }
}
