# Places where known values are in registers and memory.
    .text

# Like a USDT note: void with_values(const long *table, long index, const char *edge)
    .globl with_values, site_values
    .type with_values, @function
with_values:
    push %rbx
    push %rbp
    mov %rdi, %rbx
    mov %rsi, %rcx
    mov %rdx, %rbp
    movabs $0x8182838485868788, %rax
    mov $-16, %r11
site_values:
    nop
    pop %rbp
    pop %rbx
    ret
    .size with_values, . - with_values

# const char *labelled(char byte, const char *text, long, long, long, long, double on_stack)
    .globl labelled, ret_labelled
    .type labelled, @function
labelled:
    nop
    lea 1(%rsi), %rax
ret_labelled:
    ret
    .size labelled, . - labelled

    .data
    .balign 8
    .globl counter
counter:
    .long 0xfedcba98, 1

    .section .note.GNU-stack, "", @progbits
