//! Any bytes in the rings give a report whose sums are right, and that counts what was no record. The
//! first byte of each piece is its length.

use ctrace_core::engine::{Engine, EngineConfig, ReportMeta};
use ctrace_core::function::{ExitSeen, FunctionInfo};
use ctrace_core::ingest::decode::decode;
use ctrace_core::units::{FuncId, Nanos};

pub fn check(bytes: &[u8]) {
    let config = EngineConfig { spool_bytes: 4096, max_paths: 20, ..EngineConfig::default() };
    let mut engine = Engine::new(config);
    for exit in [ExitSeen::ByReturnProbe, ExitSeen::ByExitSites, ExitSeen::Never] {
        let info = FunctionInfo::new("f", "app");
        engine.add_function(FunctionInfo { exit, may_tail_jump: true, ..info });
    }
    engine.set_successors(FuncId(1), vec![FuncId(0), FuncId(2)]);
    let (mut rest, mut refused) = (bytes, 0);
    while let Some((&length, tail)) = rest.split_first() {
        let (record, tail) = tail.split_at(tail.len().min(length.into()));
        engine.push(usize::from(length) % 3, record);
        refused += u64::from(decode(record).is_err());
        rest = tail;
    }
    engine.advance(Nanos::MAX);
    let report = engine.report(Nanos::MAX, ReportMeta::default());
    assert!(report.loss.decode_errors >= refused);
    for function in report.functions {
        assert_eq!(function.calls, function.timed + function.untimed + function.open);
    }
}
