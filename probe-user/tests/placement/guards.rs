//! The places of an object that are guarded, and the objects that cannot be.

use ctrace_user::testing::target::{
    Budget, GuardKind, Guards, Object, ObjectLimits, Unguardable, guards,
};
use object::{Object as _, ObjectSection, ObjectSegment, ObjectSymbol};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An object that was built for a test.
struct Built {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

/// Returns `None` where the compiler lacks something.
fn build(compiler: &[&str], suffix: &str, source: &str) -> Option<Built> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, path) = (folder.path().join(format!("a.{suffix}")), folder.path().join("a.so"));
    std::fs::write(&file, source).expect("the source is written");
    let mut command = Command::new(compiler[0]);
    command.args(["-x", suffix]).arg(&file).args(["-x", "none"]);
    let Ok(output) = command.args(&compiler[1..]).arg("-o").arg(&path).output() else {
        println!("skipped: there is no {}", compiler[0]);
        return None;
    };
    if compiler.contains(&"-static") && !output.status.success() {
        println!("skipped: {compiler:?} cannot link");
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(Built { _folder: folder, path })
}

fn of(path: &Path) -> Result<Guards, Unguardable> {
    let budget = Budget::new(ObjectLimits::DEFAULT);
    guards(&Object::open_within(path, path, budget).expect("the object opens"))
}

/// The names and addresses of an object's code, by place in the file.
struct Names {
    symbols: Vec<(u64, String)>,
    sections: Vec<(u64, u64, String)>,
    segments: Vec<(u64, u64, u64)>,
}

impl Names {
    fn of(path: &Path) -> Self {
        let data = std::fs::read(path).expect("the object is there");
        let file = object::File::parse(&*data).expect("the object parses");
        let symbols = file.symbols().chain(file.dynamic_symbols()).filter(|it| it.is_definition());
        let mut symbols: Vec<_> =
            symbols.map(|it| (it.address(), it.name().unwrap_or("").to_owned())).collect();
        symbols.sort();
        let sections = file.sections();
        let segments =
            file.segments().map(|it| (it.file_range().0, it.file_range().1, it.address()));
        Self {
            symbols,
            sections: sections
                .map(|it| (it.address(), it.size(), it.name().unwrap_or("").to_owned()))
                .collect(),
            segments: segments.collect(),
        }
    }

    /// Returns the names at or just before a place in the file, with the distance to it.
    fn at(&self, offset: u64) -> Vec<(&str, u64)> {
        let inside = |it: &&(u64, u64, u64)| (it.0..it.0 + it.1).contains(&offset);
        let segment = self.segments.iter().find(inside).expect("a site is loaded");
        let address = segment.2 + (offset - segment.0);
        let section = self.sections.iter().find(|it| (it.0..it.0 + it.1).contains(&address));
        if let Some((start, _, name)) = section.filter(|it| it.2.starts_with(".plt")) {
            return vec![(name, address - start)];
        }
        let last = self.symbols.iter().rev().find(|it| it.0 <= address).map_or(0, |it| it.0);
        let here = self.symbols.iter().filter(|it| it.0 == last);
        here.map(|it| (it.1.as_str(), address - last)).collect()
    }
}

/// Checks the sites, each given as one of its names, the distance to it, and its kind.
#[track_caller]
fn check_sites(path: &Path, expected: &[(&str, u64, GuardKind)]) {
    let (names, found) = (Names::of(path), of(path).expect("it can be guarded"));
    let shown: Vec<_> = found.sites.iter().map(|it| (names.at(it.offset), it.kind)).collect();
    assert_eq!(shown.len(), expected.len(), "{shown:?}");
    for (name, distance, kind) in expected {
        let is_it = |site: &(Vec<(&str, u64)>, GuardKind)| {
            site.0.contains(&(*name, *distance)) && site.1 == *kind
        };
        assert!(shown.iter().any(is_it), "{name}+{distance} {kind:?} is not in {shown:?}");
    }
}

fn function(name: &str, body: &str) -> String {
    format!(
        ".text\n.globl {name}\n.type {name}, @function\n{name}: .cfi_startproc\n{body}\n\
         .cfi_endproc\n.size {name}, .-{name}\n.section .note.GNU-stack\n"
    )
}

const ASSEMBLER: [&str; 3] = ["gcc", "-shared", "-nostdlib"];

#[track_caller]
fn check_code(text: &str, expected: &[(&str, u64, GuardKind)]) {
    let Some(built) = build(&ASSEMBLER, "assembler", text) else { return };
    check_sites(&built.path, expected);
}

#[track_caller]
fn check_refusal(compiler: &[&str], suffix: &str, text: &str, expected: &str) {
    let Some(built) = build(compiler, suffix, text) else { return };
    let found = of(&built.path).map_err(|why| why.to_string());
    let why = found.expect_err("it cannot be guarded");
    assert!(why.starts_with(expected), "{why}");
}

/// Ruby's fibers are such assembly: a label without a type, a size and unwind information.
#[test]
fn a_global_label_in_code_begins_a_function() {
    let text = ".text\n.globl swap\nswap: push %rbp\nmov %rsp, (%rdi)\nmov (%rsi), %rsp\n\
                pop %rbp\nret\n.section .note.GNU-stack\n";
    check_code(text, &[("swap", 0, GuardKind::Switch), ("swap", 4, GuardKind::Switch)]);
}

#[test]
fn unwinders_are_guarded_where_they_are_defined() {
    let body = "endbr64\npush %rbx\n.cfi_def_cfa_offset 16\npop %rbx\n.cfi_def_cfa_offset 8\nret";
    let throws = ["_Unwind_RaiseException", "_Unwind_ForcedUnwind", "_Unwind_Resume_or_Rethrow"];
    let looks = [
        "_Unwind_Backtrace",
        "unw_step",
        "__unw_step",
        "_ULx86_64_step",
        "_Ux86_64_step",
        "unw_backtrace",
        "backtrace",
    ];
    let throws = throws.map(|name| (name, GuardKind::Unwind)).into_iter();
    for (name, kind) in throws.chain(looks.map(|name| (name, GuardKind::Backtrace))) {
        // The cheapest place for a probe is behind the first instruction.
        check_code(&function(name, body), &[(name, 4, kind)]);
    }
    check_code(&function("_dl_debug_state", "ret"), &[("_dl_debug_state", 0, GuardKind::Load)]);
    // What only goes on with an unwinding, or asks about it, is not.
    check_code(&function("_Unwind_GetIP", body), &[]);
    check_code(&function("f", "call _Unwind_RaiseException@plt\nret"), &[]);
}

#[test]
fn switches_are_guarded_by_name() {
    for name in [
        "swapcontext",
        "setcontext",
        "jump_fcontext",
        "ontop_fcontext",
        "co_switch",
        "coro_transfer",
    ] {
        check_code(&function(name, "nop\nret"), &[(name, 0, GuardKind::Switch)]);
        check_code(&function("f", &format!("call {name}@plt\nret")), &[]);
    }
    for name in ["makecontext", "make_fcontext", "sigaltstack"] {
        check_code(&function(name, "nop\nret"), &[]);
    }
}

/// The first instruction of the function is guarded, too: some copy their stack before they leave.
#[test]
fn switches_are_guarded_by_instruction() {
    let push = "push %rbp\n.cfi_def_cfa_offset 16\n";
    let pop = "pop %rbp\n.cfi_def_cfa_offset 8\nret";
    let entry = ("f", 0, GuardKind::Switch);
    let text = function("f", &format!("{push}mov %rsp, (%rdi)\nmov (%rsi), %rsp\n{pop}"));
    check_code(&text, &[entry, ("f", 4, GuardKind::Switch)]);
    let text = function("f", &format!("{push}add %rax, %rsp\n{pop}"));
    check_code(&text, &[entry, ("f", 1, GuardKind::Switch)]);
    // With a prefix.
    let text = function("f", &format!("{push}mov %fs:0x40, %rsp\n{pop}"));
    check_code(&text, &[entry, ("f", 1, GuardKind::Switch)]);
    // Both are one.
    check_code(&function("f", "xchg %rsp, (%rdi)\nret"), &[entry]);
    // Without unwind entry, with and without a size.
    let bare = ".text\n.globl f\n.type f, @function\nf: push %rbp\nmov (%rsi), %rsp\nret\n";
    check_code(bare, &[entry, ("f", 1, GuardKind::Switch)]);
    check_code(&format!("{bare}.size f, .-f\n"), &[entry, ("f", 1, GuardKind::Switch)]);
}

#[test]
fn restored_stacks_need_no_guard() {
    let body = "push %rbx\n.cfi_def_cfa_offset 16\nmov %rsp, %rbx\nand $-64, %rsp\n\
                mov %rbx, %rsp\npop %rbx\n.cfi_def_cfa_offset 8\nret";
    check_code(&function("f", body), &[]);
    check_code(&function("siglongjmp", "nop\nmov %r8, %rsp\njmp *%rdx"), &[]);
}

/// A probe on bytes that are no instruction would change what the program computes.
#[test]
fn what_may_be_data_is_not_probed() {
    // `mov %rsi, %rsp` as a part of a constant.
    let constant = ".byte 0x48, 0xb8, 0x48, 0x89, 0xf4, 0x90, 0x90, 0x90, 0x90, 0x90\nret";
    check_code(&function("f", constant), &[]);
    let bare = format!(".text\n.globl f\n.type f, @function\nf: {constant}\n.size f, .-f\n");
    check_code(&bare, &[]);
    let unclear = "may switch stacks at 0x";
    // Behind the end of a function without an unwind entry.
    let data = ".text\n.globl f\n.type f, @function\nf: lea 1f(%rip), %rax\nret\n\
                1: .byte 0x48, 0x89, 0xf4\n.size f, .-f\n";
    check_refusal(&ASSEMBLER, "assembler", data, unclear);
}

/// Between functions lie tables, and functions that no table shows.
#[test]
fn what_nothing_refers_to_is_data() {
    // Small numbers in headers could be addresses of the first page.
    let hidden = function("e", ".fill 0x1fff, 1, 0x90\nret")
        + ".text\n.balign 16\n1: nop\nmov (%rsi), %rsp\nret\n";
    check_code(&hidden, &[]);
    // A call from a function shows that it is code.
    let called = hidden.clone() + &function("f", "call 1b\nret");
    let Some(built) = build(&ASSEMBLER, "assembler", &called) else { return };
    let found = of(&built.path).expect("it can be guarded");
    let [entry, switch] = &found.sites[..] else { panic!("{:?}", found.sites) };
    assert_eq!(switch.offset, entry.offset + 1);
    // An address may be one of data.
    let taken = hidden.clone() + &function("f", "lea 1b(%rip), %rax\nret");
    check_refusal(&ASSEMBLER, "assembler", &taken, "may switch stacks at 0x");
    let pointer = hidden.clone() + ".data\n.quad 1b\n";
    check_refusal(&ASSEMBLER, "assembler", &pointer, "may switch stacks at 0x");
    // A table with bytes that are no code in front.
    let table =
        hidden.replace("1: nop", "1: .byte 6, 6, 6, 6") + &function("f", "lea 1b(%rip), %rax\nret");
    check_code(&table, &[]);
}

/// libsodium's hand-written code aligns its frame so. Nothing but a table leads to it.
#[test]
fn a_frame_that_is_given_back_is_no_switch() {
    let frame = "mov %rsp, %r11\nand $31, %r11\nadd $512, %r11\nsub %r11, %rsp\n\
                 mov %r11, 416(%rsp)\nmov %r12, 424(%rsp)\ncmp $0, %rdi\njbe 2f\n\
                 mov %rdi, %r11\nmovq $0, 408(%rsp)\n2: mov 416(%rsp), %r11\n\
                 mov 424(%rsp), %r12\nadd %r11, %rsp\nxor %rax, %rax\nret\n";
    let by_table = |code: &str| {
        function("e", ".fill 0x1fff, 1, 0x90\nret")
            + &format!(".text\n.balign 16\n1: {code}.data\n.quad 1b\n")
    };
    check_code(&by_table(frame), &[]);
    check_code(&function("f", frame), &[]);
    for (what, by) in [
        // Another amount, another place, or none.
        ("mov 416(%rsp), %r11", "mov 424(%rsp), %r11"),
        ("mov 416(%rsp), %r11", "mov 416(%rsi), %r11"),
        ("add %r11, %rsp", "add %r10, %rsp"),
        ("mov %r11, 416(%rsp)", "mov %r10, 416(%rsp)"),
        ("2: mov 416(%rsp), %r11", "mov 416(%rsp), %r11\n2: nop"),
        ("mov 424(%rsp), %r12", "mov 424(%rsp), %r11"),
        // The place is overwritten, or another one by then.
        ("movq $0, 408(%rsp)", "movq $0, 416(%rsp)"),
        ("movq $0, 408(%rsp)", "movups %xmm0, 408(%rsp)"),
        ("movq $0, 408(%rsp)", "push %rdi"),
        ("movq $0, 408(%rsp)", "mov %rax, (%rsp, %rdi)"),
        // The frame may be anywhere.
        ("and $31, %r11", "and $-32, %r11"),
        ("add $512, %r11", "add $0x1000000, %r11"),
        ("mov %rsp, %r11", "mov %rsi, %r11"),
        // The function goes on.
        ("xor %rax, %rax\nret", "jmp 2b"),
    ] {
        let code = by_table(&frame.replacen(what, by, 1));
        check_refusal(&ASSEMBLER, "assembler", &code, "may switch stacks at 0x");
    }
}

#[test]
fn what_carries_no_probe_cannot_be_guarded() {
    let text = function("f", "nop\n.byte 0x2e\nmov (%rsi), %rsp\nret");
    check_refusal(&ASSEMBLER, "assembler", &text, "switches stacks at 0x");
    let text = function("_Unwind_Backtrace", "vpor %xmm0, %xmm1, %xmm0\nret");
    let why = "has no place for a guard in _Unwind_Backtrace: no probe fits its first instruction";
    check_refusal(&ASSEMBLER, "assembler", &text, why);
}

const MAKES_STACKS: &str = "#define _GNU_SOURCE\n#include <setjmp.h>\n#include <ucontext.h>\n\
    extern jmp_buf b; void f(void) { longjmp(b, 1); }\n";

/// OpenSSL and QEMU make a stack with `makecontext` and come back to it with `longjmp`.
#[test]
fn jumps_of_an_object_that_makes_stacks_are_guarded() {
    let makes = format!("{MAKES_STACKS}void g(ucontext_t *c) {{ makecontext(c, f, 0); }}\n");
    for flags in ["-fcf-protection=full", "-fcf-protection=none"] {
        for binding in ["-Wl,-z,lazy", "-Wl,-z,now"] {
            let compiler = ["gcc", "-shared", "-fPIC", flags, binding];
            let Some(built) = build(&compiler, "c", &makes) else { return };
            let found = of(&built.path).expect("it can be guarded");
            let [site] = &found.sites[..] else { panic!("{flags} {binding}: {:?}", found.sites) };
            assert_eq!(site.kind, GuardKind::Switch);
            let at = Names::of(&built.path);
            assert!(at.at(site.offset)[0].0.starts_with(".plt"), "{:?}", at.at(site.offset));
            let code = std::fs::read(&built.path).unwrap();
            let code = &code[usize::try_from(site.offset).unwrap()..];
            let starts: [&[u8]; 3] = [b"\xf3\x0f\x1e\xfa", b"\xff\x25", b"\xf2\xff\x25"];
            assert!(starts.iter().any(|start| code.starts_with(start)), "{:x?}", &code[..8]);
        }
    }
    let Some(plain) = build(&["gcc", "-shared", "-fPIC"], "c", MAKES_STACKS) else { return };
    assert_eq!(of(&plain.path), Ok(Guards::default()));
    let no_stub = ["gcc", "-shared", "-fPIC", "-fno-plt"];
    check_refusal(&no_stub, "c", &makes, "changes stacks with longjmp, which cannot be guarded");
}

#[test]
fn runtimes_that_walk_their_own_stacks_are_not_guarded() {
    for (symbol, runtime, shown) in [
        ("_ZN2v88internal7Isolate4InitEv", "V8", "v8::internal"),
        ("JNI_CreateJavaVM", "a Java virtual machine", "JNI_CreateJavaVM"),
        ("mono_jit_init", "Mono", "mono_jit_init"),
        ("coreclr_initialize", ".NET", "coreclr_initialize"),
        ("caml_startup", "OCaml", "caml_startup"),
    ] {
        let text = function(symbol, "nop\nret");
        let why = format!("walks its own stacks ({runtime}, by its symbol {shown})");
        check_refusal(&ASSEMBLER, "assembler", &text, &why);
        check_code(&function("f", &format!("call {symbol}@plt\nret")), &[]);
    }
    let go = function("f", "nop\nret") + ".section .go.buildinfo,\"a\"\n.byte 0\n";
    check_refusal(&ASSEMBLER, "assembler", &go, "walks its own stacks (Go)");
}

const THROWS: &str = "#include <stdio.h>\nint main(int c, char **v) {\n\
    try { if (c) throw 7; } catch (int x) { printf(\"%d\\n\", x); } }\n";

#[test]
fn a_static_program_shows_its_unwinder_or_is_not_guarded() {
    for flags in [&["g++", "-static"][..], &["g++", "-static-libgcc", "-static-libstdc++"]] {
        let Some(built) = build(flags, "c++", THROWS) else { continue };
        let (names, found) = (Names::of(&built.path), of(&built.path).expect("it can be guarded"));
        let has = |name: &str| {
            found.sites.iter().any(|site| names.at(site.offset).iter().any(|it| it.0 == name))
        };
        assert!(has("_Unwind_RaiseException") && has("_Unwind_ForcedUnwind"), "{flags:?}");
        let stripped = [flags, &["-s"]].concat();
        check_refusal(&stripped, "c++", THROWS, "contains an unwinder that no symbol shows");
    }
    let Some(dynamic) = build(&["g++", "-s"], "c++", THROWS) else { return };
    assert_eq!(of(&dynamic.path).map(|found| found.sites), Ok(Vec::new()));
}

#[test]
fn system_libraries() {
    let folder = Path::new("/usr/lib/x86_64-linux-gnu");
    let library = |name: &str| Some(folder.join(name)).filter(|path| path.exists());
    if let Some(path) = library("libc.so.6") {
        let expected = ["setcontext", "swapcontext"].map(|name| (name, GuardKind::Switch));
        check_names(&path, &[&expected[..], &[("backtrace", GuardKind::Backtrace)]].concat());
    }
    let path = library("libgcc_s.so.1");
    if let Some(path) = path.or_else(|| Some("/lib/x86_64-linux-gnu/libgcc_s.so.1".into())) {
        let unwinders = [
            ("_Unwind_RaiseException", GuardKind::Unwind),
            ("_Unwind_ForcedUnwind", GuardKind::Unwind),
            ("_Unwind_Resume_or_Rethrow", GuardKind::Unwind),
            ("_Unwind_Backtrace", GuardKind::Backtrace),
        ];
        check_names(&path, &unwinders);
    }
    if let Some(path) = library("libstdc++.so.6") {
        check_names(&path, &[]);
    }
    if let Some(path) = library("libcrypto.so.3") {
        let (names, found) = (Names::of(&path), of(&path).expect("it can be guarded"));
        let stub = |offset| names.at(offset)[0].0.starts_with(".plt");
        let stubs = found.sites.iter().filter(|it| stub(it.offset) && it.kind == GuardKind::Switch);
        assert_eq!(stubs.count(), 1, "{found:?}");
    }
}

#[track_caller]
fn check_names(path: &Path, expected: &[(&str, GuardKind)]) {
    if !path.exists() {
        return println!("skipped: {} is not here", path.display());
    }
    let (names, found) = (Names::of(path), of(path).expect("it can be guarded"));
    assert_eq!(found.sites.len(), expected.len(), "{}: {:?}", path.display(), found.sites);
    for (name, kind) in expected {
        let bare = |it: &str| it.split('@').next() == Some(*name);
        let is_it = |offset| names.at(offset).iter().any(|it| bare(it.0) && it.1 < 16);
        assert!(found.sites.iter().any(|it| is_it(it.offset) && it.kind == *kind), "{name}");
    }
}

/// Any objects, named in `CTRACE_SURVEY`, separated by colons.
#[test]
#[ignore = "for people: lists the guards of the objects named in CTRACE_SURVEY"]
fn named_objects() {
    for path in std::env::var("CTRACE_SURVEY").unwrap_or_default().split(':') {
        let path = Path::new(path);
        let begun = std::time::Instant::now();
        match of(path) {
            Ok(found) => {
                println!("{}: {} sites, {:?}", path.display(), found.sites.len(), begun.elapsed());
                let names = Names::of(path);
                for site in &found.sites {
                    println!("  {:#x} {:?} {:?}", site.offset, site.kind, names.at(site.offset));
                }
            }
            Err(why) => println!("{} {why}", path.display()),
        }
    }
}
