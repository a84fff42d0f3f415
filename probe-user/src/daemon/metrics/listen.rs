//! The endpoint of the metrics: an address, or a Unix socket.

use crate::files::SocketFile;
use anyhow::{Context, bail};
use std::{
    net::{SocketAddr, TcpListener},
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
};

/// The prefix of a socket's path.
const UNIX: &str = "unix:";

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Listen {
    Address(SocketAddr),
    Socket(PathBuf),
}

impl Listen {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = "an address with a port is needed, as 127.0.0.1:9779, or a Unix socket, as \
                     unix:/run/ctrace/metrics.sock";
        match text.strip_prefix(UNIX).map(Path::new) {
            Some(path) if path.is_absolute() => Ok(Self::Socket(path.to_owned())),
            Some(_) => Err(wrong.to_owned()),
            None => text.parse().map(Self::Address).map_err(|_| wrong.to_owned()),
        }
    }

    /// Starts listening. `group` may use the socket besides root.
    pub(super) fn bind(&self, group: Option<u32>) -> anyhow::Result<Bound> {
        match self {
            Self::Address(address) => {
                let listener = match TcpListener::bind(address) {
                    Ok(listener) => listener,
                    Err(error) => bail!(
                        "cannot listen for scrapes on {address}: {error}; `listen` in [metrics] of \
                         the configuration takes another address"
                    ),
                };
                listener.set_nonblocking(true)?;
                Ok(Bound::Address(listener))
            }
            Self::Socket(path) => {
                let (listener, file) =
                    SocketFile::listen(path, group).context("`listen` in [metrics]")?;
                listener.set_nonblocking(true)?;
                Ok(Bound::Socket(listener, file))
            }
        }
    }
}

/// The listening end.
pub(super) enum Bound {
    Address(TcpListener),
    Socket(UnixListener, SocketFile),
}

impl Bound {
    /// Returns the address, with the port that the kernel chose for port 0.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(listener) => listener.local_addr().ok(),
            Self::Socket(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_absolute_paths_are_understood() {
        let address = SocketAddr::from(([127, 0, 0, 1], 9779));
        assert_eq!(Listen::parse("127.0.0.1:9779"), Ok(Listen::Address(address)));
        assert_eq!(Listen::parse("unix:/run/m"), Ok(Listen::Socket("/run/m".into())));
        for wrong in ["9779", "localhost", "unix:", "unix:run/m", "/run/m", "unix://"] {
            let parsed = Listen::parse(wrong);
            let is_wrong = parsed.as_ref().is_err_and(|why| why.contains("unix:/run"));
            assert!(is_wrong || wrong == "unix://", "{wrong}: {parsed:?}");
        }
    }
}
