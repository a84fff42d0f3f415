//! A user, as the host's name services know them: files, directory services, or whatever
//! nsswitch.conf says.

use super::{UserError, rights::Rights};
use nix::unistd::{self, User};
use rustix::process::{Gid, Uid};
use std::{
    ffi::{CString, OsStr},
    path::PathBuf,
};

const DEFAULT_SHELL: &str = "/bin/sh";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// `None` for an id without an account.
    pub name: Option<String>,
    pub rights: Rights,
    pub home: PathBuf,
    pub shell: PathBuf,
}

impl Account {
    pub(super) fn of_uid(uid: Uid) -> Result<Option<Self>, UserError> {
        let id = nix::unistd::Uid::from_raw(uid.as_raw());
        let who = || format!("user {}", uid.as_raw());
        User::from_uid(id)
            .map_err(|error| unasked(who(), error))?
            .map(Self::with_groups)
            .transpose()
    }

    pub(super) fn of_name(name: &OsStr) -> Result<Option<Self>, UserError> {
        // Other texts are no account names.
        let Some(text) = name.to_str().filter(|text| !text.contains('\0')) else { return Ok(None) };
        let found = User::from_name(text);
        let who = || super::error::shown(name);
        found.map_err(|error| unasked(who(), error))?.map(Self::with_groups).transpose()
    }

    /// Makes an account for an id without one.
    pub(super) fn nameless(uid: Uid, gid: Gid) -> Self {
        let rights = Rights { uid, gid, groups: vec![gid] };
        Self { name: None, rights, home: "/".into(), shell: DEFAULT_SHELL.into() }
    }

    fn with_groups(user: User) -> Result<Self, UserError> {
        let unasked = |error| unasked(user.name.clone(), error);
        let name = CString::new(user.name.as_str()).map_err(|_| unasked(nix::Error::EINVAL))?;
        let groups = unistd::getgrouplist(&name, user.gid).map_err(unasked)?;
        let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
        if [uid, gid].contains(&u32::MAX) {
            // The kernel takes it for "unchanged".
            return Err(unasked(nix::Error::EINVAL));
        }
        let groups = groups.into_iter().map(unistd::Gid::as_raw).filter(|gid| *gid != u32::MAX);
        let rights = Rights {
            uid: Uid::from_raw(uid),
            gid: Gid::from_raw(gid),
            groups: groups.map(Gid::from_raw).collect(),
        };
        // login does the same.
        let shell =
            if user.shell.as_os_str().is_empty() { DEFAULT_SHELL.into() } else { user.shell };
        Ok(Self { name: Some(user.name), rights, home: user.dir, shell })
    }

    /// Formats the account for the user.
    pub(super) fn shown(&self) -> String {
        let uid = self.rights.uid.as_raw();
        match &self.name {
            Some(name) => format!("{name} (uid {uid})"),
            None => format!("uid {uid}, which has no account"),
        }
    }
}

fn unasked(who: String, error: nix::Error) -> UserError {
    UserError::NameService { who, error: error.into() }
}
