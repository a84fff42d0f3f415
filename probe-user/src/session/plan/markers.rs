//! The part of a plan that concerns markers: the switches of scopes, and the places where their
//! events come out.

use super::{Planned, Sites, marked_locks::is_of_locks};
use crate::{
    bpf::Site,
    target::{
        markers::{MarkerScope, MarkerSite},
        object::Object,
        plan::EntrySite,
        process::bias::CodeSegments,
    },
};
use ctrace_common::Cookie;
use ctrace_core::{
    function::{ExitSeen, FunctionInfo, FunctionKind, ValueInfo, ValueKind},
    locks::LOCK,
    marker::{Carried, MarkerPlace},
    units::FuncId,
};
use std::{collections::BTreeSet, ops::Range, sync::Arc};

/// Bytes of a scope's entry in its section.
const ENTRY: u64 = 32;

/// The parts of an object that are needed once scopes are on, in it or in another.
#[derive(Default)]
pub(crate) struct MarkerPlan {
    pub runtimes: Vec<RuntimePlan>,
    /// The code segments: the addresses in events contain the load bias.
    pub code: CodeSegments,
    /// Addresses of the section with the scopes' entries, in the object's own addresses.
    pub sites: Range<u64>,
    /// The places where the program asks for its tables, if it is to have them.
    pub requests: Vec<MarkerSite>,
}

/// One copy of a runtime.
pub(crate) struct RuntimePlan {
    pub flush: EntrySite,
    pub register: EntrySite,
    /// Address of the word that points to the first buffer, in the object's own addresses.
    pub list: u64,
}

impl MarkerPlan {
    /// True if markers were asked for, and the object has any.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.runtimes.is_empty() || !self.sites.is_empty()
    }

    /// `answers`: the program is to have the tables that it asks for.
    pub(super) fn of(object: &Object, answers: bool) -> Self {
        let markers = object.markers();
        if markers.runtimes.is_empty() && markers.scopes.is_empty() {
            return Self::default();
        }
        let runtime = markers.runtimes.iter().map(|runtime| RuntimePlan {
            flush: runtime.flush.site(),
            register: runtime.register.site(),
            list: runtime.list,
        });
        Self {
            runtimes: runtime.collect(),
            code: CodeSegments::of(object.layout()),
            sites: markers.section.clone(),
            requests: if answers { markers.requests.clone() } else { Vec::new() },
        }
    }
}

/// Returns for each entry of the section its function and its place there, if the function was
/// chosen, or that it is a request to answer.
pub(crate) fn chosen(
    plan: &MarkerPlan,
    functions: &[Planned],
    id: impl Fn(usize) -> FuncId,
) -> Arc<[Option<MarkerPlace>]> {
    let section = &plan.sites;
    let entries = section.end.saturating_sub(section.start) / ENTRY;
    let mut chosen = vec![None; entries as usize];
    let mut choose = |site: &MarkerSite, as_this| {
        let entry = site.address.wrapping_sub(section.start) / ENTRY;
        if let Some(place) = chosen.get_mut(entry as usize) {
            *place = Some(as_this);
        }
    };
    for (index, planned) in functions.iter().enumerate() {
        let Sites::Marker { sites, is_named_late } = &planned.sites else { continue };
        for (number, site) in (0..=u8::MAX).cycle().zip(sites) {
            if planned.info.is_async {
                choose(site, MarkerPlace::of_async(id(index), number));
                continue;
            }
            let place = MarkerPlace {
                is_named_late: *is_named_late,
                is_point: planned.info.point.is_some(),
                carried: Carried::of(&planned.info.values),
                ..MarkerPlace::new(id(index), number)
            };
            choose(site, place);
        }
    }
    plan.requests.iter().for_each(|site| choose(site, MarkerPlace::request()));
    chosen.into()
}

/// Returns the control points of the scopes among these and of requests, each once.
pub(crate) fn switches<'a>(
    functions: impl IntoIterator<Item = &'a Planned>,
    requests: &[MarkerSite],
) -> Vec<Site> {
    let sites = functions.into_iter().filter_map(|planned| match &planned.sites {
        Sites::Marker { sites, .. } => Some(sites),
        _ => None,
    });
    let sites = sites.flatten().chain(requests);
    let points: BTreeSet<(u64, u64)> = sites.map(|site| (site.point, site.semaphore)).collect();
    let site = |(offset, ref_ctr_offset)| Site { offset, ref_ctr_offset, cookie: Cookie::plain(0) };
    points.into_iter().map(site).collect()
}

/// Plans a scope or a point. `reads_values`: those that come with its entries are wanted.
pub(super) fn planned(object: &Object, scope: &MarkerScope, reads_values: bool) -> Planned {
    let exit = if scope.point.is_some() { ExitSeen::Never } else { ExitSeen::ByExitSites };
    let info = FunctionInfo {
        file: scope.file.clone(),
        line: scope.line,
        kind: FunctionKind::Marker,
        group: scope.group.clone(),
        exit,
        point: scope.point,
        is_frame: scope.is_frame,
        is_async: scope.is_async,
        colour: scope.colour,
        values: if reads_values { values(scope) } else { Vec::new() },
        ..FunctionInfo::new(Arc::clone(&scope.name), Arc::clone(object.name()))
    };
    let sites = Sites::Marker { sites: scope.sites.clone(), is_named_late: scope.is_named_late };
    Planned::new(info, sites)
}

/// Returns the values that come with the entries of a marker. The address of a lock is shown as addresses
/// are, as that of a lock of libc.
fn values(scope: &MarkerScope) -> Vec<ValueInfo> {
    let mut values = scope.values.clone();
    let locks = values.iter_mut().filter(|value| is_of_locks(scope) && *value.name == *LOCK);
    locks.for_each(|lock| lock.kind = ValueKind::Pointer);
    values
}

#[cfg(test)]
mod tests {
    use super::super::{Plan, Planner};
    use super::*;
    use crate::target::{
        fixtures::{Built, MARKERS, compile},
        place::Returns,
        plan::CostClass,
        process::maps::MappedObject,
        select::{Patterns, Selector},
    };

    const SOURCE: &str = r#"
        static inline __attribute__((always_inline)) int step(int x) { SCOPE("step", "prod", 0); return x + 1; }
        int main(int c, char **v) { SCOPE("run", NONE, 0); return step(c) + step(c + 1); }
        RUNTIME
    "#;
    const LIBRARY: &str = r#"int decode(int x) { return x; } RUNTIME"#;

    fn files(library: &str) -> (Vec<Built>, Vec<MappedObject>) {
        let built = vec![
            compile("gcc", "c", &format!("{MARKERS}{SOURCE}")),
            compile("gcc -shared -fPIC", "c", &format!("{MARKERS}{library}")),
        ];
        let files = built.iter().enumerate();
        let mapped = files.map(|(n, file)| MappedObject::from_file(&file.program, n == 0).unwrap());
        let mapped = mapped.collect();
        (built, mapped)
    }

    fn planner(functions: &[&str], markers: &[&str]) -> Planner {
        let owned = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let (functions, markers) = (owned(functions), owned(markers));
        let asked = Patterns { functions: &functions, markers: &markers, ..Patterns::default() };
        let selector = Selector::parse(asked).unwrap();
        Planner::new(selector, 100, Returns::Auto)
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.planned().map(|planned| &*planned.info.name).collect()
    }

    #[test]
    fn markers_are_what_is_traced_unless_told_otherwise() {
        let (_built, mapped) = files(LIBRARY);
        let plan = planner(&[], &[]).plan(&mapped).unwrap();
        assert_eq!(names(&plan), ["run", "step"]);
        assert_eq!(plan.functions(), 2);
        // The runtime of a library that has no scopes may serve those of the program.
        let [program, library] = &plan.objects[..] else { panic!("{}", plan.objects.len()) };
        assert_eq!((program.identity.1, library.functions.len()), (mapped[0].inode, 0));
        for object in &plan.objects {
            let [runtime] = &object.markers.runtimes[..] else { panic!("one runtime") };
            assert_eq!((runtime.flush.skipped, runtime.flush.cost), (0, CostClass::Emulated));
            assert_eq!(runtime.register.offset % 16, 0);
        }
        assert_eq!(switches(&program.functions, &[]).len(), 3);
        let step = &program.functions[1];
        assert_eq!(step.info.kind, FunctionKind::Marker);
        assert_eq!(step.info.group.as_deref(), Some("prod"));
        assert!(step.info.file.is_some() && step.info.line.is_some());
        assert!(matches!(&step.sites, Sites::Marker { sites, .. } if sites.len() == 2));
    }

    #[test]
    fn functions_alone_need_no_runtime() {
        let (_built, mapped) = files(LIBRARY);
        let plan = planner(&["main"], &[]).plan(&mapped).unwrap();
        assert_eq!(names(&plan), ["main"]);
        assert_eq!(plan.objects.len(), 1);
        assert!(plan.objects[0].markers.runtimes.is_empty());
        assert!(switches(&plan.objects[0].functions, &[]).is_empty());
        let plan = planner(&["main"], &["prod/*"]).plan(&mapped).unwrap();
        assert_eq!(names(&plan), ["main", "step"]);
        assert_eq!(switches(&plan.objects[0].functions, &[]).len(), 2);
    }

    #[test]
    fn a_library_that_comes_later_brings_its_runtime() {
        let (_built, mapped) = files(LIBRARY);
        let mut planner = planner(&[], &["prod/*"]);
        planner.plan(&mapped[..1]).unwrap();
        let opened = planner.open(&mapped[1..]).unwrap();
        let plan = planner.plan_more(&opened).unwrap();
        assert_eq!((plan.functions(), plan.objects.len()), (0, 1));
    }

    #[test]
    fn scopes_without_a_runtime_are_told() {
        let library = r#"int decode(int x) { SCOPE("decode", "prod", 0); return x; }"#;
        let (_built, mut mapped) = files(library);
        mapped[1].is_main = true;
        let plan = planner(&[], &[]).plan(&mapped[1..]).unwrap();
        assert_eq!(plan.functions(), 1);
        assert!(plan.remarks.iter().any(|line| line.contains("no runtime")), "{:?}", plan.remarks);
    }

    #[test]
    fn without_markers_something_must_be_chosen() {
        let built = compile("gcc", "c", "int main(int c, char **v) { return c; }");
        let mapped = [MappedObject::from_file(&built.program, true).unwrap()];
        let error = planner(&[], &[]).plan(&mapped).err().unwrap().to_string();
        assert!(error.contains("no marker scopes") && error.contains("-f"), "{error}");
    }
}
