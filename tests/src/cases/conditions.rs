//! `--where`: the calls that count are those of which the program says that they meet the condition.

use super::call_values::VALUES;
use crate::env::Env;
use crate::targets::program;
use crate::told::{Told, compare, record_with_report};
use crate::trace::Trace;
use anyhow::{Result, ensure};
use serde_json::{Map, Value};

/// A function, its condition by place and by name, and whether values meet it.
type Condition = (&'static str, &'static str, &'static str, fn(&Map<String, Value>) -> bool);

const CONDITIONS: [Condition; 8] = [
    ("narrow", "0:i8 < 0 && 3:u16 >= 0x100", "a < 0 && d >= 256", |it| {
        number(it, "arg0") < 0.0 && number(it, "arg3") >= 256.0
    }),
    ("wide", "2:bool || 3:char == 'e' && 0:i64 > 0", "c == true || d=='e' && a > 0", |it| {
        it["arg2"] == true || it["arg3"] == "e" && number(it, "arg0") > 0.0
    }),
    ("mixed", "1:str == \"key\" && 0:i32 > 5", "d == \"key\" && b > 5", |it| {
        number(it, "number") > 5.0
    }),
    ("stacked", "!s2:ptr || s1:u64 > 70000000001", "i > 70000000001 || j != \"key\"", |it| {
        number(it, "sarg1") > 70_000_000_001.0
    }),
    ("floats", "s0:f64 > 2.6 && s1:f32 != -3e1", "i >= 2.75 && j != -30", |it| {
        number(it, "sarg0") > 2.6 && number(it, "sarg1") != -30.0
    }),
    ("text", "0:str != \"GET key\" && 1:i32 != 1", "a != \"GET key\" && b != 1", |it| {
        // One that cannot be read does not meet it.
        it["arg0"].is_string() && it["arg0"] != "GET key" && number(it, "by") != 1.0
    }),
    ("deep", "0:u8 != 2", "depth != 2", |it| number(it, "arg0") != 2.0),
    ("leaves", "1:i32 <= 7 || 0:i32 == 11", "b <= 7 || a == 11", |it| {
        number(it, "arg1") <= 7.0 || number(it, "arg0") == 11.0
    }),
];

fn number(values: &Map<String, Value>, name: &str) -> f64 {
    values[name].as_f64().unwrap_or(f64::NAN)
}

pub(super) fn conditions_by_place(env: &Env) -> Result<()> {
    check(env, |(_, by_place, _, _)| by_place, &[])
}

pub(super) fn conditions_by_name(env: &Env) -> Result<()> {
    check(env, |(_, _, by_name, _)| by_name, &[])
}

/// A call that does not count has an end all the same here.
pub(super) fn conditions_at_ret_sites(env: &Env) -> Result<()> {
    check(env, |(_, by_place, _, _)| by_place, &["--returns", "ret-sites"])
}

/// The end of a call that does not count is not taken for that of an earlier one that was left by
/// longjmp.
pub(super) fn calls_that_were_left(env: &Env) -> Result<()> {
    let target = env.targets.get(&program("call_values.c"))?;
    for returns in ["auto", "ret-sites"] {
        // The function leaves every third call so. Nothing else is traced.
        for (condition, ends) in [
            ("leaves: 0:i32 == 6", (1, 0, 1, 0)),
            ("leaves: 0:i32 == 6 || 0:i32 == 8 || 0:i32 == 9", (3, 1, 2, 0)),
        ] {
            let traced = Trace::run(env)?
                .args(["--where", condition, "--returns", returns])
                .program(&target, ["20"])
                .finish()?
                .expect_code(0)?;
            let row = traced.report()?.expect("leaves")?;
            ensure!(row.ends() == ends, "{condition}, {returns}: {:?}, not {ends:?}", row.ends());
            ensure!(row.integer("headless")? == 0, "{returns}: ends of calls that do not count");
        }
    }
    Ok(())
}

fn check(env: &Env, of: fn(&Condition) -> &'static str, options: &[&str]) -> Result<()> {
    let asked: Vec<String> =
        CONDITIONS.iter().map(|condition| format!("{}: {}", condition.0, of(condition))).collect();
    let asked = asked.iter().flat_map(|text| ["--where", text]);
    let options: Vec<_> =
        asked.chain(VALUES.iter().copied()).chain(options.iter().copied()).collect();
    let target = env.targets.get(&program("call_values.c"))?;
    let (mut told, seen, report) = record_with_report(env, &target, &[&env.scaled(50)], &options)?;
    if options.contains(&"ret-sites") {
        for call in told.iter_mut().filter(|call| call.function == "jumps") {
            call.values.remove("retval");
        }
    }
    let meets = |call: &Told| {
        let condition = CONDITIONS.iter().find(|(function, ..)| *function == call.function);
        condition.is_none_or(|(.., meets)| meets(&call.values))
    };
    let (met, unmet): (Vec<Told>, Vec<Told>) = told.into_iter().partition(meets);
    for (function, ..) in CONDITIONS {
        let of = |calls: &[Told]| calls.iter().filter(|call| call.function == function).count();
        let (met, unmet) = (of(&met), of(&unmet));
        ensure!(met > 0 && unmet > 0, "{function}: {met} calls meet it, {unmet} do not");
        let told = [':', ';'].map(|before| format!("{before} {unmet} of {function} (`"));
        let is_told =
            |note: &str| note.contains("have not met") && told.iter().any(|it| note.contains(it));
        let notes = report.0["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        ensure!(
            notes.clone().any(is_told),
            "{told:?} is in none of {:?}",
            notes.collect::<Vec<_>>()
        );
        let row = report.expect(function)?;
        ensure!(row.integer("headless")? == 0, "{function} has ends of calls that do not count");
        ensure!(
            row.0["condition"].is_string(),
            "the row of {function} does not tell its condition"
        );
    }
    compare(&met, &seen)
}
