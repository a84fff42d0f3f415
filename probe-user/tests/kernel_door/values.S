# A place like a USDT note, with known numbers in registers and memory.
    .text

# void with_values(const long *table, long index, const char *edge)
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

    .data
    .balign 8
    .globl counter
counter:
    .long 0xfedcba98, 1

    .section .note.GNU-stack, "", @progbits
