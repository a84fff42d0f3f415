//! A program's own tables: what ctrace may have written is checked before it is believed.

use super::{Build, run, there};

#[test]
fn an_answer_that_cannot_be_is_none() {
    for (compiler, standard, way) in [
        ("g++", "-std=c++17", "-O2"),
        ("g++", "-std=c++20", "-fsanitize=address,undefined"),
        ("clang++", "-std=c++17", "-O1"),
    ] {
        if !there(compiler) {
            continue;
        }
        let build = Build::new();
        let flags = &["-I../../include/ctrack", standard, "-pthread", way][..];
        let program = build.program(compiler, &[flags], &["tables.cpp"]);
        run(&program, &[]);
    }
}
