//! A library without the standard library, so that closing it unloads it.
#![no_std]

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// `core` refers to it; nothing calls it.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[link(name = "c")]
unsafe extern "C" {
    #[link_name = "__start_ctrace_sites"]
    static SITES: [u8; 0];
}

/// Switches its one scope on and leaves events in the thread's buffer.
#[unsafe(no_mangle)]
pub extern "C" fn check() -> usize {
    unsafe {
        let field = (&raw const SITES as usize + 20) as *const i32;
        *((field as usize).wrapping_add_signed(*field as isize) as *mut u16) += 1;
    }
    for _ in 0..300 {
        let _scope = ctrace_marker::scope!("small");
    }
    1
}
