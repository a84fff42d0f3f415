use super::super::fixtures::{Built, MARKERS, compile};
use super::super::place::CodeMap;
use super::*;
use proptest::prelude::*;
use std::fs;

const SOURCE: &str = "static int helper(int x) { return x * 7; }\n\
                      int main(int c, char **v) { return helper(c); }\n";

/// Returns the program's entry address.
fn started_at(built: &Built) -> u64 {
    use ::object::Object as _;
    let bytes = fs::read(&built.program).unwrap();
    ::object::File::parse(&*bytes).unwrap().entry()
}

#[test]
fn reads_identity() {
    let built = compile("gcc -Wl,--build-id=0xabcdef12", "c", SOURCE);
    let object = built.object();
    assert_eq!(object.build_id(), Some(&[0xab, 0xcd, 0xef, 0x12][..]));
    assert!(object.interpreter().unwrap().starts_with(b"/lib64/ld-linux"));
    assert_eq!(object.function_at(started_at(&built)).map(Function::raw), Some("_start"));
    assert_eq!(object.bytes(), fs::read(&built.program).unwrap());
}

#[test]
fn refuses_what_is_no_program() {
    let built = compile("gcc -c", "c", SOURCE);
    let object_file = fs::read(&built.program).unwrap();
    let check = |bytes: &[u8], expected: &str| {
        let path = built.dir().join("candidate");
        fs::write(&path, bytes).unwrap();
        let line = Object::open(&path, &path).unwrap_err().to_string();
        assert!(line.contains(expected) && !line.contains('\n'), "{line}");
    };
    check(b"", "not an ELF file");
    check(b"#!/bin/sh\n", "not an ELF file");
    check(&object_file, "no program");
    check(&object_file[..40], "broken");
    let mut header = object_file.clone();
    header[4] = 1;
    check(&header, "32-bit");
    header[4] = 7;
    check(&header, "broken");
    header[4] = 2;
    header[18] = 183;
    check(&header, "another machine");
    let program = compile("gcc", "c", SOURCE);
    let whole = fs::read(&program.program).unwrap();
    check(&whole[..whole.len() / 2], "broken");
    check(&whole[..whole.len() - 100], "broken");

    let open = |path: &str| Object::open(path.as_ref(), path.as_ref()).unwrap_err();
    assert!(matches!(open("/no/such/file"), ObjectError::Io { .. }));
    assert!(matches!(open("/"), ObjectError::NotAFile { .. }));
    assert!(matches!(open("/dev/null"), ObjectError::NotAFile { .. }));
}

/// A reader's refusal does not affect the next reader.
#[test]
fn an_old_refusal_is_not_told_again() {
    let built = compile("gcc -g", "c", SOURCE);
    let object = built.object();
    let main = object.functions().iter().find(|function| function.raw() == "main").unwrap();
    assert!(object.source().budget().charge(u64::MAX).is_err());
    // A wrong refusal would give up the lines after the first question.
    for _ in 0..2 {
        assert!(object.source_line(main.address).is_some());
    }
    assert!(CodeMap::parse(object.source()).is_ok());
}

/// Asks for everything that an object can tell.
fn exhaust(path: &Path) {
    let Ok(object) = Object::open(path, path) else { return };
    for function in object.functions() {
        let _ = (function.name(), function.full_name(), function.aliases());
        assert!(object.layout().file_offset(function.address).is_some());
    }
    for function in object.functions().iter().take(3) {
        object.source_line(function.address);
    }
    let _ = (object.usdt_probes(), object.markers(), object.build_id());
}

fn small() -> Built {
    let source = r#"
        static inline __attribute__((always_inline)) int f(int x) { SCOPE(NONE, "g", 1); return x; }
        int g(int x) { SCOPE("g", NONE, 0); return f(x); }
        void _start(void) { g(1); }
        RUNTIME
    "#;
    compile("gcc -g -nostdlib -static", "c", &format!("{MARKERS}\n{source}"))
}

#[test]
fn survives_mutations() {
    let built = small();
    let original = fs::read(&built.program).unwrap();
    let mutated = built.dir().join("mutated");
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8);
    // The headers, at both ends of the file, hold most bytes that steer a parser.
    let place = prop_oneof![
        Just(0..64usize),
        Just(64..1024),
        Just(original.len() - 2048..original.len()),
        Just(0..original.len())
    ];
    let cut = prop::option::weighted(0.1, any::<prop::sample::Index>());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&(changes, place, cut), |(changes, place, cut)| {
            let mut bytes = original.clone();
            for (index, value) in changes {
                let at = place.start + index.index(place.len());
                bytes[at] = value;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(original.len()));
            }
            fs::write(&mutated, &bytes).unwrap();
            exhaust(&mutated);
            Ok(())
        })
        .unwrap();
}
