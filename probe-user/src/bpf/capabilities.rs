//! Which rights this process has, of those that tracing takes.

use serde::Serialize;
use std::{fmt, fs};

/// A right that ctrace uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Capability {
    /// Load programs and create maps.
    #[serde(rename = "CAP_BPF")]
    Bpf,
    /// Attach programs and read kernel memory from them.
    #[serde(rename = "CAP_PERFMON")]
    Perfmon,
    /// Look into other users' processes: /proc/PID/exe and /proc/PID/map_files.
    #[serde(rename = "CAP_SYS_PTRACE")]
    SysPtrace,
    /// Attach to many places with one link, and all of the above.
    #[serde(rename = "CAP_SYS_ADMIN")]
    SysAdmin,
}

impl Capability {
    const ALL: [Self; 4] = [Self::Bpf, Self::Perfmon, Self::SysPtrace, Self::SysAdmin];

    /// Its number in the kernel.
    const fn bit(self) -> u32 {
        match self {
            Self::SysPtrace => 19,
            Self::SysAdmin => 21,
            Self::Perfmon => 38,
            Self::Bpf => 39,
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bpf => "CAP_BPF",
            Self::Perfmon => "CAP_PERFMON",
            Self::SysPtrace => "CAP_SYS_PTRACE",
            Self::SysAdmin => "CAP_SYS_ADMIN",
        })
    }
}

/// The effective rights of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    pub held: Vec<Capability>,
    /// What tracing other users' processes would still need.
    pub missing: Vec<Capability>,
}

impl Capabilities {
    pub fn of_this_process() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    /// From the text of /proc/PID/status.
    fn parse(status: &str) -> Self {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let bits = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
        let has = |capability: Capability| bits >> capability.bit() & 1 != 0;
        let implied = |capability| {
            has(Capability::SysAdmin) && matches!(capability, Capability::Bpf | Capability::Perfmon)
        };
        let (held, missing): (Vec<_>, Vec<_>) =
            Capability::ALL.into_iter().partition(|&capability| has(capability));
        Self { held, missing: missing.into_iter().filter(|&c| !implied(c)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_them_all() {
        let all = Capabilities::parse("Name:\tx\nCapEff:\t000001ffffffffff\n");
        assert_eq!(all.held, Capability::ALL);
        assert_eq!(all.missing, []);
    }

    #[test]
    fn a_user_has_none() {
        let none = Capabilities::parse("CapEff:\t0000000000000000\n");
        assert_eq!((none.held, none.missing), (vec![], Capability::ALL.to_vec()));
        assert_eq!(Capabilities::parse("").missing, Capability::ALL);
    }

    #[test]
    fn sys_admin_stands_for_bpf_and_perfmon() {
        let admin = Capabilities::parse("CapEff:\t0000000000200000\n");
        assert_eq!(admin.held, [Capability::SysAdmin]);
        assert_eq!(admin.missing, [Capability::SysPtrace]);
    }
}
