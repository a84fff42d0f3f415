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

/// Returns whether the processor keeps return addresses of the process in a place of its own. It may
/// where nothing can be read of a process that lives.
pub(crate) fn has_shadow_stack(pid: u32) -> bool {
    match ProcessStatus::of(pid) {
        Ok(status) => status.has_shadow_stack(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
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
        assert!(!has_shadow_stack(4_194_304) && !has_shadow_stack(std::process::id()));
    }
}
