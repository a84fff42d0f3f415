//! Tests the behaviour of programs with scopes, compiled in every way.

use super::elf::{Elf, runtimes};
use super::*;

/// Nesting, tags, stack pointers, threads, recycling, fork, exit: in these ways.
fn basics(compiler: &str, language: &[&str], ways: &[&[&str]]) {
    if !there(compiler) {
        return;
    }
    for way in ways {
        let build = Build::new();
        let program =
            build.program(compiler, &[language, way, &["-pthread"]], &["basics.c", "second.c"]);
        let output = run(&program, &[]);
        // The last flush comes after the program's own destructors.
        assert_eq!(String::from_utf8_lossy(&output.stdout), "end\nflush\n", "{compiler} {way:?}");
    }
}

#[test]
fn basics_gcc() {
    basics("gcc", C, WAYS);
}

#[test]
fn basics_gxx() {
    basics("g++", CXX, CXX_WAYS);
}

#[test]
fn basics_clang() {
    basics("clang", C, WAYS);
}

#[test]
fn basics_clangxx() {
    basics("clang++", CXX, CXX_WAYS);
}

#[test]
fn c_and_cxx_in_one_program() {
    if !there("g++") {
        return;
    }
    let build = Build::new();
    let flags = &["-O2", "-pthread", "-xc++"][..];
    let program = build.program("g++", &[flags], &["basics.c", "-xc", "second.c"]);
    run(&program, &[]);
    assert_eq!(runtimes(&Elf::open(&program)).len(), 1);
}

#[test]
fn other_standards_and_dialects() {
    for (compiler, languages) in [
        (
            "gcc",
            &[
                ["-xc", "-std=gnu11"],
                ["-xc", "-std=c17"],
                ["-xc", "-std=gnu2x"],
                ["-xc", "-masm=intel"],
            ][..],
        ),
        ("g++", &[["-xc++", "-std=gnu++17"], ["-xc++", "-std=c++20"], ["-xc++", "-std=c++23"]][..]),
        ("clang", &[["-xc", "-std=gnu11"], ["-xc", "-std=gnu2x"], ["-xc", "-masm=intel"]][..]),
        ("clang++", &[["-xc++", "-std=gnu++17"], ["-xc++", "-std=c++20"]][..]),
    ] {
        if !there(compiler) {
            continue;
        }
        for language in languages {
            let build = Build::new();
            run(
                &build.program(
                    compiler,
                    &[language, &["-O2", "-pthread"]],
                    &["basics.c", "second.c"],
                ),
                &[],
            );
        }
    }
}

#[test]
fn musl() {
    if !there("musl-gcc") {
        return;
    }
    for way in [&["-O2", "-static"][..], &["-O0"]] {
        let build = Build::new();
        let program = build.program("musl-gcc", &[C, way], &["basics.c", "second.c"]);
        let output = run(&program, &[]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "end\nflush\n");
    }
}

/// Exceptions, templates, lambdas, inline functions.
#[test]
fn language() {
    for compiler in ["g++", "clang++"] {
        if !there(compiler) {
            continue;
        }
        for way in CXX_WAYS {
            let build = Build::new();
            run(
                &build.program(
                    compiler,
                    &[CXX, way, &["-pthread"]],
                    &["language.cpp", "language2.cpp"],
                ),
                &[],
            );
        }
    }
}

#[test]
fn longjmp() {
    for (compiler, way) in [("gcc", "-O2"), ("gcc", "-O0"), ("clang", "-O2")] {
        if there(compiler) {
            let build = Build::new();
            run(&build.program(compiler, &[C, &[way]], &["longjmp.c"]), &[]);
        }
    }
}

/// Handlers interrupt scopes everywhere. No taken slot is lost.
#[test]
fn signal_storm() {
    for compiler in ["gcc", "clang"] {
        if there(compiler) {
            let build = Build::new();
            let program =
                build.program(compiler, &[&["-std=gnu11", "-O2", "-pthread"]], &["storm.c"]);
            for arguments in [&[][..], &["thread"]] {
                eprint!("{}", String::from_utf8_lossy(&run(&program, arguments).stderr));
            }
        }
    }
}

/// Names that are known only at run time come whole, also where handlers interrupt their writer.
#[test]
fn late_names() {
    for compiler in ["g++", "clang++"] {
        if there(compiler) {
            for way in ["-O0", "-O2"] {
                let build = Build::new();
                let program = build.program(compiler, &[&["-std=c++17", way]], &["late.cpp"]);
                run(&program, &[]);
            }
        }
    }
}

/// Messages, plots, frames and scopes with values: what the file has, what comes out, and whole also
/// where handlers interrupt their writer.
#[test]
fn points() {
    for compiler in ["gcc", "g++", "clang", "clang++", "musl-gcc"] {
        let (language, older): (_, &[_]) = match compiler {
            "g++" | "clang++" => (CXX, &["-O1", "-xc++", "-std=c++11"]),
            _ => (C, &["-O1", "-std=c99"]),
        };
        for flags in [&[language, &["-O0"]][..], &[language, &["-O2"]], &[older]] {
            if there(compiler) {
                let build = Build::new();
                let flags = [flags, &[&["-pthread"]]].concat();
                run(&build.program(compiler, &flags, &["points.c"]), &[]);
            }
        }
    }
}

/// Locks in C++ tell of their waits and holds, in every standard that has mutexes. Without markers they are
/// the locks that they wrap.
#[test]
fn locks() {
    for compiler in ["g++", "clang++"] {
        for standard in ["-std=c++11", "-std=c++17", "-std=c++20"] {
            for way in ["-O0", "-O2"] {
                if there(compiler) {
                    let build = Build::new();
                    let flags = &[&[standard, way, "-pthread"][..]];
                    run(&build.program(compiler, flags, &["locks.cpp", "locks_other.cpp"]), &[]);
                }
            }
        }
        for off in ["-DCTRACE_DISABLE", "-DCTRACE_DISABLE_locks"] {
            if there(compiler) {
                let build = Build::new();
                if off == "-DCTRACE_DISABLE" {
                    // Then any standard will do. Its own warnings are about variadic macros.
                    let flags = &[&["-xc++", "-std=c++98", "-c", off][..]];
                    let (mut command, _) = build.command(compiler, flags, &["second.c"], "old");
                    assert!(command.status().expect("the compiler runs").success());
                }
                let flags = &[&["-std=c++17", "-O2", "-pthread", off][..]];
                let program = build.program(compiler, flags, &["locks_off.cpp"]);
                run(&program, &[]);
                assert!(Elf::open(&program).section("ctrace_sites").2.is_empty(), "{off}");
            }
        }
    }
}

/// Compilers tell much about what a macro makes of it: the first that they tell is what is wrong.
#[test]
fn a_format_that_is_no_literal_is_told_first() {
    for (compiler, language, _) in COMPILERS.iter().filter(|it| there(it.0)) {
        let (build, flags) = (Build::new(), &[*language, &["-c"][..]]);
        let (mut command, _) = build.command(compiler, flags, &["no_literal.c"], "no_literal.o");
        let output = command.env("LC_ALL", "C").output().expect("the compiler runs");
        let told = String::from_utf8_lossy(&output.stderr);
        let first = told.lines().find(|line| line.contains("error")).unwrap_or_default();
        let reason = "the format of a CTRACE_MESSAGE must be a string literal";
        assert!(!output.status.success() && first.contains(reason), "{compiler}: {told}");
    }
}

/// The limits in the header tell it.
#[test]
fn only_a_message_with_arguments_takes_much_of_the_stack() {
    if !there("gcc") {
        return;
    }
    let build = Build::new();
    let object = build.program("gcc", &[C, &["-O2", "-fstack-usage", "-c"]], &["points.c"]);
    let usage = std::fs::read_to_string(object.with_extension("su")).expect("gcc tells");
    let bytes = |function: &str| -> u32 {
        let mut rows = usage.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let row = rows.find(|row| row[0].ends_with(function)).unwrap_or_else(|| panic!("{usage}"));
        row[1].parse().expect("a number")
    };
    let message = bytes(":ctrace_c1_message");
    assert!((1009..=1331).contains(&message), "1.3 KiB: {usage}");
    for function in [":ctrace_c1_text", ":ctrace_c1_slow_with", ":ctrace_c1_enter_valued"] {
        assert!(bytes(function) < 256, "{function}: {usage}");
    }
}

#[test]
fn dlopen_and_dlclose() {
    for compiler in ["gcc", "clang"] {
        if there(compiler) {
            let build = Build::new();
            let gnu = &["-std=gnu11", "-O2", "-pthread", "-Wno-pedantic"][..];
            let library = build.program(compiler, &[gnu, &["-shared", "-fPIC"]], &["plugin.c"]);
            let program = build.program(compiler, &[gnu, &["-ldl"]], &["dl.c"]);
            let output = run(&program, &[library.to_str().expect("a path")]);
            // dlclose flushes, three times.
            assert_eq!(String::from_utf8_lossy(&output.stdout), "flush\nflush\nflush\n");
        }
    }
}
