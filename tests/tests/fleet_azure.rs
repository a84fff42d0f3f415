//! Tests uploads to Azure's blobs. The server is a large package, so these run with `cargo xtask test
//! --all` only.

use ctrace_tests::env::Link;
use ctrace_tests::fleet::{parquet, sender, ship_once};
use ctrace_tests::process::run;
use ctrace_tests::tools::azurite::{self, Azurite};
use ctrace_tests::{gate, or_skip};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);

/// A file by one request and one in parts arrive as they are. A wrong key is told, and none of them.
#[test]
#[ignore = "its server is a large package"]
fn blobs_are_whole_and_signatures_those_of_azure() {
    let env = or_skip!(gate::live(Link::Session));
    let sender = or_skip!(sender(&env));
    let program = or_skip!(azurite::find(Path::new(env!("CARGO_TARGET_TMPDIR"))));
    let kept = TempDir::new().expect("a folder");
    let server = Azurite::start(&program, kept.path(), "fleet").expect("starts");
    let spool = TempDir::new().expect("a folder");
    let place = "functions/host=a%2Fb/day=2026-11-30/unit=u";
    std::fs::create_dir_all(spool.path().join(place)).expect("made");
    let files = [("part-1-00.parquet", 1_000), ("part-2-00.parquet", 20 << 20)];
    let content =
        |size: u32| (0..size).map(|at| (at.wrapping_mul(7) >> 3) as u8).collect::<Vec<_>>();
    for (name, size) in files {
        let file = spool.path().join(place).join(name);
        std::fs::write(file, content(size)).expect("written");
    }
    let url = "az://fleet/a/b";
    let ship = |variables: &[(String, String)]| {
        run(&mut ship_once(&sender, spool.path(), url, variables), LIMIT).expect("runs")
    };
    let wrong = server.variables(Some("d3Jvbmcgd3JvbmcgaXQgaXM="));
    let refused = ship(&wrong);
    let why = "failed the store denies it (HTTP 403, AuthorizationFailure)\n";
    assert!(refused.shell_code() == 1 && refused.stdout.ends_with(why), "{}", refused.stdout);
    assert_eq!((parquet(spool.path()), refused.stderr.as_str()), (2, ""));
    let sent = ship(&server.variables(None));
    assert!(sent.shell_code() == 0 && sent.stdout.ends_with("waiting 0 0\n"), "{}", sent.stdout);
    assert_eq!(parquet(spool.path()), 0);
    for (name, size) in files {
        let read = kept.path().join(name);
        server.read(&format!("a/b/{place}/{name}"), &read).expect("it is there");
        assert!(std::fs::read(&read).expect("read") == content(size), "{name} is another one");
    }
}
