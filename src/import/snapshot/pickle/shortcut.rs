//! Shortcuts past the stack for what snapshots hold by the million: dicts of plain values (events, blocks, frames) and
//! lists of things met before (stacks).
//!
//! Each is tried where such a container begins and reads it whole, or leaves the machine as it was: then the opcodes
//! are carried out one by one.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{BATCH_ITEMS, Builder, Kind, Machine, Memo, Object, Value};
use crate::model::StrId;

/// More keys than any dict of plain values in a snapshot has.
const MOST_ITEMS: usize = 64;
/// Texts up to this length that stand in dicts again and again (`N/A`) are looked up by their bytes.
const SHORT_TEXT_BYTES: usize = 7;
/// How many short texts are remembered.
const SHORT_TEXTS: usize = 64;

/// What the shortcuts remember.
pub(super) struct Shortcuts {
    /// Off to compare: shortcuts change the speed and nothing else.
    is_on: bool,
    /// Lists by the hash of their opcodes.
    lists: FxHashMap<u64, KnownList>,
    /// Room for the keys and values of the dict at hand.
    items: Vec<Value>,
    /// The key at each place of the dict before: dicts of one kind follow each other. (opcode and argument, key)
    keys: [(u64, StrId); MOST_ITEMS / 2],
    short_texts: [(u64, StrId); SHORT_TEXTS],
}

/// A list that was met before: where its opcodes stand, and the kind and index of what the builder made of it.
struct KnownList {
    opcodes: Range<usize>,
    made: (u8, u32),
}

impl Default for Shortcuts {
    fn default() -> Self {
        Self {
            is_on: true,
            lists: FxHashMap::default(),
            items: Vec::new(),
            keys: [(0, StrId::EMPTY); MOST_ITEMS / 2],
            short_texts: [(0, StrId::EMPTY); SHORT_TEXTS],
        }
    }
}

impl Shortcuts {
    /// A memo entry was overwritten: what lists were made of may no longer be what their opcodes say.
    pub fn forget_lists(&mut self) {
        self.lists.clear();
        self.keys = [(0, StrId::EMPTY); MOST_ITEMS / 2];
    }
}

/// The hash of a list's opcodes.
fn hash(bytes: &[u8]) -> u64 {
    use std::hash::Hasher as _;
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

impl<B: Builder> Machine<'_, B> {
    /// After EMPTY_DICT: reads the whole dict if its values are plain. False leaves everything as it was.
    pub(super) fn flat_dict(&mut self) -> bool {
        let start = self.at;
        let memo_start = self.memo.len();
        if !self.shortcuts.is_on {
            return false;
        }
        if let Some(value) = self.read_flat_dict() {
            self.stack.push(value);
            return true;
        }
        self.at = start;
        self.memo.truncate(memo_start);
        false
    }

    /// After EMPTY_LIST: reads the whole list if all its items were met before. False leaves everything as it was.
    pub(super) fn known_list(&mut self) -> bool {
        let start = self.at;
        let memo_start = self.memo.len();
        if !self.shortcuts.is_on {
            return false;
        }
        // An empty list may be filled by APPEND later on.
        if let Some((kind, index, 1..)) = self.read_known_list() {
            self.stack.push(Value::Made(kind, index));
            return true;
        }
        self.at = start;
        self.memo.truncate(memo_start);
        false
    }

    fn read_flat_dict(&mut self) -> Option<Value> {
        let slot = self.pass_memo(Memo::Other(u32::MAX))?;
        if self.opcode()? != b'(' {
            return None;
        }
        // Values are written where they stay: handed around they would be copied as a whole right after their halves
        // were written, which processors are slow at.
        let mut room = std::mem::take(&mut self.shortcuts.items);
        room.resize(MOST_ITEMS, Value::None);
        let count = self.read_items(&mut room);
        self.shortcuts.items = room;
        let items = &self.shortcuts.items[..count?];
        let value = self.builder.dict(items, &mut self.objects).unwrap_or_else(|| {
            let memo_slot = slot.map_or(super::NO_SLOT, |slot| slot as u32);
            self.objects.push(Object { kind: Kind::Dict, items: items.to_vec(), cached: 0, memo_slot });
            Value::Object(self.objects.len() as u32 - 1)
        });
        if let Some(slot) = slot {
            self.memo[slot] = match value {
                Value::Made(kind, index) => Memo::Made(kind, index),
                Value::Object(index) => Memo::Object(index),
                _ => Memo::Other(u32::MAX),
            };
        }
        Some(value)
    }

    /// Keys and values up to SETITEMS; returns how many.
    #[inline]
    fn read_items(&mut self, items: &mut [Value]) -> Option<usize> {
        let mut count = 0;
        while *self.bytes.get(self.at)? != b'u' {
            let [key, value] = items.get_mut(count..count + 2)? else { return None };
            *key = Value::Str(self.read_key(count / 2)?);
            self.read_value(value)?;
            count += 2;
        }
        self.at += 1;
        Some(count)
    }

    /// The key at a place of a dict: nearly always the same as in the dict before.
    #[inline]
    fn read_key(&mut self, place: usize) -> Option<StrId> {
        let ahead = u64::from_le_bytes(*self.bytes.get(self.at..)?.first_chunk()?);
        let (opcode, length) = match ahead as u8 {
            b'j' => (ahead & 0xff_ffff_ffff, 5),
            b'h' => (ahead & 0xffff, 2),
            _ => (0, 0),
        };
        let known = self.shortcuts.keys.get(place)?;
        if opcode != 0 && known.0 == opcode {
            self.at += length;
            return Some(known.1);
        }
        let mut key = Value::None;
        self.read_value(&mut key)?;
        let Value::Str(key) = key else { return None };
        if opcode != 0 {
            self.shortcuts.keys[place] = (opcode, key);
        }
        Some(key)
    }

    /// One value with its memo opcode; `None` when it is not plain.
    #[inline(always)]
    fn read_value(&mut self, value: &mut Value) -> Option<()> {
        // The opcodes that events are made of, their arguments read as one word.
        let Some(ahead) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<10>) else {
            return self.read_rarer_value(value);
        };
        let [opcode, argument @ .., _] = *ahead;
        let argument = u64::from_le_bytes(argument);
        let length = match opcode {
            b'j' => {
                self.read_memoized(argument as u32 as usize, value)?;
                5
            }
            b'h' => {
                self.read_memoized(argument as u8 as usize, value)?;
                2
            }
            b'K' => {
                *value = Value::Int(i64::from(argument as u8));
                2
            }
            b'M' => {
                *value = Value::Int(i64::from(argument as u16));
                3
            }
            b'J' => {
                *value = Value::Int(i64::from(argument as i32));
                5
            }
            0x8a => {
                let length = argument as u8;
                if !(1..=8).contains(&length) {
                    return None;
                }
                let [_, _, digits @ ..] = *ahead;
                let unused_bits = 64 - 8 * u32::from(length);
                *value = Value::Int(((u64::from_le_bytes(digits) << unused_bits) as i64) >> unused_bits);
                2 + usize::from(length)
            }
            _ => return self.read_rarer_value(value),
        };
        self.at += length;
        Some(())
    }

    /// The other opcodes of plain values. Those above are left to the machine at the very end of a file.
    #[inline(never)]
    fn read_rarer_value(&mut self, value: &mut Value) -> Option<()> {
        let (&opcode, argument) = self.bytes.get(self.at..)?.split_first()?;
        let length = match opcode {
            b'G' => {
                *value = Value::Float(f64::from_be_bytes(*argument.first_chunk()?));
                9
            }
            b'N' => {
                *value = Value::None;
                1
            }
            0x88 | 0x89 => {
                *value = Value::Bool(opcode == 0x88);
                1
            }
            0x8c | b'X' => {
                let (start, length) = match opcode {
                    0x8c => (1, usize::from(*argument.first()?)),
                    _ => (4, u32::from_le_bytes(*argument.first_chunk()?) as usize),
                };
                let id = self.text_at(self.at + 1 + start, length)?;
                *value = Value::Str(id);
                self.at += 1 + start + length;
                self.pass_memo(Memo::Str(id))?;
                return Some(());
            }
            b']' => {
                self.at += 1;
                let (kind, index, _) = self.read_known_list()?;
                *value = Value::Made(kind, index);
                return Some(());
            }
            _ => return None,
        };
        self.at += length;
        Some(())
    }

    #[inline(always)]
    fn read_memoized(&self, slot: usize, value: &mut Value) -> Option<()> {
        match *self.memo.get(slot)? {
            Memo::Str(id) => *value = Value::Str(id),
            Memo::Object(object) => *value = Value::Object(object),
            Memo::Made(kind, index) => *value = Value::Made(kind, index),
            Memo::Other(index) => *value = *self.other_memo.get(index as usize)?,
        }
        Some(())
    }

    /// The text of `length` bytes that begins here; short ones are known by their bytes.
    #[inline]
    fn text_at(&mut self, start: usize, length: usize) -> Option<StrId> {
        let bytes = self.bytes;
        let rest = bytes.get(start..)?;
        let Some(ahead) = rest.first_chunk().filter(|_| length <= SHORT_TEXT_BYTES) else {
            return Some(self.intern(rest.get(..length)?));
        };
        let in_text = (1 << (8 * length)) - 1;
        let packed = (u64::from_le_bytes(*ahead) & in_text) | ((length as u64) << 56);
        let place = (packed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SHORT_TEXTS;
        let known = self.shortcuts.short_texts[place];
        if known.0 == packed {
            return Some(known.1);
        }
        let id = self.intern(&rest[..length]);
        self.shortcuts.short_texts[place] = (packed, id);
        Some(id)
    }

    /// What the builder makes of a list of memoized items (its kind and index), and how many they are.
    fn read_known_list(&mut self) -> Option<(u8, u32, usize)> {
        let slot = self.pass_memo(Memo::Other(u32::MAX))?;
        let bytes = self.bytes;
        let start = self.at;
        let mut end = start;
        let mut count = 0;
        if bytes.get(end) == Some(&b'(') {
            end += 1;
            loop {
                match bytes.get(end)? {
                    b'j' => end += 5,
                    b'h' => end += 2,
                    b'e' => break,
                    _ => return None,
                }
                count += 1;
            }
            if count >= BATCH_ITEMS {
                return None;
            }
            end += 1;
        }
        let opcodes = bytes.get(start..end)?;
        let hash = hash(opcodes);
        let known =
            self.shortcuts.lists.get(&hash).filter(|known| bytes.get(known.opcodes.clone()) == Some(opcodes));
        let (kind, index) = match known {
            Some(known) => known.made,
            None => {
                let mut items = vec![Value::None; count];
                self.at = start + 1;
                items.iter_mut().try_for_each(|item| self.read_value(item))?;
                let Some(Value::Made(kind, index)) = self.builder.list(&items) else { return None };
                self.shortcuts.lists.insert(hash, KnownList { opcodes: start..end, made: (kind, index) });
                (kind, index)
            }
        };
        self.at = end;
        if let Some(slot) = slot {
            self.memo[slot] = Memo::Made(kind, index);
        }
        Some((kind, index, count))
    }

    fn opcode(&mut self) -> Option<u8> {
        let opcode = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(opcode)
    }

    /// Passes a memo opcode, if one is there, and returns its slot. `None` when it would overwrite an entry.
    #[inline]
    fn pass_memo(&mut self, memo: Memo) -> Option<Option<usize>> {
        let rest = self.bytes.get(self.at..)?;
        let (slot, length) = match rest.first() {
            Some(0x94) => (self.memo.len(), 1),
            Some(b'q') => (usize::from(*rest.get(1)?), 2),
            Some(b'r') => (u32::from_le_bytes(*rest[1..].first_chunk()?) as usize, 5),
            _ => return Some(None),
        };
        if slot != self.memo.len() {
            return None;
        }
        self.memo.push(memo);
        self.at += length;
        Some(Some(slot))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::path::Path;

    use proptest::prelude::*;

    use super::super::super::rows::{Rows, known_strings};
    use super::super::{PickleError, Unpickled};
    use super::*;
    use crate::import::Progress;

    /// Everything that a pickle gives, as text.
    fn read(bytes: &[u8], with_shortcuts: bool) -> String {
        let mut rows = Rows::default();
        let mut machine = Machine::new(bytes, known_strings(), &mut rows);
        machine.shortcuts.is_on = with_shortcuts;
        let result = machine.unpickle(&Progress::default());
        let stacks: Vec<_> =
            rows.events.iter().map(|event| rows.stacks.frames(event.stack).collect::<Vec<_>>()).collect();
        let told = match result {
            Ok(Unpickled { strings, cut, .. }) => {
                let strings: Vec<_> =
                    (0..strings.len()).map(|id| strings.get(StrId(id as u32)).to_owned()).collect();
                format!("{strings:?} {:?}", cut.map(|cut| (cut.byte, cut.what)))
            }
            Err(PickleError::Damaged { what, byte }) => format!("{what} at {byte}"),
            Err(PickleError::Refused { opcode, byte }) => format!("{opcode} at {byte}"),
            Err(PickleError::Cancelled) => "cancelled".to_owned(),
        };
        format!("{told} {:?} {:?} {:?} {stacks:?}", rows.events, rows.blocks, rows.device_free)
    }

    fn snapshots() -> Vec<(String, Vec<u8>)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        for entry in walkdir::WalkDir::new(root.join("tests/fixtures/snapshots")).into_iter().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "pickle") {
                found.push((entry.path().display().to_string(), std::fs::read(entry.path()).unwrap()));
            }
        }
        let sample = std::fs::read(root.join("samples/val_without_no_grad/snapshot.pickle.gz")).unwrap();
        let mut bytes = Vec::new();
        flate2::read::MultiGzDecoder::new(sample.as_slice()).read_to_end(&mut bytes).unwrap();
        found.push(("sample".to_owned(), bytes));
        found
    }

    #[test]
    fn shortcuts_change_nothing_of_whole_and_cut_snapshots() {
        let snapshots = snapshots();
        assert!(snapshots.len() > 20);
        for (name, bytes) in snapshots {
            assert_eq!(read(&bytes, true), read(&bytes, false), "{name}");
            let every = bytes.len().div_ceil(if bytes.len() > 100_000 { 5 } else { 97 });
            for end in (0..bytes.len()).step_by(every) {
                assert_eq!(read(&bytes[..end], true), read(&bytes[..end], false), "{name} cut at {end}");
            }
        }
    }

    /// Opcodes with arguments that make sense now and then.
    const PIECES: &[&[u8]] = &[
        b"\x80\x04",
        b"}",
        b"]",
        b")",
        b"(",
        b"u",
        b"s",
        b"e",
        b"a",
        b"t",
        b"\x85",
        b"\x86",
        b"\x94",
        b"0",
        b"2",
        b"N",
        b"\x88",
        b"h\x00",
        b"h\x01",
        b"h\x02",
        b"j\x03\x00\x00\x00",
        b"j\xff\xff\xff\xff",
        b"q\x00",
        b"q\x07",
        b"r\x01\x00\x00\x00",
        b"r\xff\xff\xff\x7f",
        b"K\x05",
        b"M\x00\x02",
        b"J\xff\xff\xff\xff",
        b"\x8a\x06\x01\x02\x03\x04\x05\x06",
        b"\x8a\x00",
        b"\x8a\xff",
        b"\x8b\xff\xff\xff\xff",
        b"\x8c\x06action",
        b"\x8c\x05alloc",
        b"\x8c\x04addr",
        b"\x8c\x06frames",
        b"\x8c\x08filename",
        b"\x8c\x04name",
        b"\x8c\x04line",
        b"X\xff\xff\xff\xff",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x95\x00\x00\x00\x00\x00\x00\x00\x00",
        b"cos\nsystem\n",
        b"R",
        b".",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_opcodes_panic(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..60)) {
            let bytes = pieces.concat();
            read(&bytes, true);
            read(&bytes, false);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            read(&bytes, true);
        }
    }
}
