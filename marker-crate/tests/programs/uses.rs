//! Uses scopes of a library whose runtime is in the library.

unsafe extern "C" {
    #[link_name = "__start_ctrace_sites"]
    static SITES: [u8; 0];
    #[link_name = "__stop_ctrace_sites"]
    static SITES_END: [u8; 0];
}

fn main() {
    let mut entry = &raw const SITES as usize;
    assert!(entry < &raw const SITES_END as usize, "the instances are here");
    while entry < &raw const SITES_END as usize {
        unsafe {
            let field = (entry + 20) as *const i32;
            *((field as usize).wrapping_add_signed(*field as isize) as *mut u16) += 1;
        }
        entry += 32;
    }
    for n in 0..1000_u16 {
        assert_eq!(generic::generic(n), n);
        assert_eq!(generic::inlined(n.into()) + generic::plain(n.into()), 3 * u64::from(n));
    }
    println!("fine");
}
