//! USDT probes: each is a place in the code, a note about it, and a semaphore.
//!
//! The semaphore has the same name as in other languages' tools, `provider_name_semaphore`, weak
//! and hidden. All places of a probe in one object share it, and `usdt_enabled!` sees it. The
//! arguments lie in memory behind one register, so that twelve of them fit whatever registers the
//! compiler needs.
//!
//! `.stapsdt.base` lies with the code, unlike in sys/sdt.h. perf computes the distance between an
//! address and its file offset from that section, and with lld this distance differs for data.

/// A USDT probe: `usdt!(provider, name, argument, …)`, with up to 12 arguments.
///
/// ```
/// ctrace_marker::usdt!(shop, checkout, 3_u32, "text".as_ptr());
/// ```
///
/// While nobody is attached, it costs a comparison: the arguments are not computed, and the place
/// is not reached. Tools must raise the semaphore, as bpftrace, perf, gdb and SystemTap do.
/// Arguments are integers, `bool` or pointers ([`ProbeArg`](crate::ProbeArg)). Each arrives as 64
/// bits.
#[macro_export]
macro_rules! usdt {
    ($provider:ident, $name:ident $(, $argument:expr)* $(,)?) => {
        if $crate::usdt_enabled!($provider, $name) {
            let arguments: &[u64] = &[$( $crate::ProbeArg::bits($argument) ),*];
            $crate::__usdt_place!(
                $provider, $name, arguments, [] [$( ($argument) )*]
                [0 8 16 24 32 40 48 56 64 72 80 88]
            );
        }
    };
}

/// Returns whether a tool is attached to a probe. Check this before preparing costly arguments.
///
/// ```
/// if ctrace_marker::usdt_enabled!(shop, checkout) {
///     // …
/// }
/// ```
#[macro_export]
macro_rules! usdt_enabled {
    ($provider:ident, $name:ident) => {{
        let mut enabled = false;
        // SAFETY: reads a word that is emitted here into writable data.
        unsafe {
            ::core::arch::asm!(
                ::core::concat!(
                    "cmp word ptr [rip + ",
                    ::core::stringify!($provider), "_", ::core::stringify!($name),
                    "_semaphore], 0"
                ),
                "jne {yes}",
                $crate::__usdt_semaphore!(
                    ::core::stringify!($provider), ::core::stringify!($name)
                ),
                yes = label { enabled = true; },
                options(readonly, nostack),
            );
        }
        enabled
    }};
}

/// The aligned place in the code. It has one nop for each kind that a kernel may probe best.
#[doc(hidden)]
#[macro_export]
macro_rules! __usdt_place {
    ($provider:ident, $name:ident, $arguments:ident, [$($text:tt)*] [] [$($offset:tt)*]) => {
        // SAFETY: executes nops. No `nostack`: a probe on the 5-byte nop makes the kernel write
        // below the stack pointer, so nothing may be there.
        unsafe {
            ::core::arch::asm!(
                ".balign 16",
                "770:",
                ".byte 0x90",
                ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
                ".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00",
                $crate::__usdt_note!(
                    "770b",
                    ::core::stringify!($provider),
                    ::core::stringify!($name),
                    ::core::concat!(
                        ::core::stringify!($provider), "_", ::core::stringify!($name), "_semaphore"
                    )
                    $($text)*
                ),
                "/* {at} */",
                at = in(reg) $arguments.as_ptr(),
                options(readonly, preserves_flags),
            );
        }
    };
    // The first argument has no blank before it.
    ($provider:ident, $name:ident, $arguments:ident, [] [$first:tt $($rest:tt)*] [$at:tt $($offset:tt)*]) => {
        $crate::__usdt_place!(
            $provider, $name, $arguments, [, "8@", $at, "(%{at})"] [$($rest)*] [$($offset)*]
        )
    };
    ($provider:ident, $name:ident, $arguments:ident, [$($text:tt)+] [$first:tt $($rest:tt)*] [$at:tt $($offset:tt)*]) => {
        $crate::__usdt_place!(
            $provider, $name, $arguments, [$($text)+, " 8@", $at, "(%{at})"] [$($rest)*] [$($offset)*]
        )
    };
    ($provider:ident, $name:ident, $arguments:ident, [$($text:tt)*] [$($rest:tt)+] []) => {
        ::core::compile_error!("a USDT probe has at most 12 arguments")
    };
}

/// The assembly of a semaphore, unless this object has it already.
#[doc(hidden)]
#[macro_export]
macro_rules! __usdt_semaphore {
    ($provider:expr, $name:expr) => {
        ::core::concat!(
            ".ifndef ",
            $provider,
            "_",
            $name,
            "_semaphore\n",
            ".pushsection .probes,\"awR\",@progbits\n",
            ".balign 2\n",
            ".weak ",
            $provider,
            "_",
            $name,
            "_semaphore\n",
            ".hidden ",
            $provider,
            "_",
            $name,
            "_semaphore\n",
            ".type ",
            $provider,
            "_",
            $name,
            "_semaphore, @object\n",
            ".size ",
            $provider,
            "_",
            $name,
            "_semaphore, 2\n",
            $provider,
            "_",
            $name,
            "_semaphore: .short 0\n",
            ".popsection\n",
            ".endif\n",
            $crate::__probes_page!()
        )
    };
}

/// The assembly that gives the semaphores a file page of their own, once per program or library: an
/// unused semaphore that is aligned to a page. The kernel raises a semaphore in the first writable
/// mapping of its page. With lld the segment before the data shares a page with it, and is writable
/// while the program is loaded.
#[doc(hidden)]
#[macro_export]
macro_rules! __probes_page {
    () => {
        ".ifndef ctrace_probes_page
         .pushsection .probes,\"awGR\",@progbits,ctrace_probes_page,comdat
         .p2align 12
         .weak ctrace_probes_page
         .hidden ctrace_probes_page
         .type ctrace_probes_page, @object
         .size ctrace_probes_page, 2
         ctrace_probes_page: .short 0
         .popsection
         .endif\n"
    };
}

/// The assembly of a note about the place with this label.
#[doc(hidden)]
#[macro_export]
macro_rules! __usdt_note {
    ($label:expr, $provider:expr, $name:expr, $semaphore:expr $(, $text:expr)*) => {
        ::core::concat!(
            ".pushsection .note.stapsdt,\"\",@note\n",
            ".balign 4\n",
            ".long 772f - 771f, 774f - 773f, 3\n",
            "771: .asciz \"stapsdt\"\n",
            "772: .balign 4\n",
            "773: .quad ", $label, ", _.stapsdt.base, ", $semaphore, "\n",
            ".asciz \"", $provider, "\"\n",
            ".asciz \"", $name, "\"\n",
            ".asciz \"" $(, $text)*, "\"\n",
            "774: .balign 4\n",
            ".popsection\n",
            ".ifndef _.stapsdt.base\n",
            ".pushsection .stapsdt.base,\"axGR\",@progbits,.stapsdt.base,comdat\n",
            ".weak _.stapsdt.base\n",
            ".hidden _.stapsdt.base\n",
            "_.stapsdt.base: .space 1\n",
            ".size _.stapsdt.base, 1\n",
            ".popsection\n",
            ".endif\n"
        )
    };
}
