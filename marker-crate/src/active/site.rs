//! The code of a scope: a comparison, a jump that is not taken, and a call at its target.
//!
//! A dormant scope executes only the first `asm!`. The second lies off the usual path. It calls,
//! and it emits the data that ctrace reads, because there code refers to the entry: a linker that
//! drops the function drops the entry with it. For the same reason each scope's pieces have their
//! own sections (`unique`).
//!
//! Both blocks must find the same semaphore, and so must the compiler's copies of both from
//! inlining or unrolling. So its label contains the scope's number, and the first user in an object
//! defines it (`.ifndef`). Each copy has its own entry and control point, with numeric labels.
//!
//! A dormant scope leaves the tag's other half unset (see `Guard`).

/// A scope: its flags and shape, its name or none, its group or an empty text, its colour or none.
#[doc(hidden)]
#[macro_export]
macro_rules! __scope {
    ($flags:expr, $shape:expr, $name:expr, $group:expr, $colour:expr) => {{
        const TEXTS: $crate::__private::Texts =
            $crate::__private::Texts::new($name, ::core::file!(), $group, $colour);
        const ID: u64 = $crate::__private::id(
            &TEXTS,
            ::core::module_path!(),
            ::core::line!(),
            ::core::column!(),
        );
        if const { $crate::__private::is_off(::core::option_env!("CTRACE_MARKER_OFF"), $group) } {
            $crate::__private::nothing()
        } else {
            let mut tag: u64 = 0;
            let mut sp = ::core::mem::MaybeUninit::<u64>::uninit();
            // SAFETY: reads a word that the block below puts into writable data; leaves for that
            // block or goes on.
            unsafe {
                ::core::arch::asm!(
                    "cmp word ptr [rip + .Lctrace_semaphore_{id}], 0",
                    "jne {on}",
                    id = const ID,
                    on = label {
                        let (entered, at): (u64, u64);
                        // `enter` changes the registers of the win64 convention that may be changed
                        // and no others; the stack is aligned and the red zone unused, as there is no
                        // `nostack`.
                        $crate::__site!(
                            ["lea rax, [rip + 772f]", "call {enter}"],
                            [
                                enter = sym $crate::__private::enter,
                                out("r10") entered,
                                out("r11") at,
                                clobber_abi("win64"),
                            ],
                            [$flags, $shape, 0],
                            TEXTS,
                            ID
                        );
                        tag = entered;
                        sp.write(at);
                    },
                    options(readonly, nostack),
                );
            }
            // SAFETY: `tag` is 0, or both come from `enter`, just now.
            unsafe { $crate::__private::begun(tag, sp) }
        }
    }};
}

/// Code that knows the entry in `ctrace_sites` as `772f`, with its operands; the entry and all that
/// it points to.
#[doc(hidden)]
#[macro_export]
macro_rules! __site {
    ($code:tt, $operands:tt, $head:tt, $texts:expr, $id:expr) => {
        $crate::__site!(
            @chunks $code, $operands, $head, $texts, $id,
            [0 t0, 1 t1, 2 t2, 3 t3, 4 t4, 5 t5, 6 t6, 7 t7, 8 t8, 9 t9, 10 t10, 11 t11, 12 t12,
             13 t13, 14 t14, 15 t15, 16 t16, 17 t17, 18 t18, 19 t19, 20 t20, 21 t21, 22 t22,
             23 t23, 24 t24, 25 t25, 26 t26, 27 t27, 28 t28, 29 t29, 30 t30, 31 t31]
        )
    };
    (
        @chunks [$($code:literal),*], [$($operands:tt)*], [$flags:expr, $shape:expr, $level:expr],
        $texts:expr, $id:expr, [$($index:literal $chunk:ident),*]
    ) => {
        // SAFETY: the operands are those that the code needs. What is emitted elsewhere is data and
        // one `nop` that nothing jumps to.
        unsafe {
            ::core::arch::asm!(
                $($code,)*
                "771:",
                // The entry.
                ".pushsection ctrace_sites,\"a\",@progbits,unique,{section}",
                ".balign 32",
                "772:",
                ".byte 1, {flags}, {shape}, {level}",
                ".long {line}",
                ".if {named}",
                ".long .Lctrace_texts_{id} - .",
                ".else",
                ".long 0",
                ".endif",
                ".long .Lctrace_texts_{id} + {file_at} - .",
                ".if {grouped}",
                ".long .Lctrace_texts_{id} + {group_at} - .",
                ".else",
                ".long 0",
                ".endif",
                ".long .Lctrace_semaphore_{id} - .",
                ".long 773f - .",
                ".long 771b - .",
                ".popsection",
                // The control point.
                ".pushsection .text.ctrace_points,\"ax\",@progbits,unique,{section}",
                "773: nop",
                ".popsection",
                // The semaphore and the texts, once for all copies of the site in this object.
                ".ifndef .Lctrace_semaphore_{id}",
                ".pushsection .probes,\"aw\",@progbits,unique,{section}",
                ".balign 2",
                ".Lctrace_semaphore_{id}: .short 0",
                ".popsection",
                ".pushsection .rodata.ctrace_texts,\"a\",@progbits,unique,{section}",
                ".Lctrace_texts_{id}:",
                $( ::core::concat!(
                    ".if {used} > ", $index, "\n.octa {", ::core::stringify!($chunk), "}\n.endif"
                ), )*
                ".popsection",
                ".endif",
                flags = const $flags | $texts.coloured,
                shape = const $shape,
                level = const $level,
                line = const ::core::line!(),
                id = const $id,
                section = const $crate::__private::section($id),
                named = const $texts.named,
                grouped = const $texts.grouped,
                file_at = const $texts.file_at,
                group_at = const $texts.group_at,
                used = const $texts.used,
                $( $chunk = const $texts.chunks[$index], )*
                $($operands)*
            );
        }
    };
}
