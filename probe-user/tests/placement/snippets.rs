//! Hand-written functions, one for each rule, with the line that `list -v` shows for them.

use ctrace_common::GoidPlace;
use ctrace_user::testing::target::{
    Candidate, CodeMap, ExitPlacement, Placement, Policy, Returns, explain, place, place_for,
};
use object::{Object, ObjectSymbol};
use std::process::Command;

pub(crate) const SITES: Policy = Policy {
    returns: Returns::RetSites,
    unwinding_possible: true,
    go: None,
    switches_stacks: false,
    guarded: false,
};
pub(crate) const AUTO: Policy = Policy {
    returns: Returns::Auto,
    unwinding_possible: false,
    go: None,
    switches_stacks: false,
    guarded: false,
};

/// A process with unwinders and switched stacks, all of which are guarded.
pub(crate) const GUARDED: Policy = Policy {
    returns: Returns::Auto,
    unwinding_possible: true,
    go: None,
    switches_stacks: true,
    guarded: true,
};

/// The bodies of `f` and of what else there is, assembled and placed.
pub(crate) fn check(policy: Policy, body: &str, rest: &str, expected: &str) -> Option<Placement> {
    let frame = format!("f: .cfi_startproc\n{body}\n.cfi_endproc\n.size f, .-f\n");
    check_whole(policy, "f", &format!("{frame}{rest}"), expected)
}

/// The same of `f` alone, for a probe that reads its arguments.
pub(crate) fn check_of_arguments(policy: Policy, body: &str, expected: &str) -> Option<Placement> {
    let text = format!("f: .cfi_startproc\n{body}\n.cfi_endproc\n.size f, .-f\n");
    check_placed(policy, "f", &text, expected, true)
}

fn check_whole(policy: Policy, name: &str, text: &str, expected: &str) -> Option<Placement> {
    check_placed(policy, name, text, expected, false)
}

fn check_placed(
    policy: Policy,
    name: &str,
    text: &str,
    expected: &str,
    reads_arguments: bool,
) -> Option<Placement> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("snippet.s");
    let object = folder.path().join("snippet.so");
    let other = "g: .cfi_startproc\nmov $7, %eax\nret\n.cfi_endproc\n.size g, .-g\n";
    let text = format!(
        ".text\n.type f, @function\n.type g, @function\n.globl f\n{text}\n.balign 16\n{other}.section .note.GNU-stack\n"
    );
    std::fs::write(&source, text).expect("the source is written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-nostdlib", "-o"]).arg(&object).arg(&source);
    let Ok(output) = gcc.output() else {
        println!("skipped: no gcc here");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let data = std::fs::read(&object).expect("the object is there");
    let file = object::File::parse(&*data).expect("the object parses");
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).expect("it has a symbol");
    let source = crate::source(&data);
    let map = CodeMap::parse(&source).expect("the object parses");
    let candidate = Candidate { address: symbol.address(), size: symbol.size(), name };
    let placement = place_for(candidate, &map, &policy, reads_arguments);
    assert_eq!(explain(placement.as_ref()), expected);
    placement.ok()
}

#[test]
fn nops_that_the_kernel_rewrites_are_passed() {
    let body = ".byte 0x0f, 0x1f, 0x44, 0, 0\ninc %eax\nret";
    check(SITES, body, "", "entry +5 single-stepped, exit at 1 ret single-stepped");
    let body = ".byte 0x0f, 0x1f, 0x44, 0, 0\npush %rbx\n.cfi_def_cfa_offset 16\npop %rbx\n.cfi_def_cfa_offset 8\nret";
    check(SITES, body, "", "entry +5 emulated, exit at 1 ret single-stepped");
    let body = "f2: .byte 0x0f, 0x1f, 0x44, 0, 0\ninc %r11d\njne f2\nret";
    check(SITES, body, "", "entry +8 emulated (also a loop's head), exit at 1 ret single-stepped");
    let why = "not traced: no probe fits its first instruction: what the kernel makes of such a nop kills forked children";
    check(SITES, ".byte 0x0f, 0x1f, 0x44, 0, 0\nret", "", why);
    check(SITES, ".byte 0x66, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\nret", "", why);
}

#[test]
fn refused_instructions() {
    let body = "lock incl (%rdi)\nje 1f\nxor %eax, %eax\n1: ret";
    check(SITES, body, "", "entry +3 emulated, exit at 1 ret single-stepped");
    let body = "vpor %xmm0, %xmm1, %xmm0\nret";
    let why = "not traced: no probe fits its first instruction: the kernel mistakes AVX instructions for others";
    check(SITES, body, "", why);
    let why = "not traced: no probe fits its first instruction: the instruction cannot be replayed elsewhere";
    check(SITES, "syscall\nret", "", why);
    check(SITES, "pushf\npop %rax\nret", "", why);
    check(
        SITES,
        "xchg %r8, %rax\ntest %eax, %eax\nje 1f\nret\n1: ret",
        "",
        "entry +4 emulated, exit at 2 rets single-stepped",
    );
    check(SITES, "ud2", "", why);
    let why = "not traced: no probe fits its first instruction: the kernel mistakes the exchange with r8 for a nop";
    check_of_arguments(SITES, "xchg %r8, %rax\ntest %eax, %eax\nje 1f\nret\n1: ret", why);
}

#[test]
fn ways_out() {
    check(
        SITES,
        "test %edi, %edi\nje 1f\nret\n1: inc %eax\nrep ret",
        "",
        "entry +2 emulated, exit at 2 rets single-stepped",
    );
    check(
        SITES,
        "inc %eax\n.byte 0xf2\nret",
        "",
        "entry +0 single-stepped, exit at 1 ret single-stepped",
    );
    check(SITES, "inc %eax\njmp g", "", "entry +0 single-stepped, exit at 1 jump emulated");
    let jcc = "test %edi, %edi\ninc %edi\nje g\nret";
    check(
        SITES,
        jcc,
        "",
        "entry +0 single-stepped, exit at 1 ret, 1 conditional jump single-stepped",
    );
    let pointer = "inc %edi\njmp *%rax";
    check(SITES, pointer, "", "entry +0 single-stepped, exit at 1 indirect jump single-stepped");
    let virtual_call = "mov (%rdi), %rax\njmp *16(%rax)";
    check(
        SITES,
        virtual_call,
        "",
        "entry +0 single-stepped, exit at 1 indirect jump single-stepped",
    );
    check(
        SITES,
        "sub $8, %rsp\n.cfi_def_cfa_offset 16\ncall g",
        "",
        "entry +0 single-stepped, never returns",
    );
    check(
        SITES,
        "sub $8, %rsp\n.cfi_def_cfa_offset 16\ncall g\nnop",
        "",
        "entry +0 single-stepped, never returns",
    );
}

#[test]
fn one_instruction_is_entry_and_exit() {
    let why = "exit not seen: its first instruction is a way out of it";
    check(SITES, "ret", "", &format!("entry +0 single-stepped, {why}"));
    check(AUTO, "ret", "", "entry +0 single-stepped, exit by return probe");
    check(SITES, "jmp g", "", &format!("entry +0 emulated, {why}"));
    check(SITES, "endbr64\nret", "", "entry +0 single-stepped, exit at 1 ret single-stepped");
}

const TABLE: &str = ".section .rodata\nt: .long 1f-t, 2f-t, 3f-t\n.text\n";

#[test]
fn switches_are_not_ways_out() {
    let body = format!(
        "{TABLE}cmp $2, %edi\nja 4f\nlea t(%rip), %rdx\nmov %edi, %edi\nmovslq (%rdx,%rdi,4), %rax\n\
         add %rdx, %rax\njmp *%rax\n1: mov $1, %eax\nret\n2: mov $2, %eax\nret\n\
         3: mov $3, %eax\njmp g\n4: xor %eax, %eax\nret"
    );
    check(SITES, &body, "", "entry +3 emulated, exit at 3 rets, 1 jump single-stepped");
    let marked = body.replace("jmp *", "notrack jmp *").replace("cmp $2, %edi", "cmp %esi, %edi");
    check(SITES, &marked, "", "entry +0 single-stepped, exit at 3 rets, 1 jump single-stepped");
    // Nothing bounds the table: what lies between is taken as its targets, the jump as both.
    let unbounded = body.replace("cmp $2, %edi", "cmp %esi, %edi");
    let line = "entry +0 single-stepped, exit at 3 rets, 1 jump, 1 indirect jump single-stepped";
    check(SITES, &unbounded, "", line);
}

#[test]
fn absolute_switch() {
    let body = ".section .rodata\nt: .quad 1f, 2f\n.text\ncmp $1, %edi\nja 2f\nmov %edi, %edi\n\
                sub $8, %rsp\n.cfi_def_cfa_offset 16\nlea t(%rip), %rcx\njmp *(%rcx,%rdi,8)\n\
                1: add $8, %rsp\n.cfi_def_cfa_offset 8\nret\n2: ret";
    check(SITES, body, "", "entry +3 emulated, exit at 2 rets single-stepped");
}

#[test]
fn data_in_text() {
    let body =
        "lea t(%rip), %rax\nmov (%rax,%rdi), %eax\njmp 1f\nt: .byte 0xc3, 0xc3, 0xc3, 0xc3\n1: ret";
    check(SITES, body, "", "entry +10 emulated, exit at 1 ret single-stepped");
    let hidden = body.replace("jmp 1f", "cmp %eax, %edi\nje 1f\njmp *%rcx");
    let why = "entry +12 emulated, exit not seen: there are data among its instructions";
    check(SITES, &hidden, "", why);
    check(SITES, ".byte 0x06, 0x06", "", "not traced: its bytes are data, not instructions");
}

#[test]
fn parts_are_followed() {
    // Without a symbol, with the frame of its function: only the unwind table tells.
    let part = ".section .text.unlikely, \"ax\"\n.type f.cold, @function\npart: .cfi_startproc\n\
                .cfi_def_cfa_offset 16\nincl %eax\ntest %eax, %eax\nje back\nadd $8, %rsp\n\
                .cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.text";
    let body = "sub $8, %rsp\n.cfi_def_cfa_offset 16\ntest %edi, %edi\nja part\nback: add $8, %rsp\n\
                .cfi_def_cfa_offset 8\nret";
    check(SITES, body, part, "entry +0 single-stepped, exit at 2 rets single-stepped");
}

/// A jump that nothing takes: `pg_unreachable()` of postgres.
#[test]
fn jumps_to_the_end_of_a_part_are_dead_ends() {
    let body = "push %rbx\n.cfi_def_cfa_offset 16\ntest %edi, %edi\nja part\npop %rbx\n\
                .cfi_def_cfa_offset 8\nret\n.Lend:";
    let part = ".section .text.unlikely, \"ax\"\npart: .cfi_startproc\n\
                .cfi_def_cfa_offset 16\ncall g\njmp .Lend\n.cfi_endproc\n.text\n";
    let seen = "entry +0 emulated, exit at 1 ret single-stepped";
    check(SITES, body, part, seen);
    check(SITES, body, &part.replace("jmp .Lend", "je .Lend\ncall g"), seen);
    // Another function begins there.
    let next = "h: .cfi_startproc\nnop\nret\n.cfi_endproc\n.size h, .-h";
    let line = "entry +0 emulated, exit at 1 ret, 1 jump single-stepped";
    check(SITES, body, &format!("{part}{next}"), line);
    // Without a frame the jump may leave the function; code without an entry may belong to it.
    let unseen = "entry +0 emulated, exit not seen: it jumps to code that no table describes";
    check(SITES, &body.replace("ja part", "ja .Lend"), "", seen);
    check(SITES, &body.replace("push", "nop\nja .Lend\npush"), "", unseen);
    check(SITES, body, &format!("{part}inc %eax\nret\n"), unseen);
}

#[test]
fn no_functions() {
    let cold = "f.cold: .cfi_startproc\nnop\nret\n.cfi_endproc\n.size f.cold, .-f.cold";
    check_whole(SITES, "f.cold", cold, "not traced: a part of another function, entered by a jump");
    let part = "f: .cfi_startproc\n.cfi_def_cfa_offset 48\nnop\nret\n.cfi_endproc\n.size f, .-f";
    check_whole(SITES, "f", part, "not traced: a part of another function, entered by a jump");
    let start = "_start: .cfi_startproc\nnop\nhlt\n.cfi_endproc";
    check_whole(
        SITES,
        "_start",
        start,
        "not traced: the first code on its stack: it never returns",
    );
    let outermost = "f: .cfi_startproc\n.cfi_undefined rip\nnop\nhlt\n.cfi_endproc";
    check_whole(SITES, "f", outermost, "not traced: the first code on its stack: it never returns");
    let label = "h: .cfi_startproc\nnop\nf: ret\n.cfi_endproc\n.size f, 1";
    check_whole(SITES, "f", label, "not traced: a label inside another function");
    let unsized_ = "f: nop\nret";
    let why = "not traced: its extent is unknown: no size and no unwind entry";
    check_whole(SITES, "f", unsized_, why);
    let setjmp = "__sigsetjmp: .cfi_startproc\nnop\nret\n.cfi_endproc";
    check_whole(SITES, "__sigsetjmp", setjmp, "not traced: returns twice");
    let data = "f: .cfi_startproc\nret\n.cfi_endproc\n.data\nd: .quad 0\n.size d, 8\n.type d, @function\n.text";
    check_whole(SITES, "d", data, "not traced: not in a section of code");
}

#[test]
fn without_unwind_entry_by_its_size() {
    let f = "f: nop\ntest %edi, %edi\nje 1f\ninc %eax\n1: ret\n.size f, .-f";
    check_whole(AUTO, "f", f, "entry +0 emulated, exit at 1 ret single-stepped");
    let switch =
        "f: nop\ncmp %eax, %edi\nje 1f\njmp *%rcx\n1: ret\nnop\ninc %eax\nret\n.size f, .-f";
    let line = "entry +0 emulated, exit not seen: a jump of it cannot be followed";
    check_whole(AUTO, "f", switch, line);
}

#[test]
fn return_address_is_left_to_its_readers() {
    check(
        AUTO,
        "mov (%rsp), %rsi\nret",
        "",
        "entry +0 single-stepped, exit at 1 ret single-stepped",
    );
    check(
        AUTO,
        "nop\npop %rdi\njmp *%rdi",
        "",
        "entry +0 emulated, exit at 1 indirect jump single-stepped",
    );
    let framed = "push %rbp\n.cfi_def_cfa_offset 16\nmov %rsp, %rbp\n.cfi_def_cfa_register rbp\n\
                  mov 8(%rbp), %rax\npop %rbp\n.cfi_def_cfa rsp, 8\nret";
    check(AUTO, framed, "", "entry +0 emulated, exit at 1 ret single-stepped");
    let argument = framed.replace("8(%rbp)", "16(%rbp)");
    check(AUTO, &argument, "", "entry +0 emulated, exit by return probe");
    check(AUTO, "nop\njmp dlsym@plt", "", "entry +0 emulated, exit at 1 jump emulated");
    check(
        AUTO,
        "nop\njmp *dlsym@GOTPCREL(%rip)",
        "",
        "entry +0 emulated, exit at 1 jump single-stepped",
    );
    let line = "entry +0 emulated, exit at 1 ret single-stepped";
    let go = |place| Policy { go: Some(place), ..AUTO };
    check(go(GoidPlace::UNKNOWN), "nop\nret", "", &format!("{line}, goroutines by address"));
    check(go(GoidPlace::AT_152), "nop\nret", "", &format!("{line}, goroutines by id"));
    let forced = Policy { returns: Returns::ReturnProbe, ..SITES };
    check(forced, "nop\nret", "", "entry +0 emulated, exit by return probe");
    check(
        forced,
        "nop\npop %rdi\npush %rdi\nret",
        "",
        "entry +0 emulated, exit at 1 ret single-stepped",
    );
}

#[test]
fn guards_allow_return_probes() {
    let body = "endbr64\npush %rbx\n.cfi_def_cfa_offset 16\npop %rbx\n.cfi_def_cfa_offset 8\nret";
    check(GUARDED, body, "", "entry +4 emulated, exit by return probe, guarded");
    let unguarded = Policy { guarded: false, ..GUARDED };
    check(unguarded, body, "", "entry +4 emulated, exit at 1 ret single-stepped");
    let forced = Policy { returns: Returns::ReturnProbe, ..GUARDED };
    check(forced, body, "", "entry +4 emulated, exit by return probe, guarded");
    let refused = Policy { returns: Returns::RetSites, ..GUARDED };
    check(refused, body, "", "entry +4 emulated, exit at 1 ret single-stepped");
    // A guard needs no way out.
    check(GUARDED, "ret", "", "entry +0 single-stepped, exit by return probe, guarded");
}

/// A function that reads its own return address does so behind the guard, or has none.
#[test]
fn guards_do_not_help_all() {
    let line = "entry +0 single-stepped, exit at 1 ret single-stepped";
    check(GUARDED, "mov (%rsp), %rsi\nret", "", line);
    check(GUARDED, "nop\njmp dlsym@plt", "", "entry +0 emulated, exit at 1 jump emulated");
    // The guard runs before the address of the function itself is replaced.
    let line = "entry +0 single-stepped, exit at 1 ret single-stepped";
    check(GUARDED, "xchg %rsp, (%rdi)\nret", "", line);
    check(
        GUARDED,
        "nop\nmov (%rsi), %rsp\nret",
        "",
        "entry +0 emulated, exit at 1 ret single-stepped",
    );
    check(GUARDED, "nop\njmp jump_fcontext@plt", "", "entry +0 emulated, exit at 1 jump emulated");
    let go = Policy { go: Some(GoidPlace::AT_160), ..GUARDED };
    let line = "entry +0 emulated, exit at 1 ret single-stepped, goroutines by id";
    check(go, "nop\nret", "", line);
    let bare = "f: nop\ninc %eax\nret\n.size f, .-f";
    check_whole(GUARDED, "f", bare, "entry +0 emulated, exit at 1 ret single-stepped");
    for name in ["co_switch", "__unw_step", "_Ux86_64_step"] {
        let text = format!(
            ".type {name}, @function\n{name}: .cfi_startproc\nnop\nret\n.cfi_endproc\n.size {name}, .-{name}"
        );
        check_whole(GUARDED, name, &text, "entry +0 emulated, exit at 1 ret single-stepped");
    }
}

/// A function that is moved away from its return probe goes on with its ways out.
#[test]
fn guarded_functions_know_their_ways_out() {
    let body = "nop\ntest %edi, %edi\nje 1f\nret\n1: inc %eax\njmp g";
    let exit = |placement: Option<Placement>| placement.map(|it| it.exit);
    let moved = exit(check(GUARDED, body, "", "entry +0 emulated, exit by return probe, guarded"));
    let Some(ExitPlacement::Guarded(Ok(sites))) = moved else { return assert!(moved.is_none()) };
    let in_place =
        check(SITES, body, "", "entry +0 emulated, exit at 1 ret, 1 jump single-stepped");
    let Some(ExitPlacement::Sites(expected)) = exit(in_place) else { panic!("it has exits") };
    assert_eq!(sites, expected);
    let unseen =
        check(GUARDED, "ret", "", "entry +0 single-stepped, exit by return probe, guarded");
    let why = "its first instruction is a way out of it".to_owned();
    assert_eq!(exit(unseen), Some(ExitPlacement::Guarded(Err(why))));
}

#[test]
fn what_cannot_be_followed_is_said() {
    check(
        SITES,
        "nop\ninc %eax",
        "",
        "entry +0 emulated, exit not seen: it runs on into the next function",
    );
    check(
        SITES,
        "nop\nlret",
        "",
        "entry +0 emulated, exit not seen: it leaves by an unusual return",
    );
    let lock = "nop\ntest %edi, %edi\nje 1f\n.byte 0xf0\n1: incl (%rdi)\nret";
    check(SITES, lock, "", "entry +0 emulated, exit at 1 ret single-stepped");
    let overlap = "nop\ntest %edi, %edi\nje 1f+1\n1: mov $0xc3c3c3c3, %eax\nret";
    check(SITES, overlap, "", "entry +0 emulated, exit not seen: its instructions overlap");
}

#[test]
fn broken_files_are_errors() {
    assert!(CodeMap::parse(&crate::source(b"")).is_err());
    assert!(CodeMap::parse(&crate::source(b"\x7fELF")).is_err());
    let Ok(data) = std::fs::read("/bin/true") else { return };
    for at in (0..data.len()).step_by(61) {
        let mut broken = data.clone();
        broken[at] ^= 0xff;
        let source = crate::source(&broken);
        let Ok(map) = CodeMap::parse(&source) else { continue };
        for (address, size) in map.symbols().take(50) {
            _ = place(Candidate { address, size, name: "f" }, &map, &AUTO);
        }
        let source = crate::source(&data[..at]);
        let Ok(map) = CodeMap::parse(&source) else { continue };
        _ = place(Candidate { address: 0x2000, size: u64::MAX, name: "f" }, &map, &SITES);
    }
}

/// A function costs bounded time and stack, whatever its file makes of it.
#[test]
fn functions_out_of_all_proportion() {
    let copies = "endbr64\n.rept 60000\nmov %rbx, %rcx\nmov %rcx, %rbx\n.endr\n\
        movslq (%rcx,%rdx,4), %rax\nadd %rbx, %rax\njmp *%rax";
    check(SITES, copies, "", "entry +0 single-stepped, exit at 1 indirect jump single-stepped");
    let large = "nop\n.fill 5 << 20, 1, 0x90\nret";
    check(SITES, large, "", "entry +0 emulated, exit not seen: it is too large");
}
