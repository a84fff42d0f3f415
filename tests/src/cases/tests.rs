use super::attach::{ends_well, spin, spinning};
use super::*;
use crate::probes::changed_bytes;
use crate::targets::Targets;

#[test]
fn names_are_unique() {
    for (index, case) in all().enumerate() {
        assert!(all().take(index).all(|other| other.name != case.name), "{}", case.name);
        assert!(find(case.name).is_some());
    }
}

/// Checks that the targets print the counts in their sources.
#[test]
fn targets_print_the_known_counts() {
    let env = Env {
        ctrace: "/nonexistent".into(),
        targets: Targets::on_host(),
        link: Link::Session,
        slower: 1,
    };
    let printed = |source: &str, arguments: &[&str]| {
        Truth::parse(&untraced(&env, &program(source), arguments).expect(source).stdout).calls
    };
    let expected = |pairs: &[(&str, u64)]| -> Vec<(String, u64)> {
        pairs.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect()
    };
    assert_eq!(
        printed("counts.c", &["1000"]),
        expected(&[
            ("leaf", 1000),
            ("ping", 110),
            ("pong", 100),
            ("descend", 201),
            ("tail_first", 1000),
            ("tail_second", 1000),
            ("tail_third", 1000)
        ])
    );
    assert_eq!(
        printed("threads.c", &["100", "50"]),
        expected(&[("work", 800), ("inner", 1600), ("blink", 50)])
    );
    assert_eq!(
        printed("longjmp.c", &["10"]),
        expected(&[("catcher", 10), ("dive", 100), ("leap", 10), ("after", 10)])
    );
    assert_eq!(printed("execself.c", &["self", "3"]), expected(&[("work", 400)]));
    assert_eq!(printed("forker.c", &["5"]), expected(&[("work", 55), ("in_child", 0)]));
    assert_eq!(
        printed("altstack.c", &[]),
        expected(&[
            ("interrupted", 200),
            ("on_alternate", 200),
            ("fiber_step", 300),
            ("fiber_main", 3),
            ("schedule", 101)
        ])
    );
    assert_eq!(
        printed("ownstack.c", &[]),
        expected(&[("dive", 1200), ("yield_", 560), ("resume", 564)])
    );
    assert_eq!(
        printed("throw.cpp", &[]),
        expected(&[("thrower", 300), ("passer", 1800), ("catcher", 300), ("plain", 300)])
    );
    assert_eq!(
        printed("catches.cpp", &[]),
        expected(&[("parse", 300), ("request", 300), ("reply", 300)])
    );
}

#[test]
fn a_spinning_target_checks_itself() {
    let env = Env {
        ctrace: "/nonexistent".into(),
        targets: Targets::on_host(),
        link: Link::Session,
        slower: 1,
    };
    let target = spinning(&env, &["0", "0", "2"]).expect("spin");
    let path = spin(&env).expect("built");
    assert_eq!(changed_bytes(target.pid(), &path).expect("memory"), Vec::<u64>::new());
    ends_well(target).expect("undisturbed");
}
