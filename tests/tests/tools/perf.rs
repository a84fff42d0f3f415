//! perf on `marks_probed`.

use super::{Program, RUST};
use ctrace_tests::tools::perf::Perf;
use ctrace_tests::{gate, or_skip};

#[test]
fn probes_are_listed_and_hit_with_their_arguments() {
    or_skip!(gate::root_and_bpf());
    for flags in RUST {
        let mut perf = or_skip!(Perf::new());
        let program = Program::new("marks_probed.rs", flags);
        let path = program.path();
        perf.add(path).expect("the cache");
        let listed = perf.list().expect("a list");
        for name in ["ctdemo:order", "ctdemo:plain", "ctrace:enter", "ctrace:exit", "ctrace:flush"]
        {
            assert!(listed.contains(&format!("sdt_{name}")), "{name} is not in {listed:?}");
        }
        let mut define = |probe| perf.define(path, probe).expect("a probe");
        let order = define("%sdt_ctdemo:order");
        let enter = define("%sdt_ctrace:enter");
        let function = define("ctrace_enter name=+0(%di):string");
        assert_eq!([&order, &enter, &function].map(|probe| probe.1), [2, 1, 1], "{flags:?}");
        let samples = perf.record(&[path, "100"]).expect("samples");
        let of = |probe: &(String, usize)| -> Vec<&str> {
            let start = format!("{}:", probe.0);
            let own = samples.iter().filter(|line| line.starts_with(&start));
            own.filter_map(|line| Some(line.split_once(") ")?.1)).collect()
        };
        let expected = (0..100).map(|n| {
            format!(
                "arg1={n} arg2=18446744073709551613 arg3=7 arg4=1 \
                 arg6=18446744073709551615 arg7=9223372036854775808 arg8=8 \
                 arg9=18446744073709551607 arg10=10 arg11=11 arg12={}",
                n * 2
            )
        });
        let without_the_pointer = |line: &str| {
            let words = line.split_whitespace().filter(|word| !word.starts_with("arg5="));
            words.collect::<Vec<_>>().join(" ")
        };
        let seen: Vec<_> = of(&order).into_iter().map(without_the_pointer).collect();
        assert_eq!(seen, expected.collect::<Vec<_>>(), "{flags:?}");
        assert_eq!(of(&enter).len(), 100, "{flags:?}");
        let names: Vec<_> = ["name=\"even\"", "name=\"odd\""].repeat(50);
        assert_eq!(of(&function), names, "{flags:?}");
    }
}
