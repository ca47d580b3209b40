//! A value that is decoded only when it is used, so that what a command pays for the past does not grow with it.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What can be packed: a struct or a map.
pub trait Content: Clone + Default + Serialize + DeserializeOwned {}

impl<T: Clone + Default + Serialize + DeserializeOwned> Content for T {}

/// So many times larger than its packed form a value is at most, as a rule.
const ROOM: usize = 8;

/// A value, packed or not: it makes no difference to who reads or changes it. A clone shares it until one of the two is
/// changed. What is to be changed of a packed one can wait until somebody looks at it.
///
/// Serialized it is itself, or nothing where it is packed: its bytes are kept beside, see [`Part`].
#[derive(Clone, Debug)]
pub struct LazyCompressed<T> {
    /// Filled at the first look, where it is packed.
    open: OnceLock<Arc<T>>,
    /// What `open` is unpacked from; `None` once anything may have been changed but by `later`.
    packed: Option<Bytes>,
    /// What is changed as soon as it is unpacked.
    later: Vec<Later<T>>,
}

/// A change that waits.
struct Later<T>(Arc<dyn Fn(&mut T) + Send + Sync>);

impl<T> Clone for Later<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Later<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a change")
    }
}

/// Where packed bytes are kept.
pub trait Source: fmt::Debug + Send + Sync {
    /// So many of them from `at` on. They are there: who makes [`Bytes`] has seen them.
    fn read(&self, at: u64, length: usize) -> Vec<u8>;
}

impl Source for Vec<u8> {
    fn read(&self, at: u64, length: usize) -> Vec<u8> {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        self.iter().skip(at).take(length).copied().collect()
    }
}

/// Some bytes of a source, read when they are wanted.
#[derive(Clone, Debug)]
pub struct Bytes {
    /// Where they are.
    pub source: Arc<dyn Source>,
    /// Their place in it.
    pub at: u64,
    /// How many they are.
    pub length: usize,
}

impl Bytes {
    fn read(&self) -> Vec<u8> {
        self.source.read(self.at, self.length)
    }
}

/// A packed value, whatever it is: who stores it keeps its bytes apart.
pub trait Part {
    /// Packs it, unless it is.
    fn pack(&mut self);
    /// What it is packed as; `None` where it is not.
    fn bytes(&self) -> Option<Vec<u8>>;
    /// Whether it was read as `null` and its bytes are not here yet.
    fn is_missing(&self) -> bool;
    /// Gives it the bytes that it was packed as.
    fn fill(&mut self, bytes: Bytes);
}

impl<T: Content> Part for LazyCompressed<T> {
    fn pack(&mut self) {
        if !self.is_packed() {
            let all = deflate(&**self);
            self.fill(Bytes {
                length: all.len(),
                source: Arc::new(all),
                at: 0,
            });
        }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        self.packed
            .as_ref()
            .filter(|_| self.is_packed())
            .map(Bytes::read)
    }

    fn is_missing(&self) -> bool {
        self.packed.is_none() && self.open.get().is_none()
    }

    fn fill(&mut self, bytes: Bytes) {
        *self = Self {
            open: OnceLock::new(),
            packed: Some(bytes),
            later: Vec::new(),
        };
    }
}

impl<T: Content> LazyCompressed<T> {
    /// Whether its packed bytes say what it is.
    pub fn is_packed(&self) -> bool {
        self.packed.is_some() && self.later.is_empty()
    }

    /// Whether it is as it was packed but for [`Self::change_later`].
    pub fn was_packed(&self) -> bool {
        self.packed.is_some()
    }

    /// Takes it out of its packing.
    pub fn unpack(&mut self) {
        self.opened();
        self.packed = None;
        self.later.clear();
    }

    /// Changes it: at once where it is open, else as soon as it is.
    pub fn change_later(&mut self, change: impl Fn(&mut T) + Send + Sync + 'static) {
        if self.was_packed() && self.open.get().is_none() {
            self.later.push(Later(Arc::new(change)));
        } else {
            change(self);
        }
    }

    fn opened(&self) -> &Arc<T> {
        self.open.get_or_init(|| {
            let mut value = self
                .packed
                .as_ref()
                .map(|packed| inflate(&packed.read()))
                .unwrap_or_default();
            self.later
                .iter()
                .for_each(|Later(change)| change(&mut value));
            Arc::new(value)
        })
    }
}

impl<T> From<T> for LazyCompressed<T> {
    fn from(open: T) -> Self {
        Self {
            open: OnceLock::from(Arc::new(open)),
            packed: None,
            later: Vec::new(),
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
        self.unpack();
        Arc::make_mut(self.open.get_mut().expect("just filled"))
    }
}

impl<T: Content + PartialEq> PartialEq for LazyCompressed<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Content + Eq> Eq for LazyCompressed<T> {}

thread_local! {
    // It is packed again whenever it was changed: little work is worth more than few bytes. Their memory is most of what one
    // of many small values costs.
    static DEFLATE: RefCell<Compress> = RefCell::new(Compress::new(Compression::new(2), false));
    static INFLATE: RefCell<Decompress> = RefCell::new(Decompress::new(false));
}

fn deflate(open: &impl Serialize) -> Vec<u8> {
    let bytes = rmp_serde::to_vec_named(open).expect("plain data has a form in MessagePack");
    let mut packed = Vec::with_capacity(bytes.len());
    let is_whole = DEFLATE.with_borrow_mut(|deflate| {
        deflate.reset();
        in_one_go(&mut packed, |packed| {
            let done = usize::try_from(deflate.total_in()).ok()?;
            deflate
                .compress_vec(&bytes[done..], packed, FlushCompress::Finish)
                .ok()
        })
    });
    assert!(is_whole, "memory takes everything");
    packed.shrink_to_fit();
    packed
}

fn inflate<T: Content>(packed: &[u8]) -> T {
    let mut bytes = Vec::with_capacity(packed.len().saturating_mul(ROOM));
    let is_whole = INFLATE.with_borrow_mut(|inflate| {
        inflate.reset(false);
        in_one_go(&mut bytes, |bytes| {
            let done = usize::try_from(inflate.total_in()).ok()?;
            inflate
                .decompress_vec(&packed[done..], bytes, FlushDecompress::Finish)
                .ok()
        })
    });
    // What this version packed is whole: the file that it was in has a checksum. Only who forges that comes here.
    is_whole
        .then(|| rmp_serde::from_slice(&bytes).ok())
        .flatten()
        .unwrap_or_else(|| {
            tracing::error!("the cache recover/fold.cache is forged: remove it");
            T::default()
        })
}

/// Goes on until the stream is at its end, with more room each time that there was too little; whether it came to that end.
fn in_one_go(out: &mut Vec<u8>, mut go_on: impl FnMut(&mut Vec<u8>) -> Option<Status>) -> bool {
    loop {
        match go_on(out) {
            Some(Status::StreamEnd) => return true,
            Some(_) if out.len() == out.capacity() => out.reserve(out.len().max(64)),
            _ => return false,
        }
    }
}

impl<T: Content> Serialize for LazyCompressed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_packed() {
            serializer.serialize_unit()
        } else {
            (**self).serialize(serializer)
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
        f.write_str("a value, or nothing for one whose bytes are kept apart")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LazyCompressed<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(LazyCompressed::from)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<LazyCompressed<T>, E> {
        Ok(LazyCompressed {
            open: OnceLock::new(),
            packed: None,
            later: Vec::new(),
        })
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

    /// What is read where this was stored.
    fn read_again(stored: &Numbers) -> Numbers {
        let mut read: Numbers =
            serde_json::from_str(&serde_json::to_string(stored).unwrap()).unwrap();
        assert_eq!(read.is_missing(), stored.bytes().is_some());
        if let Some(bytes) = stored.bytes() {
            let all = [&b"before"[..], &bytes, b"after"].concat();
            read.fill(Bytes {
                source: Arc::new(all),
                at: 6,
                length: bytes.len(),
            });
        }
        read
    }

    #[test]
    fn what_is_packed_is_the_same() {
        let mut packed = some();
        packed.pack();
        assert!(packed.bytes().unwrap().len() < serde_json::to_string(&some()).unwrap().len() / 4);
        for stored in [packed, some()] {
            assert_eq!(read_again(&stored), some());
            assert_eq!(stored.get(&7), some().get(&7));
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
    fn a_change_waits_for_the_first_look() {
        let mut packed = some();
        packed.pack();
        packed.change_later(|numbers| drop(numbers.remove(&7)));
        let kept = packed.clone();
        packed.change_later(|numbers| drop(numbers.insert(41, "one more".to_owned())));
        assert!(packed.open.get().is_none() && !packed.is_packed() && packed.bytes().is_none());
        assert_eq!(read_again(&packed), packed);
        assert_eq!(
            (packed.contains_key(&7), packed.len(), kept.len()),
            (false, 40, 39)
        );
        packed.change_later(BTreeMap::clear);
        assert!(packed.is_empty());
        packed.pack();
        assert!(packed.is_packed() && packed.is_empty());
        let mut kept = kept;
        kept.pack();
        assert_eq!(
            (kept.is_packed(), kept.contains_key(&7), kept.len()),
            (true, false, 39)
        );
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
        let mut packed = some();
        packed.pack();
        let mut cut_short = packed.bytes().unwrap();
        cut_short.pop();
        for bytes in [vec![0xff; 9], cut_short, Vec::new()] {
            packed.fill(Bytes {
                length: bytes.len(),
                source: Arc::new(bytes),
                at: 0,
            });
            assert!(packed.is_empty());
        }
    }
}
