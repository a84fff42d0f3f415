//! Turns a selection into probes: the traced functions of each object, their places, and the
//! refusals.

mod absent;
pub(crate) mod again;
mod by_reason;
pub(crate) mod call_values;
mod conditions;
mod functions;
mod guarding;
mod inlined_names;
pub(crate) mod jump_room;
pub(crate) mod marked_locks;
pub(crate) mod markers;
mod nothing_chosen;
mod pairs;
mod placer;
#[cfg(test)]
mod plain;
mod planned;
pub(crate) mod points;
mod pythons;
mod remarks;
mod room;
mod tail_calls;
pub(crate) mod values;

pub use self::guarding::ObjectGuards;
pub(crate) use self::placer::exit_seen;
pub use self::planned::Sites;
pub(crate) use self::planned::{ObjectPlan, Planned, Refused, hexadecimal};
use self::{
    guarding::Guarding,
    jump_room::JumpRoom,
    marked_locks::{MarkedLocks, is_of_locks},
    markers::MarkerPlan,
    nothing_chosen::what_could_be_traced,
    placer::Placer,
    values::ValuePlanner,
};
use crate::target::{
    object::{Object, symbols::Function},
    place::{CodeMap, Policy, Returns, goid_place},
    plan::Placement,
    process::maps::MappedObject,
    read::budget::{Budget, ObjectLimits},
    select::{
        SelectError, Selection, Selector, awaits::Awaits, naming::Naming, not_found::NotFound,
    },
    usdt::{
        UsdtProbe,
        provider::{Declared, OtherNumber, ProviderFile, declared},
    },
    values::asked::AskedValues,
};
use anyhow::{Context, bail};
use std::sync::Arc;

/// A file, whatever its path: device and inode.
pub(crate) type Identity = (u64, u64);

/// Returns the identity of a mapped object.
pub(crate) fn identity(object: &MappedObject) -> Identity {
    (object.dev, object.inode)
}

/// The functions to trace.
#[derive(Default)]
pub struct Plan {
    pub objects: Vec<ObjectPlan>,
    pub refused: Vec<Refused>,
    /// The places to guard in all objects of the process, before the first return probe. Empty
    /// where return probes are not guarded.
    pub guards: Vec<ObjectGuards>,
    /// The objects that stand against guards, each with the reason. Empty where guards are not
    /// asked for.
    pub unguarded: Vec<String>,
    /// Remarks on the selection for the user, a line each.
    pub remarks: Vec<String>,
    /// Notes for a reader of the report.
    pub notes: Vec<String>,
}

impl Plan {
    /// Returns the number of functions, probes and marker scopes that are traced.
    pub(crate) fn functions(&self) -> usize {
        self.objects.iter().map(|object| object.functions.len()).sum()
    }

    pub(crate) fn planned(&self) -> impl Iterator<Item = &Planned> {
        self.objects.iter().flat_map(|object| &object.functions)
    }

    pub(crate) fn planned_mut(&mut self) -> impl Iterator<Item = &mut Planned> {
        self.objects.iter_mut().flat_map(|object| &mut object.functions)
    }
}

/// Makes plans for the objects of one target.
pub struct Planner {
    selector: Selector,
    /// The selection for libraries that come later.
    late: Selector,
    limit: usize,
    returns: Returns,
    /// True if an object so far has a marker runtime: events of markers have a way out.
    has_runtime: bool,
    guarding: Guarding,
    jumps: JumpRoom,
    values: ValuePlanner,
    locks: MarkedLocks,
    objects: ObjectLimits,
    /// What may come later and have what the first program lacks.
    awaits: Option<Awaits>,
    /// Names what SELECT asks for and the first one lacks.
    awaited: Option<String>,
    naming: Naming,
    /// True if the first plan had to do without return probes: then no later one has any.
    is_without_returns: bool,
    /// True if probes of functions come and go together, so that a call may be seen behind a jump.
    follows_tail_calls: bool,
    /// True if programs are to have the tables that they ask for.
    answers: bool,
}

impl Planner {
    pub fn new(selector: Selector, limit: usize, returns: Returns) -> Self {
        Self {
            late: selector.clone(),
            selector,
            limit,
            returns,
            has_runtime: false,
            guarding: Guarding::default(),
            jumps: JumpRoom::default(),
            values: ValuePlanner::default(),
            locks: MarkedLocks::default(),
            objects: ObjectLimits::DEFAULT,
            awaits: None,
            awaited: None,
            naming: Naming::default(),
            is_without_returns: false,
            follows_tail_calls: false,
            answers: false,
        }
    }

    /// Chooses whether programs are to have the tables that they ask for. By default they are not.
    pub(crate) fn answering(self, answers: bool) -> Self {
        Self { answers, ..self }
    }

    /// Chooses whether calls go on behind a jump to a traced function. By default they end there.
    pub(crate) fn following_tail_calls(self, follows: bool) -> Self {
        Self { follows_tail_calls: follows, ..self }
    }

    /// Chooses what may come and have all that is asked for, so that the target may lack it.
    pub(crate) fn awaiting(self, awaits: Option<Awaits>) -> Self {
        Self { awaits, ..self }
    }

    /// Sets the limits for each object.
    pub(crate) fn within(self, objects: ObjectLimits) -> Self {
        Self { objects, ..self }
    }

    pub(crate) fn object_limits(&self) -> ObjectLimits {
        self.objects
    }

    /// Chooses whether USDT probes read their arguments, and functions the values that are asked
    /// for. By default they do not.
    pub(crate) fn reading_values(mut self, reads: bool) -> Self {
        self.values.reads = reads;
        self
    }

    /// Chooses whether methods of languages, which runtimes announce by USDT probes, get their names. By
    /// default all of them are calls of the one pair of probes.
    pub(crate) fn naming_methods(mut self, names: bool) -> Self {
        self.values.names_methods = names;
        self
    }

    /// Chooses how locks are treated of which markers tell.
    pub(crate) fn treating_locks(self, locks: MarkedLocks) -> Self {
        Self { locks, ..self }
    }

    /// Sets the values of calls, in the order of the selector's patterns for them.
    pub(crate) fn asking_for_values(mut self, asked: &[AskedValues]) -> Self {
        self.values.asked = asked.into();
        self
    }

    /// Sets what arguments of USDT probes mean.
    pub(crate) fn with_providers(mut self, files: &[ProviderFile]) -> Self {
        self.values.declared = files.into();
        self
    }

    /// Returns what is declared of the arguments of a USDT probe, as far as it fits.
    pub(crate) fn declared(&self, probe: &UsdtProbe) -> Option<Result<Vec<Declared>, OtherNumber>> {
        declared(&self.values.declared, probe)
    }

    /// Chooses whether return probes are guarded where all guard sites are known: the kernel must
    /// have what guards need. By default they are not.
    pub fn guarding(mut self, is_possible: bool) -> Self {
        self.guarding.is_asked = is_possible;
        self
    }

    /// Makes the plan for a whole target.
    pub fn plan(&mut self, mapped: &[MappedObject]) -> anyhow::Result<Plan> {
        let objects = self.open(mapped)?;
        self.is_without_returns = !self.allows_return_probes();
        if self.selector.is_empty() {
            let scopes = objects.iter().any(|object| !object.markers().scopes.is_empty());
            if !scopes && self.awaits.is_none() {
                room::is_small_enough(&objects)?;
                bail!("{}", what_could_be_traced(&objects));
            }
            self.awaited = (!scopes).then(|| "a marker scope".to_owned());
            self.selector.ask_for_all_markers()?;
        }
        let selection = self.selector.select_mapped(mapped, &objects, self.limit);
        room::is_small_enough(&objects)?;
        let mut later = Vec::new();
        let selection = match (selection, self.awaits) {
            (Err(SelectError::NothingFound(unmatched)), Some(awaits)) => {
                later = unmatched.iter().map(|one| one.until_later(awaits)).collect();
                self.awaited = Some(NotFound::wanted(&unmatched));
                Selection::default()
            }
            (selection, _) => selection?,
        };
        self.late = self.selector.for_late_objects(&selection);
        self.check_conditions(&selection)?;
        later.extend(self.check_python()?);
        let mut plan = self.place_all(&objects, &selection)?;
        self.note_absent(&mut plan, self.awaits.is_some())?;
        plan.remarks.extend(later);
        Ok(plan)
    }

    /// Makes the plan for objects that came later and were [opened](Self::open), a new program or
    /// libraries. It is no error if nothing there matches.
    pub(crate) fn plan_more(&mut self, objects: &[Object]) -> anyhow::Result<Plan> {
        let new_program = objects.iter().any(Object::is_main);
        let selector = if new_program { &self.selector } else { &self.late };
        let selection = selector.select(objects, self.limit);
        room::is_small_enough(objects)?;
        let selection = match selection {
            Ok(selection) => selection,
            Err(SelectError::NothingFound(_) | SelectError::NothingAsked) => Selection::default(),
            Err(error) => return Err(error.into()),
        };
        if new_program {
            self.late = self.selector.for_late_objects(&selection);
        }
        let mut plan = self.place_all(objects, &selection)?;
        self.note_absent(&mut plan, true)?;
        Ok(plan)
    }

    /// Returns what must come later, as the first program has nothing of it, and from where.
    pub(crate) fn awaited(&self) -> Option<(&str, Awaits)> {
        self.awaited.as_deref().zip(self.awaits)
    }

    pub(crate) fn asks_for_markers(&self) -> bool {
        self.selector.asks_for_markers()
    }

    /// True if USDT probes or pairs of them are to be traced.
    pub(crate) fn asks_for_usdt(&self) -> bool {
        self.selector.asks_for_usdt()
    }

    /// True if probes may read values.
    pub(crate) fn reads_values(&self) -> bool {
        self.values.reads_some(self.selector.asks_for_usdt())
    }

    /// True if no object seen so far would make a return probe kill the target, or guards prevent
    /// that, or the user wants return probes.
    pub(crate) fn allows_return_probes(&self) -> bool {
        self.guarding.allows(self.returns)
    }

    /// Returns whether other processes, whose objects are not all known yet, can be traced along
    /// with the target from the start.
    pub(crate) fn is_safe_beside_others(&self) -> bool {
        self.guarding.guards() || !self.may_need_guards()
    }

    /// Returns what stands against tracing a process with these objects along with the target.
    pub(crate) fn against_joining(&mut self, new: &[MappedObject]) -> Option<String> {
        let needs = self.may_need_guards();
        needs.then(|| self.guarding.first_unguardable(new, self.objects)).flatten()
    }

    fn may_need_guards(&self) -> bool {
        let may_return = self.returns != Returns::RetSites && !self.is_without_returns;
        may_return && self.selector.asks_for_functions()
    }

    /// Returns the objects that stand against guards, and against return probes, each with the
    /// reason.
    pub(crate) fn against_return_probes(&self) -> [Vec<String>; 2] {
        match self.returns {
            Returns::RetSites => Default::default(),
            returns => [self.guarding.unguarded(), self.guarding.against(returns)],
        }
    }

    /// Plans no return probes any more, for a reason that only the run of the process shows.
    pub(crate) fn give_up_return_probes(&mut self, why: &str) {
        self.guarding.give_up(why);
    }

    /// Returns where the probes of a function sit from when it is moved away from its guarded
    /// return probe. Only then its ways out take room: most functions are never moved.
    pub fn moved(&mut self, placement: &Placement) -> Placement {
        let exit = placement.exit.without_guarded();
        let mut moved = Placement { exit, ..placement.clone() };
        self.jumps.fit(&mut moved);
        moved
    }

    /// Selects functions without placing probes.
    pub(crate) fn select(
        &mut self,
        mapped: &[MappedObject],
    ) -> anyhow::Result<(Vec<Object>, Selection)> {
        let objects = self.open(mapped)?;
        let selection = self.selector.select_mapped(mapped, &objects, self.limit);
        room::is_small_enough(&objects)?;
        Ok((objects, selection?))
    }

    /// Reads the objects. From then on it is known whether they allow return probes. A library that
    /// cannot be read is left out; for the program itself this is an error.
    pub(crate) fn open(&mut self, mapped: &[MappedObject]) -> anyhow::Result<Vec<Object>> {
        let budget = Budget::of_all(self.objects);
        let mut objects = Vec::with_capacity(mapped.len());
        for one in mapped {
            match Object::open_one_of(one, self.objects, &budget) {
                Ok(mut object) => {
                    if self.selector.asks_by_address(&object) {
                        object.name_by_address();
                    }
                    objects.push(object);
                }
                Err(error) => {
                    // Its contents are unknown.
                    self.guarding.miss(one);
                    if one.is_main {
                        return Err(error.into());
                    }
                    tracing::warn!("{} is left out: {error}", one.path.display());
                }
            }
        }
        self.look_for_python(&objects);
        self.guarding.look(mapped, &objects, self.returns, self.objects);
        // With no selection at all, markers are what will be asked for.
        if self.selector.is_empty() || self.selector.asks_for_markers() {
            self.has_runtime |= objects.iter().any(|object| !object.markers().runtimes.is_empty());
        }
        Ok(objects)
    }

    fn place_all(&mut self, objects: &[Object], selection: &Selection) -> anyhow::Result<Plan> {
        self.naming.give(objects, selection);
        let mut plan = Plan {
            remarks: self.remarks(objects, selection),
            guards: self.guarding.take(),
            unguarded: self.guarding.unguarded(),
            ..Plan::default()
        };
        let mut unseen = 0;
        for (index, object) in objects.iter().enumerate() {
            let functions = selection.functions.iter().filter(|s| s.object == index);
            let mut planned = Vec::new();
            let functions: Vec<(&Function, &[usize])> =
                functions.map(|s| (&object.functions()[s.index], selection.values_of(s))).collect();
            if !functions.is_empty() {
                self.place_functions(object, &functions, &mut planned, &mut plan)?;
                unseen += self.make_room(&mut planned);
                if self.follows_tail_calls {
                    tail_calls::note(&mut planned);
                }
            }
            self.place_usdt(objects, index, selection, &mut planned, &mut plan)?;
            let scopes = selection.markers.iter().filter(|s| s.object == index);
            let scopes: Vec<_> = scopes.map(|s| &object.markers().scopes[s.index]).collect();
            let follows_locks = self.locks.follows(object, &scopes, &mut plan);
            planned.extend(scopes.iter().map(|scope| {
                let reads = if is_of_locks(scope) { follows_locks } else { self.values.reads };
                markers::planned(object, scope, reads)
            }));
            // A runtime may serve scopes of other objects, and of those that come later.
            let markers = match self.selector.asks_for_markers() {
                true => MarkerPlan::of(object, self.answers),
                false => MarkerPlan::default(),
            };
            if !planned.is_empty() || !markers.runtimes.is_empty() {
                plan.objects.push(ObjectPlan {
                    identity: object.identity(),
                    open_path: object.open_path().to_owned(),
                    path: object.path().to_owned(),
                    build_id: object.build_id().map(hexadecimal),
                    name: Arc::clone(object.name()),
                    functions: planned,
                    markers,
                });
            }
        }
        plan.notes.extend(selection.report_notes.iter().cloned());
        plan.notes.extend(remarks::goroutines(objects, selection));
        if unseen > 0 {
            plan.notes.push(self.jumps.note(unseen));
        }
        plan.notes.extend(self.values.take_note());
        plan.notes.extend(remarks::rust_locks(objects, &plan));
        // In the report as well: functions may be missing because they were not looked for.
        plan.notes.extend(objects.iter().flat_map(Object::left_out));
        Ok(plan)
    }

    /// Returns the placer that finds the places to probe functions of one object.
    pub(crate) fn placer<'a>(&self, object: &'a Object) -> anyhow::Result<Placer<'a>> {
        let map = CodeMap::of(object)
            .with_context(|| format!("cannot read the code of {}", object.path().display()))?;
        let policy = Policy {
            returns: self.returns,
            unwinding_possible: self.guarding.may_unwind() || map.has_unwinder(),
            switches_stacks: self.guarding.switches_stacks(),
            go: object.is_go().then(|| goid_place(object, &map)),
            guarded: self.guarding.guards(),
        };
        Ok(Placer::new(map, policy))
    }
}
