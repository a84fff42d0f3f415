//! Tests that functions of stripped programs and libraries are traced under their addresses.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::run;
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::trace::{LIMIT, Trace};
use ctrace_tests::truth::Truth;
use ctrace_tests::{gate, or_skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of ours is UTF-8")
}

fn tool(program: &str, arguments: &[&str]) {
    let done = run(Command::new(program).args(arguments), LIMIT).expect(program);
    assert_eq!(done.shell_code(), 0, "{program} {arguments:?}: {}", done.stderr);
}

/// Returns names and addresses of the functions that `ctrace list` shows, and what it says beside them.
fn listed(env: &Env, path: &Path) -> (BTreeMap<String, u64>, String) {
    let mut command = Command::new(&env.ctrace);
    let done = run(command.args(["list", "--json", text(path)]), LIMIT).expect("ctrace");
    assert_eq!(done.shell_code(), 0, "{}", done.stderr);
    let list: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let rows = list["functions"].as_array().expect("functions").iter();
    let row = |row: &Value| {
        (row["name"].as_str().expect("a name").to_owned(), row["address"].as_u64().expect("one"))
    };
    (rows.map(row).collect(), done.stderr)
}

/// A program, and a copy of it without symbols.
struct Twins {
    folder: TempDir,
    whole: PathBuf,
    stripped: PathBuf,
    /// The addresses of the whole one's functions.
    functions: BTreeMap<String, u64>,
}

impl Twins {
    fn of(env: &Env, source: &str) -> Twins {
        let folder = TempDir::new().expect("a folder");
        let whole = env.targets.get(&program(source)).expect("builds");
        let stripped = folder.path().join("stripped");
        tool("strip", &["-s", "-o", text(&stripped), text(&whole)]);
        let functions = listed(env, &whole).0;
        Twins { folder, whole, stripped, functions }
    }

    fn by_address(&self, name: &str) -> String {
        format!("fn_{:#x}", self.functions[name])
    }

    /// Compares the counts of a report with those that the program printed.
    fn check(&self, stdout: &str, report: &Report) {
        let mut truth = Truth::parse(stdout);
        truth.calls.iter_mut().for_each(|(name, _)| *name = self.by_address(name));
        truth.check_calls(report).expect("all calls");
        report.check_lossless().expect("nothing is lost");
    }
}

#[test]
fn functions_are_listed_and_counted_under_their_addresses() {
    let env = or_skip!(gate::live(Link::Session));
    for source in ["counts.c", "cold.cpp"] {
        let twins = Twins::of(&env, source);
        let (shown, said) = listed(&env, &twins.stripped);
        assert!(
            said.contains("stripped is stripped, its own functions have their addresses"),
            "{said}"
        );
        for (name, address) in &shown {
            assert_eq!(*name, format!("fn_{address:#x}"));
        }
        // What has a name is there, but for parts and for what the compiler made.
        let is_whole = |name: &str| !name.contains(".cold") && !name.starts_with("_GLOBAL__");
        let mut expected: Vec<u64> = twins
            .functions
            .iter()
            .filter(|(name, _)| is_whole(name))
            .map(|(_, address)| *address)
            .collect();
        let mut addresses: Vec<u64> = shown.into_values().collect();
        expected.sort_unstable();
        addresses.sort_unstable();
        assert_eq!(addresses, expected, "{source}: {:?}", twins.functions);

        let alone = run(Command::new(&twins.whole).arg("1000"), LIMIT).expect("runs");
        let trace = Trace::run(&env).expect("ctrace").function("*");
        let traced = trace.program(&twins.stripped, ["1000"]).finish().expect("traced");
        let traced = traced.expect_code(0).expect("no error");
        assert_eq!(traced.finished.stdout, alone.stdout);
        twins.check(&alone.stdout, traced.report().expect("a report"));
    }
}

#[test]
fn one_is_chosen_by_its_address_and_recorded_under_it() {
    let env = or_skip!(gate::live(Link::Session));
    let twins = Twins::of(&env, "counts.c");
    let (leaf, ping) = (twins.by_address("leaf"), twins.by_address("ping"));
    let file = twins.folder.path().join("leaf.ctrace");
    let (file, stripped) = (text(&file), text(&twins.stripped));
    let chosen = ["-f", &leaf, "-f", &ping];
    let recorded = [&["record", "-o", file], &chosen[..], &["--", stripped, "100"]].concat();
    tool(text(&env.ctrace), &recorded);
    let mut command = Command::new(&env.ctrace);
    let shown = command.args(["report", file, "--format", "json", "-f", &leaf]);
    let shown = run(shown, LIMIT).expect("ctrace");
    let report: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let names: Vec<&str> = report["functions"]
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert_eq!(names, [&leaf], "{}", shown.stderr);
}

/// Among these are libc's own `setjmp`, `vfork` and unwinder, which nothing tells from others.
#[test]
fn a_static_program_is_not_disturbed_by_all_of_its_functions() {
    let env = or_skip!(gate::live(Link::Session));
    for source in ["setjmp.c", "forks.c", "throw.cpp"] {
        let build = program(source).flags(["-O2", "-static", "-pthread"]).stripped();
        let path = env.targets.get(&build).expect("builds");
        let alone = run(Command::new(&path).arg("20"), LIMIT).expect("runs");
        let trace = Trace::run(&env).expect("ctrace").function("*");
        let traced = trace.program(&path, ["20"]).finish().expect("traced");
        let traced = traced.expect_code(alone.shell_code()).expect("the same end");
        assert_eq!(traced.finished.stdout, alone.stdout, "{source}");
        let functions = traced.report().expect("a report").functions().count();
        assert!(functions > 500, "{source}: {functions}");
    }
}

/// A library has hundreds, and `*` means the program's.
#[test]
fn those_of_a_library_are_chosen_where_it_is_named() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = TempDir::new().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let (library, program) = (at("libhidden.so"), at("uses"));
    let hidden = "
        static __attribute__((noipa)) int hidden(int x) { return x * 7; }
        int shown(int x) { return hidden(x) + 1; }
    ";
    let uses = "
        int shown(int);
        int main(void) { int sum = 0; for (int i = 0; i < 40; i++) sum += shown(i); return sum == 0; }
    ";
    std::fs::write(at("hidden.c"), hidden).expect("written");
    std::fs::write(at("uses.c"), uses).expect("written");
    let (hidden, uses) = (at("hidden.c"), at("uses.c"));
    tool("gcc", &["-O1", "-s", "-shared", "-fPIC", "-o", text(&library), text(&hidden)]);
    let path = format!("-Wl,-rpath,{}", text(folder.path()));
    tool("gcc", &["-O1", "-o", text(&program), text(&uses), text(&library), &path]);
    let calls = |functions: &[&str]| {
        let trace = Trace::run(&env).expect("ctrace").functions(functions.iter().copied());
        let traced = trace.program(&program, []).finish().expect("traced");
        let traced = traced.expect_code(0).expect("no error");
        let report = traced.report().expect("a report");
        let of =
            |it: ctrace_tests::report::Function<'_>| (it.name().starts_with("fn_0x"), it.calls());
        let mut calls: Vec<(bool, u64)> = report.functions().map(of).collect();
        calls.sort_unstable();
        calls
    };
    assert_eq!(calls(&["*@libhidden*"]), [(false, 40)]);
    assert_eq!(calls(&["fn_*@libhidden*"]), [(true, 40)]);
    assert_eq!(calls(&["shown", "fn_*@libhidden*"]), [(false, 40), (true, 40)]);
}
