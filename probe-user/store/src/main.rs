//! `ctrace-store`: sends the tables of ctrace's daemon to an object store.
//!
//! It is a program of its own, so that the daemon, which is root, speaks no HTTPS, and `ctrace` stays
//! small. The daemon starts it without any capability. [`spool`] finds the whole files of a folder,
//! [`upload`] sends one and looks for it in the store, and [`rounds`] removes what is there, and tries
//! again what is not. What a store answers is bounded ([`answers`]), and no text of it is told
//! ([`reason`]).

mod answers;
mod arguments;
mod destination;
mod phase;
mod reason;
mod rounds;
mod spool;
#[cfg(test)]
mod tests;
mod told;
mod upload;

use arguments::{Arguments, Asked};
use destination::Destination;
use rounds::{Ended, Pauses, Shipper};
use spool::Spool;
use std::process::ExitCode;
use told::Teller;

/// Not everything could be sent.
const SOME_WAIT: u8 = 1;
/// The command is wrong, or the store cannot be used at all.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    let arguments = match arguments::parse(std::env::args().skip(1)) {
        Ok(Asked::Ship(arguments)) => arguments,
        Ok(Asked::Text(text)) => {
            println!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(error) => return refused(&error),
    };
    match ship(&arguments) {
        Ok(Ended::AllSent) => ExitCode::SUCCESS,
        Ok(Ended::SomeWait) => ExitCode::from(SOME_WAIT),
        Err(error) => {
            // The daemon reads nothing else.
            Teller(std::io::stdout()).failed(&error);
            refused(&error)
        }
    }
}

fn refused(error: &str) -> ExitCode {
    eprintln!("ctrace-store: {error}");
    ExitCode::from(REFUSED)
}

fn ship(arguments: &Arguments) -> Result<Ended, String> {
    let variables = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)));
    let mut teller = Teller(std::io::stdout());
    teller.begin();
    let destination = Destination::open(&arguments.url, &variables.collect::<Vec<_>>())?;
    if destination.is_in(&arguments.folder) {
        return Err("the store is in the folder, from which its files come".to_owned());
    }
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(4).build();
    let runtime = runtime.map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(async {
        let phase = phase::watch(arguments.until_eof)
            .map_err(|error| format!("cannot watch signals: {error}"))?;
        let mut shipper = Shipper {
            spool: Spool { root: arguments.folder.clone(), host: arguments.host.clone() },
            destination,
            teller,
            pauses: Pauses::USUAL,
            phase,
            failures: Default::default(),
            sent: Default::default(),
        };
        match arguments.once {
            true => Ok(shipper.once().await),
            false => Ok(shipper.run().await),
        }
    })
}
