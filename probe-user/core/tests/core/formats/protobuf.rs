//! A slow and simple decoder of protocol buffers.

/// Returns the fields of a message: number, and a number or bytes.
pub(crate) fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_first_chunk().expect("eight bytes");
                bytes = rest;
                Field::Double(f64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (field, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(field)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Field<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

pub(crate) fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

pub(crate) fn number(fields: &[(u64, Field<'_>)], field: u64) -> Option<u64> {
    fields.iter().find_map(|(n, value)| match value {
        Field::Number(value) if *n == field => Some(*value),
        _ => None,
    })
}

pub(crate) fn bytes<'a>(fields: &[(u64, Field<'a>)], field: u64) -> Option<&'a [u8]> {
    fields.iter().find_map(|(n, value)| match value {
        Field::Bytes(value) if *n == field => Some(*value),
        _ => None,
    })
}

/// Returns all texts of a field.
pub(crate) fn texts(fields: &[(u64, Field<'_>)], field: u64) -> Vec<String> {
    let texts = fields.iter().filter_map(|(n, value)| match value {
        Field::Bytes(text) if *n == field => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    });
    texts.collect()
}
