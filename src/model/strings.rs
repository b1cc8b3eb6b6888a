//! Interned strings: each distinct text is kept once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

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

/// Of longer texts only the beginning is kept: each allocation may show it again.
const MOST_BYTES: usize = 64 << 10;

impl Strings {
    /// The id of `text`, adding it when it is new.
    pub fn intern(&mut self, text: &str) -> StrId {
        if text.len() > MOST_BYTES {
            let beginning = &text[..text.floor_char_boundary(MOST_BYTES - '…'.len_utf8())];
            return self.intern(&format!("{beginning}…"));
        }
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
        self.ids.get(text).copied()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_text_without_measure_the_beginning_is_kept() {
        let mut strings = Strings::default();
        let long = "é".repeat(MOST_BYTES);
        let id = strings.intern(&long);
        assert!(strings.get(id).len() <= MOST_BYTES && strings.get(id).ends_with("é…"));
        assert_eq!((strings.intern(&long), strings.len()), (id, 2));
        let whole = "x".repeat(MOST_BYTES);
        let id = strings.intern(&whole);
        assert_eq!(strings.get(id), whole);
    }
}
