use super::super::named::NamedPath;
use super::*;
use ctrace_common::{Operand, ValueForm};
use ctrace_core::values::Enumerator;
use std::sync::Arc;

fn parsed(text: &str) -> AskedCondition {
    AskedCondition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn named(text: &str) -> AskedPlace {
    AskedPlace::Named(NamedPath::parse(text).expect("a path"), None)
}

/// Compares a value of this type.
fn of(text: &str, of: Type) -> Result<Comparison, String> {
    let comparison = parsed(text).alternatives[0][0].clone();
    let form = if of == Type::Text { ValueForm::Text } else { ValueForm::Word };
    let operand = Operand { base: 7, ..Operand::ZERO };
    let names = [(-2, "LOW"), (7, "HIGH"), (7, "TOP")];
    let name = |(number, name): (i64, &str)| Arc::new(Enumerator { number, name: name.into() });
    let names = names.into_iter().map(name).collect();
    comparison
        .of(&Typed { names, ..Typed::plain((operand, form), of) })
        .map_err(|why| why.to_string())
}

#[test]
fn alternatives_hold_comparisons() {
    let asked = parsed(" req->len > 4096 && method == \"GET\" || !done && kind != 'a' || more");
    let shown: Vec<Vec<_>> = asked
        .alternatives
        .into_iter()
        .map(|part| part.into_iter().map(|it| (it.place, it.relation, it.with)).collect())
        .collect();
    let number = Literal::Number;
    let expected = vec![
        vec![
            (named("req->len"), GREATER, number(4096)),
            (named("method"), EQUAL, Literal::Text(b"GET".to_vec())),
        ],
        vec![(named("done"), EQUAL, number(0)), (named("kind"), LESS | GREATER, Literal::Char(97))],
        vec![(named("more"), LESS | GREATER, number(0))],
    ];
    assert_eq!(shown, expected);
}

#[test]
fn signs_in_texts_are_part_of_them() {
    let asked = parsed(r#"a == "x && y || (z) \" \x41\\" && b == '|' && c=='\''"#);
    let [all] = &asked.alternatives[..] else { panic!("{asked:?}") };
    let with: Vec<_> = all.iter().map(|it| it.with.clone()).collect();
    let text = b"x && y || (z) \" A\\".to_vec();
    assert_eq!(with, [Literal::Text(text), Literal::Char(124), Literal::Char(39)]);
}

#[test]
fn numbers_are_in_the_order_of_their_type() {
    let signed = |bytes| Type::Integer { bytes, signed: true };
    let unsigned = |bytes| Type::Integer { bytes, signed: false };
    let numbers = |text, kind| of(text, kind).map(|it| (it.number, it.flip));
    assert_eq!(numbers("a > -1", signed(4)), Ok((u64::MAX ^ SIGN, SIGN)));
    assert_eq!(numbers("a > 5", signed(8)), Ok((5 | SIGN, SIGN)));
    assert_eq!(numbers("a < 0xff", unsigned(1)), Ok((255, 0)));
    assert_eq!(numbers("a == 18446744073709551615", unsigned(8)), Ok((u64::MAX, 0)));
    assert_eq!(numbers("a == -128", signed(1)), Ok((-128_i64 as u64 ^ SIGN, SIGN)));
    assert_eq!(numbers("a == 'x'", unsigned(1)), Ok((120, 0)));
    assert_eq!(numbers("a != 0", Type::Pointer), Ok((0, 0)));
    assert_eq!(numbers("a == LOW", signed(2)), Ok((-2_i64 as u64 ^ SIGN, SIGN)));
    assert_eq!(numbers("a < TOP", unsigned(4)), Ok((7, 0)));
    assert_eq!(numbers("a == LOW", unsigned(8)), Ok((-2_i64 as u64, 0)));
    let text = of("a != \"GET\"", Type::Text).expect("compares");
    assert_eq!((text.kind, text.text[0], text.text[1]), (1, 0x54_4547, 0));
    assert_eq!((text.relation, text.operand.base), (LESS | GREATER, 7));
}

#[test]
fn floating_point_numbers_have_an_order() {
    let places = |bytes: u8, numbers: &[&str]| {
        let place = |number: &&str| {
            let compared = of(&format!("a >= {number}"), Type::Float { bytes }).expect(number);
            assert_eq!((compared.kind, compared.operand.signed), (FLOAT, 1), "{number}");
            (compared.number, compared.flip)
        };
        numbers.iter().map(place).collect::<Vec<_>>()
    };
    let ascending = ["-1e30", "-2.5", "-2", "-1e-3", "0", "1e-3", "0.5", "2", "2.5e+0", "1E30"];
    for (bytes, infinity) in [(4, 0x7f80_0000), (8, 0x7ff0_0000_0000_0000)] {
        let places = places(bytes, &ascending);
        assert!(places.is_sorted_by(|a, b| a.0 < b.0), "{bytes}: {places:x?}");
        assert!(places.iter().all(|place| place.1 == infinity), "{bytes}");
    }
    assert_eq!(places(8, &["-0.0", "0.10"]), places(8, &["0.0", "1e-1"]));
    // As a program reads them: with the sign in all bits above.
    assert_eq!(
        float_order(i64::from((-2.5_f32).to_bits() as i32) as u64, 4).0,
        places(4, &["-2.5"])[0].0
    );
    let (_, magnitude) = float_order((-f64::NAN).to_bits(), 8);
    assert!(magnitude > places(8, &["1.0"])[0].1);
    for text in
        ["a > .5", "a > 1.", "a > 1e999", "a > e5", "a > 1.5f", "a > inf", "a > 0x1p3", "a > 1-2"]
    {
        // A point at the end is a number, as in C.
        assert_eq!(
            AskedCondition::parse(text).is_ok(),
            text == "a > 1." || text == "a > e5" || text == "a > inf",
            "{text}"
        );
    }
}

#[test]
fn anything_but_0_is_true() {
    for (text, relation) in [
        ("a == true", LESS | GREATER),
        ("a", LESS | GREATER),
        ("a != false", LESS | GREATER),
        ("a == 1", LESS | GREATER),
        ("a != true", EQUAL),
        ("!a", EQUAL),
        ("a == 0", EQUAL),
    ] {
        let comparison = of(text, Type::Bool).expect("compares");
        assert_eq!((comparison.relation, comparison.number), (relation, 0), "{text}");
    }
}

#[test]
fn what_cannot_be_compared_is_told() {
    let unsigned = Type::Integer { bytes: 1, signed: false };
    for (text, kind, told) in [
        ("a > 256", unsigned, "256 is no value of `a`, which is u8; write one from 0 to 255"),
        ("a > -1", unsigned, "-1 is no value of `a`, which is u8"),
        ("a == 2", Type::Bool, "`a` is bool, and is not compared with a number; write true"),
        ("a == true", unsigned, "`a` is u8, and is not compared with true or false; write a"),
        ("a == \"x\"", unsigned, "`a` is u8, and is not compared with a text; write a whole"),
        ("a == 'x'", Type::Text, "write a == \"text\", or a:ptr == 0 for no text at all"),
        ("!a", Type::Text, "`a` is str, and is not compared with a number"),
        ("a == 'x'", Type::Pointer, "`a` is ptr, and is not compared with a character"),
        (
            "a == MIDDLE",
            unsigned,
            "`MIDDLE` is no name of a value of `a`; there are LOW, HIGH, TOP",
        ),
        ("a == LOW", unsigned, " is no value of `a`, which is u8"),
        ("a > 1.5", unsigned, "`a` is u8, and is not compared with a floating-point number; write"),
        ("a == 'x'", Type::Float { bytes: 8 }, "`a` is f64, and is not compared with a character"),
    ] {
        let error = of(text, kind).unwrap_err();
        assert!(error.contains(told), "{text}: {error}");
    }
}

#[test]
fn what_is_no_condition_is_told_with_a_remedy() {
    let long = format!("a == \"{}\"", "x".repeat(LONGEST_TEXT + 1));
    let many = ["a > 1"; MAX_COMPARISONS + 1].join(" && ");
    for (text, told) in [
        ("", "`` is no comparison; write ARG == VALUE"),
        ("a > 1 &&", "`` is no comparison"),
        ("> 1", "`> 1` is no comparison"),
        ("a >", "`a >` is no comparison"),
        ("\"x\" == a", "`\"x\" == a` is no comparison"),
        ("!", "`!` is no comparison"),
        ("a = 1", "`a = 1` has one `=`; write == to compare"),
        ("(a > 1", "`(a > 1` has a parenthesis without its other"),
        ("a == \"x", "`a == \"x` has no end"),
        ("a == b.c", "`b.c` is no value to compare with; write a decimal"),
        ("a == 1.5.2", "`1.5.2` is no value"),
        ("a == +1", "`+1` is no value"),
        ("a == 0644", "`0644` is no value to compare with; write a decimal or 0x number"),
        ("a == --1", "`--1` is no value"),
        ("a == 'ab'", "`'ab'` is no value"),
        ("a == \"\\q\"", "is no value"),
        ("a == \"\\x00\"", "is no value"),
        ("a == \"\\x+f\"", "is no value"),
        ("a == \"x\" or a == \"y\"", "is no value"),
        ("a == \"x\" \"y\"", "is no value"),
        ("a < \"x\"", "compares texts; they can be == and !="),
        ("a[0] == 1", "`a[0]` is no argument"),
        ("7:u64 == 1", "there is no register 7"),
        (long.as_str(), "is a text of more than 30 bytes"),
        (many.as_str(), "at most 6 comparisons"),
    ] {
        let error = AskedCondition::parse(text).unwrap_err().to_string();
        assert!(error.contains(told) && !error.contains('\n'), "{text}: {error}");
    }
}

#[test]
fn a_condition_may_name_its_functions() {
    for (text, functions, condition) in [
        ("f: len > 5", "f", "len > 5"),
        (" ns::f* : 0:u64 > 5 && 1:i8 < 0", "ns::f*", "0:u64 > 5 && 1:i8 < 0"),
        ("ns::f<int, T>(int): n == 5", "ns::f<int, T>(int)", "n == 5"),
        ("operator<: n == 5", "operator<", "n == 5"),
        ("T::operator==: n == 5", "T::operator==", "n == 5"),
        ("/^(?:a|b)==c:$/: 0:u64 == 5", "/^(?:a|b)==c:$/", "0:u64 == 5"),
        ("f@/a:b/x.so: path == \"/etc: x\"", "f@/a:b/x.so", "path == \"/etc: x\""),
        ("A<B<int> >::f: n == 5", "A<B<int> >::f", "n == 5"),
        ("f(T&&): n == 5", "f(T&&)", "n == 5"),
        ("f: str:str == \"x\" && ptr", "f", "str:str == \"x\" && ptr"),
        ("key:ptr == 0", "", "key:ptr == 0"),
        ("key:str == \"x\"", "", "key:str == \"x\""),
        ("path == \"a:b\" && c == ':'", "", "path == \"a:b\" && c == ':'"),
        ("0:u64 > 5 && 1:u8 < 3", "", "0:u64 > 5 && 1:u8 < 3"),
        ("s1:i8 < 0", "", "s1:i8 < 0"),
        ("!0:ptr", "", "!0:ptr"),
        ("!s2:ptr || a > 5", "", "!s2:ptr || a > 5"),
        ("a > 5 && 1:u64 == 3", "", "a > 5 && 1:u64 == 3"),
        ("a < 5 || 1:u64 == 3", "", "a < 5 || 1:u64 == 3"),
        ("len:u32 > 5", "", "len:u32 > 5"),
        ("done", "", "done"),
        ("(a:u32 > 5 || !b) && c", "", "(a:u32 > 5 || !b) && c"),
        ("f(int): (a > 5 || b) && c", "f(int)", "(a > 5 || b) && c"),
        ("(anonymous namespace)::f: a == 5", "(anonymous namespace)::f", "a == 5"),
    ] {
        let found = split(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((found.0, found.1.to_string()), (functions, condition.to_owned()), "{text}");
    }
    for (text, told) in [
        ("app:query: 0:u64 > 5", "conditions are for functions, and not for USDT probes"),
        ("app:query: 0:u64 > 5 && 1:u8 == 3", "conditions are for functions"),
        (": a > 5", "`: a > 5` has no function before its colon"),
        ("f: a = 5", "`a = 5` has one `=`"),
        ("f: a > 5 && (b", "parenthesis"),
        ("(a:u32 > 5", "parenthesis"),
    ] {
        let error = split(text).unwrap_err().to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}

#[test]
fn texts_with_a_length_are_not_compared() {
    let comparison = parsed("key == \"x\"").alternatives[0][0].clone();
    let source = (Operand::ZERO, ValueForm::Counted(Operand::ZERO));
    let error = comparison.of(&Typed::plain(source, Type::Text)).expect_err("it has a length");
    assert!(error.to_string().ends_with("compare one of its members, or key:ptr"), "{error}");
    let ended = Typed { is_ended: true, ..Typed::plain(source, Type::Text) };
    assert_eq!(comparison.of(&ended).map(|it| it.kind), Ok(TEXT), "a 0 ends it as well");
}

/// Writes the alternatives that a condition has: names, relations and numbers.
fn written(text: &str) -> String {
    let one = |it: &AskedComparison| {
        let sign = RELATIONS.iter().find(|(_, relation)| *relation == it.relation).expect("one").0;
        match &it.with {
            Literal::Number(number) => format!("{}{sign}{number}", it.place),
            with => format!("{}{sign}{}", it.place, with.kind()),
        }
    };
    let all = parsed(text).alternatives;
    let all = all.iter().map(|part| part.iter().map(one).collect::<Vec<_>>().join(" && "));
    all.collect::<Vec<_>>().join(" || ")
}

#[test]
fn parentheses_are_multiplied_out() {
    for (text, expected) in [
        ("(a > 1)", "a>1"),
        ("((a > 1) && (b))", "a>1 && b!=0"),
        ("a && (b == 2 || c < 3)", "a!=0 && b==2 || a!=0 && c<3"),
        ("(a || b) && (c && !d || e)", "too many"),
        ("(a || b) || c", "a!=0 || b!=0 || c!=0"),
        ("a == ')' && (b == \"(\")", "a==a character && b==a text"),
        ("!(a > 1)", "a<=1"),
        ("!(a && b < 2)", "a==0 || b>=2"),
        ("! (a == 1 || !b)", "a!=1 && b!=0"),
        ("!(!(a <= 5) && b)", "a<=5 || b==0"),
        ("!(a == \"x\") && c", "a!=a text && c!=0"),
    ] {
        match expected {
            "too many" => assert_eq!(AskedCondition::parse(text), Err(ConditionError::TooMany)),
            _ => assert_eq!(written(text), expected, "{text}"),
        }
    }
}

#[test]
fn parentheses_stay_bounded_and_are_closed() {
    let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
    assert_eq!(written(&deep), "a!=0");
    let grows = ["(a || b)"; 20].join(" && ");
    assert_eq!(AskedCondition::parse(&grows), Err(ConditionError::TooMany));
    for (text, told) in [
        ("a > 1)", "`a > 1)` has a parenthesis without its other"),
        ("a && (b || c", "has a parenthesis without its other"),
        (")a(", "has a parenthesis without its other"),
        ("f(a) == 1", "in `f(a) == 1`, parentheses stand around whole comparisons"),
        ("(a) == 1", "parentheses stand around whole comparisons"),
        ("a == (1)", "parentheses stand around whole comparisons"),
        ("a && ()", "`` is no comparison"),
    ] {
        let error = AskedCondition::parse(text).unwrap_err().to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}
