//! Acts as a uprobe on the flush site: replaces the site's 16 bytes by a jump to a function that
//! copies the buffer.

use super::{Page, image};
use std::sync::{
    OnceLock,
    atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*},
};

const PAGES: usize = 60_000;

static PLACE: AtomicPtr<Page> = AtomicPtr::new(std::ptr::null_mut());
static REGISTERED: AtomicU64 = AtomicU64::new(0);
/// Called in each flush after the copy, like a handler that interrupts the flush.
pub(crate) static MEANWHILE: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of used pages. The first page holds it, so that children count on.
fn used() -> &'static AtomicUsize {
    // SAFETY: the place is never unmapped, and its first page is used for nothing else.
    unsafe { &*PLACE.load(Relaxed).cast() }
}

/// Puts the hooks in place, once. Pages are shared memory: a forked child's flushes show too.
pub(crate) fn install() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping.
        let place =
            unsafe { libc::mmap(std::ptr::null_mut(), (1 + PAGES) * 4096, 3, shared, -1, 0) };
        assert_ne!(place, libc::MAP_FAILED);
        PLACE.store(place.cast(), Relaxed);
        let runtime = &image::own().runtime;
        patch(runtime.flush, on_flush as *const () as u64);
        patch(runtime.register, on_register as *const () as u64);
    });
}

fn patch(site: u64, to: u64) {
    let mut code = [0x90_u8; 16];
    code[..2].copy_from_slice(&[0x48, 0xb8]); // mov rax, …
    code[2..10].copy_from_slice(&to.to_le_bytes());
    code[10..12].copy_from_slice(&[0xff, 0xe0]); // jmp rax
    let page = (site & !4095) as *mut libc::c_void;
    // SAFETY: the site is ours to change, is 16 bytes long and is not executed meanwhile: no scope
    // has been on.
    unsafe {
        assert_eq!(libc::mprotect(page, 8192, 7), 0);
        (site as *mut [u8; 16]).write(code);
        assert_eq!(libc::mprotect(page, 8192, 5), 0);
    }
}

extern "C" fn on_flush(buffer: *const Page) {
    let index = used().fetch_add(1, Relaxed);
    assert!(index < PAGES);
    // SAFETY: the buffer is given by the site.
    let mut copy = unsafe { buffer.read_volatile() };
    let magic = std::mem::take(&mut copy.0[0]);
    // SAFETY: `index` is below the number of pages and only ours.
    unsafe { PLACE.load(Relaxed).add(1 + index).write_volatile(copy) };
    // Other processes read the page. Its magic comes last and marks the copy as complete.
    magic_of(1 + index).store(magic, Release);
    let meanwhile = MEANWHILE.load(Relaxed);
    if meanwhile != 0 {
        // SAFETY: a test put such a function there.
        unsafe { std::mem::transmute::<usize, fn(*const Page)>(meanwhile)(buffer) };
    }
}

fn magic_of(index: usize) -> &'static AtomicU64 {
    assert!(index <= PAGES);
    // SAFETY: a page of the place, which is never unmapped; its first word is aligned.
    unsafe { AtomicU64::from_ptr(PLACE.load(Relaxed).add(index).cast()) }
}

extern "C" fn on_register(buffer: *const Page) {
    // SAFETY: the buffer is given by the site.
    let page = unsafe { buffer.read_volatile() };
    assert_eq!(page.magic().to_le_bytes(), *b"ctraceb\x01");
    assert_eq!(page.tid(), super::tid());
    REGISTERED.fetch_add(1, Relaxed);
}

/// Returns the number of calls of the register site.
pub(crate) fn registered() -> u64 {
    REGISTERED.load(Relaxed)
}

/// Returns the pages flushed so far from this number on, if `wanted` accepts their thread. A page
/// that another process is copying is left out.
pub(crate) fn flushed(first: usize, wanted: impl Fn(u32) -> bool) -> Vec<Page> {
    let place = PLACE.load(Relaxed);
    let is_whole = |index: &usize| magic_of(*index).load(Acquire) != 0;
    let pages = (first + 1..=flushed_count()).filter(is_whole).filter_map(|index| {
        // SAFETY: the page was written, and nobody writes it again.
        let page = unsafe { place.add(index) };
        // SAFETY: likewise; a thread's number lies there.
        let tid = unsafe { page.cast::<u32>().add(4).read_volatile() };
        // SAFETY: likewise.
        wanted(tid).then(|| unsafe { page.read_volatile() })
    });
    pages.collect()
}

pub(crate) fn flushed_count() -> usize {
    used().load(Relaxed)
}
