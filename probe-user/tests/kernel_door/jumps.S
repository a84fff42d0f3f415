# Ways out of functions whose taking can be counted.
    .text

# long jump_CC(flags): 1 if the jump out is taken.
    .macro conditional cc
    .globl jump_\cc, site_\cc
    .type jump_\cc, @function
jump_\cc:
    push %rdi
    popfq
site_\cc:
    j\cc is_taken
    xor %eax, %eax
    ret
    .size jump_\cc, . - jump_\cc
    .endm

    .irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
    conditional \cc
    .endr

is_taken:
    mov $1, %eax
    ret

# long by_register(to): to inside_register it stays inside and answers 0.
    .globl by_register, inside_register, end_register
    .type by_register, @function
by_register:
    jmp *%rdi
inside_register:
    xor %eax, %eax
    ret
end_register:
    .size by_register, . - by_register

# long by_table(index): of the three, the last one is outside.
    .globl by_table, site_table, end_table
    .type by_table, @function
by_table:
    lea table(%rip), %rax
site_table:
    jmp *(%rax, %rdi, 8)
first:
    xor %eax, %eax
    ret
second:
    xor %eax, %eax
    ret
end_table:
    .size by_table, . - by_table

# long by_pointer(): always outside.
    .globl by_pointer, end_pointer
    .type by_pointer, @function
by_pointer:
    jmp *pointer(%rip)
end_pointer:
    .size by_pointer, . - by_pointer

    .globl outside
    .type outside, @function
outside:
    mov $1, %eax
    ret
    .size outside, . - outside

    .section .data.rel.ro, "aw"
    .balign 8
table:
    .quad first, second, outside
    .globl pointer
pointer:
    .quad outside

    .section .note.GNU-stack, "", @progbits
