use super::*;
use ctrace_common::NO_REGISTER;

const RAX: u8 = 0;
const RBX: u8 = 3;
const RSP: u8 = 4;
const RBP: u8 = 5;
const RDI: u8 = 7;

const MEMORY: Operand = Operand { memory: 1, ..Operand::ZERO };

/// Checks one argument whose place needs no symbol.
#[track_caller]
fn check(text: &str, expected: Operand) {
    let parsed = parse(text);
    let [Argument { text: whole, source: Ok(source) }] = &parsed[..] else {
        panic!("{text}: {parsed:?}")
    };
    assert_eq!((*whole, source.symbol), (text, None));
    assert_eq!(source.operand(9, |_| panic!("no symbol")), Ok(expected), "{text}");
}

#[track_caller]
fn refused(text: &str, why: Unread) {
    let parsed = parse(text);
    assert_eq!(parsed, [Argument { text, source: Err(why) }], "{text}");
}

#[test]
fn registers_of_every_size() {
    let register = |base, size| Operand { base, size, ..Operand::ZERO };
    check("8@%rax", register(RAX, 8));
    check("4@%eax", register(RAX, 4));
    check("2@%ax", register(RAX, 2));
    check("1@%al", register(RAX, 1));
    check("1@%bh", Operand { shift: 8, ..register(RBX, 1) });
    check("-1@%ah", Operand { shift: 8, signed: 1, ..register(RAX, 1) });
    check("-4@%edi", Operand { signed: 1, ..register(RDI, 4) });
    check("1@%dil", register(RDI, 1));
    check("8@%r8", register(8, 8));
    check("4@%r10d", register(10, 4));
    check("2@%r15w", register(15, 2));
    check("1@%r9b", register(9, 1));
    check("8@%rsp", register(RSP, 8));
    // The smaller of both sizes counts.
    check("-8@%ebx", Operand { signed: 1, ..register(RBX, 4) });
    check("2@%rbx", register(RBX, 2));
}

#[test]
fn constants() {
    let number = |displacement, size| Operand { displacement, size, ..Operand::ZERO };
    check("4@$5", number(5, 4));
    check("-4@$-1", Operand { signed: 1, ..number(-1, 4) });
    check("8@$0x7f", number(127, 8));
    check("8@$18446744073709551615", number(-1, 8));
    check("-8@$-9223372036854775808", Operand { signed: 1, ..number(i64::MIN, 8) });
    check("1@$3+4-2", number(5, 1));
}

#[test]
fn memory_with_all_its_parts() {
    let at = |base, displacement| Operand { base, displacement, ..MEMORY };
    check("8@(%rax)", at(RAX, 0));
    check("8@-24(%rbp)", at(RBP, -24));
    check("8@16+8(%rsp)", at(RSP, 24));
    check("8@(%rax,%rbx,8)", Operand { index: RBX, scale: 8, ..at(RAX, 0) });
    check("8@8(%r12,%rax)", Operand { index: RAX, ..at(12, 8) });
    check("8@8(%r12, %rax, 2)", Operand { index: RAX, scale: 2, ..at(12, 8) });
    check("8@4096(,%rdi,4)", Operand { index: RDI, scale: 4, ..at(NO_REGISTER, 4096) });
    check("8@4096", at(NO_REGISTER, 4096));
    check("-2@-8(%rdi)", Operand { size: 2, signed: 1, ..at(RDI, -8) });
    check("8@20(%rip)", Operand { relative: 1, ..at(NO_REGISTER, 20) });
}

#[test]
fn floating_point_numbers_in_memory_and_general_registers() {
    let float = |text| {
        let Ok(source) = argument(text) else { panic!("{text}") };
        assert!(source.is_float, "{text}");
        source.operand
    };
    assert_eq!(float("8f@-8(%rbp)"), Operand { base: RBP, displacement: -8, ..MEMORY });
    assert_eq!(float("-8f@%rax"), Operand { base: RAX, ..Operand::ZERO });
    // A sign would be extended into bits that do not belong to it.
    assert_eq!(float("-4f@(%rdi)"), Operand { base: RDI, size: 4, ..MEMORY });
    assert_eq!(float("4f@%eax"), Operand { base: RAX, size: 4, ..Operand::ZERO });
    assert!(!argument("8@-8(%rbp)").is_ok_and(|source| source.is_float));
}

#[test]
fn symbols_are_looked_up() {
    let address_of = |name: &str| match name {
        "foo" => Some(0x4000),
        "count.0" => Some(0x900),
        _ => None,
    };
    let read = |text| {
        let parsed = parse(text);
        assert_eq!(parsed.len(), 1, "{text}");
        parsed[0].source.and_then(|source| source.operand(0x1000, address_of))
    };
    let near = |displacement| Operand { displacement, relative: 1, ..MEMORY };
    assert_eq!(read("8@foo(%rip)"), Ok(near(0x3000)));
    assert_eq!(read("8@foo+4(%rip)"), Ok(near(0x3004)));
    assert_eq!(read("8@4+foo(%rip)"), Ok(near(0x3004)));
    assert_eq!(read("2@count.0-1(%rip)"), Ok(Operand { size: 2, ..near(-0x701) }));
    // In a program that is always at the same address.
    assert_eq!(read("8@foo"), Ok(near(0x3000)));
    assert_eq!(read("8@foo(,%rax,8)"), Ok(Operand { index: RAX, scale: 8, ..near(0x3000) }));
    assert_eq!(read("8@$foo+8"), Ok(Operand { memory: 0, ..near(0x3008) }));
    assert_eq!(read("8@$.LC0"), Err(Unread::Symbol));
    assert_eq!(read("8@bar(%rip)"), Err(Unread::Symbol));
}

#[test]
fn what_is_not_understood_is_not_read() {
    refused("8f@%xmm0", Unread::Register);
    refused("16f@(%rax)", Unread::FloatSize);
    refused("2f@(%rax)", Unread::FloatSize);
    for text in ["8f@$5", "8f@%eax", "f@(%rax)", "8ff@(%rax)"] {
        refused(text, Unread::Form);
    }
    refused("16@%rax", Unread::Size);
    refused("3@$1", Unread::Size);
    for text in ["8@%xmm0", "8@%rip", "8@%fs:16", "8@%fs:0x28(%rax)", "8@%r16", "8@%r08", "8@%r8dd"]
    {
        refused(text, Unread::Register);
    }
    for text in ["8@(%eax)", "8@(%rax,%ebx)", "8@(%rip,%rax)"] {
        refused(text, Unread::Register);
    }
    for text in
        ["8", "@%rax", "x@%rax", "--4@%eax", "8@", "8@()", "8@(", "8@(%rax", "8@$", "8@$--1"]
    {
        refused(text, Unread::Form);
    }
    for text in ["8@(%rax,%rbx,3)", "8@(%rax,%rbx,4,1)", "8@(%rax)x", "8@foo-bar", "8@foo+bar"] {
        refused(text, Unread::Form);
    }
    for text in
        ["8@-foo", "8@$18446744073709551616", "8@$0x", "8@*%rax", "8@foo@plt", "8@%rax(%rbx)"]
    {
        let parsed = parse(text);
        assert!(parsed[0].source.is_err(), "{parsed:?}");
    }
}

#[test]
fn arguments_keep_their_order() {
    let text = " 8@%rax\t4@$5  8f@%xmm1 -4@8(%r12, %rcx)\n";
    let parsed: Vec<_> = parse(text).iter().map(|it| (it.text, it.source.is_ok())).collect();
    let expected =
        [("8@%rax", true), ("4@$5", true), ("8f@%xmm1", false), ("-4@8(%r12, %rcx)", true)];
    assert_eq!(parsed, expected);
    assert_eq!(parse(""), []);
}

#[test]
fn there_is_an_end_to_it() {
    assert_eq!(parse(&"8@%rax ".repeat(40)).len(), MAX_VALUES);
    let too_long = "8@%rax ".repeat(LONGEST);
    assert_eq!(parse(&too_long), [Argument { text: "", source: Err(Unread::TooLong) }]);
    let long = format!("8@{}(%rax)", "+1".repeat(LONGEST / 2 - 10));
    assert!(parse(&long)[0].source.is_ok());
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "[-+0-9a-frx@%$(),. é:_]{0,60}", any in ".{0,40}") {
        for text in [&text, &any, &format!("8@{text}"), &format!("8@%{text}"), &format!("8@{text}(%rax)")] {
            for argument in parse(text) {
                let _ = argument.source.map(|source| source.operand(u64::MAX, |_| Some(1)));
            }
        }
    }

    /// Everything that a compiler can write is read as meant.
    #[test]
    fn memory_is_read_as_written(
        displacement in proptest::num::i32::ANY,
        base in 8u8..16,
        index in proptest::option::of(8u8..16),
        scale in proptest::sample::select(vec![1u8, 2, 4, 8]),
        size in proptest::sample::select(vec![1u8, 2, 4, 8]),
        signed in proptest::bool::ANY,
    ) {
        let sign = if signed { "-" } else { "" };
        let scaled = index.map_or(String::new(), |index| format!(",%r{index},{scale}"));
        let text = format!("{sign}{size}@{displacement}(%r{base}{scaled})");
        check(&text, Operand {
            displacement: displacement.into(),
            base,
            index: index.unwrap_or(NO_REGISTER),
            scale: index.map_or(1, |_| scale),
            size,
            signed: signed.into(),
            ..MEMORY
        });
    }
}
