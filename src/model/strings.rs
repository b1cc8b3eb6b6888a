//! Interned strings: each distinct text is kept once.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Longer texts are shortened in the middle. No name is that long unless someone means harm: a name of a MiB costs as much
/// wherever it is written, for each allocation.
const MAX_TEXT_BYTES: usize = 4096;

/// A string of a [`Strings`] table. [`StrId::EMPTY`] is the empty string and stands for "not known".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StrId(pub u32);

impl StrId {
    /// The empty string, in every table.
    pub const EMPTY: Self = Self(0);

    /// Whether this is the empty string.
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }
}

/// A table of distinct strings.
#[derive(Clone, Debug)]
pub struct Strings {
    list: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, StrId>,
}

impl Default for Strings {
    fn default() -> Self {
        let empty: Arc<str> = Arc::from("");
        Self { list: vec![empty.clone()], ids: FxHashMap::from_iter([(empty, StrId::EMPTY)]) }
    }
}

impl Strings {
    /// The id of `text`, adding it when it is new; of one beyond 4 KiB, of its beginning and end.
    pub fn intern(&mut self, text: &str) -> StrId {
        let text: &str = &shortened(text);
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = StrId(self.list.len() as u32);
        let shared: Arc<str> = Arc::from(text);
        self.list.push(shared.clone());
        self.ids.insert(shared, id);
        id
    }

    /// The id of `text` if the table has it.
    pub fn find(&self, text: &str) -> Option<StrId> {
        self.ids.get(&*shortened(text)).copied()
    }

    /// The text of an id; empty for an id of another table.
    pub fn get(&self, id: StrId) -> &str {
        self.list.get(id.0 as usize).map_or("", |text| text)
    }

    /// How many distinct strings there are, the empty one included.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether only the empty string is there.
    pub fn is_empty(&self) -> bool {
        self.list.len() <= 1
    }

    /// Adds every string of `other` and returns the map from its ids (by position) to ids here.
    pub fn absorb(&mut self, other: &Self) -> Vec<StrId> {
        other.list.iter().map(|text| self.intern(text)).collect()
    }
}

fn shortened(text: &str) -> Cow<'_, str> {
    match text.len() {
        0..=MAX_TEXT_BYTES => text.into(),
        _ => without_middle(text, MAX_TEXT_BYTES / 2 - '…'.len_utf8()).into(),
    }
}

/// The beginning and the end of a text, at most so many bytes of each.
pub(crate) fn without_middle(text: &str, each_bytes: usize) -> String {
    let head = &text[..text.floor_char_boundary(each_bytes)];
    let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(each_bytes))..];
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_keep_their_beginning_and_end() {
        let mut strings = Strings::default();
        let long = format!("/home/ann/{}/train.py", "é".repeat(100_000));
        let id = strings.intern(&long);
        let text = strings.get(id);
        assert!(
            text.len() <= MAX_TEXT_BYTES && text.starts_with("/home/ann/é") && text.ends_with("é/train.py")
        );
        assert_eq!(strings.find(&long), Some(id));
        assert_eq!(strings.clone().intern(strings.get(id)), id);
        let longest = "a".repeat(MAX_TEXT_BYTES);
        let id = strings.intern(&longest);
        assert_eq!(strings.get(id), longest);
    }
}
