//! The digest that chains events, and that names are told apart by.

use sha2::{Digest as _, Sha256};

/// The SHA-256 of bytes, hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
