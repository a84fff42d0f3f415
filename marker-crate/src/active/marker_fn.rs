//! Functions made to be probed.

/// Defines an exported function that begins with nops, on which every uprobe is cheap on any
/// kernel, and then jumps to its body.
///
/// ```
/// ctrace_marker::marker_fn! {
///     /// Called once for each order.
///     pub extern "C" fn order_placed(id: u64, items: u32) -> u64 {
///         id + u64::from(items)
///     }
/// }
/// assert_eq!(order_placed(2, 3), 5);
/// ```
///
/// Any tool that can probe a function by name can use it:
/// `bpftrace -e 'uprobe:./shop:order_placed { print(arg0) }'`. The name is the symbol's name, so it
/// must be the only one in the program. Without a probe it costs a jump.
#[macro_export]
macro_rules! marker_fn {
    ($(#[$attribute:meta])* $visibility:vis extern "C" fn $name:ident(
        $($argument:ident : $type:ty),* $(,)?
    ) $(-> $result:ty)? $body:block) => {
        const _: () = {
            extern "C" fn body($($argument: $type),*) $(-> $result)? $body

            // SAFETY: three nops and a jump leave arguments and stack as they are; the name is the
            // user's to keep unique.
            #[unsafe(naked)]
            #[unsafe(export_name = ::core::stringify!($name))]
            extern "C" fn entry($($argument: $type),*) $(-> $result)? {
                ::core::arch::naked_asm!(
                    ".balign 16",
                    ".byte 0x90",
                    ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
                    ".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00",
                    "jmp {body}",
                    body = sym body,
                )
            }
        };
        // SAFETY: declared as defined above.
        unsafe extern "C" {
            $(#[$attribute])*
            $visibility safe fn $name($($argument: $type),*) $(-> $result)?;
        }
    };
}
