//! Arguments as protocol 0 writes them: decimal numbers, quoted and escaped texts.

use super::{Fault, Step};
use crate::text::msg;

/// A decimal integer, `L` of Python 2 at its end or not; unsigned 64-bit ones keep their bits.
pub(super) fn decimal(text: &[u8]) -> Step<i64> {
    let text = std::str::from_utf8(text).map_err(|_| Fault::Bad(msg!("a number is not decimal")))?.trim();
    let text = text.strip_suffix('L').unwrap_or(text);
    let wide: i128 = text.parse().map_err(|_| Fault::Bad(msg!("a number is not decimal")))?;
    Ok(i64::try_from(wide)
        .unwrap_or_else(|_| u64::try_from(wide).map_or(i64::MIN, |unsigned| unsigned as i64)))
}

/// The text between the quotes of protocol 0's STRING.
pub(super) fn unquote(line: &[u8]) -> &[u8] {
    match line {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
        other => other,
    }
}

/// `\uXXXX` escapes of protocol 0's UNICODE.
pub(super) fn unescape(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\u") {
        result.push_str(&rest[..at]);
        let code = rest.get(at + 2..at + 6).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        match code {
            Some(code) => {
                result.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                rest = &rest[at + 6..];
            }
            None => {
                result.push_str("\\u");
                rest = &rest[at + 2..];
            }
        }
    }
    result.push_str(rest);
    result
}
