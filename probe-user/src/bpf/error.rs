//! Every error of the kernel door, in one line each, with a remedy.

use super::{
    link::kind::LinkKind,
    machine::{
        capabilities::{Capabilities, Capability},
        lockdown,
    },
};
use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use thiserror::Error;

/// The kernel's `ENOTSUPP`, which libc does not define: uprobes cannot replace the instruction.
pub(super) const ENOTSUPP: i32 = 524;

#[derive(Debug, Error)]
pub enum BpfError {
    #[error(
        "this binary was built without the eBPF programs ({reason}); run `cargo xtask setup`, \
         then build again"
    )]
    NoProgram { reason: &'static str },

    #[error(
        "ctrace runs in a pid namespace of its own (a container?), where process ids are not those \
         of the kernel's eBPF programs; run it on the host, which can trace into containers, or \
         with `docker run --pid=host`"
    )]
    PidNamespace,

    #[error("no permission to {action}{}", rights(.missing, .lockdown))]
    Permission { action: String, missing: Vec<Capability>, lockdown: Option<String> },

    #[error("this kernel has no {what}; {remedy}")]
    Unsupported { what: &'static str, remedy: &'static str },

    #[error("the eBPF object in this binary is damaged ({reason}); build ctrace again")]
    Object { reason: String },

    #[error("cannot create {what}: {source}{}", creation_hint(.source))]
    Create { what: String, source: io::Error },

    #[error("the kernel rejects the program `{program}`: {source}{}", verifier(.log))]
    Rejected { program: &'static str, source: io::Error, log: String },

    #[error("cannot watch `{tracepoint}`: {source}; does the kernel have tracepoints?")]
    Tracepoint { tracepoint: &'static str, source: io::Error },

    #[error("the kernel's type information has no {field}: ctrace needs CONFIG_DEBUG_INFO_BTF")]
    NoField { field: &'static str },

    #[error(
        "the return probes of process {pid} cannot be guarded, because {why}; \
         `--returns ret-sites` does without them"
    )]
    Unrestorable { pid: u32, why: &'static str },

    #[error("cannot read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },

    #[error("{} is not in a form ctrace knows", .path.display())]
    Malformed { path: PathBuf },

    #[error("a ring of {bytes} bytes: it must be a power of two from {least} bytes to 1 GiB")]
    RingSize { bytes: u32, least: u32 },

    #[error("the rings have a reader already")]
    RingsTaken,

    #[error("process {pid} has ended")]
    NoProcess { pid: u32 },

    #[error("{} is gone", .path.display())]
    NoFile { path: PathBuf },

    #[error("{} is no regular file: nothing can be probed there", .path.display())]
    NotAFile { path: PathBuf },

    #[error("{sites} places are too many for one link (at most {limit}); select fewer functions")]
    TooManySites { sites: usize, limit: usize },

    #[error(
        "{} is not traced: {done} of {sites} probes took {:.1} s to place, and all would block new \
         processes of this machine for too long; other processes map this file very often, or the machine is \
         busy: try again, end those, or choose fewer functions (-f)", known(.path).display(), .taken.as_secs_f64()
    )]
    TooSlow { path: PathBuf, sites: usize, done: usize, taken: Duration },

    #[error(
        "{sites} places need {sites} perf-event links, and the kernel takes about 0.1 s to remove \
         each one ({seconds} s at the end); select at most {limit}, use --force-perf, or use Linux 6.6 \
         or later, which needs only one link"
    )]
    TooManyPerfSites { sites: usize, limit: usize, seconds: usize },

    #[error(
        "{kind} links to {}{} are refused: {source}; {hint}", known(.path).display(), at(.place)
    )]
    Refused {
        kind: LinkKind,
        path: PathBuf,
        /// File offset of the refused place, if it is known.
        place: Option<u64>,
        source: io::Error,
        hint: &'static str,
    },

    #[error("the kernel did not remove the probes: {source}; they go when ctrace ends")]
    Detach { source: io::Error },

    #[error("cannot start the guard process, which keeps the probes: {source}")]
    NoGuard { source: io::Error },

    #[error(
        "the guard process, which keeps the probes, was killed: the kernel has taken all probes away"
    )]
    GuardGone,

    #[error("ctrace is ending")]
    Leaving,

    #[error("too many {what} ({needed}, at most {limit}); select fewer functions")]
    TooMany { what: &'static str, needed: usize, limit: usize },

    #[error("too many processes are traced at once (at most {limit})")]
    TooManyProcesses { limit: u32 },

    #[error("cannot change or read the eBPF map of {what}: {source}")]
    Map { what: &'static str, source: io::Error },

    #[error("cannot read the programs' diagnostics: {reason}")]
    Diagnostics { reason: String },
}

/// Names the missing rights and lockdown, as far as they are known.
fn rights(missing: &[Capability], lockdown: &Option<String>) -> String {
    struct List<'a>(&'a [Capability]);
    impl fmt::Display for List<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            for (index, capability) in self.0.iter().enumerate() {
                let before = if index == 0 { "" } else { ", " };
                write!(f, "{before}{capability}")?;
            }
            Ok(())
        }
    }
    match (missing, lockdown) {
        ([_, ..], _) => format!(": {} missing; run it with sudo", List(missing)),
        ([], Some(mode)) => format!(": the kernel is locked down ({mode})"),
        ([], None) => ": a security module or a container's filter forbids it".into(),
    }
}

fn at(place: &Option<u64>) -> String {
    place.map_or(String::new(), |offset| format!(" at offset {offset:#x}"))
}

/// Returns the path behind a link of `/proc`, by which files of other processes are opened.
fn known(path: &Path) -> PathBuf {
    let link = path.starts_with("/proc").then(|| fs::read_link(path).ok());
    link.flatten().unwrap_or_else(|| path.to_owned())
}

/// The remedy where no more files can be opened.
pub(crate) const MORE_OPEN_FILES: &str = "raise the limit of open files (ulimit -n)";

fn creation_hint(source: &io::Error) -> String {
    let remedy = match source.raw_os_error() {
        Some(libc::ENOMEM) => "make the rings smaller, or raise `ulimit -v`",
        Some(libc::EMFILE) => MORE_OPEN_FILES,
        Some(libc::EINVAL) => "ctrace needs Linux 5.15 or later",
        _ => return String::new(),
    };
    format!("; {remedy}")
}

/// Returns the end of the verifier's log, which holds its reason.
fn verifier(log: &str) -> String {
    let lines: Vec<_> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return String::new();
    }
    let last = &lines[lines.len().saturating_sub(12)..];
    format!("; the verifier says:\n{}", last.join("\n"))
}

impl BpfError {
    /// Makes the error of a kernel without links of a kind.
    pub(super) const fn no_link(kind: LinkKind) -> Self {
        match kind {
            LinkKind::Session => Self::Unsupported {
                what: "uprobe session links",
                remedy: "they came with Linux 6.13; use --link multi, perf or auto",
            },
            LinkKind::Multi => Self::Unsupported {
                what: "uprobe multi links",
                remedy: "they came with Linux 6.6; use --link perf or auto",
            },
            LinkKind::Perf => Self::Unsupported {
                what: "uprobes for eBPF programs",
                remedy: "it needs CONFIG_UPROBE_EVENTS and CONFIG_BPF_EVENTS",
            },
        }
    }

    /// Makes a permission error. Returns `None` if `source` is something else.
    pub(super) fn permission(action: impl Into<String>, source: &io::Error) -> Option<Self> {
        matches!(source.raw_os_error(), Some(libc::EPERM | libc::EACCES)).then(|| {
            Self::Permission {
                action: action.into(),
                missing: Capabilities::of_this_process().missing,
                lockdown: lockdown::mode(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission(missing: &[Capability], lockdown: Option<&str>) -> String {
        BpfError::Permission {
            action: "load programs".into(),
            missing: missing.to_vec(),
            lockdown: lockdown.map(str::to_owned),
        }
        .to_string()
    }

    #[test]
    fn missing_rights_are_named() {
        assert_eq!(
            permission(&[Capability::Bpf, Capability::Perfmon], None),
            "no permission to load programs: CAP_BPF, CAP_PERFMON missing; run it with sudo"
        );
        assert_eq!(
            permission(&[], Some("confidentiality")),
            "no permission to load programs: the kernel is locked down (confidentiality)"
        );
        assert!(permission(&[], None).ends_with("a container's filter forbids it"));
    }

    #[test]
    fn only_refusals_are_permissions() {
        let error = |errno| io::Error::from_raw_os_error(errno);
        assert!(BpfError::permission("x", &error(libc::EPERM)).is_some());
        assert!(BpfError::permission("x", &error(libc::EACCES)).is_some());
        assert!(BpfError::permission("x", &error(libc::EINVAL)).is_none());
    }

    #[test]
    fn a_file_has_its_own_name() {
        let slow = |path: &Path| {
            let (path, taken) = (path.to_owned(), Duration::from_secs(3));
            BpfError::TooSlow { path, sites: 9, done: 4, taken }.to_string()
        };
        let own = std::env::current_exe().expect("a program");
        let told = slow(Path::new("/proc/self/exe"));
        assert!(told.starts_with(&format!("{} is not traced", own.display())), "{told}");
        assert!(slow(Path::new("/lib/none.so")).starts_with("/lib/none.so is not"));
    }

    #[test]
    fn a_long_log_is_cut_to_its_end() {
        let log: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let text = verifier(&log);
        assert!(text.contains("line 99") && !text.contains("line 87\n"), "{text}");
        assert_eq!(verifier("\n \n"), "");
    }
}
