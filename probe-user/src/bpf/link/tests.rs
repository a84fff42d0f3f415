use super::super::sys::{Syscall, fake};
use super::{perf::UprobeUnit, *};
use std::{
    cell::RefCell,
    io::Read as _,
    os::{fd::IntoRawFd as _, unix::net::UnixStream},
    rc::Rc,
};

/// Returns the number of kernel links.
fn made(links: &[LinkHandle]) -> usize {
    links.iter().map(LinkHandle::links).sum()
}

struct Knows(&'static [LinkKind]);

impl Support for Knows {
    fn has(&self, kind: LinkKind) -> bool {
        self.0.contains(&kind)
    }
}

const EVERYTHING: Knows = Knows(&[LinkKind::Session, LinkKind::Multi, LinkKind::Perf]);
const MULTI: Knows = Knows(&[LinkKind::Multi, LinkKind::Perf]);
const PERF: Knows = Knows(&[LinkKind::Perf]);
const NOTHING: Knows = Knows(&[]);

fn sites(count: usize) -> Vec<Site> {
    (0..count)
        .map(|n| Site { offset: n as u64, ref_ctr_offset: 0, cookie: Cookie::plain(n as u32) })
        .collect()
}

fn request(role: Role, sites: &[Site]) -> LinkRequest<'_> {
    LinkRequest { path: Path::new("/bin/true"), pid: Some(7), role, sites, force: false }
}

/// The calls to the kernel, in order: `load TYPE`, `link TYPE`, `return TYPE`, `close`.
#[derive(Clone, Default)]
struct Calls(Rc<RefCell<Vec<String>>>);

impl Calls {
    /// Makes a kernel that fails at its `failing`th link.
    fn record(&self, failing: Option<(usize, i32)>) -> fake::Fake {
        let calls = Rc::clone(&self.0);
        let mut links = 0;
        fake::Fake::new(move |call| {
            let text = match call {
                Syscall::Bpf { command: 5, attr } => format!("load {}", attr.get_u32(68)),
                Syscall::Bpf { command: 28, attr } => {
                    links += 1;
                    if let Some((at, errno)) = failing
                        && at == links
                    {
                        return fake::error(errno);
                    }
                    let what = if attr.get_u32(52) == 1 { "return" } else { "link" };
                    format!("{what} {}", attr.get_u32(8))
                }
                Syscall::PerfEventOpen { attr, .. } => format!("event {}", attr.get_u64(8) & 1),
                Syscall::Close { .. } => {
                    calls.borrow_mut().push("close".into());
                    return Ok(0);
                }
                _ => "other".into(),
            };
            calls.borrow_mut().push(text);
            fake::fd()
        })
    }

    fn take(&self) -> String {
        self.0.take().join(", ")
    }
}

fn attach_with(
    support: &Knows,
    role: Role,
    choice: LinkChoice,
) -> Result<(LinkKind, String), BpfError> {
    let calls = Calls::default();
    let _fake = calls.record(None);
    let sites = sites(2);
    let attachment =
        attach(&Keeper::Itself, &Programs::fake(), support, &request(role, &sites), choice)?;
    assert_eq!(attachment.sites(), 2);
    let kind = attachment.kind();
    attachment.detach().unwrap();
    Ok((kind, calls.take()))
}

#[test]
fn a_session_takes_one_link() {
    let (kind, calls) = attach_with(&EVERYTHING, Role::Function, LinkChoice::Auto).unwrap();
    assert_eq!((kind, &*calls), (LinkKind::Session, "load 57, link 57, close"));
}

#[test]
fn multi_links_attach_returns_first() {
    let (kind, calls) = attach_with(&MULTI, Role::Function, LinkChoice::Auto).unwrap();
    assert_eq!(kind, LinkKind::Multi);
    assert_eq!(calls, "load 48, return 48, load 48, link 48, close, close");
}

#[test]
fn other_roles_take_one_multi_link() {
    for role in [Role::Entry, Role::ExitSite, Role::Point] {
        for choice in [LinkChoice::Auto, LinkChoice::Session, LinkChoice::Multi] {
            let (kind, calls) = attach_with(&EVERYTHING, role, choice).unwrap();
            assert_eq!((kind, &*calls), (LinkKind::Multi, "load 48, link 48, close"));
        }
    }
}

#[test]
fn choices_are_kept() {
    let kind = |support, choice| attach_with(support, Role::Function, choice).map(|it| it.0);
    assert_eq!(kind(&EVERYTHING, LinkChoice::Multi).unwrap(), LinkKind::Multi);
    assert!(matches!(kind(&MULTI, LinkChoice::Session), Err(BpfError::Unsupported { .. })));
    assert!(matches!(kind(&PERF, LinkChoice::Multi), Err(BpfError::Unsupported { .. })));
    assert!(matches!(kind(&NOTHING, LinkChoice::Auto), Err(BpfError::Unsupported { .. })));
}

#[test]
fn perf_links_attach_every_place_and_returns_first() {
    let calls = Calls::default();
    let _fake = calls.record(None);
    let sites = sites(2);
    let request = request(Role::Function, &sites);
    let programs = Programs::fake();
    let links = perf::link_on(
        &UprobeUnit::fake(),
        &Keeper::Itself,
        &programs,
        programs_of(Role::Function),
        &request,
    )
    .unwrap();
    assert_eq!(made(&links), 4);
    assert_eq!(
        calls.take(),
        "load 0, event 1, link 41, event 1, link 41, load 0, event 0, link 41, event 0, link 41"
    );
}

#[test]
fn many_perf_links_need_force() {
    let calls = Calls::default();
    let _fake = calls.record(None);
    let sites = sites(PERF_SITES_LIMIT + 1);
    let mut request = request(Role::Entry, &sites);
    let programs = Programs::fake();
    let link = |request: &LinkRequest<'_>| {
        perf::link_on(
            &UprobeUnit::fake(),
            &Keeper::Itself,
            &programs,
            programs_of(Role::Entry),
            request,
        )
    };
    let error = link(&request).err().unwrap();
    assert!(matches!(error, BpfError::TooManyPerfSites { sites: 501, seconds: 51, .. }), "{error}");
    assert_eq!(calls.take(), "");
    request.force = true;
    assert_eq!(made(&link(&request).unwrap()), sites.len());
}

/// Attaches with the `failing`th link refused. Returns whether all earlier links are gone.
fn is_undone(
    failing: usize,
    attach: impl FnOnce(&Programs, &LinkRequest<'_>) -> Result<(), BpfError>,
) -> bool {
    // Every link is an end of this socket. The other end sees when all are closed.
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut links = 0;
    let fake = fake::Fake::new(move |call| match call {
        Syscall::Bpf { command: 28, .. } => {
            links += 1;
            if links == failing {
                return fake::error(libc::EINVAL);
            }
            Ok(theirs.try_clone()?.into_raw_fd() as usize)
        }
        Syscall::PerfEventOpen { .. } => Ok(theirs.try_clone()?.into_raw_fd() as usize),
        _ => fake::fd(),
    });
    let sites = sites(3);
    attach(&Programs::fake(), &request(Role::Function, &sites)).unwrap_err();
    drop(fake);
    ours.set_nonblocking(true).unwrap();
    matches!(ours.read(&mut [0]), Ok(0))
}

#[test]
fn nothing_stays_half_attached() {
    for failing in 1..=2 {
        assert!(is_undone(failing, |programs, request| {
            attach(&Keeper::Itself, programs, &MULTI, request, LinkChoice::Auto).map(drop)
        }));
    }
    for failing in 1..=6 {
        assert!(is_undone(failing, |programs, request| {
            perf::link_on(
                &UprobeUnit::fake(),
                &Keeper::Itself,
                programs,
                programs_of(Role::Function),
                request,
            )
            .map(drop)
        }));
    }
}

#[test]
fn too_many_places_are_not_even_tried() {
    let _fake = fake::Fake::new(|_| panic!("the kernel was asked"));
    let sites = sites(SITES_LIMIT + 1);
    let request = request(Role::Entry, &sites);
    let error = attach(&Keeper::Itself, &Programs::fake(), &EVERYTHING, &request, LinkChoice::Auto)
        .unwrap_err();
    assert!(matches!(error, BpfError::TooManySites { .. }), "{error}");
}

#[test]
fn no_places_take_no_links() {
    let _fake = fake::Fake::new(|_| panic!("the kernel was asked"));
    let request = request(Role::Function, &[]);
    let attachment =
        attach(&Keeper::Itself, &Programs::fake(), &EVERYTHING, &request, LinkChoice::Auto)
            .unwrap();
    assert_eq!((attachment.sites(), attachment.links.len()), (0, 0));
}

#[test]
fn a_path_with_a_zero_byte_is_no_file() {
    let _fake = fake::Fake::new(|_| fake::fd());
    let sites = sites(1);
    let request = LinkRequest { path: Path::new("a\0b"), ..request(Role::Entry, &sites) };
    let error = attach(&Keeper::Itself, &Programs::fake(), &EVERYTHING, &request, LinkChoice::Auto)
        .unwrap_err();
    assert!(matches!(error, BpfError::NoFile { .. }), "{error}");
}

fn refusal(errno: i32, pid: Option<u32>) -> BpfError {
    let _fake = Calls::default().record(Some((1, errno)));
    let sites = sites(1);
    let request = LinkRequest { pid, ..request(Role::Function, &sites) };
    attach(&Keeper::Itself, &Programs::fake(), &EVERYTHING, &request, LinkChoice::Auto).unwrap_err()
}

#[test]
fn refusals_are_told_in_terms_of_what_was_asked() {
    assert!(matches!(refusal(libc::EPERM, None), BpfError::Permission { .. }));
    assert!(matches!(refusal(libc::EACCES, None), BpfError::Permission { .. }));
    assert!(matches!(refusal(libc::ESRCH, Some(7)), BpfError::NoProcess { pid: 7 }));
    assert!(matches!(refusal(libc::ENOENT, None), BpfError::NoFile { .. }));
    assert!(matches!(refusal(libc::EBADF, None), BpfError::NotAFile { .. }));
    assert!(matches!(refusal(libc::E2BIG, None), BpfError::TooManySites { .. }));
    for (errno, hint) in [
        (libc::EINVAL, "outside the code"),
        (libc::EOPNOTSUPP, "cannot replace"),
        (ENOTSUPP, "cannot replace"),
        (libc::ENOMEM, "out of memory"),
        (libc::ENOSPC, "out of memory"),
        (libc::EMFILE, "ulimit"),
        (libc::EIO, "behind its end"),
        (libc::EINTR, "ctrace doctor"),
    ] {
        let error = refusal(errno, None);
        assert!(matches!(error, BpfError::Refused { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(hint) && text.contains("/bin/true"), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
}

#[test]
fn the_place_to_blame_is_found() {
    for bad in [0, 1, 37, 98, 99] {
        let _fake = fake::Fake::new(move |call| match call {
            Syscall::Bpf { command: 28, attr } => {
                let (offsets, count) = (attr.get_u64(24) as *const u64, attr.get_u32(48));
                // SAFETY: the caller's offsets and their number.
                let offsets = unsafe { std::slice::from_raw_parts(offsets, count as usize) };
                if offsets.contains(&bad) { fake::error(libc::EINVAL) } else { fake::fd() }
            }
            _ => fake::fd(),
        });
        let sites = sites(100);
        let request = request(Role::Function, &sites);
        let error =
            attach(&Keeper::Itself, &Programs::fake(), &EVERYTHING, &request, LinkChoice::Auto)
                .unwrap_err();
        assert!(matches!(error, BpfError::Refused { place: Some(at), .. } if at == bad), "{error}");
        assert!(error.to_string().contains(&format!("/bin/true at offset {bad:#x} ")), "{error}");
    }
}
