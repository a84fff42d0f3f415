//! Finds the user who ran ctrace as root through sudo, doas or pkexec.

use super::{Account, UserError, error::shown};
use rustix::process::{Gid, Uid, geteuid};
use std::ffi::{OsStr, OsString};

/// Returns the caller of sudo, doas or pkexec; `None` if that is root or ctrace is not root.
pub(crate) fn caller() -> Result<Option<Account>, UserError> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let account = told(|variable| std::env::var_os(variable))?;
    Ok(account.filter(|account| !account.rights.uid.is_root()))
}

/// Asks sudo, doas and pkexec in turn.
fn told(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Account>, UserError> {
    if let Some(uid) = variable("SUDO_UID") {
        let uid = Uid::from_raw(id("SUDO_UID", &uid)?);
        let gid = variable("SUDO_GID").map(|gid| id("SUDO_GID", &gid).map(Gid::from_raw));
        return of_sudo(uid, gid.transpose()?, variable("SUDO_USER")).map(Some);
    }
    if let Some(name) = variable("DOAS_USER") {
        let no_caller = || UserError::NoCaller { variable: "DOAS_USER", value: shown(&name) };
        return Account::of_name(&name)?.ok_or_else(no_caller).map(Some);
    }
    if let Some(uid) = variable("PKEXEC_UID") {
        let no_caller = || UserError::NoCaller { variable: "PKEXEC_UID", value: shown(&uid) };
        let account = Account::of_uid(Uid::from_raw(id("PKEXEC_UID", &uid)?))?;
        return account.ok_or_else(no_caller).map(Some);
    }
    Ok(None)
}

fn of_sudo(uid: Uid, gid: Option<Gid>, name: Option<OsString>) -> Result<Account, UserError> {
    // Several accounts may share an id.
    let named = name.map(|name| Account::of_name(&name)).transpose()?.flatten();
    let account = match named.filter(|account| account.rights.uid == uid) {
        Some(account) => Some(account),
        None => Account::of_uid(uid)?,
    };
    match (account, gid) {
        (Some(account), None) => Ok(account),
        (Some(mut account), Some(gid)) => {
            if account.rights.gid != gid && !account.rights.groups.contains(&gid) {
                return Err(UserError::StrangeGroup { gid: gid.as_raw(), user: account.shown() });
            }
            account.rights.gid = gid;
            Ok(account)
        }
        (None, Some(gid)) if gid != Gid::ROOT => Ok(Account::nameless(uid, gid)),
        (None, Some(gid)) => {
            let user = Account::nameless(uid, gid).shown();
            Err(UserError::StrangeGroup { gid: gid.as_raw(), user })
        }
        (None, None) => Err(UserError::NoGroup { uid: uid.as_raw() }),
    }
}

/// Parses digits only. The kernel takes the largest number for "unchanged".
fn id(variable: &'static str, value: &OsStr) -> Result<u32, UserError> {
    super::rights::id(value.to_str().unwrap_or_default())
        .ok_or_else(|| UserError::NoId { variable, value: shown(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<Account>, UserError> {
        told(|wanted| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn nobody_called_without_a_word() {
        assert_eq!(of(&[("USER", "nobody")]).unwrap(), None);
    }

    #[test]
    fn the_account_of_the_caller_is_asked_for() {
        for variables in [
            &[("SUDO_UID", "65534"), ("SUDO_GID", "65534")][..],
            &[("SUDO_UID", "65534")],
            &[("DOAS_USER", "nobody")],
            &[("PKEXEC_UID", "65534")],
        ] {
            let account = of(variables).unwrap().unwrap();
            assert_eq!(account.name.as_deref(), Some("nobody"), "{variables:?}");
            assert_eq!(account.rights.gid.as_raw(), 65534);
            assert!(account.rights.groups.contains(&Gid::from_raw(65534)));
        }
    }

    #[test]
    fn an_id_without_an_account_has_the_one_group_that_sudo_tells() {
        let account = of(&[("SUDO_UID", "3999999"), ("SUDO_GID", "3999998")]).unwrap().unwrap();
        assert_eq!(account.name, None);
        assert_eq!(account.rights.to_string(), "3999999:3999998:3999998");
    }

    #[test]
    fn broken_words_are_refused_in_one_short_line() {
        let long = "9".repeat(10_000);
        for value in ["", "-1", "+1", "4294967295", "4294967296", " 1", "1\n", "0x1", "root", &long]
        {
            let error = of(&[("SUDO_UID", value), ("SUDO_GID", "1")]).unwrap_err().to_string();
            assert!(error.starts_with("SUDO_UID is ") && error.len() < 200, "{error}");
            assert!(!error.contains('\n'), "{error}");
            let error = of(&[("SUDO_UID", "65534"), ("SUDO_GID", value)]).unwrap_err().to_string();
            assert!(error.starts_with("SUDO_GID is "), "{error}");
        }
        for (variables, wanted) in [
            (&[("SUDO_UID", "65534"), ("SUDO_GID", "0")][..], "which is no group of nobody"),
            (&[("SUDO_UID", "3999999"), ("SUDO_GID", "0")], "which is no group of uid 3999999"),
            (&[("SUDO_UID", "3999999")], "no account and no group"),
            (&[("DOAS_USER", "no such\u{1b}[31m user")], r"no such\u{1b}[31m user"),
            (&[("PKEXEC_UID", "3999999")], "there is no such user"),
        ] {
            let error = of(variables).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
