//! Tests which objects switch stacks, and which only restore their own.

use ctrace_user::testing::target::CodeMap;
use std::process::Command;

fn check(compiler: &[&str], suffix: &str, source: &str, expected: bool) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, object) = (folder.path().join(format!("a.{suffix}")), folder.path().join("a.so"));
    std::fs::write(&file, source).expect("the source is written");
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-shared", "-fPIC", "-o"]).arg(&object).arg(&file);
    let Ok(output) = command.output() else {
        return println!("skipped: there is no {}", compiler[0]);
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let data = std::fs::read(&object).expect("the object is there");
    assert_eq!(
        CodeMap::stack_switch(&crate::source(&data)).is_some(),
        expected,
        "{compiler:?} {source}"
    );
}

/// A function with and without unwind entry, and with neither that nor a symbol.
fn check_code(body: &str, expected: bool) {
    for (before, after) in
        [("f: .cfi_startproc", ".cfi_endproc\n.size f, .-f"), ("f:", ".size f, .-f"), ("f:", "")]
    {
        let text = format!(".text\n.globl f\n.type f, @function\n{before}\n{body}\n{after}\n");
        check(&["gcc", "-nostdlib"], "s", &text, expected);
    }
    check(&["gcc", "-nostdlib"], "s", &format!(".text\n{body}\n"), expected);
}

#[test]
fn the_stack_pointer_from_elsewhere() {
    check_code("push %rbp\nmov %rsp, (%rdi)\nmov %rsi, %rsp\npop %rbp\nret", true);
    check_code("mov %rsp, (%rdi)\nmov (%rsi), %rsp\nret", true);
    check_code("mov 0x30(%r12), %rsp\nret", true);
    check_code("mov next(%rip), %rsp\nret\nnext: .quad 0", true);
    check_code("mov %rsp, (%rdi)\nmov %fs:0x40, %rsp\nret", true);
    check_code("xchg %rsp, (%rdi)\nret", true);
    check_code("xchg %rdi, %rsp\nret", true);
    check_code("add %rax, %rsp\nadd %rax, %rbp\nret", true);
}

#[test]
fn the_stack_pointer_of_before() {
    check_code("push %rbx\nmov %rsp, %rbx\nand $-64, %rsp\nmov %rbx, %rsp\npop %rbx\nret", false);
    check_code("push %rbp\nmov %rsp, %rbp\nmov -8(%rbp), %rsp\nleave\nret", false);
    check_code("mov 8(%rsp), %rsp\nret", false);
    check_code("sub %rax, %rsp\nadd $64, %rsp\nlea 8(%r10), %rsp\nret", false);
}

/// `mov %rsi, %rsp` as a part of a constant.
#[test]
fn what_only_looks_like_it() {
    let body = ".byte 0x48, 0xb8, 0x48, 0x89, 0xf4, 0x90, 0x90, 0x90, 0x90, 0x90\nret";
    let text = format!(".text\n.globl f\n.type f, @function\nf:\n{body}\n.size f, .-f\n");
    check(&["gcc", "-nostdlib"], "s", &text, false);
}

#[test]
fn what_compilers_make() {
    const ARRAYS: &str = "void use(char *);\n\
        void f(int n) { for (int i = 1; i < n; i++) { char a[i]; use(a); char b[n - i]; use(b); } }\n\
        void g(int n) { use(__builtin_alloca(n)); { _Alignas(64) char c[64]; use(c); } }\n";
    const JUMPS: &str = "#include <setjmp.h>\nextern jmp_buf b; void use(void);\n\
        int f(void) { if (setjmp(b)) return 1; use(); longjmp(b, 1); }\n";
    const SIGNALS: &str = "#include <signal.h>\nint f(stack_t *s) { return sigaltstack(s, 0); }\n";
    const CONTEXTS: &str = "#include <ucontext.h>\nint f(ucontext_t *a, ucontext_t *b) { return swapcontext(a, b); }\n";
    for compiler in ["gcc", "clang"] {
        for level in ["-O0", "-O1", "-O2", "-Os"] {
            let compiler = &[compiler, level, "-D_GNU_SOURCE"];
            check(compiler, "c", JUMPS, false);
            check(compiler, "c", SIGNALS, true);
            check(compiler, "c", CONTEXTS, true);
            // Others save the stack pointer where one that was switched could be, too.
            if compiler[0] == "gcc" && level != "-O0" {
                check(compiler, "c", ARRAYS, false);
            }
        }
    }
}
