//! The whole way of a USDT argument up to its payload: note, plan, link, program, ring. The target knows
//! what its arguments were.

use crate::support::Session;
use ctrace_core::units::FuncId;
use ctrace_user::testing::{
    bpf::{LinkChoice, SITES_LIMIT},
    program::{ByRole, LinkOptions, Planner},
    target::{MappedObject, Patterns, Returns, Selector},
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

/// By `PROVIDER:NAME:ARGUMENT`: how often it was read, and the sum.
type Sums = BTreeMap<String, (u64, i64)>;

fn compiled(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/targets/usdt_values.c");
    let program = folder.join("usdt_values");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-o"]).args([&program, &source]);
    assert!(compiler.status().expect("gcc is installed").success());
    program
}

/// What the target says, `value NAME READ SUM`.
fn told(stdout: &str) -> Sums {
    let lines = stdout.lines().filter_map(|line| line.strip_prefix("value "));
    let words = lines.map(|line| line.split(' ').collect::<Vec<_>>());
    words.map(|it| (it[0].to_owned(), (it[1].parse().unwrap(), it[2].parse().unwrap()))).collect()
}

fn read_by(choice: LinkChoice) {
    let Some(mut session) = Session::start(false) else { return };
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path());
    let all = ["values:*".to_owned()];
    let selector = Selector::parse(Patterns { usdt: &all, ..Patterns::default() }).unwrap();
    let mut planner = Planner::new(selector, SITES_LIMIT, Returns::Auto);
    let plan = planner.plan(&[MappedObject::from_file(&program, true).unwrap()]).unwrap();
    let functions: Vec<_> =
        plan.planned().zip(0..).map(|(planned, id)| (FuncId(id), planned)).collect();
    let sites = ByRole::new(&session.kernel, &program, functions.iter().copied()).unwrap();
    let options = LinkOptions { choice, force_perf: false, pid: None };
    let links = sites.attach(&session.kernel, options).unwrap();
    let output = Command::new(&program).arg("2500").output().unwrap();
    drop(links);
    session.drain();
    assert_eq!((session.lost().events, session.lost().payloads), (0, 0));

    let mut read = Sums::new();
    for payload in &session.payloads {
        let info = &functions[payload.function.0 as usize].1.info;
        let group = info.group.as_ref().unwrap();
        for (value, of) in payload.values(info.values.len()).zip(&info.values) {
            let Some(value) = value else { continue };
            let (count, sum) =
                read.entry(format!("{group}:{}:{}", info.name, of.name)).or_default();
            *count += 1;
            *sum = sum.wrapping_add(value.cast_signed());
        }
    }
    let told = told(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(told.len(), 26);
    assert_eq!(read, told);
    // Each payload has an event, and the events say so in the same order.
    let places = |id: u32, time| (id, time);
    let events: Vec<_> = session.events.iter().map(|it| places(it.probe, it.ts)).collect();
    let payloads: Vec<_> =
        session.payloads.iter().map(|it| places(it.function.0, it.time.0)).collect();
    assert_eq!(events, payloads);
    let notes = [
        "values:floating: arg0 (8f@%xmm0) is not read: it is a floating-point number",
        "values:places: arg1 is not read at 1 of 2 places: the note of this place has no such argument",
    ];
    assert_eq!(plan.notes, notes);
}

#[test]
fn arguments_are_what_the_target_passed() {
    read_by(LinkChoice::Multi);
}

#[test]
fn perf_links_read_the_same() {
    read_by(LinkChoice::Perf);
}
