//! The environment of a check: its `ctrace`, targets, link, and amount of work.

use crate::targets::Targets;
use std::fmt;
use std::path::{Path, PathBuf};

/// A kind of kernel link, as `--link` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Session,
    Multi,
    Perf,
}

impl Link {
    pub const ALL: [Link; 3] = [Link::Session, Link::Multi, Link::Perf];

    pub fn name(self) -> &'static str {
        match self {
            Link::Session => "session",
            Link::Multi => "multi",
            Link::Perf => "perf",
        }
    }

    pub fn parse(name: &str) -> Option<Link> {
        Link::ALL.into_iter().find(|link| link.name() == name)
    }

    /// Returns the first kernel that has it.
    pub fn since(self) -> (u32, u32) {
        match self {
            Link::Session => (6, 13),
            Link::Multi => (6, 6),
            Link::Perf => (5, 15),
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One place to run checks in.
#[derive(Clone, Debug)]
pub struct Env {
    pub ctrace: PathBuf,
    pub targets: Targets,
    pub link: Link,
    /// Divisor of the amount of work: 1 on the host, more under an emulator.
    pub slower: u64,
}

impl Env {
    /// Returns `amount` of work, scaled down where the machine is slow.
    pub fn scaled(&self, amount: u64) -> String {
        (amount / self.slower).max(1).to_string()
    }
}

/// Returns the root of the workspace that built this crate.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Returns cargo's target directory, from the running test's own path.
pub fn target_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("CARGO_TARGET_DIR") {
        return PathBuf::from(dir);
    }
    workspace().join("target")
}

/// Returns the version of the running kernel.
pub fn kernel() -> (u32, u32) {
    parse_release(&rustix::system::uname().release().to_string_lossy())
}

fn parse_release(release: &str) -> (u32, u32) {
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_to_the_minor_number() {
        assert_eq!(parse_release("6.12.117+deb12-cloud-amd64"), (6, 12));
        assert_eq!(parse_release("6.1.0-44-cloud-amd64"), (6, 1));
        assert_eq!(parse_release("strange"), (0, 0));
    }

    #[test]
    fn link_names_round_trip() {
        for link in Link::ALL {
            assert_eq!(Link::parse(link.name()), Some(link));
        }
        assert_eq!(Link::parse("auto"), None);
    }
}
