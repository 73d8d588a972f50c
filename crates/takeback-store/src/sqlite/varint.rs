//! Variable-length integers: seven bits per byte, lowest first; the top bit means that more bytes
//! follow.

pub(crate) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A number and the rest of the bytes; `None` if it is cut off or too large.
pub(crate) fn take_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        let shifted = bits << (7 * at);
        if shifted >> (7 * at) != bits {
            return None;
        }
        value |= shifted;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}
