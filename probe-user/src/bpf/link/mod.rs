//! Probes on the places of one file, and the choice among the three kinds of links.
//!
//! | link | since | for entry and return | 5,000 places |
//! |---|---|---|---|
//! | session | 6.13 | one link | milliseconds |
//! | multi | 6.6 | one link each | milliseconds |
//! | perf | 5.15 | one link for each place, and each end | ten minutes to remove |

pub(super) mod ahead;
mod bisection;
pub(super) mod event_places;
pub(super) mod floor;
pub(super) mod keeper;
pub(super) mod kernel_link;
pub(super) mod kind;
pub(super) mod live_places;
pub(super) mod multi;
pub(super) mod perf;
mod timed_placement;
pub(super) mod touch;

use super::{
    BpfError,
    error::ENOTSUPP,
    error::MORE_OPEN_FILES,
    load::programs::{BpfProgram, Programs},
    sys::AttachType,
};
use ctrace_common::Cookie;
use keeper::{Keeper, LinkHandle};
use kernel_link::SITES_LIMIT;
use kind::{LinkChoice, LinkKind};
use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The most places that are attached by perf links, unless forced.
pub(crate) const PERF_SITES_LIMIT: usize = 500;

/// A place for a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Offset in the file.
    pub offset: u64,
    /// Offset in the file of the semaphore that the kernel raises while attached; 0: none.
    pub ref_ctr_offset: u64,
    pub cookie: Cookie,
}

/// The reports that an attachment's probes make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Entry and return.
    Function,
    /// The same with the values of both; their cookies name them.
    FunctionWithValues,
    /// The same where calls have to meet a condition.
    FunctionWithCondition,
    /// The same where calls are counted apart by a value; their cookies name it.
    FunctionByValue,
    Entry,
    /// The same with values.
    EntryWithValues,
    /// The same where calls have to meet a condition.
    EntryWithCondition,
    /// The same where calls are counted apart by a value.
    EntryByValue,
    /// The entry of a function of Go: the goroutine stands for the thread.
    GoEntry,
    /// A way out of a function.
    ExitSite,
    /// The same of a function of Go.
    GoExitSite,
    /// A `ret`, with the function's result.
    RetSiteWithValues,
    /// A place without duration.
    Point,
    /// The same with values beside its events; its cookie names them.
    PointWithValues,
    /// The same, with texts among them.
    PointWithTexts,
    /// The place where a marker runtime hands over a full buffer.
    Flush,
    /// The same, and the thread waits there while its ring is nearly full.
    FlushWaiting,
    /// The place where a marker runtime announces a buffer.
    Register,
    /// A marker scope's control point, probed only to raise its semaphore.
    Switch,
    /// A place where unwinding begins: return addresses are restored there.
    GuardUnwind,
    /// A place where a thread leaves its stack: the same.
    GuardSwitch,
    /// The place where the dynamic linker announces a library: the thread is held there until the
    /// library has its guards.
    GuardLoad,
}

impl Role {
    /// True for guards of return probes. They outlive the return probes, and are in every process
    /// that maps the file: a forked child has frames of its parent.
    pub(super) const fn guards(self) -> bool {
        matches!(self, Self::GuardUnwind | Self::GuardSwitch | Self::GuardLoad)
    }

    /// True if it is on functions' ways out.
    pub(crate) const fn is_way_out(self) -> bool {
        matches!(self, Self::ExitSite | Self::RetSiteWithValues | Self::GoExitSite)
    }

    /// True if it needs return probes.
    pub(crate) const fn returns(self) -> bool {
        matches!(
            self,
            Self::Function
                | Self::FunctionWithValues
                | Self::FunctionWithCondition
                | Self::FunctionByValue
        )
    }
}

/// The places to attach, and the role of their probes.
pub(super) struct LinkRequest<'a> {
    pub(super) path: &'a Path,
    /// `None` means every process that maps the file.
    pub(super) pid: Option<u32>,
    pub(super) role: Role,
    pub(super) sites: &'a [Site],
    pub(super) force: bool,
}

impl LinkRequest<'_> {
    /// Turns the kernel's refusal into an error about the request, and about the refused place if
    /// it is known.
    pub(super) fn refusal(
        &self,
        kind: LinkKind,
        place: Option<u64>,
        source: io::Error,
    ) -> BpfError {
        let path = || PathBuf::from(self.path);
        let hint = match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                let action = format!("attach to {}", self.path.display());
                return BpfError::permission(action, &source).expect("one of its errors");
            }
            Some(libc::ESRCH) => {
                return match self.pid {
                    Some(pid) => BpfError::NoProcess { pid },
                    None => BpfError::NoFile { path: path() },
                };
            }
            Some(libc::ENOENT) => {
                let ended = self.pid.filter(|pid| !Path::new(&format!("/proc/{pid}")).exists());
                return match ended {
                    Some(pid) => BpfError::NoProcess { pid },
                    None => BpfError::NoFile { path: path() },
                };
            }
            Some(libc::EOWNERDEAD) => return BpfError::GuardGone,
            Some(libc::ECANCELED) => return BpfError::Leaving,
            Some(libc::EBADF | libc::EISDIR) => return BpfError::NotAFile { path: path() },
            Some(libc::E2BIG) => {
                return BpfError::TooManySites { sites: self.sites.len(), limit: SITES_LIMIT };
            }
            // The answer of perf links for a folder.
            Some(libc::EINVAL) if fs::metadata(self.path).is_ok_and(|it| !it.is_file()) => {
                return BpfError::NotAFile { path: path() };
            }
            Some(libc::EINVAL) => {
                "a place lies outside the code, or another tracer uses it with another semaphore"
            }
            Some(libc::EOPNOTSUPP | ENOTSUPP | libc::ENOEXEC) => {
                "a place holds an instruction that uprobes cannot replace; exclude its function"
            }
            Some(libc::ENOMEM | libc::ENOSPC) => "the kernel is out of memory for probes",
            Some(libc::EMFILE | libc::ENFILE) => MORE_OPEN_FILES,
            // The guard gives this answer, too.
            Some(libc::EAGAIN) => {
                "no thread can be started for them; raise `ulimit -u`, or the control group's limit"
            }
            Some(libc::EIO) => "the file cannot be read, or the place lies behind its end",
            _ => "run `ctrace doctor` to see what this kernel can do",
        };
        BpfError::Refused { kind, path: path(), place, source, hint }
    }
}

/// Tells which of the better links the kernel has; asked only when needed.
pub(super) trait Support {
    fn has(&self, kind: LinkKind) -> bool;
}

/// Attaches all of `request` or nothing.
pub(super) fn attach(
    keeper: &Keeper,
    programs: &Programs,
    support: &impl Support,
    request: &LinkRequest<'_>,
    choice: LinkChoice,
) -> Result<Attachment, BpfError> {
    let sites = request.sites.len();
    if sites > SITES_LIMIT {
        return Err(BpfError::TooManySites { sites, limit: SITES_LIMIT });
    }
    let kind = choose(support, request.role, choice)?;
    let (attach, programs_of) = match kind {
        LinkKind::Session => (AttachType::UprobeSession, session_program(request.role)),
        LinkKind::Multi => (AttachType::UprobeMulti, programs_of(request.role)),
        LinkKind::Perf => {
            let links = perf::link(keeper, programs, programs_of(request.role), request)?;
            return Ok(Attachment::new(request.role, kind, sites, links));
        }
    };
    let mut links = Vec::new();
    for &program in programs_of {
        // The verifier takes seconds for some, which are no time of the places.
        if sites > 0 {
            programs.get(program, attach)?;
        }
        links.extend(timed_placement::place(request.path, request.sites, |sites| {
            let part = LinkRequest { sites, ..*request };
            multi::link(keeper, programs, program, attach, kind, &part)
        })?);
    }
    Ok(Attachment::new(request.role, kind, sites, links))
}

fn choose(support: &impl Support, role: Role, choice: LinkChoice) -> Result<LinkKind, BpfError> {
    let has = |kind| if support.has(kind) { Ok(kind) } else { Err(BpfError::no_link(kind)) };
    match choice {
        LinkChoice::Session if role.returns() => has(LinkKind::Session),
        LinkChoice::Session | LinkChoice::Multi => has(LinkKind::Multi),
        LinkChoice::Perf => has(LinkKind::Perf),
        LinkChoice::Auto if role.returns() => has(LinkKind::Session)
            .or_else(|_| has(LinkKind::Multi))
            .or_else(|_| has(LinkKind::Perf)),
        LinkChoice::Auto => has(LinkKind::Multi).or_else(|_| has(LinkKind::Perf)),
    }
}

/// Returns the program of a session link.
const fn session_program(role: Role) -> &'static [BpfProgram] {
    match role {
        Role::FunctionWithValues => &[BpfProgram::SessionWithValues],
        Role::FunctionWithCondition => &[BpfProgram::SessionWithCondition],
        Role::FunctionByValue => &[BpfProgram::SessionByValue],
        _ => &[BpfProgram::Session],
    }
}

/// Returns the programs in the order of attaching. Returns come first: a call that begins in
/// between then has a return without an entry, which the reader recognizes. Otherwise it would have
/// an entry without a return.
const fn programs_of(role: Role) -> &'static [BpfProgram] {
    match role {
        Role::Function => &[BpfProgram::Return, BpfProgram::Entry],
        Role::FunctionWithValues => &[BpfProgram::ReturnWithValues, BpfProgram::EntryWithValues],
        Role::FunctionWithCondition => {
            &[BpfProgram::ReturnWithValues, BpfProgram::EntryWithCondition]
        }
        Role::FunctionByValue => &[BpfProgram::Return, BpfProgram::EntryByValue],
        Role::Entry => &[BpfProgram::Entry],
        Role::EntryWithValues => &[BpfProgram::EntryWithValues],
        Role::EntryWithCondition => &[BpfProgram::EntryWithCondition],
        Role::EntryByValue => &[BpfProgram::EntryByValue],
        Role::GoEntry => &[BpfProgram::GoEntry],
        Role::ExitSite => &[BpfProgram::ExitSite],
        Role::GoExitSite => &[BpfProgram::GoExitSite],
        Role::RetSiteWithValues => &[BpfProgram::RetSiteWithValues],
        Role::Point => &[BpfProgram::Point],
        Role::PointWithValues => &[BpfProgram::PointWithValues],
        Role::PointWithTexts => &[BpfProgram::PointWithTexts],
        Role::Flush => &[BpfProgram::Flush],
        Role::FlushWaiting => &[BpfProgram::FlushWaiting],
        Role::Register => &[BpfProgram::Register],
        Role::Switch => &[BpfProgram::Nothing],
        Role::GuardUnwind => &[BpfProgram::GuardUnwind],
        Role::GuardSwitch => &[BpfProgram::GuardSwitch],
        Role::GuardLoad => &[BpfProgram::GuardLoad],
    }
}

/// Probes in place. Dropping it removes them, as does the end of this process.
#[must_use = "dropping it removes the probes"]
pub struct Attachment {
    role: Role,
    kind: LinkKind,
    sites: usize,
    /// In the order of attaching.
    links: Vec<LinkHandle>,
}

impl Attachment {
    pub(super) fn new(role: Role, kind: LinkKind, sites: usize, links: Vec<LinkHandle>) -> Self {
        Self { role, kind, sites, links }
    }

    pub(crate) fn role(&self) -> Role {
        self.role
    }

    pub fn kind(&self) -> LinkKind {
        self.kind
    }

    /// Returns the number of places with probes.
    pub fn sites(&self) -> usize {
        self.sites
    }

    /// Removes the probes of all attachments at once. While a link is closed, the kernel waits
    /// until no return probe is being taken. With one at a time, this might never come, because
    /// another link still has return probes. This starts no thread, since that may fail.
    pub(crate) fn detach_all(mut attachments: Vec<Self>) -> Vec<BpfError> {
        Self::begin_to_detach(&mut attachments);
        attachments.into_iter().filter_map(|attachment| attachment.detach().err()).collect()
    }

    /// Makes the guard begin to remove all of them.
    pub(crate) fn begin_to_detach(attachments: &mut [Self]) {
        // Entries before returns, so that open calls still get their returns.
        for link in attachments.iter_mut().flat_map(|it| it.links.iter_mut().rev()) {
            link.begin_to_close();
        }
    }

    /// Removes the probes and returns the time that it took. The programs do not run any more
    /// afterwards.
    pub fn detach(mut self) -> Result<Duration, BpfError> {
        let start = Instant::now();
        self.remove().map_err(|source| BpfError::Detach { source })?;
        Ok(start.elapsed())
    }

    /// Closes all links, even if one fails.
    fn remove(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        // Entries before returns, so that open calls still get their returns.
        while let Some(link) = self.links.pop() {
            result = result.and(link.close());
        }
        result
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // Errors have no receiver here, and the end of the process removes what is left.
        let _ = self.remove();
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role: _, kind, sites, links } = self;
        let links: usize = links.iter().map(LinkHandle::links).sum();
        write!(f, "{sites} sites by {links} {kind} links")
    }
}

#[cfg(test)]
mod tests;
