//! The arguments of any USDT note make sources that a program can follow, or none.

use ctrace_common::{MAX_VALUES, NO_REGISTER};
use ctrace_user::testing::target::usdt_arguments::parse;

pub fn check(text: &str) {
    let arguments = parse(text);
    assert!(arguments.len() <= MAX_VALUES);
    for argument in arguments {
        let Ok(source) = argument.source else { continue };
        assert!(source.operand(0, |_| None).is_ok() || source.symbol.is_some());
        let operand = source.operand(u64::MAX, |_| Some(1)).expect("every symbol is known");
        assert!([operand.base, operand.index].iter().all(|it| *it < 16 || *it == NO_REGISTER));
        assert!([operand.size, operand.scale].iter().all(|it| [1, 2, 4, 8].contains(it)));
        assert!([operand.memory, operand.relative, operand.signed].iter().all(|it| *it <= 1));
        assert!(operand.shift == 0 || operand.shift == 8 && operand.size == 1);
    }
}
