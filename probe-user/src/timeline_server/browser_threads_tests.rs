//! What people do with threads, colours and the picture: hiding and pinning, another choice of colours, and what can
//! be kept of a part. A browser does it.

use super::browser_tests::seen_in;
use super::tests::Served;
use super::*;
use ctrace_common::{Kind, RECORD_LEN};
use ctrace_core::{
    engine::{Engine, EngineConfig},
    function::FunctionInfo,
    recording::{End, Start, Writer},
    units::{Nanos, Pid, Tid},
};
use serde_json::{Value, json};

/// Returns a recording of 10,000 ns of two processes. Their threads begin in turn: `main` and `worker` are of process 7,
/// `child` is of process 20. `worker` alone calls a function of the program, the others one of a library.
fn of_two_processes() -> Recording {
    let config = EngineConfig { record: true, rings: 1, ..EngineConfig::default() };
    let mut engine = Engine::new(config);
    engine.add_function(FunctionInfo::new("pay", "libpay.so"));
    engine.add_function(FunctionInfo::new("serve", "shop"));
    for (pid, tid, name) in [(7, 7, "main"), (20, 20, "child"), (7, 9, "worker")] {
        engine.name_thread(Pid(pid), Tid(tid), name);
    }
    let threads = [(7_u32, 7_u32, 0_u32, 1_u64), (20, 20, 0, 2), (7, 9, 1, 3)];
    for (begin, kind) in [(100, Kind::Enter), (9_000, Kind::Return)] {
        for (pid, tid, function, place) in threads {
            let mut record = [0; RECORD_LEN];
            record[..8].copy_from_slice(&(begin + place).to_le_bytes());
            record[8..16].copy_from_slice(&0x7fff_0000_u64.to_le_bytes());
            record[16..20].copy_from_slice(&pid.to_le_bytes());
            record[20..24].copy_from_slice(&tid.to_le_bytes());
            record[24..28].copy_from_slice(&function.to_le_bytes());
            record[28] = kind as u8;
            engine.push(0, &record);
        }
    }
    engine.advance(Nanos(10_000));
    engine.end_chunk(Nanos(10_000));
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    for block in engine.take_blocks() {
        writer.write(&block).expect("memory takes all");
    }
    let end = End { end_ns: Nanos(10_000), ..End::default() };
    Recording::open(writer.finish(&end).expect("memory takes all")).expect("a recording")
}

fn seen_by(script: &str) -> Option<(Served, Value)> {
    let recording = of_two_processes();
    seen_in("main.js", script, "", |page| Served::with_page(recording, Some(page)))
}

#[test]
fn a_browser_hides_and_pins_threads() {
    let Some((_served, seen)) = seen_by("browser_threads.js") else { return };
    let all = json!(["process 7 main", "main", "worker", "process 20 child", "child"]);
    assert_eq!(seen["all"], all, "a process's threads are together: {seen:#}");
    let without = json!(["process 7 main", "main", "process 20 child", "child"]);
    assert_eq!(seen["without"], without, "{seen:#}");
    assert_eq!(seen["button"], "show 1 hidden", "{seen:#}");
    let pinned = json!(["child", "process 7 main", "main"]);
    assert_eq!(seen["pinned"], pinned, "{seen:#}");
    assert_eq!(seen["reloaded"], pinned, "the address holds it: {seen:#}");
    assert_eq!(seen["rows"], json!([true, true, false]), "rows are drawn there: {seen:#}");
    let shown = json!(["child", "process 7 main", "main", "worker"]);
    assert_eq!((&seen["shown"], &seen["left"]), (&shown, &true.into()), "{seen:#}");
    assert_eq!(seen["unpinned"], all, "{seen:#}");
    let by_keys = json!([["process 7 main", "worker", "process 20 child", "child"], all]);
    assert_eq!(seen["keys"], by_keys, "H and U: {seen:#}");
}

#[test]
fn a_browser_colours_by_object() {
    let Some((served, seen)) = seen_by("browser_colours.js") else { return };
    let about = served.json("api/about");
    let colours = |of: &Value, names: [&str; 3]| names.map(|name| of[name].clone());
    let objects = colours(&about["object_colours"], ["libpay.so", "shop", "libpay.so"]);
    assert_eq!(objects[0], json!(crate::ui::tone_of("libpay.so", None)));
    assert_ne!(objects[0], objects[1]);
    // The order of the rows is main, worker, child.
    let functions = [0, 1, 0].map(|id: usize| about["colours"][id].clone());
    assert_ne!(functions, objects);
    assert_eq!(seen["functions"], json!(functions), "{seen:#}");
    assert_eq!(seen["objects"], json!(objects), "{seen:#}");
    assert_eq!(seen["reloaded"], json!(objects), "the address holds it: {seen:#}");
    assert_eq!(seen["legend"], json!(["libpay.so", "shop"]), "{seen:#}");
    assert_eq!(seen["again"], json!(functions), "{seen:#}");
}

#[test]
fn a_browser_keeps_a_picture_and_tells_the_commands_of_a_part() {
    let Some((_served, seen)) = seen_by("browser_keep.js") else { return };
    let png = &seen["png"];
    assert_eq!((&png["kind"], &png["name"]), (&"image/png".into(), &"unknown_program.png".into()));
    assert_eq!(png["size"], seen["size"], "{seen:#}");
    assert_eq!(png["row"], seen["row"], "calls are as on the screen: {seen:#}");
    assert_eq!(png["hasName"], true, "names of threads are on it: {seen:#}");
    let commands = |part: &str| {
        let file = r"'a '\''b'\''.ctrace'";
        json!([
            format!("ctrace report {file} --time {part}"),
            format!("ctrace export {file} --time {part} --format perfetto -o part.pftrace"),
            format!("ctrace export {file} --time {part} --format flamegraph -o part.svg"),
            format!("ctrace export {file} --time {part} --format csv -o part.csv"),
        ])
    };
    assert_eq!(seen["whole"], commands("0ns..10000ns"), "{seen:#}");
    let part = |name: &str| commands(seen[name].as_str().expect("a part"));
    assert_eq!(seen["zoomed"], part("shown"), "they follow the picture: {seen:#}");
    assert_ne!(seen["zoomed"], seen["whole"], "{seen:#}");
    assert_eq!(seen["range"], part("part"), "{seen:#}");
    assert_ne!(seen["part"], "0ns..10000ns", "{seen:#}");
}
