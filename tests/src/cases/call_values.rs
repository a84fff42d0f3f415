//! Arguments and results of functions, compared call by call with what the program prints itself.

use crate::env::Env;
use crate::targets::{Build, program};
use crate::told::{Told, compare, record};
use anyhow::{Result, ensure};

/// The values that `call_values.c` tells of.
pub(super) const VALUES: &[&str] = &[
    "--arg",
    "narrow: 0:i8, 1:u8, 2:i16, 3:u16, 4:i32, 5:u32",
    "--ret",
    "narrow: i64",
    "--arg",
    "wide: 0:i64, 1:u64, 2:bool, 3:char, 4:ptr",
    "--ret",
    "wide: u64",
    "--arg",
    "mixed: number=0:i32, key=1:str",
    "--ret",
    "mixed: i32",
    "--arg",
    "stacked: 5:i32, s0:i8, s1:u64, s2:str",
    "--ret",
    "stacked: bool",
    "--arg",
    "floats: s0:f64, s1:f32",
    "--ret",
    "floats: char",
    "--arg",
    "text: 0:str, by=1:i32",
    "--ret",
    "text: str",
    "--arg",
    "deep: 0:u8",
    "--ret",
    "deep: i8",
    "--arg",
    "/^(found|jumps)$/: 0:u16",
    "--ret",
    "/^(found|jumps)$/: ptr",
    "--arg",
    "leaves: 0:i32, 1:i32",
    "--ret",
    "leaves: i32",
];

/// Each value of each call is that of the program, by whatever probes ends are seen.
pub(super) fn arguments_and_results(env: &Env) -> Result<()> {
    let (told, seen) = recorded(env, &[])?;
    compare(&told, &seen)
}

/// The same by the names that the source gives them, with the types that it gives them.
pub(super) fn arguments_by_name(env: &Env) -> Result<()> {
    let arguments = [
        "narrow: arg0=a, arg1=b, arg2=c, arg3=d, arg4=e, arg5=f",
        "wide: arg0=a, arg1=b, arg2=c, arg3=d, arg4=e",
        "mixed: number=b, key=d",
        "stacked: arg5=f, sarg0=g, sarg1=i, sarg2=j",
        "floats: sarg0=i, sarg1=j",
        "text: arg0=a, by=b",
        "deep: arg0=depth",
        "/^(found|jumps)$/: arg0=a",
        "leaves: arg0=a, arg1=b",
    ];
    let results = arguments.iter().filter_map(|text| text.split(": ").next());
    let results = results.flat_map(|function| ["--ret", function]);
    let values = arguments.iter().flat_map(|text| ["--arg", text]).chain(results);
    let target = env.targets.get(&program("call_values.c"))?;
    let (told, seen) = record(env, &target, &[&env.scaled(50)], &values.collect::<Vec<_>>())?;
    compare(&told, &seen)
}

/// Members, strings and methods of C++ and Rust, by the names of the source, not optimized and
/// optimized.
pub(super) fn members_by_name(env: &Env) -> Result<()> {
    const CXX: &[&str] = &[
        "--arg",
        "Shop::sell: total=this->total, level=request.level, length=request.length, \
         method=request.method, path=request.path, y=request.at.y, weight=request.weight",
        "--arg",
        "Shop::sell: tag=request.tag, by, n, last",
        "--ret",
        "Shop::sell",
        "--arg",
        "pick: which",
        "--ret",
        "pick",
        "--arg",
        "grade: kind, state=job->state",
        "--ret",
        "grade",
        "--arg",
        "post: from, to=letter->to, seal, paper, times",
        "--ret",
        "post",
        "--arg",
        "cut: text, to=to.x, less=to.y",
        "--ret",
        "cut",
        "--arg",
        "joined: times",
        "--ret",
        "joined",
        "--ret",
        "longer",
        "--arg",
        "ship: size=basket->size, id=basket->first->id, title=basket->first->title",
        "--arg",
        "ship: label=basket->first->label, mark=basket->first->mark, mass=basket->first->mass",
        "--ret",
        "ship",
        "--arg",
        "many: f, small, last",
        "--ret",
        "many",
    ];
    const RUST: &[&str] = &[
        "--arg",
        "bill: total=shop.total, price=order.price, count=order.count, paid=order.is_paid",
        "--arg",
        "bill: ratio=order.ratio, grade=order.grade, times, less",
        "--ret",
        "bill",
        "--arg",
        "post: from, to=letter.to, seal=letter.seal, paper, times",
        "--ret",
        "post",
        "--arg",
        "cut: text, to",
        "--ret",
        "cut",
        "--arg",
        "repeated: text, times",
        "--ret",
        "repeated",
    ];
    let rounds = env.scaled(50);
    for (build, values) in named().iter().zip([CXX, CXX, RUST]) {
        let target = env.targets.get(build)?;
        let (told, seen) = record(env, &target, &[&rounds], values)?;
        compare(&told, &seen)?;
    }
    Ok(())
}

/// Parameters that Rust passes in its own way, where debug information tells their places.
pub(super) fn places_of_rust(env: &Env) -> Result<()> {
    const VALUES: &[&str] = &[
        "--arg",
        "passed_values::pair: small=pair.small, large=pair.large, times",
        "--arg",
        "passed_values::halves: low=halves.low, high=halves.high, kind, less",
        "--arg",
        "passed_values::maybe: id=order->id, times",
        "--arg",
        "passed_values::bytes: bytes, is_last, times",
        "--arg",
        "passed_values::shown: key, number, less, is_last, small=pair.small, last",
        "--arg",
        "passed_values::owned: name, b=triple.b, c=triple.c, id=order.id, paid=order.is_paid, times",
    ];
    let rounds = env.scaled(20);
    for build in passed() {
        let target = env.targets.get(&build)?;
        let (told, seen) = record(env, &target, &[&rounds], VALUES)?;
        compare(&told, &seen)?;
    }
    Ok(())
}

/// Programs of C++, not optimized and optimized, and of Rust.
pub(super) fn named() -> [Build; 3] {
    let of = |source: &str, flags: &[&'static str]| program(source).flags(flags.iter().copied());
    [
        of("named_values.cpp", &["-O0"]),
        of("named_values.cpp", &["-O2"]),
        of("named_values.rs", &["-O", "-g"]),
    ]
}

/// A program of Rust, not optimized and optimized.
pub(super) fn passed() -> [Build; 3] {
    ["-Copt-level=0", "-Copt-level=2", "-Copt-level=3"]
        .map(|level| program("passed_values.rs").flags(["-g", level]))
}

/// The same at the ways out. Where a function jumps to another one, its result is not known yet.
pub(super) fn results_at_ret_sites(env: &Env) -> Result<()> {
    let (mut told, seen) = recorded(env, &["--returns", "ret-sites"])?;
    for call in told.iter_mut().filter(|call| call.function == "jumps") {
        ensure!(call.values.remove("retval").is_some(), "the program knows its results");
    }
    compare(&told, &seen)
}

fn recorded(env: &Env, options: &[&str]) -> Result<(Vec<Told>, Vec<Told>)> {
    let target = env.targets.get(&program("call_values.c"))?;
    record(env, &target, &[&env.scaled(50)], &[VALUES, options].concat())
}
