//! Other tracers that live keep their probes, and cost an attach little.

use super::{LIMIT, alone, assert_clean, attach, count, heal, leave, start};
use ctrace_tests::env::Link;
use ctrace_tests::left::{Field, Leaver, Whose};
use ctrace_tests::tools::{bpftrace::Bpftrace, has};
use ctrace_tests::{gate, or_skip};
use std::time::{Duration, Instant};

#[test]
fn a_live_tracer_keeps_its_probes() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let field = start(&env);
    let Some(left) = leave(&field, &env, "kill", Whose::This) else { return };
    let there = field.left().expect("its memory");
    // Three of the leftover places and one clean one are in use now.
    let clean = (0..).map(|function| field.place(function)).find(|place| !there.contains(place));
    let mut live = vec![there[5], there[50], there[70]];
    live.extend(clean.filter(|place| *place < field.place(20_000)));
    live.sort_unstable();
    let leaver =
        Leaver::on(&env, field.pid(), live.iter().map(|place| (*place, None))).expect("a tracer");
    let (running, input) = leaver.hold(Whose::This).expect("a tracer");
    let told = heal(&env, field.pid());
    let remain = live.len();
    let line = format!("{remain} breakpoints still in use by another tracer, so left in place\n");
    assert!(told.stdout.ends_with(&line), "{line}: {told:?}");
    assert!(told.stdout.contains(&format!("; {} removed\n", count(left - 3))), "{left}: {told:?}");
    assert_eq!(told.shell_code(), 1, "{told:?}");
    assert_eq!(field.left().expect("its memory"), live);
    drop(input);
    running.wait(LIMIT).expect("it ends");
    assert_clean(&env, field.pid(), "without it");
}

/// Another tracer has probes in all processes of a server. ctrace finds that out for the first of them, and
/// waits no third of a second for each of the others.
#[test]
fn a_live_tracer_delays_an_attach_once() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let fields: Vec<Field> = (0..24).map(|_| start(&env)).collect();
    let places = [11, 12, 13].map(|function| (fields[0].place(function), None));
    let leaver = Leaver::on(&env, fields[0].pid(), places).expect("a tracer");
    let (running, input) = leaver.hold(Whose::All).expect("a tracer");
    let attach = |fields: &[Field]| {
        let begun = Instant::now();
        attach(&env, fields);
        begun.elapsed()
    };
    let (one, all) = (attach(&fields[..1]), attach(&fields));
    drop(input);
    running.wait(LIMIT).expect("it ends");
    let waits = Duration::from_millis(300) * (fields.len() as u32 - 1);
    assert!(all < one + waits * 3 / 4, "{one:?} for one process, {all:?} for all");
}

/// What a killed tracer left in one process goes, also where a living one has probes in another process alone.
#[test]
fn a_tracer_of_another_process_protects_nothing() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    let fields = [start(&env), start(&env)];
    let [theirs, field] = &fields;
    if leave(field, &env, "kill", Whose::This).is_none() {
        return;
    }
    let there = field.left().expect("its memory");
    let places = [there[5], there[50], there[70]].map(|place| (place, None));
    let leaver = Leaver::on(&env, theirs.pid(), places).expect("a tracer");
    let (running, input) = leaver.hold(Whose::This).expect("a tracer");
    attach(&env, &fields);
    assert!(field.left().expect("its memory").is_empty(), "it is healed");
    assert_eq!(theirs.left().expect("its memory").len(), 3);
    drop(input);
    running.wait(LIMIT).expect("it ends");
}

#[test]
fn bpftrace_keeps_its_probe() {
    let (_alone, env) = (alone(), or_skip!(gate::live(Link::Multi)));
    or_skip!(has("bpftrace"));
    let mut field = start(&env);
    let program = env.targets.get(&ctrace_tests::left::field()).expect("built");
    let script = format!("uprobe:{}:field_round {{ @rounds = count(); }}", program.display());
    let armed = || field.left().is_ok_and(|left| left.len() == 1);
    let bpftrace = Bpftrace::attach(field.pid(), &script, armed).expect("bpftrace");
    let told = heal(&env, field.pid());
    assert!(told.stdout.contains(": 1 breakpoint still in use by another tracer"), "{told:?}");
    assert_eq!(told.shell_code(), 1, "{told:?}");
    field.speed().expect("three rounds");
    let counted = bpftrace.end().expect("bpftrace");
    assert_eq!(counted["@rounds"], 3, "{counted}");
}
