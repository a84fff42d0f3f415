//! The instruction that an entry probe sits on, in hand-written functions.

use crate::snippets::{AUTO, GUARDED, SITES, check, check_of_arguments};
use ctrace_user::testing::target::ExitPlacement;

#[test]
fn probe_moves_past_endbr64_to_push() {
    let body = "endbr64\npush %rbx\n.cfi_def_cfa_offset 16\npop %rbx\n.cfi_def_cfa_offset 8\nret";
    check(SITES, body, "", "entry +4 emulated, exit at 1 ret single-stepped");
    check(AUTO, body, "", "entry +4 emulated, exit by return probe");
}

/// Go's check for room on the stack jumps back to the beginning, on another stack.
#[test]
fn probe_sits_behind_gos_stack_check() {
    let go = ".section .go.buildinfo,\"a\"\n.byte 0\n.text\n";
    let rest = "\npush %rbp\n.cfi_def_cfa_offset 16\nmov %rsp, %rbp\nsub $32, %rsp\nadd $32, %rsp\n\
        pop %rbp\n.cfi_def_cfa_offset 8\nret\n2: call g\njmp 1b";
    let small = format!("1: cmp 0x10(%r14), %rsp\njbe 2f{rest}");
    let ends = "exit at 1 ret single-stepped, goroutines by address";
    check(AUTO, &small, go, &format!("entry +6 emulated, {ends}"));
    let large = format!("1: lea -0x200(%rsp), %r12\ncmp 0x10(%r14), %r12\njbe 2f{rest}");
    check(AUTO, &large, go, &format!("entry +14 emulated, {ends}"));
    // Another program's comparison.
    let line = "entry +4 emulated (also a loop's head), exit by return probe";
    check(AUTO, &small, "", line);
}

#[test]
fn probe_stays_where_a_loop_turns() {
    let body = "endbr64\n1: nop\ndec %edi\njne 1b\nret";
    check(SITES, body, "", "entry +0 single-stepped, exit at 1 ret single-stepped");
    let body = "1: dec %r11d\njne 1b\nret";
    check(SITES, body, "", "entry +3 emulated (also a loop's head), exit at 1 ret single-stepped");
}

#[test]
fn probe_moves_past_what_changes_nothing() {
    let body = "test %rdi, %rdi\nje 1f\nincl (%rdi)\n1: ret";
    check(SITES, body, "", "entry +3 emulated, exit at 1 ret single-stepped");
    let body = "mov $1, %esi\njmp g";
    check(SITES, body, "", "entry +0 single-stepped, exit at 1 jump emulated");
    let body =
        "sub $24, %rsp\n.cfi_def_cfa_offset 32\nadd $24, %rsp\n.cfi_def_cfa_offset 8\nnop\nret";
    check(SITES, body, "", "entry +0 single-stepped, exit at 1 ret single-stepped");
}

/// A probe that reads arguments stays where it was before the argument changed.
#[test]
fn probe_moves_past_what_is_quicker_than_a_single_step() {
    let rest = ", exit at 1 ret single-stepped";
    for (passed, bytes) in [
        ("mov 8(%rdi), %rax\ntest %rax, %rax", 7),
        ("mov f@GOTPCREL(%rip), %rdx", 7),
        ("movl $0, -4(%rsp)\nimul $100, %esi, %r8d", 12),
        ("movups (%rsi), %xmm3", 3),
        ("mov %fs:0x28, %rcx", 9),
    ] {
        let body = format!("{passed}\nje 1f\nincl (%rdi)\n1: ret");
        check(SITES, &body, "", &format!("entry +{bytes} emulated{rest}"));
    }
    // Others may see what the first two write. The next may trap, or take long.
    for stays in ["mov %esi, (%rdi)", "mov %esi, 8(%rsp)", "div %esi", "rep movsb", "cpuid"] {
        let body = format!("{stays}\nje 1f\nincl (%rdi)\n1: ret");
        check(SITES, &body, "", &format!("entry +0 single-stepped{rest}"));
    }
}

/// Entry and exit would share a place where the exit is a probe, too.
#[test]
fn probe_moves_to_the_jump_of_a_wrapper_with_a_return_probe() {
    let body = "mov %rdi, %rsi\nmov 8(%rdi), %rdi\njmp g";
    check(AUTO, body, "", "entry +7 emulated, exit by return probe");
    check(SITES, body, "", "entry +0 single-stepped, exit at 1 jump emulated");
    let guarded = check(GUARDED, body, "", "entry +7 emulated, exit by return probe, guarded");
    let why = "the probe at its entry sits on a way out of it".to_owned();
    let exit = guarded.map(|placement| placement.exit);
    assert!(exit.is_none() || exit == Some(ExitPlacement::Guarded(Err(why))));
    let branch = "test %rdi, %rdi\nje g\nincl (%rdi)\nret";
    check(AUTO, branch, "", "entry +0 single-stepped, exit by return probe");
}

#[test]
fn probe_that_reads_arguments_stays_before_they_change() {
    let body = "test %rsi, %rsi\nmov 8(%rdi), %rdi\nje 1f\nincl (%rdi)\n1: ret";
    let line = "entry +7 emulated, exit at 1 ret single-stepped";
    check(SITES, body, "", line);
    let line = "entry +0 single-stepped, exit at 1 ret single-stepped";
    check_of_arguments(SITES, body, line);
    // Nothing that the probe reads: as glibc's write begins, and a value in the function's own frame.
    for (passed, bytes) in [("cmpb $0, 1f(%rip)", 7), ("mov %rsi, -16(%rsp)\ntest %rsi, %rsi", 8)] {
        let body = format!("{passed}\nje 1f\nincl (%rdi)\n1: ret");
        let line = format!("entry +{bytes} emulated, exit at 1 ret single-stepped");
        check_of_arguments(SITES, &body, &line);
    }
    for stays in [
        "mov %fs:0x28, %rcx",
        "mov %esi, (%rdi)",
        "mov %esi, 8(%rsp)",
        "cmpq $0, (%rdi)",
        "pxor %xmm0, %xmm0",
    ] {
        let body = format!("{stays}\nje 1f\nincl (%rdi)\n1: ret");
        let line = "entry +0 single-stepped, exit at 1 ret single-stepped";
        check_of_arguments(SITES, &body, line);
    }
    // It changes what the argument points to.
    let body = "lock incl (%rdi)\ntest %rdi, %rdi\nje 1f\nincl (%rdi)\n1: ret";
    check(SITES, body, "", "entry +6 emulated, exit at 1 ret single-stepped");
    let why = "not traced: no probe fits its first instruction: the kernel refuses instructions with a segment or lock prefix";
    check_of_arguments(SITES, body, why);
    // A wrapper keeps its way out.
    let body = "mov %rdi, %rsi\nmov 8(%rdi), %rdi\njmp g";
    let line = "entry +0 single-stepped, exit by return probe, guarded";
    let placement = check_of_arguments(GUARDED, body, line);
    assert!(placement.is_none_or(|it| matches!(it.exit, ExitPlacement::Guarded(Ok(_)))));
}

/// As glibc's memmove and mempcpy, where a probe behind the first instruction counts both.
#[test]
fn probe_stays_before_what_other_functions_jump_to() {
    let body = "mov %rdi, %rax\n1: cmp $32, %rdx\njb 2f\nincl (%rdi)\n2: ret";
    check(SITES, body, "", "entry +7 emulated, exit at 1 ret single-stepped");
    let stays = "entry +0 single-stepped, exit at 1 ret single-stepped";
    for jump in ["jmp 1b", "je 1b\nret", "jmp.d32 1b", "je.d32 1b\nret", "call 1b\nret"] {
        let other = format!("h: .cfi_startproc\nlea (%rdi,%rdx), %rax\n{jump}\n.cfi_endproc\n");
        check(SITES, body, &other, stays);
        // No table describes this one.
        check(SITES, body, &format!("lea (%rdi,%rdx), %rax\n{jump}\n"), stays);
        // Far away.
        if jump.contains("d32") || jump.starts_with("call") {
            check(SITES, body, &format!(".skip 100000, 0x90\n{other}"), stays);
        }
    }
}

#[test]
fn probe_stays_before_a_label_without_a_type() {
    let body = "mov $1, %eax\n.globl entry2\nentry2: test %edi, %edi\nje 1f\nincl (%rdi)\n1: ret";
    check(SITES, body, "", "entry +0 single-stepped, exit at 1 ret single-stepped");
}

/// Code that no table describes may lead anywhere.
#[test]
fn probe_stays_where_code_was_not_followed() {
    let body = "mov $3, %eax\n1: test %eax, %eax\njne 2f\nret";
    let rest = "2: dec %eax\njmp 1b\n";
    let why = "entry +0 single-stepped, exit not seen: it jumps to code that no table describes";
    check(SITES, body, rest, why);
}

/// The return address is not in the frame.
#[test]
fn probe_passes_no_write_that_reaches_the_return_address() {
    let body = "movups %xmm0, -8(%rsp)\ntest %edi, %edi\nje 1f\nincl (%rdi)\n1: ret";
    let entry = check(SITES, body, "", "entry +0 single-stepped, exit at 1 ret single-stepped");
    assert!(entry.is_none_or(|it| it.entry.skipped == 0));
    let body = "movups %xmm0, -16(%rsp)\ntest %edi, %edi\nje 1f\nincl (%rdi)\n1: ret";
    check(SITES, body, "", "entry +7 emulated, exit at 1 ret single-stepped");
}
