//! bpftrace and perf on a program with `ctrace.h` and sys/sdt.h.

use super::Program;
use ctrace_tests::tools::{bpftrace::Bpftrace, has, perf::Perf};
use ctrace_tests::{gate, or_skip};
use serde_json::json;
use std::ops::RangeInclusive;

const C: [&[&str]; 4] =
    [&["-O2"], &["-O2", "-static-pie"], &["-O1", "-no-pie"], &["-O2", "-fuse-ld=lld"]];

/// The flush site passes its buffer, with the thread id in the word at 16.
#[test]
fn its_sites_and_the_probes_of_sdt_h() {
    or_skip!(gate::root_and_bpf().and_then(|()| has("bpftrace")));
    let headers = ["/usr/include/sys/sdt.h", "/usr/include/x86_64-linux-gnu/sys/sdt.h"];
    let found = headers.iter().any(|path| std::path::Path::new(path).exists());
    or_skip!(if found { Ok(()) } else { Err("sys/sdt.h is not installed".to_owned()) });
    // 1,000 calls. A batch holds 252, or half as many if they take long.
    const FLUSHES: RangeInclusive<u64> = 4..=8;
    for flags in C {
        if flags.contains(&"-fuse-ld=lld") {
            or_skip!(has("ld.lld"));
        }
        let program = Program::new("marks_sdt.c", flags);
        let path = program.path();
        let script = format!(
            "usdt:{path}:ctrace:flush {{ @flushes[*(uint32 *)(arg0 + 16) == tid] = count(); }} \
             usdt:{path}:ctdemo:tick {{ @sum = sum(arg0); @text[str(arg1)] = count(); }}"
        );
        let (maps, finished) =
            Bpftrace::launch(&format!("{path} 1000"), &script).expect("bpftrace runs");
        assert!(finished.stdout.starts_with("guarded 1000 "), "{flags:?}: {}", finished.stdout);
        let flushes = maps["@flushes"]["1"].as_u64();
        assert!(flushes.is_some_and(|count| FLUSHES.contains(&count)), "{flags:?}: {maps}");
        let expected =
            json!({"@flushes": {"1": flushes}, "@sum": 499_500, "@text": {"text": 1000}});
        assert_eq!(maps, expected, "{flags:?}");

        let mut perf = or_skip!(Perf::new());
        perf.add(path).expect("the cache");
        for probe in ["%sdt_ctrace:flush", "%sdt_ctdemo:tick"] {
            assert_eq!(perf.define(path, probe).expect("a probe").1, 1);
        }
        let samples = perf.record(&[path, "1000"]).expect("samples");
        let of = |name| samples.iter().filter(|line| line.contains(name)).count() as u64;
        assert_eq!(of("sdt_ctdemo:tick"), 1000, "{flags:?}");
        assert!(FLUSHES.contains(&of("sdt_ctrace:flush")), "{flags:?}: {samples:?}");
    }
}
