//! Loads the library named by its argument, and calls `check` in it while a thread lives that has
//! used it. Then closes the library and ends that thread. All this twice.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlclose(library: *mut c_void) -> c_int;
    fn dlerror() -> *const c_char;
}

fn main() {
    let path = CString::new(std::env::args().nth(1).unwrap()).unwrap();
    for _ in 0..2 {
        unsafe {
            let library = dlopen(path.as_ptr(), 2);
            assert!(!library.is_null(), "{:?}", CStr::from_ptr(dlerror()));
            let symbol = dlsym(library, c"check".as_ptr());
            assert!(!symbol.is_null());
            let check = std::mem::transmute::<*mut c_void, extern "C" fn() -> usize>(symbol);
            let (checked, wait) = std::sync::mpsc::channel();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let thread = std::thread::spawn(move || {
                checked.send(check()).unwrap();
                let _ = ended.recv();
            });
            let entries = wait.recv().unwrap();
            assert_eq!(dlclose(library), 0);
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            assert!(!cfg!(gone) || !maps.contains(path.to_str().unwrap()), "still there");
            drop(end);
            thread.join().unwrap();
            println!("fine, {entries} entries");
        }
    }
}
