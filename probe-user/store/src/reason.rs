//! Says why a store failed, in words of ours.
//!
//! Errors quote requests and answers, in which credentials can be: a signature in an address, an
//! access key that the store repeats. So nothing of them is told but what is known to be harmless: a
//! status, a code in letters, an error of the operating system.

use object_store::{
    Error,
    client::{HttpError, HttpErrorKind},
};
use std::{error::Error as StdError, fmt::Write as _, io, iter::successors};

/// The limit of a code.
const LONGEST_CODE: usize = 64;

/// Returns the reason of a failure.
pub(crate) fn reason(error: &Error) -> String {
    let chain = || successors(Some(error as &dyn StdError), |error| (*error).source());
    let text = error.to_string();
    let mut beside = Vec::new();
    if let Some(status) = status(&text) {
        beside.push(format!("HTTP {status}"));
    }
    beside.extend(code(&text).map(str::to_owned));
    beside.extend(chain().find_map(of_system));
    let known = [
        ("invalid peer certificate", "its certificate is not trusted"),
        ("failed to lookup address", "its name is not known"),
    ];
    let texts: Vec<String> = chain().map(ToString::to_string).collect();
    let is_in = |part: &str| texts.iter().any(|text| text.contains(part));
    let known = known.iter().find(|(part, _)| is_in(part)).map(|(_, told)| *told);
    let of_http = || chain().find_map(|error| error.downcast_ref::<HttpError>()).map(of_kind);
    let words = match error {
        Error::PermissionDenied { .. } => "the store denies it",
        Error::Unauthenticated { .. } => "the store does not take the credentials",
        Error::NotFound { .. } => "the store says that there is no such thing",
        Error::InvalidPath { .. } => "the name is not possible in a store",
        _ => known.or_else(of_http).unwrap_or("the store has an error"),
    };
    let mut told = words.to_owned();
    if !beside.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(told, " ({})", beside.join(", "));
    }
    told
}

/// Returns true if the store cannot be reached or refuses the credentials.
pub(crate) fn is_of_all(error: &Error) -> bool {
    let mut chain = successors(Some(error as &dyn StdError), |error| (*error).source());
    let is_away =
        |error: &HttpError| matches!(error.kind(), HttpErrorKind::Connect | HttpErrorKind::Timeout);
    matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. })
        || chain.find_map(|error| error.downcast_ref::<HttpError>()).is_some_and(is_away)
}

fn of_kind(error: &HttpError) -> &'static str {
    match error.kind() {
        HttpErrorKind::Connect => "the store cannot be reached",
        HttpErrorKind::Timeout => "the store does not answer in time",
        HttpErrorKind::Request | HttpErrorKind::Interrupted => "the connection was cut",
        HttpErrorKind::Decode => "the store's answer is too long or broken",
        _ => "the request failed",
    }
}

/// Returns an error of the operating system in its words.
fn of_system(error: &(dyn StdError + 'static)) -> Option<String> {
    let error = error.downcast_ref::<io::Error>()?;
    error.raw_os_error().map(|number| io::Error::from_raw_os_error(number).to_string())
}

fn status(text: &str) -> Option<&str> {
    let after = text.split_once("status code: ")?.1.get(..3)?;
    after.bytes().all(|byte| byte.is_ascii_digit()).then_some(after)
}

/// Returns the code in an answer in XML.
fn code(text: &str) -> Option<&str> {
    let code = text.split_once("<Code>")?.1.split_once("</Code>")?.0;
    let is_code = code.len() <= LONGEST_CODE && code.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_code.then_some(code)
}

/// Returns the reason why a store cannot be opened. These errors are about its settings, and may quote
/// one: none of the values is told.
pub(crate) fn of_settings(error: &Error, values: &[(String, String)]) -> String {
    let mut text = error.to_string();
    for (_, value) in values.iter().filter(|(_, value)| value.len() > 3) {
        text = text.replace(value.as_str(), "…");
    }
    text
}
