/* A change of stacks under the names of Boost.Context, and as that does it: the old stack's top is
 * handed to the other side, and the new place is jumped to, not returned to. */
#ifndef JUMP_FCONTEXT_H
#define JUMP_FCONTEXT_H
#include <stdint.h>

typedef struct {
    void *from, *data;
} transfer;
transfer jump_fcontext(void *to, void *data);
__asm__(".globl jump_fcontext\n.type jump_fcontext, @function\njump_fcontext:\n.cfi_startproc\n"
        "lea -0x30(%rsp), %rsp\n.cfi_adjust_cfa_offset 0x30\n"
        "mov %r12, (%rsp)\nmov %r13, 0x8(%rsp)\nmov %r14, 0x10(%rsp)\nmov %r15, 0x18(%rsp)\n"
        "mov %rbx, 0x20(%rsp)\nmov %rbp, 0x28(%rsp)\n"
        "mov %rsp, %rax\nmov %rdi, %rsp\nmov 0x30(%rsp), %r8\n"
        "mov (%rsp), %r12\nmov 0x8(%rsp), %r13\nmov 0x10(%rsp), %r14\nmov 0x18(%rsp), %r15\n"
        "mov 0x20(%rsp), %rbx\nmov 0x28(%rsp), %rbp\n"
        "lea 0x38(%rsp), %rsp\n.cfi_adjust_cfa_offset -0x38\n"
        "mov %rsi, %rdx\nmov %rax, %rdi\njmp *%r8\n"
        ".cfi_endproc\n.size jump_fcontext, .-jump_fcontext\n");

/* Prepares a stack that ends at `top` and begins with `body`, which never returns. */
static inline void *make_fcontext(char *top, void (*body)(transfer)) {
    uint64_t *place = (uint64_t *)((uintptr_t)top & -16ul) - 9;
    for (int saved = 0; saved < 9; saved++)
        place[saved] = 0;
    place[6] = (uint64_t)body;
    return place;
}
#endif
