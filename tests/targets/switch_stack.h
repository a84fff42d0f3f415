/* A switch of stacks by a few instructions, without a library. */
#ifndef SWITCH_STACK_H
#define SWITCH_STACK_H
void switch_stack(void **from, void *to);
__asm__(".globl switch_stack\n.type switch_stack, @function\nswitch_stack:\n.cfi_startproc\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".cfi_endproc\n.size switch_stack, .-switch_stack\n");
#endif
