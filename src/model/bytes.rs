//! How byte figures and counts are written and read, in the window, on the command line and in reports alike.

/// 16 TiB: no block, segment or device is larger. Damaged files give figures beyond it, which are cut to it, so that sums
/// over a million of them still fit.
pub const MAX_BYTES: u64 = 1 << 44;

const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// Bytes in the unit that suits them, with three significant digits or more: `573.8 MiB`, `512 B`.
pub fn format_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = match unit {
        0 => 0,
        _ if value >= 1000.0 => 0,
        _ if value >= 100.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// A change in bytes with its sign: `+573.8 MiB`, `−2.00 MiB`, `±0 B`.
pub fn format_delta_bytes(bytes: i64) -> String {
    let sign = match bytes.signum() {
        1 => "+",
        0 => "±",
        _ => "−",
    };
    format!("{sign}{}", format_bytes(bytes.unsigned_abs()))
}

/// Bytes to the last one with thousands separated: `601,661,440 B`.
pub fn format_bytes_exact(bytes: u64) -> String {
    format!("{} B", format_count(bytes))
}

/// A count with thousands separated: `733,493`.
pub fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes from text with a unit: `491.6 MiB`, `5.3G`, `7213M`, `812 KB`, `12 B`.
///
/// Single letters and `KB`, `MB`, `GB` count in 1024s, as PyTorch, nvidia-smi and the frameworks mean them. `None`
/// without a number, with an unknown unit, or when it does not fit.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.trim().replace(',', "").parse().ok()?;
    let power = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "byte" | "bytes" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        "p" | "pb" | "pib" => 5,
        _ => return None,
    };
    let bytes = number * 1024_f64.powi(power);
    (bytes.is_finite() && (0.0..9.0e18).contains(&bytes)).then_some(bytes.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_in_the_unit_that_suits() {
        for (bytes, text) in [
            (0, "0 B"),
            (512, "512 B"),
            (1536, "1.50 KiB"),
            (601_661_440, "573.8 MiB"),
            (1_153_433_600, "1.07 GiB"),
            (1023 * 1024, "1023 KiB"),
        ] {
            assert_eq!(format_bytes(bytes), text);
        }
        assert_eq!(format_delta_bytes(-2_097_152), "−2.00 MiB");
        assert_eq!(format_delta_bytes(0), "±0 B");
        assert_eq!(format_bytes_exact(601_661_440), "601,661,440 B");
        assert_eq!(format_count(12), "12");
        assert_eq!(format_count(123_456), "123,456");
    }

    #[test]
    fn bytes_are_read_with_any_usual_unit() {
        for (text, bytes) in [
            ("491.5 MiB", 515_375_104),
            ("2G", 2_147_483_648),
            ("7213M", 7_563_378_688),
            ("12 B", 12),
            ("1,024 KB", 1_048_576),
            ("7956733952", 7_956_733_952),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for bad in ["", "MiB", "12 apples", "-3 MiB", "nan", "1e300"] {
            assert_eq!(parse_bytes(bad), None, "{bad}");
        }
    }
}
