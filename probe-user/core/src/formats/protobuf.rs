//! Writes protocol buffers without a library: two formats and the daemon's metrics need few kinds
//! of messages, and Perfetto's format writes millions.

use crate::recording::put_varint;

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    #[inline]
    pub fn number(&mut self, field: u32, value: u64) -> &mut Self {
        put_varint(&mut self.0, u64::from(field) << 3);
        put_varint(&mut self.0, value);
        self
    }

    #[inline]
    pub fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        put_varint(&mut self.0, u64::from(field) << 3 | 2);
        put_varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub fn text(&mut self, field: u32, value: &str) -> &mut Self {
        self.bytes(field, value.as_bytes())
    }

    pub fn message(&mut self, field: u32, value: &Message) -> &mut Self {
        self.bytes(field, &value.0)
    }

    /// Writes a field in which small negative numbers are short (`sint`).
    pub fn signed(&mut self, field: u32, value: i64) -> &mut Self {
        self.number(field, zigzag(value))
    }

    /// Writes a number as eight bytes (`fixed64`).
    pub fn fixed(&mut self, field: u32, value: u64) -> &mut Self {
        put_varint(&mut self.0, u64::from(field) << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn double(&mut self, field: u32, value: f64) -> &mut Self {
        self.fixed(field, value.to_bits())
    }

    /// Appends the message with its length before it, for a sequence of messages.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        put_varint(out, self.0.len() as u64);
        out.extend_from_slice(&self.0);
    }

    /// Writes several numbers as one packed field.
    pub fn numbers(&mut self, field: u32, values: impl IntoIterator<Item = u64>) -> &mut Self {
        let mut packed = Vec::new();
        values.into_iter().for_each(|value| put_varint(&mut packed, value));
        self.bytes(field, &packed)
    }
}

/// Encodes a number for a packed `sint` field.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_numbers_are_short() {
        assert_eq!([0, -1, 1, -2, 2].map(zigzag), [0, 1, 2, 3, 4]);
        assert_eq!(zigzag(i64::MIN), u64::MAX);
        let mut message = Message::default();
        message.signed(1, -1).fixed(2, 3);
        assert_eq!(message.0, [8, 1, 17, 3, 0, 0, 0, 0, 0, 0, 0]);
    }
}
