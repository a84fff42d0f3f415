//! The answers about a recording, and its page, before all calls were read.

use super::browser_tests::seen_in;
use super::life_tests::{recording, until};
use super::tests::{Served, of_chunks};
use super::*;
use std::sync::atomic::Ordering;

/// Serves a recording of which so many chunks were read, and no more until its source is told to.
fn drafted(recording: Recording, chunks: usize, folder: Option<PathBuf>) -> (Served, Arc<Source>) {
    let options = Options { port: 0, folder, files: Vec::new(), cache: None };
    let (source, api) =
        of_recording(recording, &options.files, None).expect("there is room for threads");
    source.sketch_until(|read| read >= chunks);
    let server = Server::new(Site::One(api), options).expect("it listens");
    (Served::of(server), source)
}

#[test]
fn a_recording_is_shown_before_all_of_it_was_read() {
    let chunks = Recording::open(of_chunks(400)).expect("a recording");
    let (served, source) = drafted(chunks, 40, None);
    let about = served.json("api/about");
    assert_eq!(
        (&about["reading"]["read"], &about["reading"]["calls"]),
        (&0.into(), &about["calls"])
    );
    let length = about["length_ns"].as_u64().expect("a length");
    let picture = |more: &str| {
        let rows = "0.0-0,1.0-0";
        let path = format!("api/picture?from=0&to={length}&pixels=100&rows={rows}{more}");
        let bytes = served.body(&path);
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a word"));
        (word(20), word(24))
    };
    for more in ["", "&quick=1"] {
        let (next, unread) = picture(more);
        assert!(next == 2 && unread > 0, "{next} {unread}");
    }
    for name in ["report?from=0&to=9", "find?text=f&from=0&to=9&columns=1", "call?thread=0"] {
        assert!(served.get(&format!("api/{name}")).starts_with(b"HTTP/1.1 503 "), "{name} waits");
    }
    assert!(served.get("api/picture?from=0").starts_with(b"HTTP/1.1 400 "));
    source.build();
    assert_eq!(served.json("api/about").get("reading"), None);
    assert_eq!(picture(""), (0, 0));
    assert!(source.draft().is_none(), "it takes no memory any more");
}

#[test]
fn a_browser_shows_a_draft_and_then_the_exact_picture() {
    let (held, barrier) = recording();
    let mut building = None;
    let seen = seen_in("main.js", "browser_draft.js", "", |page| {
        let (served, source) = drafted(held, 40, Some(page));
        let reads = move || barrier.reads.load(Ordering::Relaxed);
        let before = reads();
        // The page has zoomed in to where few chunks were read.
        building = Some(std::thread::spawn(move || {
            until("chunks are read for a picture", || reads() > before);
            source.build();
        }));
        served
    });
    let Some((_served, seen)) = seen else { return };
    building.expect("it was served").join().expect("it ends");
    assert_eq!((&seen["marked"], &seen["ready"]), (&true.into(), &"false".into()), "{seen:#}");
    let status = |name: &str| seen[name].as_str().unwrap_or_default().to_owned();
    assert!(status("draft").contains("estimated: 0 % of the calls were read"), "{seen:#}");
    assert!(status("tip").contains("not read yet"), "{seen:#}");
    assert!(!status("exact").is_empty() && !status("exact").contains("estimated"), "{seen:#}");
    assert_eq!((&seen["unread"], &seen["isDraft"]), (&0.into(), &false.into()), "{seen:#}");
}
