//! Kernel lockdown, which refuses what even root may otherwise do.

use std::{fs, io, path::Path};

const SECURITY: &str = "/sys/kernel/security";

/// Returns the mode of lockdown, where there is one.
pub(crate) fn mode() -> Option<String> {
    parse(&fs::read_to_string(Path::new(SECURITY).join("lockdown")).ok()?)
}

/// Returns true if [`mode`] could be read.
pub(crate) fn is_known() -> bool {
    is_known_in(Path::new(SECURITY))
}

/// Without lockdown the kernel has no such file. Without securityfs there is none either.
fn is_known_in(security: &Path) -> bool {
    match fs::read_to_string(security.join("lockdown")) {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound && security.join("lsm").exists(),
    }
}

/// Returns the mode in brackets, unless it is `none`.
fn parse(modes: &str) -> Option<String> {
    let (_, rest) = modes.split_once('[')?;
    let (mode, _) = rest.split_once(']')?;
    (mode != "none").then(|| mode.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_of_lockdown_is_read() {
        assert_eq!(parse("none [integrity] confidentiality\n"), Some("integrity".into()));
        assert_eq!(parse("[none] integrity confidentiality\n"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn lockdown_is_unknown_where_securityfs_is_not_mounted() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_known_in(dir.path()));
        fs::write(dir.path().join("lsm"), "capability").unwrap();
        assert!(is_known_in(dir.path()), "a kernel without it");
        fs::remove_file(dir.path().join("lsm")).unwrap();
        fs::write(dir.path().join("lockdown"), "[none] integrity").unwrap();
        assert!(is_known_in(dir.path()));
    }
}
