//! The parts of HTTP that tests need: to ask a daemon, and to receive its exports.

use anyhow::{Context, Result, ensure};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Time limit of an answer or a request.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the body of an answer.
pub fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
    ensure!(head.contains(" 200 "), "{head}");
    Ok(body.to_owned())
}

/// A receiver of posts.
pub struct Collector {
    pub address: SocketAddr,
    posts: Receiver<Post>,
}

pub struct Post {
    pub path: String,
    pub body: Vec<u8>,
}

impl Collector {
    pub fn start() -> Result<Collector> {
        Collector::start_at("127.0.0.1:0".parse()?)
    }

    /// Starts one at this address.
    pub fn start_at(address: SocketAddr) -> Result<Collector> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let (sender, posts) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Ok(post) = take(&stream) else { continue };
                if sender.send(post).is_err() {
                    return;
                }
            }
        });
        Ok(Collector { address, posts })
    }

    /// Waits for the next post.
    pub fn post(&self) -> Result<Post> {
        self.posts.recv_timeout(LIMIT).context("nothing was posted")
    }
}

fn take(mut stream: &TcpStream) -> Result<Post> {
    stream.set_read_timeout(Some(LIMIT))?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        ensure!(reader.read_line(&mut head)? > 0, "{head}");
    }
    let path = head.split(' ').nth(1).context("a path")?.to_owned();
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.context("a length")?.parse()?];
    reader.read_exact(&mut body)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
    Ok(Post { path, body })
}
