//! Tests arguments and results of generated functions: whatever the signature and the compiler, the
//! values are those that the function itself prints, by the place of each and by its name.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::told::{compare, record};
use ctrace_tests::{gate, or_skip};
use std::fmt::Write as _;
use std::process::Command;

const FUNCTIONS: usize = 500;
const SEED: u64 = 0x5eed_0001;
const CALLS: usize = 3;
/// As many texts as a function can have.
const MOST_TEXTS: usize = 4;
/// As many values as a function can have, without the result.
const MOST_VALUES: usize = 11;

/// The way in which values are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Place,
    Name,
}

/// A type of C: its name for `--arg`, its own name, and how it is printed as JSON.
type Type = (&'static str, &'static str, &'static str);

const TYPES: [Type; 14] = [
    ("i8", "int8_t", "%d"),
    ("u8", "uint8_t", "%u"),
    ("i16", "int16_t", "%d"),
    ("u16", "uint16_t", "%u"),
    ("i32", "int32_t", "%d"),
    ("u32", "uint32_t", "%u"),
    ("i64", "int64_t", "%ld"),
    ("u64", "uint64_t", "%lu"),
    ("bool", "_Bool", "%s"),
    ("char", "char", "\\\"%c\\\""),
    ("ptr", "void *", "\\\"0x%lx\\\""),
    ("str", "const char *", "\\\"%s\\\""),
    ("f32", "float", "%.9g"),
    ("f64", "double", "%.17g"),
];

/// Numbers from a fixed seed (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Returns a constant of this type.
    fn constant(&mut self, (of, ..): Type) -> String {
        let number = self.next();
        match of {
            "bool" => (number % 2).to_string(),
            "char" => format!("'{}'", (b'a' + (number % 26) as u8) as char),
            "str" => format!("texts[{}]", number % 8),
            "ptr" => format!("(void *){number}ul"),
            "f32" | "f64" => format!("{}.{}", (number >> 40) as i32 - (1 << 23), number % 4 * 25),
            // A cast cuts it to the type.
            _ => format!("{number}ul"),
        }
    }
}

fn is_float((of, ..): Type) -> bool {
    matches!(of, "f32" | "f64")
}

/// Returns the expression that passes a value of this type to `printf`.
fn printed((of, ..): Type, name: &str) -> String {
    match of {
        "bool" => format!("{name} ? \"true\" : \"false\""),
        "ptr" => format!("(unsigned long){name}"),
        _ => name.to_owned(),
    }
}

/// The places that the ABI has given to parameters: the number of the register of its kind, or of
/// the slot on the stack.
#[derive(Default)]
struct Places {
    integers: usize,
    floats: usize,
    slots: usize,
}

impl Places {
    /// Returns the place of the next parameter as `--arg` has it; `None` in a vector register.
    fn next(&mut self, of: Type) -> Option<String> {
        let (used, limit) =
            if is_float(of) { (&mut self.floats, 8) } else { (&mut self.integers, 6) };
        if *used < limit {
            *used += 1;
            return (!is_float(of)).then(|| (*used - 1).to_string());
        }
        self.slots += 1;
        Some(format!("s{}", self.slots - 1))
    }
}

/// Returns a program, and the options that ask for all values of its functions.
fn program(random: &mut Random, by: By) -> (String, Vec<String>) {
    let mut source = String::from(
        "#include <stdint.h>\n#include <stdio.h>\n\
         #ifdef __clang__\n#define FN __attribute__((noinline))\n\
         #else\n#define FN __attribute__((noipa))\n#endif\n\
         static char texts[8][40] = {\"\", \"a\", \"key\", \"GET /index.html\", \"x=1;y=2\", \
         \"some words\", \"0\", \"the longest of these few texts\"};\n\
         static void touch(void) {\n\
         for (int i = 0; i < 8; i++) *(volatile char *)texts[i] = texts[i][0];\n}\n",
    );
    let (mut calls, mut options) = (String::new(), Vec::new());
    for number in 0..FUNCTIONS {
        let (mut places, mut asked) = (Places::default(), Vec::new());
        let (mut parameters, mut format, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut types = Vec::new();
        // Every eighth has more floating-point numbers than there are registers.
        let floats = if number % 8 == 0 { 9 } else { 0 };
        // No more than the values that a function can have: each that has a place is asked for.
        for parameter in 0..random.below(if floats == 0 { 12 } else { 11 }) + floats {
            let of = match parameter < floats {
                true => TYPES[12 + random.below(2)],
                false => TYPES[random.below(TYPES.len())],
            };
            let texts = types.iter().filter(|(of, ..): &&Type| *of == "str").count();
            let of = if of.0 == "str" && texts == MOST_TEXTS { TYPES[7] } else { of };
            types.push(of);
            parameters.push(format!("{} p{parameter}", of.1));
            let Some(place) = places.next(of) else { continue };
            asked.push(match by {
                By::Place => format!("p{parameter}={place}:{}", of.0),
                By::Name => format!("p{parameter}"),
            });
            format.push(format!("\\\"p{parameter}\\\":{}", of.2));
            values.push(printed(of, &format!("p{parameter}")));
        }
        assert!(asked.len() <= MOST_VALUES);
        let result = TYPES[random.below(12)];
        format.push(format!("\\\"retval\\\":{}", result.2));
        values.push(printed(result, "r"));
        let results: Vec<_> = (0..CALLS).map(|_| random.constant(result)).collect();
        let parameters = if parameters.is_empty() { "void".into() } else { parameters.join(", ") };
        writeln!(
            source,
            "FN {} f{number}({parameters}) {{\n\
             static int n;\n{} r = 0;\nswitch (n++) {{",
            result.1, result.1
        )
        .expect("a string takes all");
        for (call, result) in results.iter().enumerate() {
            writeln!(source, "case {call}: r = {result}; break;").expect("a string takes all");
        }
        writeln!(
            source,
            "}}\nprintf(\"call {{\\\"function\\\":\\\"f{number}\\\",\\\"values\\\":{{{}}}}}\\n\", {});\n\
             return r;\n}}",
            format.join(","),
            values.join(", ")
        )
        .expect("a string takes all");
        for _ in 0..CALLS {
            let arguments: Vec<_> = types
                .iter()
                .map(|of| match of.0 {
                    "str" => random.constant(*of),
                    _ => format!("({}){}", of.1, random.constant(*of)),
                })
                .collect();
            // Texts are read only where their page is in memory: one that was written stays.
            writeln!(calls, "touch();\nf{number}({});", arguments.join(", "))
                .expect("a string takes all");
        }
        if !asked.is_empty() {
            options.extend(["--arg".to_owned(), format!("f{number}: {}", asked.join(", "))]);
        }
        options.extend([
            "--ret".to_owned(),
            match by {
                By::Place => format!("f{number}: {}", result.0),
                By::Name => format!("f{number}"),
            },
        ]);
    }
    (format!("{source}int main(void) {{\n{calls}return 0;\n}}\n"), options)
}

/// Compiles a program, and compares all values of all of its calls.
fn check(env: &Env, compiler: &str, optimization: &str, by: By, returns: &str) {
    let (source, options) = program(&mut Random(SEED), by);
    let folder = tempfile::tempdir().expect("a folder");
    let (file, binary) = (folder.path().join("signatures.c"), folder.path().join("signatures"));
    std::fs::write(&file, &source).expect("room for a file");
    let debug = if by == By::Name { "-g" } else { "-g0" };
    // Constants are cut to their types.
    let mut compile = Command::new(compiler);
    compile.args([optimization, debug, "-w", "-o"]).args([&binary, &file]);
    let compiled = compile.status().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(compiled.success(), "{source}");
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.extend(["--returns", returns]);
    let (told, seen) = record(env, &binary, &[], &options).expect("a recording");
    assert_eq!(told.len(), FUNCTIONS * CALLS);
    let values: usize = told.iter().map(|call| call.values.len()).sum();
    assert!(values > FUNCTIONS * CALLS * 4, "{values} values");
    compare(&told, &seen)
        .unwrap_or_else(|error| panic!("{compiler} {optimization} {by:?}: {error}"));
}

#[test]
fn values_by_place_of_gcc() {
    let env = or_skip!(gate::live(Link::Session));
    check(&env, "gcc", "-O0", By::Place, "auto");
    check(&env, "gcc", "-O2", By::Place, "ret-sites");
}

#[test]
fn values_by_place_of_clang() {
    let env = or_skip!(gate::live(Link::Session));
    check(&env, "clang", "-O0", By::Place, "ret-sites");
    check(&env, "clang", "-O2", By::Place, "auto");
}

#[test]
fn values_by_name_of_gcc() {
    let env = or_skip!(gate::live(Link::Session));
    check(&env, "gcc", "-O0", By::Name, "ret-sites");
    check(&env, "gcc", "-O2", By::Name, "auto");
}

#[test]
fn values_by_name_of_clang() {
    let env = or_skip!(gate::live(Link::Session));
    // With -O2, its debug information names no place for some parameters on the stack. They are refused.
    check(&env, "clang", "-O0", By::Name, "auto");
}
