//! Probes on ways out: whether a jump is taken, and where it leads.

use crate::support::{BINARY, Session, Target, site};
use ctrace_common::{Cookie, JumpTarget, Kind, NO_CONDITION, NO_INDEX, NO_REGISTER, Operand};
use ctrace_user::testing::bpf::{LinkChoice, Role};

#[test]
fn all_conditions_are_evaluated() {
    const CONDITIONS: [&str; 16] =
        ["o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"];
    for choice in [LinkChoice::Auto, LinkChoice::Perf] {
        let Some(mut session) = Session::start(false) else { return };
        let mut target = Target::start(&["conditions"]);
        let exits: Vec<_> = CONDITIONS
            .iter()
            .zip(0..)
            .map(|(name, condition)| {
                let kind = Kind::ExitJump as u8;
                let cookie = Cookie::exit(condition, kind, condition as u8, NO_INDEX);
                site(&format!("site_{name}"), cookie)
            })
            .collect();
        let pid = Some(target.pid());
        let _exits = session
            .kernel
            .attach(&BINARY.path, pid, Role::ExitSite, &exits, choice, false)
            .unwrap();
        let entries: Vec<_> = CONDITIONS.iter().map(|name| format!("jump_{name}")).collect();
        let entries: Vec<_> = entries.iter().map(String::as_str).collect();
        let _entries = session.attach(pid, Role::Entry, &entries, choice).unwrap();
        target.go();
        let output = target.finish();
        session.drain();
        for (taken, probe) in output.lines().zip(0..) {
            let taken: usize = taken.parse().unwrap();
            assert!(0 < taken && taken < 32);
            assert_eq!(
                session.count(Kind::ExitJump, probe),
                taken,
                "{}",
                CONDITIONS[probe as usize]
            );
            assert_eq!(session.count(Kind::Enter, probe), 32);
        }
        let sp = session.of(Kind::Enter)[0].sp;
        assert!(session.events.iter().all(|event| event.sp == sp), "exits show the entry's sp");
    }
}

#[test]
fn indirect_jumps_are_told_apart_by_their_targets() {
    let Some(mut session) = Session::start(false) else { return };
    let address = |symbol: &str| BINARY.address(symbol).cast_signed();
    let jump = |start: &str, site: &str, end: &str, target| JumpTarget {
        inside: [
            [0, 0],
            [address(start) - address(site), address(end) - address(site)],
            [0, 0],
            [0, 0],
        ],
        target,
    };
    let (base, index) = (NO_REGISTER, NO_REGISTER);
    let none = Operand { base, index, scale: 1, size: 8, ..Operand::default() };
    let by_table = Operand { base: 0, index: 7, scale: 8, memory: 1, ..none };
    let by_pointer = Operand {
        memory: 1,
        relative: 1,
        displacement: address("pointer") - address("by_pointer"),
        ..none
    };
    let jumps = [
        jump("by_register", "by_register", "end_register", Operand { base: 7, ..none }),
        jump("by_table", "site_table", "end_table", by_table),
        jump("by_pointer", "by_pointer", "end_pointer", by_pointer),
    ];
    assert_eq!(session.kernel.add_jumps(&[JumpTarget::default(); 5]).unwrap(), 0);
    let first = session.kernel.add_jumps(&jumps).unwrap();
    assert_eq!(first, 5);
    let sites: Vec<_> = ["by_register", "site_table", "by_pointer"]
        .iter()
        .zip(0..)
        .map(|(symbol, index)| {
            let kind = Kind::ExitJump as u8;
            site(symbol, Cookie::exit(index.into(), kind, NO_CONDITION, first + index))
        })
        .collect();
    let mut target = Target::start(&["indirect"]);
    let pid = Some(target.pid());
    let _exits = session
        .kernel
        .attach(&BINARY.path, pid, Role::ExitSite, &sites, LinkChoice::Auto, false)
        .unwrap();
    target.go();
    let output = target.finish();
    session.drain();
    assert_eq!(output.lines().collect::<Vec<_>>(), ["7", "10", "5"]);
    let counts = [0, 1, 2].map(|probe| session.count(Kind::ExitJump, probe));
    assert_eq!(counts, [7, 10, 5]);
}
