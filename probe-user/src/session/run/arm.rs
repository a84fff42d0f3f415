//! Puts a plan's probes in place, with a few links for each object. Exits come before entries, so
//! that every call whose entry is seen has its exit seen, too.

use crate::{
    bpf::{Attachment, BpfError, CallElements, Kernel, LinkChoice, Role, Site},
    session::{
        budget::costs::HitCosts,
        plan::{ObjectPlan, Planned, Sites, values::Point},
        spec::OnFull,
    },
    target::{
        plan::{ExitKind, ExitPlacement, ExitSite, Placement},
        usdt::UsdtSite,
    },
};
use ctrace_common::{Cookie, GoidPlace, Kind, NO_CONDITION, NO_INDEX};
use ctrace_core::{
    engine::Engine,
    function::FunctionInfo,
    units::{FuncId, Pid},
};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

/// The kind and scope of the links to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkOptions {
    pub choice: LinkChoice,
    pub force_perf: bool,
    /// `None`: any process that runs the file; the eBPF programs filter.
    pub pid: Option<Pid>,
    pub on_full: OnFull,
}

/// The order of attaching. The return probes come last: if the guard is killed, the kernel closes the
/// last link first, and waits there until no return probe is being taken any more.
const ORDER: [Role; 12] = [
    Role::Entry,
    Role::GoEntry,
    Role::EntryWithValues,
    Role::EntryWithCondition,
    Role::EntryByValue,
    Role::Point,
    Role::PointWithValues,
    Role::PointWithTexts,
    Role::FunctionWithCondition,
    Role::FunctionWithValues,
    Role::FunctionByValue,
    Role::Function,
];

/// The sites in one file, by the program that is attached there.
#[derive(Default)]
pub(crate) struct ByRole {
    path: PathBuf,
    exits: ExitSites,
    /// Those of [`ORDER`].
    sites: HashMap<Role, Vec<Site>>,
}

/// Adds the functions of an object to the engine and returns their ids, in the plan's order.
pub(crate) fn introduce(engine: &mut Engine, object: &ObjectPlan, costs: &HitCosts) -> Vec<FuncId> {
    let info = |planned: &Planned| FunctionInfo {
        probe: Some(costs.probe(planned)),
        ..planned.info.clone()
    };
    let ids: Vec<FuncId> =
        object.functions.iter().map(|planned| engine.add_function(info(planned))).collect();
    for (id, planned) in ids.iter().zip(&object.functions) {
        let successors = planned.successors.iter().map(|place| ids[*place]);
        engine.set_successors(*id, successors.collect());
    }
    ids
}

impl ByRole {
    /// Sorts the sites of some of an object's functions, which come with their ids.
    pub(crate) fn new<'a>(
        kernel: &Kernel,
        path: &Path,
        functions: impl IntoIterator<Item = (FuncId, &'a Planned)>,
    ) -> Result<Self, BpfError> {
        let mut sites = Self { path: path.to_owned(), ..Self::default() };
        for (id, planned) in functions {
            add_sites(kernel, &mut sites, id, planned)?;
        }
        Ok(sites)
    }

    /// Attaches all of them or none.
    pub(crate) fn attach(
        &self,
        kernel: &Kernel,
        options: LinkOptions,
    ) -> Result<Vec<Attachment>, BpfError> {
        let mut attachments = Vec::new();
        self.exits.attach(kernel, &self.path, options, &mut attachments)?;
        for role in ORDER {
            let sites = self.sites.get(&role).map_or(&[][..], Vec::as_slice);
            attach_some(kernel, &self.path, role, sites, options, &mut attachments)?;
        }
        Ok(attachments)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives up the return probes, which would be deadly.
    pub(crate) fn drop_return_probes(&mut self) {
        self.sites.retain(|role, _| !role.returns());
    }

    /// Adds sites in the same file, and takes over the path to it.
    pub(crate) fn extend(&mut self, other: Self) {
        self.path = other.path;
        self.exits.extend(other.exits);
        for (role, sites) in other.sites {
            self.sites.entry(role).or_default().extend(sites);
        }
    }

    fn add(&mut self, role: Role, site: Site) {
        self.sites.entry(role).or_default().push(site);
    }
}

pub(crate) fn attach_some(
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

fn add_sites(
    kernel: &Kernel,
    sites: &mut ByRole,
    id: FuncId,
    planned: &Planned,
) -> Result<(), BpfError> {
    match &planned.sites {
        Sites::Usdt(points) => add_points(kernel, sites, id, points, Kind::Point)?,
        Sites::Pair(pair) => {
            let [start, end] = pair.joined.kinds();
            add_points(kernel, sites, id, &pair.starts, start)?;
            let cookie = Cookie::usdt(id.0, end as u8, NO_INDEX);
            sites.exits.plain.extend(pair.ends.iter().map(|site| usdt_site(site, cookie)));
        }
        // Their runtimes are probed, not the scopes themselves.
        Sites::Marker { .. } => {}
        Sites::Function(placement) => {
            let values = match &planned.sources {
                Some(sources) => Some(kernel.add_call_values(id, sources)?),
                // It may have other probes by now than those that it began with.
                None => kernel.call_values(id),
            };
            let mut entry = entry_site(placement, id, values);
            let [both, entry_only] = match placement.go {
                // It has neither return probes nor values.
                Some(goid) => {
                    entry.cookie = entry.cookie.of_go(false, goid);
                    [Role::GoEntry; 2]
                }
                None => roles(values, kernel.counts().is_some()),
            };
            match &placement.exit {
                ExitPlacement::ReturnProbe | ExitPlacement::Guarded(_) => sites.add(both, entry),
                ExitPlacement::Unseen(_) => sites.add(entry_only, entry),
                ExitPlacement::Sites(exits) => {
                    sites.add(entry_only, entry);
                    let exits = ExitSites::new(kernel, exits, id)?;
                    sites.exits.extend(match placement.go {
                        Some(goid) => exits.of_go(goid),
                        None => exits,
                    });
                }
            }
        }
    }
    Ok(())
}

/// Returns the role of a function's probe that sees both ends, and of one that sees the entry only.
/// `counts`: calls make no events.
fn roles(values: Option<CallElements>, counts: bool) -> [Role; 2] {
    match values {
        Some(values) if counts && values.has_arguments => {
            [Role::FunctionByValue, Role::EntryByValue]
        }
        Some(values) if values.has_condition => {
            [Role::FunctionWithCondition, Role::EntryWithCondition]
        }
        Some(values) if values.has_arguments => [Role::FunctionWithValues, Role::EntryWithValues],
        Some(_) => [Role::FunctionWithValues, Role::Entry],
        None => [Role::Function, Role::Entry],
    }
}

/// Adds USDT sites that report events of this kind.
fn add_points(
    kernel: &Kernel,
    sites: &mut ByRole,
    id: FuncId,
    points: &[Point],
    kind: Kind,
) -> Result<(), BpfError> {
    for Point { site, values } in points {
        let (role, index) = match values {
            None => (Role::Point, NO_INDEX),
            Some(values) => {
                let index = kernel.add_values(std::slice::from_ref(values))?;
                let has_texts = values.has_texts();
                (if has_texts { Role::PointWithTexts } else { Role::PointWithValues }, index)
            }
        };
        sites.add(role, usdt_site(site, Cookie::usdt(id.0, kind as u8, index)));
    }
    Ok(())
}

fn usdt_site(site: &UsdtSite, cookie: Cookie) -> Site {
    let ref_ctr_offset = site.semaphore.unwrap_or(0);
    Site { offset: site.file_offset, ref_ctr_offset, cookie }
}

fn entry_site(placement: &Placement, id: FuncId, values: Option<CallElements>) -> Site {
    let cookie = match values {
        Some(values) => Cookie::with_values(id.0, values.entry),
        None => Cookie::plain(id.0),
    };
    Site { offset: placement.entry.offset, ref_ctr_offset: 0, cookie }
}

/// Probes on ways out, by the program that is attached there.
#[derive(Clone, Default)]
pub(crate) struct ExitSites {
    /// Ends of pairs of USDT probes are here as well.
    plain: Vec<Site>,
    /// Each is a `ret` of a function whose result is read.
    with_results: Vec<Site>,
    /// Those of Go's functions.
    of_go: Vec<Site>,
}

impl ExitSites {
    /// Returns the probes on a function's ways out.
    pub(crate) fn new(kernel: &Kernel, exits: &[ExitSite], id: FuncId) -> Result<Self, BpfError> {
        let result = kernel.call_values(id).and_then(|values| values.result());
        let mut sites = Self::default();
        for exit in exits {
            match (&exit.kind, result) {
                (ExitKind::Ret, Some(element)) => {
                    let cookie = Cookie::with_values(id.0, element);
                    sites.with_results.push(Site {
                        offset: exit.offset,
                        ref_ctr_offset: 0,
                        cookie,
                    });
                }
                _ => sites.plain.push(exit_site(kernel, exit, id)?),
            }
        }
        Ok(sites)
    }

    fn of_go(self, goid: GoidPlace) -> Self {
        let mut of_go = self.plain;
        for site in &mut of_go {
            let is_jump = site.cookie.kind() == Kind::ExitJump as u8;
            site.cookie = site.cookie.of_go(is_jump, goid);
        }
        Self { of_go, ..Self::default() }
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.plain.extend(other.plain);
        self.with_results.extend(other.with_results);
        self.of_go.extend(other.of_go);
    }

    /// Attaches all of them or none.
    pub(crate) fn attach(
        &self,
        kernel: &Kernel,
        path: &Path,
        options: LinkOptions,
        attachments: &mut Vec<Attachment>,
    ) -> Result<(), BpfError> {
        let mut all = Vec::new();
        for (role, sites) in [
            (Role::ExitSite, &self.plain),
            (Role::RetSiteWithValues, &self.with_results),
            (Role::GoExitSite, &self.of_go),
        ] {
            attach_some(kernel, path, role, sites, options, &mut all)?;
        }
        attachments.extend(all);
        Ok(())
    }
}

fn exit_site(kernel: &Kernel, exit: &ExitSite, id: FuncId) -> Result<Site, BpfError> {
    let (kind, condition, jump) = match exit.kind {
        ExitKind::Ret => (Kind::ExitRet, NO_CONDITION, NO_INDEX),
        ExitKind::Jump => (Kind::ExitJump, NO_CONDITION, NO_INDEX),
        ExitKind::ConditionalJump(condition) => (Kind::ExitJump, condition, NO_INDEX),
        ExitKind::IndirectJump(target) => {
            (Kind::ExitJump, NO_CONDITION, kernel.add_jumps(&[target])?)
        }
    };
    let cookie = Cookie::exit(id.0, kind as u8, condition, jump);
    Ok(Site { offset: exit.offset, ref_ctr_offset: 0, cookie })
}
