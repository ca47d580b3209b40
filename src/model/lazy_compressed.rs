//! A value that is decoded only when it is used, so that what a command pays for the past does not grow with it.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What can be packed: a struct or a map.
pub trait Content: Clone + Default + Serialize + DeserializeOwned {}

impl<T: Clone + Default + Serialize + DeserializeOwned> Content for T {}

/// A value, packed or not: it makes no difference to who reads or changes it. A clone shares it until one of the two is
/// changed. Serialized it is itself, or bytes where it is packed.
#[derive(Clone, Debug)]
pub struct LazyCompressed<T> {
    /// Filled at the first use, where it is packed.
    open: OnceLock<Arc<T>>,
    /// What `open` is unpacked from; `None` once that may have been changed.
    packed: Option<Arc<[u8]>>,
}

impl<T: Content> LazyCompressed<T> {
    /// Packs it, unless it is.
    pub fn pack(&mut self) {
        if self.packed.is_none() {
            *self = Self::packed(deflate(&**self).into());
        }
    }

    fn packed(bytes: Arc<[u8]>) -> Self {
        Self {
            open: OnceLock::new(),
            packed: Some(bytes),
        }
    }

    fn opened(&self) -> &Arc<T> {
        self.open.get_or_init(|| {
            let packed = self.packed.as_deref().unwrap_or_default();
            // The file that holds it has a checksum: only a forged one leads here.
            Arc::new(inflate(packed).unwrap_or_else(|error| {
                tracing::error!(%error, "the cache recover/fold.cache is forged: remove it");
                T::default()
            }))
        })
    }
}

impl<T> From<T> for LazyCompressed<T> {
    fn from(open: T) -> Self {
        Self {
            open: OnceLock::from(Arc::new(open)),
            packed: None,
        }
    }
}

impl<T: Default> Default for LazyCompressed<T> {
    fn default() -> Self {
        T::default().into()
    }
}

impl<T: Content> Deref for LazyCompressed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.opened()
    }
}

impl<T: Content> DerefMut for LazyCompressed<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.opened();
        self.packed = None;
        Arc::make_mut(self.open.get_mut().expect("just filled"))
    }
}

impl<T: Content + PartialEq> PartialEq for LazyCompressed<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Content + Eq> Eq for LazyCompressed<T> {}

fn deflate(open: &impl Serialize) -> Vec<u8> {
    let bytes = rmp_serde::to_vec_named(open).expect("plain data has a form in MessagePack");
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::new(2));
    let written = packed.write_all(&bytes);
    written
        .and_then(|()| packed.finish())
        .expect("memory takes everything")
}

fn inflate<T: DeserializeOwned>(packed: &[u8]) -> io::Result<T> {
    let mut bytes = Vec::new();
    DeflateDecoder::new(packed).read_to_end(&mut bytes)?;
    rmp_serde::from_slice(&bytes).map_err(io::Error::other)
}

impl<T: Content> Serialize for LazyCompressed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.packed {
            Some(bytes) => serializer.serialize_bytes(bytes),
            None => (**self).serialize(serializer),
        }
    }
}

impl<'de, T: Content> Deserialize<'de> for LazyCompressed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// In the open, or packed.
struct Either<T>(PhantomData<T>);

impl<'de, T: Content> Visitor<'de> for Either<T> {
    type Value = LazyCompressed<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, or the bytes of a packed one")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LazyCompressed<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(LazyCompressed::from)
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<LazyCompressed<T>, E> {
        Ok(LazyCompressed::packed(bytes.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Numbers = LazyCompressed<BTreeMap<u32, String>>;

    fn some() -> Numbers {
        (1..=40)
            .map(|number| (number, "the same text each time".to_owned()))
            .collect::<BTreeMap<_, _>>()
            .into()
    }

    fn stored(value: &Numbers) -> Vec<u8> {
        rmp_serde::to_vec_named(value).unwrap()
    }

    fn read_again(value: &Numbers) -> Numbers {
        rmp_serde::from_slice(&stored(value)).unwrap()
    }

    #[test]
    fn what_is_packed_is_the_same() {
        let mut packed = some();
        packed.pack();
        assert!(stored(&packed).len() < stored(&some()).len() / 4);
        for value in [packed, some()] {
            assert_eq!(read_again(&value), some());
            assert_eq!(value.get(&7), some().get(&7));
        }
    }

    #[test]
    fn a_change_is_kept() {
        let mut packed = some();
        packed.pack();
        packed.remove(&7);
        assert_eq!(packed.len(), 39);
        assert_eq!(read_again(&packed), packed);
        packed.pack();
        assert!(!packed.contains_key(&7) && packed.contains_key(&8));
    }

    #[test]
    fn a_clone_is_not_changed_with_the_other() {
        let mut packed = some();
        let kept = packed.clone();
        packed.clear();
        assert_eq!((packed.len(), kept.len()), (0, 40));
    }

    #[test]
    fn there_is_room_for_whatever_was_packed() {
        let noise = || (0..50_000).map(|_| fastrand::alphanumeric()).collect();
        for text in [String::new(), "a".repeat(1_000_000), noise()] {
            let one: Numbers = BTreeMap::from([(1, text)]).into();
            let mut packed = one.clone();
            packed.pack();
            assert_eq!(read_again(&packed), one);
        }
    }

    #[test]
    fn forged_bytes_are_an_empty_value() {
        let cut_short = |bytes: Vec<u8>| bytes[..bytes.len() - 1].to_vec();
        for bytes in [vec![0xff; 9], cut_short(deflate(&*some())), Vec::new()] {
            assert!(Numbers::packed(bytes.into()).is_empty());
        }
    }
}
