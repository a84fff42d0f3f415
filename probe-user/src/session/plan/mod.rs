//! Turns a selection into probes: the traced functions of each object, their places, and the
//! refusals.

pub(crate) mod jump_room;
pub(crate) mod markers;
mod nothing_chosen;
mod points;
mod room;
pub(crate) mod values;

use self::{
    jump_room::JumpRoom,
    markers::MarkerPlan,
    nothing_chosen::what_could_be_traced,
    values::{Point, ValuePlanner},
};
use crate::target::{
    budget::{Budget, ObjectLimits},
    maps::MappedObject,
    markers::MarkerSite,
    not_found::flawed_markers,
    object::Object,
    place::{Candidate, CodeMap, Policy, Refusal, Returns, place},
    plan::{ExitPlacement, Placement},
    select::{SelectError, Selection, Selector},
    symbols::Function,
    usdt::UsdtProbe,
};
use anyhow::{Context, bail};
use ctrace_core::function::{ExitSeen, FunctionInfo, FunctionKind};
use std::{path::PathBuf, sync::Arc};

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
}

/// The functions to trace in one file.
pub struct ObjectPlan {
    pub identity: Identity,
    /// A path that opens the very inode that is mapped.
    pub open_path: PathBuf,
    /// The path from which the target mapped it.
    pub path: PathBuf,
    /// The build id in hexadecimal digits.
    pub build_id: Option<String>,
    /// Its file name.
    pub name: Arc<str>,
    /// Empty if only its marker runtime is of interest.
    pub functions: Vec<Planned>,
    pub(crate) markers: MarkerPlan,
}

/// One function, USDT probe or marker scope and its sites.
pub struct Planned {
    pub info: FunctionInfo,
    pub sites: Sites,
}

impl Planned {
    pub(crate) fn is_marker(&self) -> bool {
        matches!(self.sites, Sites::Marker(_))
    }
}

pub enum Sites {
    Function(Placement),
    Usdt(Vec<Point>),
    Marker(Vec<MarkerSite>),
}

/// A selected function that cannot be traced.
pub struct Refused {
    pub name: Arc<str>,
    pub object: Arc<str>,
    pub why: Refusal,
}

/// A caution for a reader of durations.
const GO: &str = "Go runs a goroutine now on one thread and now on another: a call that ends on \
    another one than it began on is untimed, and a later call on the same stack may be timed from its \
    beginning; do not rely on durations and call trees of functions that wait";

/// Makes plans for the objects of one target.
pub struct Planner {
    selector: Selector,
    /// The selection for libraries that come later.
    late: Selector,
    limit: usize,
    returns: Returns,
    /// True if an object so far has a marker runtime: events of markers have a way out.
    has_runtime: bool,
    /// True if an object of the process so far has an unwinder: no return probes from then on.
    unwinder: bool,
    switches_stacks: bool,
    jumps: JumpRoom,
    values: ValuePlanner,
    objects: ObjectLimits,
}

impl Planner {
    pub fn new(selector: Selector, limit: usize, returns: Returns) -> Self {
        Self {
            late: selector.clone(),
            selector,
            limit,
            returns,
            has_runtime: false,
            unwinder: false,
            switches_stacks: false,
            jumps: JumpRoom::default(),
            values: ValuePlanner::default(),
            objects: ObjectLimits::DEFAULT,
        }
    }

    /// Sets the limits for each object.
    pub(crate) fn within(self, objects: ObjectLimits) -> Self {
        Self { objects, ..self }
    }

    /// Chooses whether USDT probes read their arguments. By default they do not.
    pub(crate) fn reading_values(mut self, reads: bool) -> Self {
        self.values.reads = reads;
        self
    }

    /// Makes the plan for a whole target.
    pub fn plan(&mut self, mapped: &[MappedObject]) -> anyhow::Result<Plan> {
        let objects = self.open(mapped)?;
        if self.selector.is_empty() {
            if objects.iter().all(|object| object.markers().scopes.is_empty()) {
                is_small_enough(&objects)?;
                bail!("{}", what_could_be_traced(&objects));
            }
            self.selector.ask_for_all_markers()?;
        }
        let selection = self.selector.select(&objects, self.limit);
        is_small_enough(&objects)?;
        let selection = selection?;
        self.late = self.selector.for_late_objects(&selection);
        self.place_all(&objects, &selection)
    }

    /// Makes the plan for objects that came later, a new program or libraries. It is no error if
    /// nothing there matches.
    pub(crate) fn plan_more(&mut self, mapped: &[MappedObject]) -> anyhow::Result<Plan> {
        let objects = self.open(mapped)?;
        let new_program = objects.iter().any(Object::is_main);
        let selector = if new_program { &self.selector } else { &self.late };
        let selection = selector.select(&objects, self.limit);
        is_small_enough(&objects)?;
        let selection = match selection {
            Ok(selection) => selection,
            Err(SelectError::NothingFound(_) | SelectError::NothingAsked) => Selection::default(),
            Err(error) => return Err(error.into()),
        };
        if new_program {
            self.late = self.selector.for_late_objects(&selection);
        }
        self.place_all(&objects, &selection)
    }

    pub(crate) fn asks_for_markers(&self) -> bool {
        self.selector.asks_for_markers()
    }

    /// True if probes may read values.
    pub(crate) fn reads_values(&self) -> bool {
        self.values.reads && self.selector.asks_for_usdt()
    }

    /// True if no object seen so far would make a return probe kill the target, or the user wants
    /// return probes.
    pub(crate) fn allows_return_probes(&self) -> bool {
        !self.switches_stacks && (self.returns == Returns::ReturnProbe || !self.unwinder)
    }

    /// Selects functions without placing probes.
    pub(crate) fn select(
        &mut self,
        mapped: &[MappedObject],
    ) -> anyhow::Result<(Vec<Object>, Selection)> {
        let objects = self.open(mapped)?;
        let selection = self.selector.select(&objects, self.limit);
        is_small_enough(&objects)?;
        Ok((objects, selection?))
    }

    /// Reads the objects. A library that cannot be read is left out; for the program itself this is
    /// an error.
    fn open(&mut self, mapped: &[MappedObject]) -> anyhow::Result<Vec<Object>> {
        let budget = Budget::of_all(self.objects);
        let mut objects = Vec::with_capacity(mapped.len());
        for one in mapped {
            match Object::open_one_of(one, self.objects, &budget) {
                Ok(object) => objects.push(object),
                Err(error) if one.is_main => return Err(error.into()),
                Err(error) => {
                    tracing::warn!("{} is left out: {error}", one.path.display());
                    // Its contents are unknown.
                    self.switches_stacks = true;
                }
            }
        }
        self.unwinder |= objects.iter().any(Object::uses_unwinder);
        // With no selection at all, markers are what will be asked for.
        if self.selector.is_empty() || self.selector.asks_for_markers() {
            self.has_runtime |= objects.iter().any(|object| !object.markers().runtimes.is_empty());
        }
        // Reading all code takes time.
        if self.allows_return_probes() && self.returns != Returns::RetSites {
            self.switches_stacks =
                objects.iter().any(|object| CodeMap::data_switches_stacks(object.source()));
        }
        Ok(objects)
    }

    fn place_all(&mut self, objects: &[Object], selection: &Selection) -> anyhow::Result<Plan> {
        let mut plan = Plan { remarks: self.remarks(objects, selection), ..Plan::default() };
        let mut unseen = 0;
        for (index, object) in objects.iter().enumerate() {
            let functions = selection.functions.iter().filter(|s| s.object == index);
            let probes = selection.usdt.iter().filter(|s| s.object == index);
            let mut planned = Vec::new();
            let functions: Vec<&Function> =
                functions.map(|s| &object.functions()[s.index]).collect();
            if !functions.is_empty() {
                self.place_functions(object, &functions, &mut planned, &mut plan.refused)?;
                unseen += self.make_room(&mut planned);
            }
            let probes: Vec<&UsdtProbe> = probes.map(|s| &object.usdt_probes()[s.index]).collect();
            let variables = self.values.variables(object, probes.iter().copied());
            for probe in probes {
                self.place_probe(object, probe, &variables, &mut planned, &mut plan);
            }
            let scopes = selection.markers.iter().filter(|s| s.object == index);
            let scopes = scopes.map(|s| &object.markers().scopes[s.index]);
            planned.extend(scopes.map(|scope| markers::planned(object, scope)));
            // A runtime may serve scopes of other objects, and of those that come later.
            let markers = match self.selector.asks_for_markers() {
                true => MarkerPlan::of(object),
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
        let is_go = |(index, object): (usize, &Object)| {
            object.is_go() && selection.functions.iter().any(|s| s.object == index)
        };
        if objects.iter().enumerate().any(is_go) {
            plan.notes.push(GO.to_owned());
        }
        if unseen > 0 {
            plan.notes.push(self.jumps.note(unseen));
        }
        plan.notes.extend(self.values.take_note());
        // In the report as well: functions may be missing because they were not looked for.
        plan.notes.extend(objects.iter().flat_map(Object::left_out));
        Ok(plan)
    }

    fn remarks(&self, objects: &[Object], selection: &Selection) -> Vec<String> {
        let mut remarks: Vec<String> =
            selection.unmatched.iter().map(ToString::to_string).collect();
        remarks.extend(selection.notes.iter().cloned());
        if self.selector.asks_for_markers() {
            remarks.extend(objects.iter().filter_map(flawed_markers));
        }
        let by_force = self.returns == Returns::ReturnProbe && self.unwinder;
        if by_force && !selection.functions.is_empty() {
            remarks.push(
                "--returns uretprobe: an exception or a panic that passes through a traced function \
                 kills the program; --returns auto avoids it"
                    .to_owned(),
            );
        }
        if !selection.markers.is_empty() && !self.has_runtime {
            remarks.push(
                "the chosen marker scopes have no runtime in the program, so nothing will come of \
                 them: link it with ctrace-marker or ctrace.h as a whole"
                    .to_owned(),
            );
        }
        remarks
    }

    /// Returns the number of functions that lose their ends because the table of indirect jumps is
    /// full.
    fn make_room(&mut self, planned: &mut [Planned]) -> usize {
        let mut unseen = 0;
        for Planned { info, sites } in planned {
            if let Sites::Function(placement) = sites
                && !self.jumps.fit(placement)
            {
                info.exit = ExitSeen::Never;
                unseen += 1;
            }
        }
        unseen
    }

    fn place_functions(
        &self,
        object: &Object,
        functions: &[&Function],
        planned: &mut Vec<Planned>,
        refused: &mut Vec<Refused>,
    ) -> anyhow::Result<()> {
        let placer = self.placer(object)?;
        for function in functions {
            match placer.place(function) {
                Ok(placement) => planned.push(Planned {
                    info: info(object, function, &placement),
                    sites: Sites::Function(placement),
                }),
                Err(why) => refused.push(Refused {
                    name: Arc::clone(function.name()),
                    object: Arc::clone(object.name()),
                    why,
                }),
            }
        }
        Ok(())
    }

    /// Returns the placer that finds the places to probe functions of one object.
    pub(crate) fn placer<'a>(&self, object: &'a Object) -> anyhow::Result<Placer<'a>> {
        let mut map = CodeMap::parse(object.source())
            .with_context(|| format!("cannot read the code of {}", object.path().display()))?;
        map.learn(object.functions().iter().map(|f| (f.address, f.size, f.raw())));
        let policy = Policy {
            returns: self.returns,
            unwinding_possible: self.unwinder || map.has_unwinder(),
            switches_stacks: self.switches_stacks,
            is_go: object.is_go(),
        };
        Ok(Placer { map, policy })
    }
}

/// Returns an error if the program is too large: the findings would be incomplete. A library like
/// that is left out.
fn is_small_enough(objects: &[Object]) -> anyhow::Result<()> {
    let main = objects.iter().filter(|object| object.is_main());
    main.filter_map(Object::too_large).next().map_or(Ok(()), |why| Err(why.into()))
}

/// Decides where the functions of one object are probed.
pub(crate) struct Placer<'a> {
    map: CodeMap<'a>,
    policy: Policy,
}

impl Placer<'_> {
    pub(crate) fn place(&self, function: &Function) -> Result<Placement, Refusal> {
        let candidate =
            Candidate { address: function.address, size: function.size, name: function.raw() };
        place(candidate, &self.map, &self.policy)
    }
}

fn info(object: &Object, function: &Function, placement: &Placement) -> FunctionInfo {
    let source = object.source_line(function.address);
    FunctionInfo {
        name: Arc::clone(function.name()),
        aliases: function.aliases().to_vec(),
        object: Arc::clone(object.name()),
        line: source.as_ref().and_then(|source| source.line),
        file: source.map(|source| source.file),
        kind: FunctionKind::Function,
        group: None,
        exit: match &placement.exit {
            ExitPlacement::ReturnProbe => ExitSeen::ByReturnProbe,
            ExitPlacement::Sites(_) => ExitSeen::ByExitSites,
            ExitPlacement::Unseen(_) => ExitSeen::Never,
        },
        entry_is_loop_head: placement.entry_is_loop_head,
        may_tail_jump: placement.may_tail_jump,
        values: Vec::new(),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
