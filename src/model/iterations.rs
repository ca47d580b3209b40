//! The iterations of a run. Those of a run that is over are kept packed until somebody looks at them, so that what a
//! command pays for the past does not grow with it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::run::Iteration;

/// How a packed form begins. No two ways to pack begin alike: whoever changes [`Iteration`] or the packing changes it.
pub const PACKED: &str = "1:";

type ByNumber = BTreeMap<u32, Iteration>;

/// Iterations by number. Packed or not makes no difference to who reads or changes them.
#[derive(Clone, Debug)]
pub struct Iterations {
    /// Filled at the first look, where they are packed.
    open: OnceLock<ByNumber>,
    /// What `open` is unpacked from; `None` once anything may have been changed.
    packed: Option<Arc<str>>,
}

impl Iterations {
    /// Packs them, unless they are.
    pub fn pack(&mut self) {
        if self.packed.is_none() {
            let packed = pack(self).into();
            *self = Self { open: OnceLock::new(), packed: Some(packed) };
        }
    }
}

impl From<ByNumber> for Iterations {
    fn from(open: ByNumber) -> Self {
        Self { open: open.into(), packed: None }
    }
}

impl Default for Iterations {
    fn default() -> Self {
        ByNumber::new().into()
    }
}

impl Deref for Iterations {
    type Target = ByNumber;

    fn deref(&self) -> &ByNumber {
        self.open.get_or_init(|| self.packed.as_deref().map(unpack).unwrap_or_default())
    }
}

impl DerefMut for Iterations {
    fn deref_mut(&mut self) -> &mut ByNumber {
        let _: &ByNumber = self;
        self.packed = None;
        self.open.get_mut().expect("just filled")
    }
}

impl PartialEq for Iterations {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Iterations {}

/// JSON, deflated, as base64: part of a document that is checksummed as a whole.
fn pack(open: &ByNumber) -> String {
    let json = serde_json::to_vec(open).expect("plain data has a form in JSON");
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::fast());
    let deflated = deflated.write_all(&json).and_then(|()| deflated.finish());
    let packed = STANDARD_NO_PAD.encode(deflated.expect("memory takes everything"));
    format!("{PACKED}{:08x}{packed}", crc32fast::hash(packed.as_bytes()))
}

fn unpack(packed: &str) -> ByNumber {
    let read = || {
        let deflated = STANDARD_NO_PAD.decode(packed.get(HEAD..)?).ok()?;
        let mut json = Vec::new();
        DeflateDecoder::new(deflated.as_slice()).read_to_end(&mut json).ok()?;
        serde_json::from_slice(&json).ok()
    };
    // What this version packed is whole, as `is_sound` saw; only somebody who forges both checksums comes here.
    read().unwrap_or_else(|| {
        tracing::error!("the cache recover/fold.json is forged: remove it");
        ByNumber::new()
    })
}

/// How long the mark and the checksum are.
const HEAD: usize = PACKED.len() + 8;

/// Whether a packed form was made by this version, and is what it made; nothing is unpacked for it.
fn is_sound(packed: &str) -> bool {
    let Some((head, base64)) = packed.split_at_checked(HEAD) else { return false };
    head.strip_prefix(PACKED) == Some(format!("{:08x}", crc32fast::hash(base64.as_bytes())).as_str())
}

impl Serialize for Iterations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.packed {
            Some(packed) => serializer.serialize_str(packed),
            None => (**self).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Iterations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either)
    }
}

/// Iterations in the open, or packed.
struct Either;

impl<'de> Visitor<'de> for Either {
    type Value = Iterations;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("iterations")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Iterations, A::Error> {
        ByNumber::deserialize(MapAccessDeserializer::new(map)).map(Iterations::from)
    }

    fn visit_str<E: serde::de::Error>(self, packed: &str) -> Result<Iterations, E> {
        if !is_sound(packed) {
            return Err(E::custom("packed by another version, or damaged"));
        }
        Ok(Iterations { open: OnceLock::new(), packed: Some(packed.into()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::run::IterationStatus;

    fn some() -> Iterations {
        let iteration =
            |number| Iteration { number, status: IterationStatus::Failed, attempts: Vec::new(), reason: None };
        (1..=40).map(|number| (number, iteration(number))).collect::<ByNumber>().into()
    }

    #[test]
    fn packed_iterations_are_the_same() {
        let mut packed = some();
        packed.pack();
        let text = serde_json::to_string(&packed).unwrap();
        assert!(text.starts_with('"') && text.len() < serde_json::to_string(&some()).unwrap().len() / 4, "{text}");
        for text in [text, serde_json::to_string(&some()).unwrap()] {
            let read: Iterations = serde_json::from_str(&text).unwrap();
            assert_eq!(read, some());
        }
        assert_eq!(packed.get(&7), some().get(&7));
    }

    // A cache that is damaged or of another version is no cache; nothing that is read panics later.
    #[test]
    fn what_this_version_did_not_pack_is_refused() {
        let mut packed = some();
        packed.pack();
        let text = serde_json::to_string(&packed).unwrap();
        let older = text.replace(PACKED, "");
        let cut = format!("{}\"", &text[..text.len() / 2]);
        for bad in [older.as_str(), cut.as_str(), "\"\"", "\"1:\"", "\"1:00000000é\"", "\"0:0000000é\""] {
            assert!(serde_json::from_str::<Iterations>(bad).is_err(), "{bad}");
        }
        assert!(unpack("1:deadbeef!").is_empty());
    }

    #[test]
    fn a_change_is_kept() {
        let mut packed = some();
        packed.pack();
        packed.remove(&7);
        assert_eq!(packed.len(), 39);
        let read: Iterations = serde_json::from_str(&serde_json::to_string(&packed).unwrap()).unwrap();
        assert_eq!(read, packed);
        packed.pack();
        assert!(!packed.contains_key(&7) && packed.contains_key(&8));
    }
}
