//! The rights of a user. A thread that takes them on gives up all others for good, which is
//! checked.

use super::UserError;
use nix::unistd;
use rustix::{
    process::{Gid, Uid, getgroups},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
        set_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid,
        set_thread_res_uid,
    },
};
use std::{collections::BTreeSet, fmt, io, str::FromStr};

/// As text: `UID:GID:GROUP,GROUP…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    pub uid: Uid,
    pub gid: Gid,
    pub groups: Vec<Gid>,
}

/// Parses an id in decimal digits. The largest is rejected: the kernel takes it for "unchanged".
pub(super) fn id(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|id| is_number && *id != u32::MAX)
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups: Vec<String> = self.groups.iter().map(|gid| gid.as_raw().to_string()).collect();
        write!(f, "{}:{}:{}", self.uid.as_raw(), self.gid.as_raw(), groups.join(","))
    }
}

impl FromStr for Rights {
    type Err = UserError;

    fn from_str(text: &str) -> Result<Self, UserError> {
        let parsed = || {
            let [uid, gid, groups] = text.split(':').collect::<Vec<_>>()[..] else { return None };
            let groups = groups.split(',').filter(|group| !group.is_empty());
            Some(Self {
                uid: Uid::from_raw(id(uid)?),
                gid: Gid::from_raw(id(gid)?),
                groups: groups.map(|group| id(group).map(Gid::from_raw)).collect::<Option<_>>()?,
            })
        };
        parsed().ok_or_else(|| UserError::Malformed(text.chars().take(64).collect()))
    }
}

impl Rights {
    /// Gives the calling thread only these rights: first the groups, while that is allowed, then
    /// the user, then no capabilities.
    pub fn take_on(&self) -> Result<(), UserError> {
        let failed = |step| move |error: io::Error| self.failed(step, error);
        set_thread_groups(&self.groups).map_err(io::Error::from).map_err(failed("its groups"))?;
        set_thread_res_gid(self.gid, self.gid, self.gid)
            .map_err(io::Error::from)
            .map_err(failed("its group"))?;
        set_thread_res_uid(self.uid, self.uid, self.uid)
            .map_err(io::Error::from)
            .map_err(failed("its user id"))?;
        // With some secure bits the kernel keeps them.
        drop_capabilities().map_err(failed("no capabilities"))?;
        self.check()
    }

    pub(super) fn failed(&self, step: &'static str, error: io::Error) -> UserError {
        UserError::Switch { rights: self.clone(), step, error }
    }

    /// Checks that the thread has only these rights, and cannot get others back.
    fn check(&self) -> Result<(), UserError> {
        let sets = capabilities(None).map_err(|error| self.failed("a look", error.into()))?;
        let uids = unistd::getresuid().map_err(|error| self.failed("a look", error.into()))?;
        let gids = unistd::getresgid().map_err(|error| self.failed("a look", error.into()))?;
        let groups = getgroups().map_err(|error| self.failed("a look", error.into()))?;
        let set = |groups: &[Gid]| groups.iter().map(|gid| gid.as_raw()).collect::<BTreeSet<_>>();
        let (uid, gid) = (self.uid.as_raw(), self.gid.as_raw());
        let is_as_wanted =
            [uids.real, uids.effective, uids.saved].iter().all(|id| id.as_raw() == uid)
                && [gids.real, gids.effective, gids.saved].iter().all(|id| id.as_raw() == gid)
                && set(&groups) == set(&self.groups)
                && sets.permitted.is_empty()
                && sets.effective.is_empty()
                && sets.inheritable.is_empty();
        let can_be_root = !self.uid.is_root() && set_thread_res_uid(None, Uid::ROOT, None).is_ok();
        let can_have_group =
            self.gid != Gid::ROOT && set_thread_res_gid(None, Gid::ROOT, None).is_ok();
        if !is_as_wanted || can_be_root || can_have_group {
            return Err(UserError::Regained { rights: self.clone() });
        }
        Ok(())
    }
}

/// Clears inheritable capabilities: the next exec gets only those of its file or user id.
pub(crate) fn keep_capabilities_to_ourselves() -> io::Result<()> {
    let sets = capabilities(None)?;
    // The ambient ones are a subset.
    if sets.inheritable.is_empty() {
        return Ok(());
    }
    clear_ambient_capability_set()?;
    Ok(set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..sets })?)
}

/// Gives up all capabilities of the calling thread for good. Without new privileges, a program that
/// root's thread starts then has none either.
pub(crate) fn keep_no_capabilities() -> io::Result<()> {
    set_no_new_privs(true)?;
    drop_capabilities()
}

fn drop_capabilities() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    Ok(set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_round_trip_as_text() {
        for text in ["1000:1001:1001,27,4", "1:2:"] {
            assert_eq!(text.parse::<Rights>().unwrap().to_string(), text);
        }
        for text in ["", "1:2", "1:2:3:4", "4294967295:1:1", "1:-1:1", "1:2:3,x", "1: 2:3"] {
            assert!(text.parse::<Rights>().is_err(), "{text}");
        }
    }

    /// Rights belong to a thread, so this can be tested here.
    #[test]
    fn no_right_of_root_is_left_and_none_comes_back() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let rights: Rights = "3999999:3999998:3999997".parse().unwrap();
        let switch = move || {
            rights.take_on().unwrap();
            let shadow = std::fs::read("/etc/shadow").map_err(|error| error.kind());
            let back = set_thread_res_uid(None, Uid::ROOT, None);
            (getgroups().unwrap(), shadow.is_err(), back.is_err())
        };
        let seen = std::thread::spawn(switch).join().unwrap();
        assert_eq!(seen, (vec![Gid::from_raw(3999997)], true, true));
        assert!(std::fs::read("/etc/shadow").is_ok(), "other threads are still root's");
    }
}
