//! Tests which interpreters are known, with small programs that have their variables.

use super::*;
use crate::target::fixtures::compile;

/// Returns what is found in a program with these variables.
fn found(variables: &str) -> Option<Result<Interpreter, String>> {
    let source = format!("{variables}\nint main(void) {{ return 0; }}");
    let built = compile("gcc -O0", "c", &source);
    Interpreter::of(&built.object()).map(|found| found.map_err(|why| why.to_string()))
}

/// Returns the variables of an interpreter of this version, whose runtime begins with these words.
fn variables(version: &str, runtime: &[u64]) -> String {
    let words = runtime.iter().map(|word| format!("{word}ULL, ")).collect::<String>();
    format!(
        "long PyCode_Type[2] = {{1}}, PyUnicode_Type[2] = {{1}};
         const unsigned long Py_Version = {version};
         unsigned long long _PyRuntime[128] = {{{words}1}};"
    )
}

fn description(version: u64) -> Vec<u64> {
    let mut words: Vec<u64> = (0..offsets::DESCRIPTION as u64 / 8).map(|at| 8 * at).collect();
    words[0] = u64::from_le_bytes(*b"xdebugpy");
    (words[1], words[2]) = (version, 0);
    // The offsets that the programs know by themselves: of a type, a length and a state.
    (words[45], words[69], words[68]) = (8, 16, 32);
    words
}

#[test]
fn an_interpreter_is_known_by_its_variables() {
    for (version, first_thread) in [("0x030b02f0", 16), ("0x030b07f0", 16), ("0x030c01f0", 72)] {
        let interpreter = found(&variables(version, &[])).expect("it is one").expect("known");
        assert_eq!(interpreter.places.offsets.first_thread, first_thread, "{version}");
    }
    let described = variables("0x030d00f0", &description(0x030d_00f0));
    let offsets = found(&described).expect("it is one").expect("known").places.offsets;
    // Each is the number of its word, times 8.
    let some = [offsets.next_interpreter, offsets.frame, offsets.qualified_name, offsets.ascii];
    assert_eq!((some, offsets.wide), ([64, 184, 296, 560], 576));
    assert_eq!(found("long other = 1;"), None);
}

#[test]
fn others_are_refused_with_the_reason() {
    let mut free_threaded = description(0x030d_00f0);
    free_threaded[2] = 1;
    let mut far = description(0x030d_00f0);
    far[9] = 1 << 40;
    for (variables, told) in [
        ("int _PyRuntime[4] = {1};".to_owned(), "it is older than Python 3.11"),
        (variables("0x030a0df0", &[]), "it is older than Python 3.11"),
        (variables("0x030e00f0", &[]), "it is Python 3.14.0, whose structures are not known"),
        (variables("0x030d00f0", &free_threaded), "it is a free-threaded build of Python 3.13.0"),
        (variables("0x030d00f0", &far), "its variable `_PyRuntime` has no contents"),
        (variables("0x030d01f0", &description(0x030d_00f0)), "its variable `_PyRuntime` has no"),
        (variables("0x030d00f0", &[7]), "its variable `_PyRuntime` has no contents"),
        (
            "int _PyRuntime[4] = {1}; const unsigned long Py_Version = 0x030b02f0;".to_owned(),
            "its symbol `PyCode_Type` is missing",
        ),
    ] {
        let why = found(&variables).expect("it is one").expect_err("it is not known");
        assert!(why.starts_with(told), "{why}");
    }
}
