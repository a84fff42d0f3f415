//! bpftrace on `marks_probed`, from its start and while it runs.

use super::{Program, RUST};
use ctrace_tests::look::wait_until;
use ctrace_tests::probes::changed_bytes;
use ctrace_tests::serve::Server;
use ctrace_tests::tools::{bpftrace::Bpftrace, has};
use ctrace_tests::{gate, or_skip};
use serde_json::{Value, json};
use std::process::Command;

/// Returns probes with semaphores. bpftrace has no name for arguments after the sixth.
fn usdt(path: &str) -> String {
    let key = "(int64)arg1, arg2, arg3, str(arg4), (int64)arg5";
    format!(
        "usdt:{path}:ctdemo:order {{ @first = sum(arg0); @others[{key}] = count(); }} \
         usdt:{path}:ctdemo:plain {{ @plain = count(); }} "
    )
}

/// Returns the script of [`usdt`] plus probes on named probes and functions.
fn usdt_and_functions(path: &str) -> String {
    let functions = format!(
        "usdt:{path}:ctrace:enter {{ @enter[str(arg0)] = count(); }} \
         usdt:{path}:ctrace:exit {{ @exit[str(arg0)] = count(); }} \
         uprobe:{path}:ctrace_enter {{ @function[str(arg0)] = count(); }} \
         uprobe:{path}:ctrace_probed {{ @probed[arg1] = count(); @sum = sum(arg0); }} \
         uretprobe:{path}:ctrace_probed {{ @results = sum(retval); }}"
    );
    usdt(path) + &functions
}

/// Returns the first script's final maps after 100 calls.
fn usdt_of_100() -> Value {
    json!({"@first": 4950, "@others": {"-3,7,1,text,-1": 100}, "@plain": 100})
}

/// Returns the second script's final maps after 100 calls.
fn all_of_100() -> Value {
    json!({
        "@first": 4950,
        "@others": {"-3,7,1,text,-1": 100},
        "@plain": 100,
        "@enter": {"even": 50, "odd": 50},
        "@exit": {"even": 50},
        "@function": {"even": 50, "odd": 50},
        "@probed": {"5": 100},
        "@sum": 4950,
        "@results": 5450,
    })
}

/// Probes and semaphores exist before the program is in memory.
#[test]
fn a_program_that_it_launches() {
    or_skip!(gate::root_and_bpf().and_then(|()| has("bpftrace")));
    for flags in RUST {
        let bare = [flags, &["--cfg=bare"]].concat();
        for (flags, script, expected) in [
            (flags, usdt_and_functions as fn(&str) -> String, all_of_100()),
            (&*bare, usdt, usdt_of_100()),
        ] {
            let program = Program::new("marks_probed.rs", flags);
            let path = program.path();
            let launched = Bpftrace::launch(&format!("{path} 100"), &script(path));
            let (maps, finished) = launched.expect("bpftrace runs");
            assert_eq!(maps, expected, "{path}");
            assert_eq!(finished.stdout.trim(), "calls 100 computed 100 enabled true", "{path}");
        }
    }
}

/// Earlier and later calls are not counted, and their arguments are not even computed.
#[test]
fn a_program_that_runs() {
    or_skip!(gate::root_and_bpf().and_then(|()| has("bpftrace")));
    /// Two of `order`, `plain`, `enter` and `exit`, and the two functions.
    const PLACES: usize = 7;
    for flags in RUST {
        let program = Program::new("marks_probed.rs", flags);
        let mut server =
            Server::start_as(Command::new(&program.path).arg("serve")).expect("starts");
        let pid = server.pid();
        let armed = |places| changed_bytes(pid, &program.path).is_ok_and(|it| it.len() == places);
        assert_eq!(server.ask("33").expect("calls"), "calls 33 computed 0 enabled false");
        for computed in [100, 200] {
            let script = usdt_and_functions(program.path());
            let bpftrace = Bpftrace::attach(pid, &script, || armed(PLACES)).expect("starts");
            let said = server.ask("100").expect("calls");
            assert_eq!(said, format!("calls 100 computed {computed} enabled true"), "{flags:?}");
            assert_eq!(bpftrace.end().expect("it ends"), all_of_100(), "{flags:?}");
            wait_until("the probes are gone", || armed(0)).expect("they are");
            let said = server.ask("33").expect("calls");
            assert_eq!(said, format!("calls 33 computed {computed} enabled false"), "{flags:?}");
        }
        server.end().expect("undisturbed");
    }
}
