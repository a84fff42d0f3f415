//! Numbers of users and groups, as the host's name services know them: files, directory services, or
//! whatever nsswitch.conf says. They may take their time to answer.

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use std::ffi::CString;

/// Returns the number of a user.
pub(crate) fn user(text: &str) -> Result<u32, String> {
    number("user", text, |name| Ok(User::from_name(name)?.map(|user| user.uid.as_raw())))
}

/// Returns the number of a group.
pub(crate) fn group(text: &str) -> Result<u32, String> {
    number("group", text, |name| Ok(Group::from_name(name)?.map(|group| group.gid.as_raw())))
}

/// Returns whether a group is among those of a user.
pub(crate) fn is_member(user: u32, group: u32) -> bool {
    let Ok(Some(user)) = User::from_uid(Uid::from_raw(user)) else { return false };
    let Ok(name) = CString::new(user.name) else { return false };
    getgrouplist(&name, user.gid).is_ok_and(|groups| groups.contains(&Gid::from_raw(group)))
}

/// Reads a number, or the name of something that has one.
fn number(
    what: &str,
    text: &str,
    look_up: impl Fn(&str) -> nix::Result<Option<u32>>,
) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match look_up(text) {
        Ok(Some(number)) => Ok(number),
        Ok(None) => Err(format!("there is no {what} `{text}` on this machine")),
        Err(error) => Err(format!("the name services did not say who {what} `{text}` is: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_by_name_and_number() {
        assert_eq!((user("root"), group("root")), (Ok(0), Ok(0)));
        assert_eq!(user("4242"), Ok(4242));
        assert!(user("nobody-of-that-name").is_err_and(|why| why.contains("nobody-of-that-name")));
        assert!(is_member(0, 0) && !is_member(0, 54321) && !is_member(54321, 54321));
    }
}
