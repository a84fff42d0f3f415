//! Protocol buffers, written by hand: two formats need a handful of messages, and one of them some
//! millions of them.

use crate::record::put_varint;

/// A message that is being put together.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    #[inline]
    pub(super) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        put_varint(&mut self.0, u64::from(field) << 3);
        put_varint(&mut self.0, value);
        self
    }

    #[inline]
    pub(super) fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        put_varint(&mut self.0, u64::from(field) << 3 | 2);
        put_varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub(super) fn text(&mut self, field: u32, value: &str) -> &mut Self {
        self.bytes(field, value.as_bytes())
    }

    pub(super) fn message(&mut self, field: u32, value: &Message) -> &mut Self {
        self.bytes(field, &value.0)
    }

    /// Several numbers as one field.
    pub(super) fn numbers(
        &mut self,
        field: u32,
        values: impl IntoIterator<Item = u64>,
    ) -> &mut Self {
        let mut packed = Vec::new();
        values.into_iter().for_each(|value| put_varint(&mut packed, value));
        self.bytes(field, &packed)
    }
}
