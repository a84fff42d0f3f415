//! Groups of functions that are armed and disarmed together. A budget takes groups away and brings
//! them back.

use super::arm::{ByRole, ExitSites, LinkOptions, attach_some};
use crate::{
    bpf::{self, Attachment, BpfError, Kernel, LinkKind, Role, Site},
    session::plan::{Identity, ObjectPlan, Planned, markers::switches},
    ui::text::units::counted,
};
use anyhow::bail;
use ctrace_core::units::{FuncId, Nanos};
use std::{
    fmt::Display,
    path::Path,
    thread::{Builder, JoinHandle},
};

/// The limit for one object. Each group has links of its own, and each link costs a file
/// descriptor.
const MOST_GROUPS: usize = 128;

pub(crate) struct LinkGroup {
    /// The object's file.
    pub identity: Identity,
    /// Their ids, ascending.
    pub functions: Vec<FuncId>,
    sites: ByRole,
    /// Control points of marker scopes.
    switches: Vec<Site>,
    attachments: Vec<Attachment>,
    /// The ways out of functions that lost their return probes one by one. They go if all return probes
    /// do: then all these functions get other probes.
    moved: ExitSites,
    moved_exits: Vec<Attachment>,
    is_armed: bool,
    /// The time from which the last probes go, until the calls that began meanwhile are ended: a way out that
    /// is armed again would take a later call's end for theirs.
    leaving: Option<(Nanos, Leaving)>,
    /// True if the reader knows that it could not be armed.
    told: bool,
}

enum Leaving {
    /// The kernel waits for calls under way before it lets go of a link.
    Closing(JoinHandle<Nanos>),
    /// They are gone since then.
    Gone(Nanos),
}

/// Puts the probes of an object's functions in place, group by group. `ids` are those of its
/// functions. On an error, or if the groups are dropped, all of these probes go.
pub(crate) fn attach(
    kernel: &Kernel,
    options: LinkOptions,
    object: &ObjectPlan,
    ids: &[FuncId],
) -> anyhow::Result<Vec<LinkGroup>> {
    let mut groups = split(kernel, object, ids)?;
    for group in &mut groups {
        group.probe(kernel, options)?;
        if group.attachments.iter().any(|attachment| attachment.kind() == LinkKind::Perf) {
            bail!("--budget needs probes that can be taken away quickly: Linux 6.6 or later");
        }
    }
    Ok(groups)
}

/// Splits the functions to trace in an object into groups. Nothing is attached.
fn split(kernel: &Kernel, object: &ObjectPlan, ids: &[FuncId]) -> Result<Vec<LinkGroup>, BpfError> {
    let each = object.functions.len().div_ceil(MOST_GROUPS).max(1);
    let functions: Vec<_> = ids.iter().copied().zip(&object.functions).collect();
    let groups = functions.chunks(each).map(|functions| {
        let scopes = functions.iter().map(|(_, planned)| *planned);
        Ok(LinkGroup {
            identity: object.identity,
            functions: functions.iter().map(|(id, _)| *id).collect(),
            sites: ByRole::new(kernel, &object.open_path, functions.iter().copied())?,
            switches: switches(scopes, &[]),
            attachments: Vec::new(),
            moved: ExitSites::default(),
            moved_exits: Vec::new(),
            is_armed: false,
            leaving: None,
            told: false,
        })
    });
    groups.collect()
}

/// Takes the return probes out of these attachments. They are still in place.
pub(crate) fn take_return_probes(attachments: &mut Vec<Attachment>) -> Vec<Attachment> {
    attachments.extract_if(.., |attachment| attachment.role().returns()).collect()
}

impl LinkGroup {
    /// Puts its probes in place, except those that switch marker scopes on.
    fn probe(&mut self, kernel: &Kernel, options: LinkOptions) -> Result<(), BpfError> {
        self.moved.attach(kernel, self.sites.path(), options, &mut self.moved_exits)?;
        self.attachments = self.sites.attach(kernel, options)?;
        self.is_armed = true;
        Ok(())
    }

    /// Switches its marker scopes on.
    pub(crate) fn switch_on(
        &mut self,
        kernel: &Kernel,
        options: LinkOptions,
    ) -> Result<(), BpfError> {
        let (path, sites) = (self.sites.path(), &self.switches);
        attach_some(kernel, path, Role::Switch, sites, options, &mut self.attachments)
    }

    /// Does both and returns true. Returns false and does nothing while the last probes are still
    /// being taken away, or calls of that time are open.
    pub(crate) fn arm(&mut self, kernel: &Kernel, options: LinkOptions) -> Result<bool, BpfError> {
        if self.leaving.is_some() {
            return Ok(false);
        }
        self.probe(kernel, options)
            .and_then(|()| self.switch_on(kernel, options))
            .inspect_err(|_| drop(self.take_attachments()))?;
        Ok(true)
    }

    /// Returns a note on a failure to arm it, `after` the start. There is one for all failures:
    /// they would displace other notes.
    pub(crate) fn failure(&mut self, why: impl Display, after: Nanos) -> Option<String> {
        if std::mem::replace(&mut self.told, true) {
            return None;
        }
        let functions = counted(self.functions.len() as u64, "function", "functions");
        let after = after.0 as f64 / 1e9;
        Some(format!(
            "{functions} could not be armed again {after:.3} s after the start: {why}; ctrace goes \
             on trying"
        ))
    }

    /// Takes its probes away, from `at` on. They are gone soon, but the kernel may hold them for as long as a
    /// call that is under way.
    pub(crate) fn disarm(&mut self, at: Nanos) {
        let mut attachments = self.take_attachments();
        if attachments.is_empty() {
            return;
        }
        // Entries first: a call that is still seen to begin is seen to end.
        attachments.sort_by_key(|attachment| attachment.role().is_way_out());
        Attachment::begin_to_detach(&mut attachments);
        let wait = move || {
            for error in Attachment::detach_all(attachments) {
                tracing::warn!("{error}");
            }
            bpf::now()
        };
        let leaving = match Builder::new().name("closing".into()).spawn(wait) {
            Ok(closing) => Leaving::Closing(closing),
            // The attachments were dropped with the thread's work, and so are gone.
            Err(_) => Leaving::Gone(bpf::now()),
        };
        self.leaving = Some((at, leaving));
    }

    /// Returns since when its open calls may have no end, if so: its probes go, each when the kernel lets go of
    /// it, and a way out may go before the entry. The events before `settled` are known. The last time is
    /// when they are gone, and all that they saw is known.
    pub(crate) fn loses_ends(&mut self, settled: Nanos) -> Option<Nanos> {
        let (since, leaving) = self.leaving.take()?;
        let leaving = match leaving {
            Leaving::Closing(closing) if closing.is_finished() => {
                Leaving::Gone(closing.join().unwrap_or_else(|_| bpf::now()))
            }
            other => other,
        };
        let is_over = matches!(leaving, Leaving::Gone(at) if at <= settled);
        self.leaving = (!is_over).then_some((since, leaving));
        (since <= settled).then_some(since)
    }

    /// Gives up the return probes, and hands over those that are in place.
    pub(crate) fn take_return_probes(&mut self) -> Vec<Attachment> {
        self.sites.drop_return_probes();
        self.moved = ExitSites::default();
        let mut taken = take_return_probes(&mut self.attachments);
        taken.append(&mut self.moved_exits);
        taken
    }

    /// Adds ways out of some of its functions, whose other probes stay, and probes them if the group is
    /// armed.
    pub(crate) fn add_exits(
        &mut self,
        kernel: &Kernel,
        options: LinkOptions,
        exits: ExitSites,
    ) -> Result<(), BpfError> {
        if self.is_armed {
            exits.attach(kernel, self.sites.path(), options, &mut self.moved_exits)?;
        }
        self.moved.extend(exits);
        Ok(())
    }

    /// Gives other sites to those of these functions that are in the group, and probes them if the
    /// group is armed.
    pub(crate) fn add_sites(
        &mut self,
        kernel: &Kernel,
        options: LinkOptions,
        path: &Path,
        functions: &[(FuncId, Planned)],
    ) -> Result<(), BpfError> {
        let own = functions.iter().filter(|(id, _)| self.functions.binary_search(id).is_ok());
        let own = own.map(|(id, planned)| (*id, planned));
        let sites = ByRole::new(kernel, path, own)?;
        if self.is_armed {
            self.attachments.extend(sites.attach(kernel, options)?);
        }
        self.sites.extend(sites);
        Ok(())
    }

    /// Hands over the attachments: the group is not armed any more.
    pub(crate) fn take_attachments(&mut self) -> Vec<Attachment> {
        self.is_armed = false;
        let mut all = std::mem::take(&mut self.attachments);
        all.append(&mut self.moved_exits);
        all
    }

    pub(crate) fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.attachments.iter().chain(&self.moved_exits)
    }

    /// Returns a group without places to probe.
    #[cfg(test)]
    pub(crate) fn without_sites(functions: Vec<FuncId>) -> Self {
        Self {
            identity: Identity::default(),
            functions,
            sites: ByRole::default(),
            switches: Vec::new(),
            attachments: Vec::new(),
            moved: ExitSites::default(),
            moved_exits: Vec::new(),
            is_armed: false,
            leaving: None,
            told: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// On a busy machine, probes take seconds to go. A call that lost its end would last as long.
    #[test]
    fn ends_are_lost_until_all_that_the_probes_saw_is_known() {
        let mut group = LinkGroup::without_sites(vec![FuncId(3)]);
        assert_eq!(group.loses_ends(Nanos(10)), None);
        let (go, gone) = channel();
        let closing = std::thread::spawn(move || gone.recv().expect("a time"));
        group.leaving = Some((Nanos(20), Leaving::Closing(closing)));
        assert_eq!(group.loses_ends(Nanos(19)), None, "their ends may be seen");
        let since = Some(Nanos(20));
        assert_eq!([20, 5_000].map(|at| group.loses_ends(Nanos(at))), [since, since]);
        go.send(Nanos(5_100)).expect("it waits");
        while !matches!(group.leaving, Some((_, Leaving::Gone(_)))) {
            assert_eq!(group.loses_ends(Nanos(5_099)), since);
        }
        assert_eq!(group.loses_ends(Nanos(5_100)), since, "the last calls");
        assert_eq!(group.loses_ends(Nanos(5_200)), None);
    }

    #[test]
    fn a_failure_is_told_once() {
        let mut group = LinkGroup::without_sites(vec![FuncId(3), FuncId(4)]);
        let error = "the kernel refused";
        let told = group.failure(error, Nanos(1_500_000_000)).expect("a note");
        let begin = "2 functions could not be armed again 1.500 s after the start: ";
        assert!(told.starts_with(begin), "{told}");
        assert_eq!(group.failure(error, Nanos(2_500_000_000)), None);
    }
}
