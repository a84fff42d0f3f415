//! Lists the rights of this process, and the rights that each use needs.
//!
//! The rights were measured on Linux 6.18, as a user without any other: see [`Use::needs`].

use crate::process_status::ProcessStatus;
use serde::Serialize;
use std::{fmt, sync::OnceLock};

/// A right that ctrace uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Capability {
    /// Load programs and create maps.
    #[serde(rename = "CAP_BPF")]
    Bpf,
    /// Attach programs and read kernel memory from them.
    #[serde(rename = "CAP_PERFMON")]
    Perfmon,
    /// Look into other users' processes: /proc/PID/exe, /proc/PID/maps and their memory.
    #[serde(rename = "CAP_SYS_PTRACE")]
    SysPtrace,
    /// Read /proc/PID/pagemap of other users' processes.
    #[serde(rename = "CAP_DAC_READ_SEARCH")]
    DacReadSearch,
    /// Continue other users' processes.
    #[serde(rename = "CAP_KILL")]
    Kill,
    /// Write to /proc/PID/mem of other users' processes.
    #[serde(rename = "CAP_DAC_OVERRIDE")]
    DacOverride,
    /// Give a socket to root's group.
    #[serde(rename = "CAP_CHOWN")]
    Chown,
    /// Includes `CAP_BPF` and `CAP_PERFMON`; nothing needs it.
    #[serde(rename = "CAP_SYS_ADMIN")]
    SysAdmin,
}

impl Capability {
    const ALL: [Self; 8] = [
        Self::Bpf,
        Self::Perfmon,
        Self::SysPtrace,
        Self::DacReadSearch,
        Self::Kill,
        Self::DacOverride,
        Self::Chown,
        Self::SysAdmin,
    ];

    /// Its number in the kernel.
    const fn bit(self) -> u32 {
        match self {
            Self::Chown => 0,
            Self::DacOverride => 1,
            Self::DacReadSearch => 2,
            Self::Kill => 5,
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
            Self::DacReadSearch => "CAP_DAC_READ_SEARCH",
            Self::Kill => "CAP_KILL",
            Self::DacOverride => "CAP_DAC_OVERRIDE",
            Self::Chown => "CAP_CHOWN",
            Self::SysAdmin => "CAP_SYS_ADMIN",
        })
    }
}

/// A use of ctrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Use {
    /// `run`, and `attach`, `record`, `top` and `doctor --heal` on one's own processes, with or
    /// without markers.
    OwnProcesses,
    /// `list -p` on other users' processes.
    ListOthers,
    /// `attach`, `record` and `top` on other users' processes.
    TraceOthers,
    /// Guards of return probes, without which many programs take dearer probes.
    GuardReturns,
    /// `daemon`.
    Daemon,
    /// `doctor --heal` on other users' processes, and healing at attach.
    HealOthers,
}

impl Use {
    const ALL: [Self; 6] = [
        Self::OwnProcesses,
        Self::ListOthers,
        Self::TraceOthers,
        Self::GuardReturns,
        Self::Daemon,
        Self::HealOthers,
    ];

    /// Returns the least rights that suffice. Listing files and one's own processes needs none.
    const fn needs(self, is_root: bool) -> &'static [Capability] {
        use Capability::{Bpf, Chown, DacOverride, DacReadSearch, Kill, Perfmon, SysPtrace};
        match self {
            Self::OwnProcesses => &[Bpf, Perfmon],
            Self::ListOthers => &[SysPtrace],
            Self::TraceOthers => &[Bpf, Perfmon, SysPtrace],
            Self::GuardReturns => &[Bpf, Perfmon, SysPtrace, Kill, DacOverride],
            // The socket belongs to root's group, or to the configured one.
            Self::Daemon if is_root => &[Bpf, Perfmon, SysPtrace],
            Self::Daemon => &[Bpf, Perfmon, SysPtrace, Chown],
            Self::HealOthers => &[Bpf, Perfmon, SysPtrace, DacReadSearch],
        }
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OwnProcesses => "own processes",
            Self::ListOthers => "list -p, others'",
            Self::TraceOthers => "trace others'",
            Self::GuardReturns => "guard returns",
            Self::Daemon => "daemon",
            Self::HealOthers => "heal others'",
        })
    }
}

/// The needs of a use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Needs {
    #[serde(rename = "use")]
    pub of: Use,
    pub needs: &'static [Capability],
    pub missing: Vec<Capability>,
}

/// The effective rights of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Capabilities {
    pub held: Vec<Capability>,
    /// The rights that tracing other users' processes lacks.
    pub missing: Vec<Capability>,
    pub uses: Vec<Needs>,
}

impl Capabilities {
    pub(crate) fn of_this_process() -> Self {
        let is_root = rustix::process::geteuid().is_root();
        let status = ProcessStatus::read("/proc/self/status");
        let bits = status.ok().and_then(|status| status.bits("CapEff")).unwrap_or(0);
        Self::new(bits, is_root)
    }

    /// Returns whether they suffice to trace any process at all.
    pub(crate) fn may_trace(&self) -> bool {
        let own = self.uses.iter().find(|needs| needs.of == Use::OwnProcesses);
        own.is_some_and(|needs| needs.missing.is_empty())
    }

    /// Takes the bits of the effective capabilities.
    fn new(bits: u64, is_root: bool) -> Self {
        let holds = |capability: Capability| bits >> capability.bit() & 1 != 0;
        let may = |capability| {
            holds(capability)
                || holds(Capability::SysAdmin)
                    && matches!(capability, Capability::Bpf | Capability::Perfmon)
        };
        let missing = |of: Use| -> Vec<_> {
            of.needs(is_root).iter().copied().filter(|&capability| !may(capability)).collect()
        };
        let needs = |of: Use| Needs { of, needs: of.needs(is_root), missing: missing(of) };
        Self {
            held: Capability::ALL.into_iter().filter(|&capability| holds(capability)).collect(),
            missing: missing(Use::TraceOthers),
            uses: Use::ALL.map(needs).into(),
        }
    }
}

/// Returns whether this process may look up any program and map of the kernel by its number.
pub(crate) fn may_look_up_programs() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| Capabilities::of_this_process().held.contains(&Capability::SysAdmin))
}

#[cfg(test)]
mod tests {
    use super::{Capability::*, *};

    #[test]
    fn root_has_them_all() {
        let all = Capabilities::new(0x1ffffffffff, true);
        assert_eq!(all.held, Capability::ALL);
        assert!(all.missing.is_empty() && all.uses.iter().all(|of| of.missing.is_empty()));
        assert!(all.may_trace());
    }

    #[test]
    fn a_user_has_none() {
        let none = Capabilities::new(0, false);
        assert!(!none.may_trace());
        assert_eq!((none.held, none.missing), (vec![], vec![Bpf, Perfmon, SysPtrace]));
    }

    #[test]
    fn sys_admin_stands_for_bpf_and_perfmon_and_is_not_needed() {
        let admin = Capabilities::new(0x200000, false);
        assert_eq!((admin.held, admin.missing), (vec![SysAdmin], vec![SysPtrace]));
        // CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE.
        let least = Capabilities::new(0xc000080000, false);
        assert_eq!((least.held, least.missing), (vec![Bpf, Perfmon, SysPtrace], vec![]));
    }

    #[test]
    fn each_use_says_what_it_lacks() {
        let missing = |is_root| {
            let held = Capabilities::new(0xc000080000, is_root);
            held.uses.into_iter().map(|of| (of.of, of.missing)).collect::<Vec<_>>()
        };
        let user = missing(false);
        assert_eq!(user[2], (Use::TraceOthers, vec![]));
        assert_eq!(user[3], (Use::GuardReturns, vec![Kill, DacOverride]));
        assert_eq!(user[4], (Use::Daemon, vec![Chown]));
        assert_eq!(user[5], (Use::HealOthers, vec![DacReadSearch]));
        assert_eq!(missing(true)[4], (Use::Daemon, vec![]));
    }
}
