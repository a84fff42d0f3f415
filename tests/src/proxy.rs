//! Hands connections on to another port, and the answers as slowly as a test wants it.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time that each piece of an answer is held up, in milliseconds.
pub type Delay = Arc<AtomicU64>;

/// Hands on what comes to the listener, until the test ends. Where nobody listens, connections are cut.
pub fn hand_on(listener: TcpListener, port: u16, delay: Delay) {
    std::thread::spawn(move || {
        for inner in listener.incoming().flatten() {
            let Ok(outer) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
            let both = inner.try_clone().and_then(|inner| Ok((inner, outer.try_clone()?)));
            let Ok((inner_too, outer_too)) = both else { continue };
            let delay = Arc::clone(&delay);
            std::thread::spawn(move || copy(inner, outer, &AtomicU64::new(0)));
            std::thread::spawn(move || copy(outer_too, inner_too, &delay));
        }
    });
}

/// Copies until either side ends, and ends the other.
fn copy(mut from: TcpStream, mut to: TcpStream, delay: &AtomicU64) {
    let mut some = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut some) {
        std::thread::sleep(Duration::from_millis(delay.load(Ordering::Relaxed)));
        if to.write_all(&some[..read]).is_err() {
            break;
        }
    }
    // Either may be gone.
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
