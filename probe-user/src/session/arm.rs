//! Puts a plan's probes in place: a few links for each object, exits before entries, so that no
//! entry is seen whose exit is not.

use super::plan::{ObjectPlan, Planned, Sites};
use crate::{
    bpf::{Attachment, BpfError, Kernel, LinkChoice, Role, Site},
    target::plan::{ExitKind, ExitPlacement, ExitSite, Placement},
};
use ctrace_common::{Cookie, Kind, NO_CONDITION, NO_JUMP};
use ctrace_core::{
    engine::Engine,
    units::{FuncId, Pid},
};
use std::path::Path;

/// How links are made.
#[derive(Clone, Copy, Debug)]
pub struct LinkOptions {
    pub choice: LinkChoice,
    pub force_perf: bool,
    /// `None`: whatever process runs the file; the eBPF programs filter.
    pub pid: Option<Pid>,
}

/// The sites of one object by the program that goes there.
#[derive(Default)]
struct ByRole {
    exits: Vec<Site>,
    functions: Vec<Site>,
    entries: Vec<Site>,
    points: Vec<Site>,
}

/// Attaches the probes of one object, all or none. The engine knows its functions in any case, so
/// that no record comes of a function that it does not know.
pub fn arm(
    kernel: &Kernel,
    engine: &mut Engine,
    object: &ObjectPlan,
    options: LinkOptions,
) -> Result<Vec<Attachment>, BpfError> {
    let mut attachments = Vec::new();
    let add = |planned: &Planned| engine.add_function(planned.info.clone());
    let ids: Vec<FuncId> = object.functions.iter().map(add).collect();
    let sites = sites_of(kernel, object, &ids)?;
    let mut attach = |role, sites: &[Site]| {
        attach_some(kernel, &object.open_path, role, sites, options, &mut attachments)
    };
    attach(Role::ExitSite, &sites.exits)?;
    attach(Role::Entry, &sites.entries)?;
    attach(Role::Point, &sites.points)?;
    // The return probes come last: should ctrace be killed, the kernel closes the last link first,
    // and waits there until no return probe is being taken any more.
    attach(Role::Function, &sites.functions)?;
    Ok(attachments)
}

pub fn attach_some(
    kernel: &Kernel,
    path: &Path,
    role: Role,
    sites: &[Site],
    options: LinkOptions,
    attachments: &mut Vec<Attachment>,
) -> Result<(), BpfError> {
    if !sites.is_empty() {
        let (choice, force) = (options.choice, options.force_perf);
        attachments.push(kernel.attach(path, options.pid, role, sites, choice, force)?);
    }
    Ok(())
}

fn sites_of(kernel: &Kernel, object: &ObjectPlan, ids: &[FuncId]) -> Result<ByRole, BpfError> {
    let mut sites = ByRole::default();
    for (planned, id) in object.functions.iter().zip(ids) {
        add_sites(kernel, &mut sites, *id, planned)?;
    }
    Ok(sites)
}

fn add_sites(
    kernel: &Kernel,
    sites: &mut ByRole,
    id: FuncId,
    planned: &Planned,
) -> Result<(), BpfError> {
    match &planned.sites {
        Sites::Usdt(probes) => sites.points.extend(probes.iter().map(|site| Site {
            offset: site.file_offset,
            ref_ctr_offset: site.semaphore.unwrap_or(0),
            cookie: Cookie::plain(id.0),
        })),
        // Their runtimes are probed, not they themselves.
        Sites::Marker(_) => {}
        Sites::Function(placement) => {
            let entry = entry_site(placement, id);
            match &placement.exit {
                ExitPlacement::ReturnProbe => sites.functions.push(entry),
                ExitPlacement::Unseen(_) => sites.entries.push(entry),
                ExitPlacement::Sites(exits) => {
                    sites.entries.push(entry);
                    for exit in exits {
                        sites.exits.push(exit_site(kernel, exit, id)?);
                    }
                }
            }
        }
    }
    Ok(())
}

fn entry_site(placement: &Placement, id: FuncId) -> Site {
    Site { offset: placement.entry.offset, ref_ctr_offset: 0, cookie: Cookie::plain(id.0) }
}

fn exit_site(kernel: &Kernel, exit: &ExitSite, id: FuncId) -> Result<Site, BpfError> {
    let (kind, condition, jump) = match exit.kind {
        ExitKind::Ret => (Kind::ExitRet, NO_CONDITION, NO_JUMP),
        ExitKind::Jump => (Kind::ExitJump, NO_CONDITION, NO_JUMP),
        ExitKind::ConditionalJump(condition) => (Kind::ExitJump, condition, NO_JUMP),
        ExitKind::IndirectJump(target) => {
            (Kind::ExitJump, NO_CONDITION, kernel.add_jumps(&[target])?)
        }
    };
    let cookie = Cookie::exit(id.0, kind as u8, condition, jump);
    Ok(Site { offset: exit.offset, ref_ctr_offset: 0, cookie })
}
