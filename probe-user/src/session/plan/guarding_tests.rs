use super::super::{Plan, Planner, Sites};
use super::*;
use crate::target::{
    fixtures::{Built, compile},
    plan::{CostClass, EntrySite, ExitKind, ExitPlacement, ExitSite, GuardKind, Placement},
    select::{Patterns, Selector},
};

const PROGRAM: &str =
    "int step(int x) { return x * 7; }\nint main(int c, char **v) { return step(c); }\n";
const UNWINDER: &str =
    "void _Unwind_RaiseException(void *x) { __asm__ volatile(\"\" :: \"r\"(x)); }\n";
const SWITCHER: &str = "void swapcontext(void *x) { __asm__ volatile(\"\" :: \"r\"(x)); }\n\
    void makecontext(void *); void use(void *x) { makecontext(x); swapcontext(x); }\n";
const RUNTIME: &str = "int JNI_CreateJavaVM(void) { return 7; }\n\
    void swapcontext(void *); void use(void *x) { swapcontext(x); }\n";

/// A program and libraries, in this order.
fn files(libraries: &[&str]) -> (Vec<Built>, Vec<MappedObject>) {
    let program = compile("gcc -O1", "c", PROGRAM);
    let libraries = libraries.iter().map(|it| compile("gcc -O1 -w -shared -fPIC", "c", it));
    let built: Vec<Built> = std::iter::once(program).chain(libraries).collect();
    let mapped = built.iter().enumerate().map(|(n, file)| {
        let mut object = MappedObject::from_file(&file.program, n == 0).unwrap();
        object.name = if n == 0 { "program".to_owned() } else { format!("lib{n}.so") };
        object
    });
    let mapped = mapped.collect();
    (built, mapped)
}

fn planner(returns: Returns) -> Planner {
    let functions = ["step".to_owned()];
    let asked = Patterns { functions: &functions, ..Patterns::default() };
    Planner::new(Selector::parse(asked).unwrap(), 100, returns).guarding(true)
}

fn more(planner: &mut Planner, mapped: &[MappedObject]) -> Plan {
    let opened = planner.open(mapped).unwrap();
    planner.plan_more(&opened).unwrap()
}

fn exit(plan: &Plan) -> &ExitPlacement {
    let Some(Sites::Function(placement)) = plan.planned().next().map(|it| &it.sites) else {
        panic!("it is planned")
    };
    &placement.exit
}

fn kinds(plan: &Plan) -> Vec<(&str, Vec<GuardKind>)> {
    let kinds = |it: &ObjectGuards| it.sites.iter().map(|site| site.kind).collect();
    plan.guards.iter().map(|it| (&*it.name, kinds(it))).collect()
}

#[test]
fn all_objects_are_guarded() {
    let (_built, mapped) = files(&[UNWINDER, SWITCHER, "int plain;"]);
    let mut planner = planner(Returns::Auto);
    let plan = planner.plan(&mapped).unwrap();
    assert!(matches!(exit(&plan), ExitPlacement::Guarded(Ok(sites)) if sites.len() == 1));
    let expected = [("lib1.so", vec![GuardKind::Unwind]), ("lib2.so", vec![GuardKind::Switch])];
    assert_eq!(kinds(&plan), expected);
    assert_eq!(plan.guards[0].identity, (mapped[1].dev, mapped[1].inode));
    assert!(plan.unguarded.is_empty() && planner.allows_return_probes());
    assert_eq!(planner.against_return_probes(), [Vec::<String>::new(), Vec::new()]);
}

#[test]
fn without_guards_the_old_rules_hold() {
    let (_built, mapped) = files(&[UNWINDER, SWITCHER]);
    let mut planner = planner(Returns::Auto).guarding(false);
    let plan = planner.plan(&mapped).unwrap();
    assert!(matches!(exit(&plan), ExitPlacement::Sites(_)));
    assert!(plan.guards.is_empty() && plan.unguarded.is_empty());
    assert!(!planner.allows_return_probes());
    let [guards, returns] = planner.against_return_probes();
    assert_eq!(guards, Vec::<String>::new());
    assert_eq!(returns, ["lib1.so has an unwinder (_Unwind_RaiseException)"]);
}

#[test]
fn one_object_can_forbid_all_guards() {
    let (_built, mapped) = files(&[SWITCHER, RUNTIME]);
    let mut planner = planner(Returns::Auto);
    let plan = planner.plan(&mapped).unwrap();
    assert!(matches!(exit(&plan), ExitPlacement::Sites(_)));
    assert!(plan.guards.is_empty() && !planner.allows_return_probes());
    let why =
        "lib2.so walks its own stacks (a Java virtual machine, by its symbol JNI_CreateJavaVM)";
    assert_eq!(plan.unguarded, [why]);
    let expected = [vec![why.to_owned()], vec!["lib1.so uses makecontext".to_owned()]];
    assert_eq!(planner.against_return_probes(), expected);
}

/// Where no return address is replaced, there is nothing to guard in other processes.
#[test]
fn processes_without_return_probes_are_safe_together() {
    for (others, guards, is_safe) in [
        (&["int plain;"][..], true, true),
        (&["int plain;"], false, false),
        (&[SWITCHER, RUNTIME], true, true),
        (&[UNWINDER, SWITCHER], false, true),
    ] {
        let (_built, mapped) = files(others);
        let mut planner = planner(Returns::Auto).guarding(guards);
        planner.plan(&mapped).unwrap();
        assert_eq!(planner.is_safe_beside_others(), is_safe, "{others:?} {guards}");
    }
}

/// A runtime reads the addresses itself, whether guards are asked for or not.
#[test]
fn a_runtime_forbids_return_probes() {
    let runtime = "int JNI_CreateJavaVM(void) { return 7; }\n";
    let (_built, mapped) = files(&["int plain;", runtime]);
    let why =
        "lib2.so walks its own stacks (a Java virtual machine, by its symbol JNI_CreateJavaVM)";
    for (returns, guards) in
        [(Returns::Auto, true), (Returns::Auto, false), (Returns::ReturnProbe, false)]
    {
        let mut planner = planner(returns).guarding(guards);
        let plan = planner.plan(&mapped).unwrap();
        assert!(matches!(exit(&plan), ExitPlacement::Sites(_)), "{returns:?} {guards}");
        assert_eq!(planner.against_return_probes()[1], [why]);
        assert!(!planner.allows_return_probes());
    }
}

/// A reason that only the run shows is told with the object that switches stacks.
#[test]
fn what_a_run_shows_is_told_with_its_object() {
    let (_built, mapped) = files(&[UNWINDER, SWITCHER]);
    let mut planner = planner(Returns::Auto);
    planner.plan(&mapped).unwrap();
    planner.give_up_return_probes("the process changes stacks");
    let [guards, returns] = planner.against_return_probes();
    assert_eq!(guards, ["lib2.so uses makecontext, and the process changes stacks"]);
    let unwinder = "lib1.so has an unwinder (_Unwind_RaiseException)";
    assert_eq!(returns, [unwinder, "lib2.so uses makecontext"]);
}

/// Another session's return probes may be in the process even so.
#[test]
fn a_process_without_return_probes_keeps_its_guards() {
    let (_built, mapped) = files(&[UNWINDER, SWITCHER]);
    let mut planner = planner(Returns::Auto);
    planner.plan(&mapped[..2]).unwrap();
    planner.give_up_return_probes("the process changes stacks");
    let plan = more(&mut planner, &mapped[2..]);
    assert_eq!(kinds(&plan), [("lib2.so", vec![GuardKind::Switch])]);
    assert!(!planner.allows_return_probes());
}

/// Nobody asks for guards where there are no return probes.
#[test]
fn probes_on_ways_out_need_no_guards() {
    let (_built, mapped) = files(&[SWITCHER, RUNTIME]);
    let mut planner = planner(Returns::RetSites);
    let plan = planner.plan(&mapped).unwrap();
    assert!(plan.guards.is_empty() && plan.unguarded.is_empty());
    assert_eq!(planner.against_return_probes(), [Vec::<String>::new(), Vec::new()]);
}

#[test]
fn later_libraries_bring_guards_or_forbid_them() {
    let (_built, mapped) = files(&[UNWINDER, SWITCHER, RUNTIME]);
    let mut planner = planner(Returns::Auto);
    let plan = planner.plan(&mapped[..2]).unwrap();
    assert_eq!(kinds(&plan), [("lib1.so", vec![GuardKind::Unwind])]);
    let plan = more(&mut planner, &mapped[2..3]);
    assert_eq!(kinds(&plan), [("lib2.so", vec![GuardKind::Switch])]);
    assert!(planner.allows_return_probes());
    // No file twice.
    assert!(more(&mut planner, &mapped[1..3]).guards.is_empty());
    let plan = more(&mut planner, &mapped[3..]);
    assert!(plan.guards.is_empty() && plan.unguarded.len() == 1);
    assert!(!planner.allows_return_probes());
}

#[test]
fn an_unreadable_object_forbids_guards() {
    let (built, mut mapped) = files(&["int plain;"]);
    std::fs::write(&built[1].program, "no library").unwrap();
    mapped[1].name = "broken.so".to_owned();
    let mut planner = planner(Returns::Auto);
    let plan = planner.plan(&mapped).unwrap();
    assert_eq!(plan.unguarded, ["broken.so cannot be read"]);
    assert!(!planner.allows_return_probes());
}

/// The C library loads an unwinder by itself.
#[test]
fn files_that_come_by_themselves_are_guarded_before() {
    let (built, mut mapped) = files(&["int plain;", UNWINDER]);
    let folder = built[1].dir();
    std::fs::copy(&built[1].program, folder.join("libc.so.6")).unwrap();
    std::fs::copy(&built[2].program, folder.join("libgcc_s.so.1")).unwrap();
    let unwinder = MappedObject::from_file(&folder.join("libgcc_s.so.1"), false).unwrap();
    mapped.truncate(1);
    mapped.push(MappedObject::from_file(&folder.join("libc.so.6"), false).unwrap());
    let plan = planner(Returns::Auto).plan(&mapped).unwrap();
    let found = plan.guards.iter().find(|it| it.identity == identity(&unwinder)).unwrap();
    assert_eq!((&*found.name, found.sites.len()), ("libgcc_s.so.1", 1));
}

/// Ways out take room in the table of jumps only when a function is moved to them.
#[test]
fn a_moved_function_ends_at_its_ways_out() {
    let site = |kind| ExitSite { offset: 3, cost: CostClass::SingleStep, kind, leads_to: None };
    let placement = |exit| Placement {
        entry: EntrySite { offset: 0, cost: CostClass::Emulated, skipped: 0 },
        exit,
        entry_is_loop_head: false,
        may_tail_jump: false,
        go: None,
        no_return_probe: None,
    };
    let mut planner = planner(Returns::Auto);
    let sites = vec![site(ExitKind::Ret)];
    let moved = planner.moved(&placement(ExitPlacement::Guarded(Ok(sites.clone()))));
    assert_eq!(moved, placement(ExitPlacement::Sites(sites)));
    let unseen = planner.moved(&placement(ExitPlacement::Guarded(Err("it is odd".to_owned()))));
    assert_eq!(unseen, placement(ExitPlacement::Unseen("it is odd".to_owned())));
    let jumps = vec![site(ExitKind::IndirectJump(Default::default())); crate::bpf::JUMPS_LIMIT];
    let full = placement(ExitPlacement::Guarded(Ok(jumps)));
    assert!(matches!(planner.moved(&full).exit, ExitPlacement::Sites(_)));
    assert!(matches!(planner.moved(&full).exit, ExitPlacement::Unseen(_)));
}
