use super::*;

#[test]
fn opens_itself() {
    let process = Process::open(std::process::id()).unwrap();
    assert_eq!(process.exe(), std::env::current_exe().unwrap());
    assert!(!process.command().is_empty());
    assert!(!has_own_root(process.pid()));
    assert!(process.threads().iter().any(|thread| thread.tid == process.pid()));
}

#[test]
fn refuses_what_is_no_program() {
    let error = Process::open(4_194_305).unwrap_err();
    assert!(matches!(error, ProcessError::NoSuchProcess { .. }), "{error}");
    let error = Process::open(0).unwrap_err();
    assert!(matches!(error, ProcessError::NoSuchProcess { .. }), "{error}");
    // In a separate pid namespace, pid 2 need not be kthreadd.
    if fs::read_to_string("/proc/2/comm").is_ok_and(|comm| comm == "kthreadd\n") {
        let error = Process::open(2).unwrap_err();
        assert!(matches!(error, ProcessError::KernelThread { .. }), "{error}");
    }
}

#[test]
fn tells_a_thread_from_its_process() {
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).unwrap();
        receive.recv()
    });
    let (own, other) = (std::process::id(), told.recv().unwrap());
    assert!(Process::open(own).unwrap().threads().iter().any(|thread| thread.tid == other));
    let error = Process::open(other).unwrap_err();
    assert!(matches!(error, ProcessError::IsThread { pid, .. } if pid == own), "{error}");
    drop(send);
    let _ = thread.join();
}

#[test]
fn tells_a_zombie() {
    let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
    let pid = child.id();
    let error = loop {
        match Process::open(pid) {
            Err(ProcessError::Ended { .. }) | Ok(_) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ProcessError::Zombie { .. }), "{error}");
    child.wait().unwrap();
    let error = Process::open(pid).unwrap_err();
    assert!(matches!(error, ProcessError::NoSuchProcess { .. }), "{error}");
}

/// A 32-bit program that waits for signals: `mov $29,%eax; int $0x80; jmp .-4`.
fn tiny_32_bit() -> Vec<u8> {
    const BASE: u32 = 0x0804_8000;
    const HEADERS: u32 = 52 + 32;
    let code = [0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7];
    let size = HEADERS + code.len() as u32;
    let mut bytes = b"\x7fELF\x01\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([2u16, 3].map(u16::to_le_bytes).concat());
    bytes.extend([1, BASE + HEADERS, 52, 0, 0].map(u32::to_le_bytes).concat());
    bytes.extend([52u16, 32, 1, 0, 0, 0].map(u16::to_le_bytes).concat());
    bytes.extend([1, 0, BASE, BASE, size, size, 5, 0x1000].map(u32::to_le_bytes).concat());
    bytes.extend(code);
    bytes
}

#[test]
fn refuses_a_32_bit_program() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("tiny");
    super::super::fixtures::install(&tiny_32_bit(), &program);
    let error = super::super::object::Object::open(&program, &program).unwrap_err();
    assert!(error.to_string().contains("32-bit"), "{error}");
    let Ok(mut child) = std::process::Command::new(&program).spawn() else {
        eprintln!("skipped: this kernel runs no 32-bit programs");
        return;
    };
    let error = Process::open(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(error, Err(ProcessError::Is32Bit { .. })), "{error:?}");
}

#[test]
fn sees_into_another_root() {
    use super::super::{fixtures::compile, object::Object};
    let source =
        "#include <unistd.h>\nvoid waits(void) { pause(); }\nint main() { for (;;) waits(); }";
    let built = compile("gcc -g -static", "c", source);
    built.run("objcopy --only-keep-debug program program.debug");
    built.run("objcopy --strip-all --add-gnu-debuglink=program.debug program");
    let mut chroot = std::process::Command::new("chroot");
    let child = chroot.arg(built.dir()).arg("/program").stderr(std::process::Stdio::null());
    let Ok(mut child) = child.spawn() else { return eprintln!("skipped: no chroot") };
    while !fs::read(proc_path(child.id(), "cmdline")).is_ok_and(|c| c.starts_with(b"/program")) {
        if child.try_wait().unwrap().is_some() {
            return eprintln!("skipped: no right to chroot");
        }
        std::thread::yield_now();
    }
    let process = Process::open(child.id()).unwrap();
    let mapped = process.objects().unwrap();
    let object = Object::open_mapped(&mapped[0]).unwrap();
    let waits = object.functions().iter().find(|function| function.raw() == "waits").cloned();
    let own_root = has_own_root(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(own_root && mapped[0].is_main);
    assert_eq!(mapped[0].path.file_name(), Some("program".as_ref()));
    let line = object.source_line(waits.unwrap().address).unwrap();
    assert_eq!((&*line.file, line.line), ("input.c", Some(2)));
}

#[test]
fn reads_stat_whatever_the_name() {
    let line = b"12 (a) b (\xff) S 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 7777 1 1 0";
    let stat = parse_stat(line).unwrap();
    assert_eq!((stat.comm.as_str(), stat.state, stat.start_time), ("a) b (\u{fffd}", b'S', 7777));
    assert!(parse_stat(b"").is_none());
    assert!(parse_stat(b")(").is_none());
    assert!(parse_stat(b"1 (x) S 1").is_none());
}
