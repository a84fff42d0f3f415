//! Counts the functions of real programs and libraries that have a cheap exit with guards.

use crate::survey::decide;
use ctrace_user::testing::{
    program::Planner,
    target::{
        Budget, CostClass, ExitPlacement, Object, ObjectLimits, Patterns, Placement, Policy,
        Returns, Selector, guards, resolve,
    },
};
use std::path::Path;

/// Programs and libraries of Debian, as far as they are installed.
const OBJECTS: [&str; 24] = [
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libm.so.6",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/lib/x86_64-linux-gnu/libssl.so.3",
    "/usr/lib/x86_64-linux-gnu/libz.so.1",
    "/usr/lib/x86_64-linux-gnu/libzstd.so.1",
    "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0",
    "/usr/lib/x86_64-linux-gnu/libcurl.so.4",
    "/usr/lib/x86_64-linux-gnu/libglib-2.0.so.0",
    "/usr/lib/x86_64-linux-gnu/libxml2.so.2",
    "/usr/lib/x86_64-linux-gnu/libperl.so.5.36",
    "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1",
    "/usr/bin/redis-check-rdb",
    "/usr/bin/python3",
    "/usr/bin/perl",
    "/usr/bin/bash",
    "/usr/bin/gdb",
    "/usr/bin/git",
    "/usr/bin/curl",
    "/usr/sbin/nginx",
    "/usr/bin/ruby",
    "/usr/bin/php",
    "/usr/bin/memcached",
];

const WITHOUT: Policy = Policy {
    returns: Returns::Auto,
    unwinding_possible: true,
    go: None,
    switches_stacks: true,
    guarded: false,
};

fn is_cheap(placement: &Placement) -> bool {
    match &placement.exit {
        ExitPlacement::ReturnProbe | ExitPlacement::Guarded(_) => true,
        ExitPlacement::Sites(sites) => sites.iter().all(|site| site.cost == CostClass::Emulated),
        ExitPlacement::Unseen(_) => false,
    }
}

/// The goal is 95 % over whole programs.
#[test]
fn most_functions_have_a_cheap_exit_with_guards() {
    let (mut cheap, mut cheap_before, mut all) = (0, 0, 0);
    for path in OBJECTS.map(Path::new) {
        let Ok(data) = std::fs::read(path) else {
            println!("skipped: {} is not here", path.display());
            continue;
        };
        let budget = Budget::new(ObjectLimits::DEFAULT);
        let object = Object::open_within(path, path, budget).expect("the object opens");
        let found = guards(&object);
        assert!(found.is_ok(), "{}: {}", path.display(), found.unwrap_err());
        let share = |policy: &Policy| {
            let functions = decide(&data, policy).into_iter();
            let traceable: Vec<_> = functions.filter_map(|it| it.decision.ok()).collect();
            (traceable.iter().filter(|it| is_cheap(it)).count(), traceable.len())
        };
        let (before, total) = share(&WITHOUT);
        let (after, _) = share(&Policy { guarded: true, ..WITHOUT });
        let percent = |count: usize| 100.0 * count as f64 / total.max(1) as f64;
        println!(
            "{}: {:.1} % of {total} functions have a cheap exit, {:.1} % without guards; {} guards",
            path.display(),
            percent(after),
            percent(before),
            found.map_or(0, |found| found.sites.len()),
        );
        (cheap, cheap_before, all) = (cheap + after, cheap_before + before, all + total);
    }
    let percent = |count: usize| 100.0 * count as f64 / all.max(1) as f64;
    println!(
        "all together: {:.1} % of {all}, {:.1} % without guards",
        percent(cheap),
        percent(cheap_before)
    );
    let percent = percent(cheap);
    assert!(all == 0 || percent >= 95.0, "{percent:.1} %");
}

/// Programs with all of their libraries: one that cannot be guarded would spoil the whole process.
#[test]
fn real_processes_can_be_guarded() {
    const PROGRAMS: [&str; 10] = [
        "/usr/bin/python3",
        "/usr/bin/perl",
        "/usr/bin/bash",
        "/usr/bin/gdb",
        "/usr/bin/git",
        "/usr/bin/curl",
        "/usr/bin/redis-server",
        "/usr/bin/redis-check-rdb",
        "/usr/sbin/nginx",
        "/usr/bin/memcached",
    ];
    for program in PROGRAMS.map(Path::new) {
        let Ok(launch) = resolve(program.as_os_str()) else {
            println!("skipped: {} is not here", program.display());
            continue;
        };
        let functions = ["malloc@libc.so.6".to_owned()];
        let asked = Patterns { functions: &functions, ..Patterns::default() };
        let selector = Selector::parse(asked).expect("patterns");
        let mut planner = Planner::new(selector, 100, Returns::Auto).guarding(true);
        let plan = planner.plan(&launch.objects).expect("it has malloc");
        let sites: usize = plan.guards.iter().map(|object| object.sites.len()).sum();
        let files = plan.guards.len();
        println!("{}: {sites} guards in {files} files", program.display());
        assert!(plan.unguarded.is_empty(), "{}: {:?}", program.display(), plan.unguarded);
        assert!(sites > 0, "{}: even the C library has some", program.display());
    }
}
