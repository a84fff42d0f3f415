//! The running kernel's version.

use serde::Serialize;

/// Its first two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Release {
    pub major: u32,
    pub minor: u32,
}

impl Release {
    pub(crate) fn running() -> Self {
        let release = rustix::system::uname();
        Self::parse(&release.release().to_string_lossy())
    }

    /// Parses a text like `6.1.0-42-cloud-amd64`. Unreadable parts are 0.
    pub(crate) fn parse(release: &str) -> Self {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().ok());
        let mut next = || numbers.next().flatten().unwrap_or(0);
        Self { major: next(), minor: next() }
    }

    /// Returns whether a thread's end is reported while its memory still exists (from 6.16 on).
    pub(crate) fn tells_an_end_with_its_memory(self) -> bool {
        self >= Self { major: 6, minor: 16 }
    }

    /// Returns whether the verifier compares the turns of loops that may end at any turn. From 6.9 on it
    /// does; this is the first such kernel that ctrace is tried on.
    pub(crate) fn compares_turns(self) -> bool {
        self >= Self { major: 6, minor: 12 }
    }

    /// Returns whether a multi link's pid filter sees only one thread of the process (6.6 to 6.9).
    pub(crate) fn filters_threads_not_processes(self) -> bool {
        (Self { major: 6, minor: 6 }..Self { major: 6, minor: 10 }).contains(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read() {
        let release = |major, minor| Release { major, minor };
        assert_eq!(Release::parse("6.18.44-fc-v595"), release(6, 18));
        assert_eq!(Release::parse("6.1.0-42-cloud-amd64"), release(6, 1));
        assert_eq!(Release::parse("7.0-rc1"), release(7, 0));
        assert_eq!(Release::parse(""), release(0, 0));
    }

    #[test]
    fn only_the_kernels_in_between_filter_threads() {
        let affected = |text| Release::parse(text).filters_threads_not_processes();
        assert_eq!(
            ["6.1.0", "6.6.3", "6.9.12", "6.10.0", "6.18"].map(affected),
            [false, true, true, false, false]
        );
    }
}
