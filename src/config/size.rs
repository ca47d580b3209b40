//! Sizes as a person writes them.

/// Why a text is not a size.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("'{0}' is not a size (write 100, 100KiB, 50MiB, 1GiB or 10MB)")]
pub(crate) struct InvalidSize(pub String);

/// Units, larger ones first; binary ones first among equals, because they are written by [`format_size`].
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// Reads `100`, `100KiB`, `50MiB`, `1GiB`, `10MB`; a bare number is bytes, upper and lower case are alike.
pub(crate) fn parse_size(text: &str) -> Result<u64, InvalidSize> {
    let invalid = || InvalidSize(text.to_owned());
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(trimmed.len());
    let number: u64 = trimmed[..digits].parse().map_err(|_| invalid())?;
    let unit = match trimmed[digits..].trim_start() {
        "" => 1,
        name => {
            UNITS
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .ok_or_else(invalid)?
                .1
        }
    };
    number.checked_mul(unit).ok_or_else(invalid)
}

/// Writes a size so that [`parse_size`] reads it back: the largest binary unit that divides it.
pub(crate) fn format_size(bytes: u64) -> String {
    let binary = UNITS.iter().filter(|(name, _)| name.ends_with("iB"));
    for (name, size) in binary {
        if bytes > 0 && bytes.is_multiple_of(*size) {
            return format!("{}{name}", bytes / size);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_documented() {
        for (text, bytes) in [
            ("100", 100),
            ("100KiB", 102_400),
            ("50MiB", 52_428_800),
            ("1GiB", 1 << 30),
            ("10MB", 10_000_000),
            ("10 kb", 10_000),
            ("0", 0),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "MiB",
            "-1",
            "1.5MiB",
            "10 potatoes",
            "99999999999999TiB",
            "1e3",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn formatted_sizes_are_read_back() {
        for bytes in [0, 1, 1023, 1024, 1 << 20, 50 << 20, 1 << 40, 10_000_000] {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
        assert_eq!(format_size(50 << 20), "50MiB");
    }
}
