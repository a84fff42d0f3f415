use crate::target::fixtures::{Built, compile};
use crate::target::object::{Object, symbols::Function};
use crate::target::place::{Candidate, CodeMap, Policy, place};
use crate::target::plan::ExitPlacement;
use crate::target::read::budget::{Budget, ObjectLimits};
use crate::target::select::{Patterns, Selector};
use object::{Object as _, ObjectSection as _};
use proptest::prelude::*;
use std::fs;

/// Functions, and entries of the table that are none.
const SOURCE: &str = r#"
    #define PROC(name, rules, code) ".type " #name ",@function\n" #name ": .cfi_startproc\n" rules code \
        "ret\n.cfi_endproc\n.size " #name ", .-" #name "\n"
    __asm__(".text\n.globl _start, known\n"
        PROC(_start, ".cfi_undefined %rip\n", "call plain\ncall both\n")
        PROC(plain, "", "cmp $1, %edi\nja split\nja both\nlea pointed(%rip), %rax\ncall *%rax\n")
        PROC(pointed, "", "nop\n")
        PROC(known, "", "nop\n")
        PROC(framed, ".cfi_def_cfa_offset 32\n", "nop\n")
        PROC(saved, ".cfi_offset %rbx, -16\n", "nop\n")
        PROC(handler, ".cfi_signal_frame\n", "nop\n")
        ".section .text.unlikely,\"ax\"\n"
        PROC(split, "", "nop\n")
        PROC(both, "", "nop\n")
        ".section .init,\"ax\"\n"
        PROC(begun, "", "nop\n")
        ".section .plt.more,\"ax\"\n"
        PROC(stub, "", "nop\n"));
"#;

/// Strips a program. Those of its functions that it exports keep their names.
fn stripped(source: &str) -> Built {
    let built = compile("gcc -nostdlib -pie -Wl,--export-dynamic", "c", source);
    built.run("strip -s -o stripped program");
    built
}

fn open(built: &Built, limits: ObjectLimits) -> Object {
    let path = built.dir().join("stripped");
    Object::open_within(&path, &path, Budget::new(limits)).unwrap()
}

fn names(object: &Object) -> Vec<&str> {
    object.functions().iter().map(|function| &**function.name()).collect()
}

#[test]
fn functions_of_a_stripped_program_are_named_by_their_addresses() {
    let built = stripped(SOURCE);
    let (whole, object) = (built.object(), open(&built, ObjectLimits::DEFAULT));
    let found: Vec<(u64, u64, String)> =
        object.functions().iter().map(|it| (it.address, it.size, it.name().to_string())).collect();
    let of = |name: &str| {
        let function = whole.functions().iter().find(|it| it.raw() == name).expect(name);
        let is_exported = ["_start", "known"].contains(&name);
        let shown = format!("fn_{:#x}", function.address);
        (function.address, function.size, if is_exported { name.to_owned() } else { shown })
    };
    let mut expected = ["_start", "plain", "pointed", "known", "both"].map(of);
    expected.sort();
    assert_eq!(found, expected);
    assert!(whole.functions().iter().all(|it| !it.is_named_by_address()));
}

/// In a static program nothing tells whether such a function is libc's `setjmp`, or an unwinder's.
#[test]
fn functions_without_a_name_get_return_probes_where_libc_is_a_library() {
    let by_return_probe = |object: &Object| -> Vec<(bool, bool)> {
        let map = CodeMap::of(object).expect("code");
        let functions = object.functions().iter().filter(|it| it.raw() != "_start");
        let by_return_probe = |it: &Function| {
            let (address, size, name) = (it.address, it.size, it.raw());
            let placed = place(Candidate { address, size, name }, &map, &Policy::default());
            matches!(placed.expect(name).exit, ExitPlacement::ReturnProbe)
        };
        functions.map(|it| (it.is_named_by_address(), by_return_probe(it))).collect()
    };
    let is_static = open(&stripped(SOURCE), ObjectLimits::DEFAULT);
    let unnamed = (true, false);
    assert_eq!(by_return_probe(&is_static), [unnamed, unnamed, unnamed, (false, true)]);
    let dynamic = "#include <stdio.h>\nint main(void) { return puts(\"here\"); }";
    let dynamic = compile("gcc -O1 -s", "c", dynamic);
    assert_eq!(by_return_probe(&dynamic.object()), [(true, true)]);
    // An unwinder in it would find its tables so.
    let finder = "#include <stdio.h>\nint dl_iterate_phdr(void *, void *);\n\
                  int main(void) { return puts(\"here\") + dl_iterate_phdr(0, 0); }";
    let finder = compile("gcc -O1 -s", "c", finder);
    assert_eq!(by_return_probe(&finder.object()), [unnamed]);
}

#[test]
fn functions_of_libraries_have_such_names_only_where_they_are_asked_for() {
    let built = stripped(SOURCE);
    let library = || {
        let mut library = open(&built, ObjectLimits::DEFAULT);
        library.set_main(false);
        library
    };
    assert_eq!(names(&library()), ["_start", "known"]);
    let asks = |pattern: &str| {
        let functions = [pattern.to_owned()];
        let patterns = Patterns { functions: &functions, ..Patterns::default() };
        Selector::parse(patterns).expect("a pattern").asks_by_address(&library())
    };
    for pattern in ["fn_*@stripped", "fn_0x1000@strip*", "/^fn_/@stripped"] {
        assert!(asks(pattern), "{pattern}");
    }
    for pattern in ["fn_*", "*@stripped", "known@stripped", "fn_*@other"] {
        assert!(!asks(pattern), "{pattern}");
    }
    let mut library = library();
    library.name_by_address();
    assert_eq!(names(&library).len(), 5);
    let objects = [library];
    let chosen = |pattern: &str| {
        let functions = [pattern.to_owned()];
        let patterns = Patterns { functions: &functions, ..Patterns::default() };
        let selection = Selector::parse(patterns).expect("a pattern").select(&objects, 9);
        selection.map_or(0, |selection| selection.functions.len())
    };
    // A pattern beside one that asks for them stays what it is.
    assert_eq!(["fn_*@*", "*@stripped", "known", "*"].map(chosen), [3, 1, 1, 1]);
}

/// Only those are left out, and a line says so.
#[test]
fn too_many_functions_without_a_name_are_left_out() {
    let many = r#"__asm__(".text\n.rept 20000\n.cfi_startproc\nnop\nret\n.cfi_endproc\n.endr\n");"#;
    let built = stripped(&format!("{SOURCE}{many}"));
    let memory = 2 << 20;
    let object = open(&built, ObjectLimits { memory, ..ObjectLimits::DEFAULT });
    assert_eq!(names(&object), ["_start", "known"]);
    let told = object.left_out().join("; ");
    assert!(told.contains("functions of stripped without a name are left out"), "{told}");
    assert!(object.source().budget().used() < memory / 2, "{}", object.source().budget().used());
    let object = open(&built, ObjectLimits::DEFAULT);
    assert_eq!((names(&object).len(), object.left_out().len()), (20_005, 0));
}

/// Entries overlap, lead out of the code, or are broken.
#[test]
fn a_broken_table_has_other_functions_and_nothing_else_happens() {
    let built = stripped(SOURCE);
    let path = built.dir().join("stripped");
    let original = fs::read(&path).unwrap();
    let (start, size) = {
        let file = object::File::parse(&*original).unwrap();
        file.section_by_name(".eh_frame").unwrap().file_range().unwrap()
    };
    let changes = prop::collection::vec((0..size, any::<u8>()), 1..12);
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() };
    let check = |changes: Vec<(u64, u8)>| {
        let mut bytes = original.clone();
        changes.into_iter().for_each(|(at, value)| bytes[(start + at) as usize] = value);
        fs::write(&path, &bytes).unwrap();
        let object = open(&built, ObjectLimits::DEFAULT);
        let functions = object.functions();
        assert!(functions.is_sorted_by(|a, b| a.address < b.address));
        assert!(["_start", "known"].into_iter().all(|name| names(&object).contains(&name)));
        let unnamed: Vec<_> = functions.iter().filter(|it| it.is_named_by_address()).collect();
        assert!(unnamed.is_sorted_by(|a, b| a.addresses().end <= b.address), "{unnamed:?}");
        for function in unnamed {
            let mut sections = object.layout().sections.iter().filter(|it| it.executable);
            let around = sections.find(|it| it.addresses.contains(&function.address));
            let around = around.expect("it is in a section of code");
            assert!(function.addresses().end <= around.addresses.end, "{function:?}");
            assert!(!around.name.starts_with(".plt"), "{}", around.name);
        }
        Ok(())
    };
    proptest::test_runner::TestRunner::new(config).run(&changes, check).unwrap();
}
