//! The kernel door says what it cannot do, and what this machine is.

use crate::support::{BINARY, Session, site};
use ctrace_common::Cookie;
use ctrace_core::units::Pid;
use ctrace_user::testing::bpf::{BpfError, Features, LinkChoice, LinkKind, Role, Site};
use std::path::Path;

#[test]
fn what_cannot_be_attached_says_why() {
    let Some(session) = Session::start(false) else { return };
    let attach = |path: &str, pid, offset| {
        let mut site = site("f", Cookie::plain(0));
        site.offset = offset;
        session
            .kernel
            .attach(Path::new(path), pid, Role::Function, &[site], LinkChoice::Auto, false)
            .unwrap_err()
    };
    let target = BINARY.path.to_str().unwrap();
    let f = BINARY.offset("f");
    assert!(matches!(attach("/no/such/file", None, f), BpfError::NoFile { .. }));
    assert!(matches!(attach("/usr", None, f), BpfError::NotAFile { .. }));
    let error = attach(target, Some(Pid(4_194_000)), f);
    assert!(matches!(error, BpfError::NoProcess { pid: 4_194_000 }), "{error}");
    let error = attach(target, None, 1 << 40);
    assert!(matches!(error, BpfError::Refused { .. }), "{error}");
    let sites = [f, 1 << 40, BINARY.offset("g")]
        .map(|offset| Site { offset, ..site("f", Cookie::plain(0)) });
    let error = session
        .kernel
        .attach(&BINARY.path, None, Role::Entry, &sites, LinkChoice::Auto, false)
        .unwrap_err();
    let blamed = |place| place == 1 << 40;
    assert!(matches!(error, BpfError::Refused { place: Some(at), .. } if blamed(at)), "{error}");
    assert!(matches!(session.kernel.rings(), Err(BpfError::RingsTaken)));
}

#[test]
fn diagnostics_have_one_reader() {
    let Some(mut session) = Session::start(false) else { return };
    session.kernel.diagnostics().unwrap().flush();
    assert!(matches!(session.kernel.diagnostics(), Err(BpfError::Diagnostics { .. })));
}

#[test]
fn this_machine_can_do_what_it_does() {
    if Session::start(false).is_none() {
        return;
    }
    let features = Features::probe();
    assert!(features.perf_link.works, "{features:?}");
    assert!(features.btf.works && features.ring_buffer.works && features.programs.works);
    if (features.version.major, features.version.minor) >= (6, 13) {
        assert!(features.session_link.works && features.multi_link.works, "{features:?}");
        assert!(features.semaphores.works, "{features:?}");
        assert_eq!(features.link, Some(LinkKind::Session));
    }
}
