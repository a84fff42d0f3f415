//! Fields of /proc/PID/status. The process's name may hold any bytes but newlines, so the file is
//! read as bytes.

use std::{fs, io, path::Path};

/// The status of a process or of a thread.
pub(crate) struct ProcessStatus(Vec<u8>);

impl ProcessStatus {
    pub(crate) fn of(id: u32) -> io::Result<Self> {
        Self::read(format!("/proc/{id}/status"))
    }

    pub(crate) fn read(path: impl AsRef<Path>) -> io::Result<Self> {
        fs::read(path).map(Self)
    }

    /// Returns the value behind this name, without spaces around it; nothing if there is none.
    pub(crate) fn field(&self, name: &str) -> &str {
        let mut lines = self.0.split(|byte| *byte == b'\n');
        let value = lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b":"));
        str::from_utf8(value.unwrap_or_default()).unwrap_or_default().trim()
    }

    pub(crate) fn words(&self, name: &str) -> impl DoubleEndedIterator<Item = &str> {
        self.field(name).split_whitespace()
    }

    fn has_shadow_stack(&self) -> bool {
        self.words("x86_Thread_features").any(|feature| feature == "shstk")
    }

    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.field(name).parse().ok()
    }

    /// Returns a set of signals or of capabilities.
    pub(crate) fn bits(&self, name: &str) -> Option<u64> {
        u64::from_str_radix(self.field(name), 16).ok()
    }
}

/// Returns whether the processor keeps return addresses of the process in a place of its own. A process
/// that has ended has none. An error leaves it open.
pub(crate) fn has_shadow_stack(pid: u32) -> io::Result<bool> {
    tells_shadow_stack(ProcessStatus::of(pid))
}

fn tells_shadow_stack(status: io::Result<ProcessStatus>) -> io::Result<bool> {
    match status {
        Err(error) if is_end(&error) => Ok(false),
        status => status.map(|status| status.has_shadow_stack()),
    }
}

/// Returns whether a file below /proc could not be read because its process or its thread has ended.
pub(crate) fn is_end(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

#[cfg(test)]
impl From<&[u8]> for ProcessStatus {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_hides_no_field() {
        let status =
            ProcessStatus::from(&b"Name:\tUid:\t7 \xff\nUid:\t4\t5\nCapEff:\t0000000a\n"[..]);
        assert_eq!(status.words("Uid").collect::<Vec<_>>(), ["4", "5"]);
        assert_eq!((status.bits("CapEff"), status.number("Name")), (Some(10), None));
        assert_eq!(status.field("Gid"), "");
    }

    #[test]
    fn a_shadow_stack_is_told_by_the_features_in_use() {
        let has = |features: &str| {
            let text = format!(
                "Name:\tx\nx86_Thread_features:\t{features}\nx86_Thread_features_locked:\tshstk\n"
            );
            ProcessStatus::from(text.as_bytes()).has_shadow_stack()
        };
        assert!(has("shstk wrss ") && !has(""));
        for pid in [4_194_304, std::process::id()] {
            assert!(has_shadow_stack(pid).is_ok_and(|has| !has));
        }
    }

    #[test]
    fn a_status_that_cannot_be_read_is_no_shadow_stack_and_no_end() {
        let told = |errno| tells_shadow_stack(Err(io::Error::from_raw_os_error(errno)));
        assert!(matches!((told(libc::ENOENT), told(libc::ESRCH)), (Ok(false), Ok(false))));
        for errno in [libc::EMFILE, libc::EACCES] {
            assert_eq!(told(errno).unwrap_err().raw_os_error(), Some(errno));
        }
    }
}
