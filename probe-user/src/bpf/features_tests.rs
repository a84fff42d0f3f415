use super::{super::sys::fake, *};

#[test]
fn nops_are_told_apart() {
    let answer = |errno| nop(&io::Error::from_raw_os_error(errno));
    assert_eq!(answer(libc::ENXIO), Nop::Nop5);
    assert_eq!(answer(libc::EPROTO), Nop::Nop10);
    assert_eq!(answer(libc::ENOSYS), Nop::Emulated);
}

#[test]
fn offsets_come_from_mappings_of_files() {
    let maps = "\
55d0c0a00000-55d0c0a01000 r--p 00000000 fe:00 12 /bin/x
55d0c0a01000-55d0c0a03000 r-xp 00001000 fe:00 12 /bin/x
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]
";
    assert_eq!(offset_of(maps, 0x55d0_c0a0_1010), Some(0x1010));
    assert_eq!(offset_of(maps, 0x55d0_c0a0_3000), None);
    assert_eq!(offset_of(maps, 0x7ffd_0000_0010), None);
}

#[test]
fn its_own_code_is_found() {
    assert_ne!(Here::find().unwrap().offset, 0);
}

/// Returns the answer where the kernel refuses a link to a folder with `errno`.
fn known_where_folders_give(errno: i32) -> bool {
    let _fake = fake::Fake::new(move |call| match call {
        sys::Syscall::Bpf { command: 28, .. } => fake::error(errno),
        _ => fake::fd(),
    });
    assert_eq!(knows(LinkKind::Session), knows(LinkKind::Multi));
    knows(LinkKind::Multi)
}

#[test]
fn a_kernel_knows_the_links_whose_path_it_looks_at() {
    assert!(known_where_folders_give(libc::EBADF));
    assert!(!known_where_folders_give(libc::EINVAL));
    assert!(!known_where_folders_give(ENOTSUPP));
}

#[test]
fn want_of_rights_says_nothing_about_the_kernel() {
    assert!(known_where_folders_give(libc::EPERM));
    let _fake = fake::Fake::failing(libc::EPERM);
    assert!(knows(LinkKind::Session));
}

#[test]
fn a_kernel_that_refuses_the_program_does_not_know_the_link() {
    let _fake = fake::Fake::failing(libc::EINVAL);
    assert!(!knows(LinkKind::Session));
}

#[test]
fn a_machine_that_can_do_nothing_says_why() {
    let _fake = fake::Fake::failing(libc::EPERM);
    let features = Features::probe();
    assert_eq!(features.link, None);
    for support in [&features.session_link, &features.multi_link, &features.ring_buffer] {
        assert_eq!(support.reason.as_deref(), Some("no permission"));
    }
    assert_eq!(features.nop, Nop::Emulated);
    serde_json::to_string(&features).unwrap();
}
