//! Serves another tool's page and a recording to a browser, with the script that measures at its head.

use anyhow::Result;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The page itself, in its folder.
const PAGE: &str = "index.html";

pub(super) struct Pages {
    /// The folder of the page.
    pub(super) folder: PathBuf,
    /// The script at its head.
    pub(super) script: String,
    /// The name under which it asks for the recording, and its file.
    pub(super) trace: (&'static str, PathBuf),
    /// Other answers, which are texts.
    pub(super) answers: &'static [(&'static str, &'static str)],
}

/// A server that ends with this.
pub(super) struct Files {
    address: SocketAddr,
    has_ended: Arc<AtomicBool>,
}

impl Files {
    pub(super) fn serve(pages: Pages) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let (ended, pages) = (Arc::clone(&has_ended), Arc::new(pages));
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                let pages = Arc::clone(&pages);
                // A browser may leave before it has read all.
                std::thread::spawn(move || drop(pages.answer(&connection)));
            }
        });
        Ok(Self { address, has_ended })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for a connection.
        drop(TcpStream::connect(self.address));
    }
}

impl Pages {
    fn answer(&self, connection: &TcpStream) -> io::Result<()> {
        let mut lines = BufReader::new(connection).lines();
        let line = lines.next().transpose()?.unwrap_or_default();
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let path = line.split(' ').nth(1).unwrap_or_default();
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_start_matches('/');
        let text =
            |kind: &str, text: &str| send(connection, kind, text.len() as u64, text.as_bytes());
        if let Some((_, answer)) = self.answers.iter().find(|(name, _)| *name == path) {
            return text("application/json", answer);
        }
        if path == "bench.js" {
            return text(kind("bench.js"), &self.script);
        }
        if path.is_empty() || path == PAGE {
            let page = std::fs::read_to_string(self.folder.join(PAGE))?;
            return text(
                kind(PAGE),
                &page.replacen("<head>", "<head><script src=\"/bench.js\"></script>", 1),
            );
        }
        let file = match path == self.trace.0 {
            true => self.trace.1.clone(),
            false => self.folder.join(path),
        };
        let is_inside = !Path::new(path).components().any(|part| part.as_os_str() == "..");
        match File::open(&file) {
            Ok(file) if is_inside && file.metadata()?.is_file() => {
                send(connection, kind(path), file.metadata()?.len(), file)
            }
            _ => (&mut &*connection).write_all(
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            ),
        }
    }
}

fn send(mut to: &TcpStream, kind: &str, length: u64, mut body: impl Read) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    to.write_all(head.as_bytes())?;
    io::copy(&mut body, &mut to).map(drop)
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json") => "application/json",
        Some("wasm") => "application/wasm",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(url: &str, path: &str) -> String {
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    }

    #[test]
    fn a_page_has_the_script_at_its_head_and_files_are_those_of_its_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let page = folder.path().join("page");
        std::fs::create_dir(&page).expect("a folder");
        std::fs::write(page.join(PAGE), "<html><head></head>").expect("room");
        std::fs::write(page.join("a.js"), "1").expect("room");
        std::fs::write(folder.path().join("trace"), "calls").expect("room");
        let trace = ("localtrace", folder.path().join("trace"));
        let pages = Pages { folder: page, script: "2".into(), trace, answers: &[("info", "{}")] };
        let files = Files::serve(pages).expect("a port");
        let url = files.url();
        assert!(get(&url, "").ends_with("<html><head><script src=\"/bench.js\"></script></head>"));
        assert!(
            get(&url, "a.js?v=1").contains("text/javascript")
                && get(&url, "a.js").ends_with("\r\n1")
        );
        assert!(get(&url, "bench.js").ends_with("\r\n2") && get(&url, "info").ends_with("{}"));
        assert!(get(&url, "localtrace").ends_with("calls"));
        assert!(get(&url, "../trace").starts_with("HTTP/1.1 404"));
    }
}
