//! Reads what a receiver says of an export that it took: which part it left out.

use crate::daemon::post::{Endpoint, explanation};
use std::fmt;

/// The number of points, spans or profiles that were left out, and the explanation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LeftOut(u64, String);

impl LeftOut {
    /// Tells in the log what the receiver at this address left out.
    pub(crate) fn warn(&self, endpoint: &Endpoint) {
        tracing::warn!("{endpoint}: {self}");
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, why) = self;
        write!(f, "the receiver left out {number} of an export")?;
        if why.is_empty() { Ok(()) } else { write!(f, ": {why}") }
    }
}

/// Returns what was left out, if anything was. The answers for points, spans and profiles are alike: a
/// message with the number and a text.
pub(super) fn left_out(body: &[u8]) -> Option<LeftOut> {
    let part = fields(body).find_map(|field| match field {
        (1, Field::Bytes(part)) => Some(part),
        _ => None,
    })?;
    let (mut number, mut why) = (0, String::new());
    for field in fields(part) {
        match field {
            (1, Field::Number(rejected)) => number = rejected,
            (2, Field::Bytes(text)) => why = explanation(text),
            _ => {}
        }
    }
    (number as i64 > 0).then_some(LeftOut(number, why))
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Returns the fields of a message of Protocol Buffers, up to one of another kind.
fn fields(mut message: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        let key = varint(&mut message)?;
        let field = match key & 7 {
            0 => Field::Number(varint(&mut message)?),
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                Field::Bytes(message.split_off(..length)?)
            }
            _ => return None,
        };
        Some((key >> 3, field))
    })
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = *message.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::metrics::v1::{
        ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
    };
    use prost::Message as _;

    fn answer(rejected: i64, message: &str) -> Vec<u8> {
        let error_message = message.to_owned();
        let part = ExportMetricsPartialSuccess { rejected_data_points: rejected, error_message };
        ExportMetricsServiceResponse { partial_success: Some(part) }.encode_to_vec()
    }

    #[test]
    fn an_answer_tells_what_was_left_out() {
        let of_300 = left_out(&answer(300, "too\x1b old"));
        assert_eq!(of_300, Some(LeftOut(300, "too old".to_owned())));
        assert_eq!(left_out(&answer(0, "take care")), None);
        assert_eq!(left_out(&answer(-1, "")), None);
        assert_eq!(left_out(b""), None);
    }

    #[test]
    fn an_answer_may_be_anything() {
        let whole = answer(5, "no");
        (0..whole.len()).for_each(|cut| drop(left_out(&whole[..cut])));
        for wrong in [&[0x0a, 0xff, 0xff][..], &[0xff; 30], b"<html>", &[0x0a, 2, 0x08, 0xff]] {
            assert_eq!(left_out(wrong), None, "{wrong:?}");
        }
    }
}
