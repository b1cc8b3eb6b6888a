//! A reader of pickles that holds plain data only: it never imports, calls or resolves anything.
//!
//! A pickle is a program for a stack machine. Of its opcodes (`pickletools.py` lists them) those that build numbers,
//! texts, lists, tuples, dicts and sets are carried out; one that would import or call something is refused by name.
//! Dicts are handed to a [`Builder`] as soon as they are filled, which may turn them into something smaller: the
//! millions of event dicts of a snapshot become rows and never pile up.

mod cut;
mod shortcut;
mod text;
mod value;

use crate::import::Progress;
use crate::model::{StrId, Strings};
use crate::text::{msg, say, t};
use shortcut::Shortcuts;
use text::{decimal, unescape, unquote};
use value::Memo;
pub(super) use value::{Kind, Object, RUN_KIND, Value};

/// How often progress is told and cancelling is looked at, in opcodes.
const CHECK_EVERY: u32 = 1 << 16;

/// Takes dicts and lists as they are completed.
pub(in super::super) trait Builder {
    /// What to keep instead of a dict with these keys and values; `None` keeps the dict.
    fn dict(&mut self, items: &[Value], objects: &mut [Object]) -> Option<Value>;

    /// What to keep instead of a list with these items; `None` keeps the list.
    fn list(&mut self, items: &[Value]) -> Option<Value>;
}

/// What a pickle held.
pub(super) struct Unpickled {
    /// The object on top at the end; of a cut pickle, everything that was complete put together.
    pub root: Option<Value>,
    pub objects: Vec<Object>,
    pub strings: Strings,
    /// Where and why reading ended early.
    pub cut: Option<Cut>,
}

/// Where a pickle ended early.
pub(super) struct Cut {
    pub byte: usize,
    pub what: String,
}

/// Why a pickle can't be read at all.
#[derive(Debug)]
pub(super) enum PickleError {
    Cancelled,
    /// An opcode that would import or call.
    Refused {
        opcode: &'static str,
        byte: usize,
    },
    /// Not a pickle, or a damaged one before anything useful.
    Damaged {
        what: String,
        byte: usize,
    },
}

/// Opcodes that would import, call or fetch something.
const REFUSED: &[(u8, &str)] = &[
    (b'c', "GLOBAL"),
    (0x93, "STACK_GLOBAL"),
    (b'R', "REDUCE"),
    (b'b', "BUILD"),
    (b'i', "INST"),
    (b'o', "OBJ"),
    (0x81, "NEWOBJ"),
    (0x92, "NEWOBJ_EX"),
    (0x82, "EXT1"),
    (0x83, "EXT2"),
    (0x84, "EXT4"),
    (b'P', "PERSID"),
    (b'Q', "BINPERSID"),
    (0x97, "NEXT_BUFFER"),
    (0x98, "READONLY_BUFFER"),
];

/// Python's pickler appends this many items at a time: a shorter batch is a list's last.
const BATCH_ITEMS: usize = 1000;

/// How many values a pickle may hold at once: so many, and one for so many of its bytes. A snapshot holds half of that at most;
/// one opcode of one byte, repeated, would fill the memory with what is sixteen times as large.
const HELD_VALUES: usize = 8 << 20;
const BYTES_PER_HELD_VALUE: usize = 12;

/// Dicts of events, blocks and frames hold fewer keys and values; larger ones are kept as they are.
const MOST_ROW_ITEMS: usize = 128;

/// Runs a pickle of plain data. `strings` may hold strings whose ids the builder knows.
pub(super) fn unpickle(
    bytes: &[u8],
    strings: Strings,
    builder: &mut impl Builder,
    progress: &Progress,
) -> Result<Unpickled, PickleError> {
    Machine::new(bytes, strings, builder).unpickle(progress)
}

struct Machine<'a, B> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: Vec<Memo>,
    other_memo: Vec<Value>,
    objects: Vec<Object>,
    /// How many values went into objects.
    placed: usize,
    /// Objects whose dict the builder took, to be used again.
    free: Vec<u32>,
    strings: Strings,
    shortcuts: Shortcuts,
    builder: &'a mut B,
}

/// Why an opcode can't be carried out: the file ends, or it makes no sense.
enum Fault {
    End,
    Bad(&'static str),
    Refused(&'static str),
}

type Step<T> = Result<T, Fault>;

impl<'a, B: Builder> Machine<'a, B> {
    fn new(bytes: &'a [u8], strings: Strings, builder: &'a mut B) -> Self {
        Self {
            bytes,
            at: 0,
            stack: Vec::new(),
            marks: Vec::new(),
            // Picklers memoize every container and text: about so many in a snapshot of this size.
            memo: Vec::with_capacity(bytes.len() / 32),
            other_memo: Vec::new(),
            objects: Vec::new(),
            placed: 0,
            free: Vec::new(),
            strings,
            shortcuts: Shortcuts::default(),
            builder,
        }
    }

    fn unpickle(mut self, progress: &Progress) -> Result<Unpickled, PickleError> {
        let fault = self.run(progress)?;
        let cut = fault.map(|what| Cut { byte: self.at, what });
        if cut.is_some() {
            self.close_open_containers();
        }
        Ok(Unpickled { root: self.stack.last().copied(), objects: self.objects, strings: self.strings, cut })
    }

    /// Runs to STOP. `Ok(Some(what))` when the pickle ends early.
    fn run(&mut self, progress: &Progress) -> Result<Option<String>, PickleError> {
        let mut until_check = CHECK_EVERY;
        loop {
            until_check -= 1;
            if until_check == 0 {
                until_check = CHECK_EVERY;
                progress.set_done(self.at as u64);
                if progress.is_cancelled() {
                    return Err(PickleError::Cancelled);
                }
            }
            let start = self.at;
            let is_overfull = until_check == CHECK_EVERY && self.is_overfull();
            let step = if is_overfull {
                Err(Fault::Bad(msg!("it holds far more than a snapshot of its size")))
            } else {
                self.step()
            };
            match step {
                Ok(true) => return Ok(None),
                Ok(false) => {}
                Err(fault) => {
                    self.at = start;
                    return match fault {
                        Fault::End => Ok(Some(t!("the file ends").to_owned())),
                        Fault::Refused(opcode) => Err(PickleError::Refused { opcode, byte: start }),
                        Fault::Bad(what) if self.objects.is_empty() => {
                            Err(PickleError::Damaged { what: say(what).to_owned(), byte: start })
                        }
                        Fault::Bad(what) => Ok(Some(say(what).to_owned())),
                    };
                }
            }
        }
    }

    /// Whether the pickle was made to fill the memory.
    fn is_overfull(&self) -> bool {
        let memos = self.memo.len() + self.other_memo.len();
        // An object takes as much as three values.
        let held = self.stack.len() + self.marks.len() + memos + 3 * self.objects.len() + self.placed;
        held > HELD_VALUES + self.bytes.len() / BYTES_PER_HELD_VALUE
    }

    /// Carries out one opcode; true at STOP.
    #[inline]
    fn step(&mut self) -> Step<bool> {
        let opcode = *self.take(1)?.first().ok_or(Fault::End)?;
        match opcode {
            // Memo, the commonest first.
            b'j' => {
                let slot = self.u32_at()?;
                self.get(slot as usize)?;
            }
            b'h' => {
                let slot = self.u8_at()?;
                self.get(usize::from(slot))?;
            }
            0x94 => self.put(self.memo.len())?,
            b'q' => {
                let slot = self.u8_at()?;
                self.put(usize::from(slot))?;
            }
            b'r' => {
                let slot = self.u32_at()?;
                self.put(slot as usize)?;
            }
            b'g' => {
                let slot = self.decimal_line()?;
                self.get(usize::try_from(slot).map_err(|_| Fault::Bad(msg!("a memo index is negative")))?)?;
            }
            b'p' => {
                let slot = self.decimal_line()?;
                self.put(usize::try_from(slot).map_err(|_| Fault::Bad(msg!("a memo index is negative")))?)?;
            }
            // Numbers.
            b'K' => {
                let value = self.u8_at()?;
                self.stack.push(Value::Int(i64::from(value)));
            }
            b'M' => {
                let bytes = self.take(2)?;
                self.stack.push(Value::Int(i64::from(u16::from_le_bytes([bytes[0], bytes[1]]))));
            }
            b'J' => {
                let value = self.u32_at()? as i32;
                self.stack.push(Value::Int(i64::from(value)));
            }
            0x8a => {
                let length = usize::from(self.u8_at()?);
                self.long(length)?;
            }
            0x8b => {
                let length = self.u32_at()? as usize;
                self.long(length)?;
            }
            b'I' => {
                let value = match self.line()? {
                    b"00" => Value::Bool(false),
                    b"01" => Value::Bool(true),
                    text => Value::Int(decimal(text)?),
                };
                self.stack.push(value);
            }
            b'L' => {
                let value = self.decimal_line()?;
                self.stack.push(Value::Int(value));
            }
            b'G' => {
                let bytes: [u8; 8] = self.take(8)?.try_into().map_err(|_| Fault::End)?;
                self.stack.push(Value::Float(f64::from_be_bytes(bytes)));
            }
            b'F' => {
                let text = std::str::from_utf8(self.line()?).ok().and_then(|text| text.trim().parse().ok());
                self.stack.push(Value::Float(text.ok_or(Fault::Bad(msg!("a float is not a number")))?));
            }
            b'N' => self.stack.push(Value::None),
            0x88 => self.stack.push(Value::Bool(true)),
            0x89 => self.stack.push(Value::Bool(false)),
            // Texts.
            0x8c | b'U' | b'C' => {
                let length = usize::from(self.u8_at()?);
                self.text(length)?;
            }
            b'X' | b'T' | b'B' => {
                let length = self.u32_at()? as usize;
                self.text(length)?;
            }
            0x8d | 0x8e | 0x96 => {
                let length = self.u64_at()?;
                self.text(usize::try_from(length).map_err(|_| Fault::End)?)?;
            }
            b'S' => {
                let line = self.line()?;
                let text = String::from_utf8_lossy(unquote(line)).into_owned();
                let id = self.strings.intern(&text);
                self.stack.push(Value::Str(id));
            }
            b'V' => {
                let text = unescape(&String::from_utf8_lossy(self.line()?));
                let id = self.strings.intern(&text);
                self.stack.push(Value::Str(id));
            }
            // Containers.
            b'(' => self.marks.push(self.stack.len()),
            b'}' => {
                if !self.flat_dict() {
                    self.new_object(Kind::Dict, Vec::new());
                }
            }
            b']' => {
                if !self.known_list() {
                    self.new_object(Kind::List, Vec::new());
                }
            }
            b')' | 0x8f => self.new_object(Kind::List, Vec::new()),
            b'd' => {
                let items = self.items()?;
                self.new_object(Kind::Dict, items);
            }
            b'l' | b't' | 0x91 => {
                let items = self.items()?;
                self.new_object(Kind::List, items);
            }
            0x85..=0x87 => {
                let count = usize::from(opcode - 0x84);
                let start =
                    self.stack.len().checked_sub(count).ok_or(Fault::Bad(msg!("a tuple lacks items")))?;
                if self.marks.last().is_some_and(|&mark| mark > start) {
                    return Err(Fault::Bad(msg!("a tuple lacks items")));
                }
                let items = self.stack.split_off(start);
                self.new_object(Kind::List, items);
            }
            b'a' => {
                let value = self.pop()?;
                let value = self.settle(value);
                self.append(value)?;
            }
            b'e' | 0x90 => {
                self.append_from_mark()?;
            }
            b's' => {
                let value = self.pop()?;
                let value = self.settle(value);
                let key = self.pop()?;
                self.set_items(&[key, value])?;
            }
            b'u' => self.set_items_from_mark()?,
            // Stack and frames.
            b'0' => {
                self.pop()?;
            }
            b'1' => {
                self.items()?;
            }
            b'2' => {
                let top = *self.stack.last().ok_or(Fault::Bad(msg!("the stack is empty")))?;
                self.stack.push(top);
            }
            0x80 => {
                self.take(1)?;
            }
            0x95 => {
                self.take(8)?;
            }
            b'.' => return Ok(true),
            opcode => {
                let refused = REFUSED.iter().find(|(code, _)| *code == opcode);
                return Err(
                    refused.map_or(Fault::Bad(msg!("an unknown opcode")), |&(_, name)| Fault::Refused(name))
                );
            }
        }
        Ok(false)
    }

    fn take(&mut self, count: usize) -> Step<&'a [u8]> {
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.get(..count)).ok_or(Fault::End)?;
        self.at += count;
        Ok(bytes)
    }

    fn u8_at(&mut self) -> Step<u8> {
        Ok(self.take(1)?[0])
    }

    fn u32_at(&mut self) -> Step<u32> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn u64_at(&mut self) -> Step<u64> {
        let bytes: [u8; 8] = self.take(8)?.try_into().map_err(|_| Fault::End)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// The rest of a line, as protocol 0 writes arguments.
    fn line(&mut self) -> Step<&'a [u8]> {
        let rest = self.bytes.get(self.at..).ok_or(Fault::End)?;
        let end = memchr::memchr(b'\n', rest).ok_or(Fault::End)?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    fn decimal_line(&mut self) -> Step<i64> {
        decimal(self.line()?)
    }

    /// A little-endian two's complement integer. Numbers of 65 bits and more don't occur and are clamped.
    fn long(&mut self, length: usize) -> Step<()> {
        let bytes = self.take(length)?;
        let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut wide = [if is_negative { 0xff } else { 0 }; 8];
        let count = length.min(8);
        wide[..count].copy_from_slice(&bytes[..count]);
        let fits = bytes[count..].iter().all(|&byte| byte == if is_negative { 0xff } else { 0 });
        let value = match (fits, is_negative) {
            (true, _) => i64::from_le_bytes(wide),
            (false, true) => i64::MIN,
            (false, false) => i64::MAX,
        };
        self.stack.push(Value::Int(value));
        Ok(())
    }

    fn text(&mut self, length: usize) -> Step<()> {
        let bytes = self.take(length)?;
        let id = self.intern(bytes);
        self.stack.push(Value::Str(id));
        Ok(())
    }

    fn intern(&mut self, bytes: &[u8]) -> StrId {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.strings.intern(text),
            Err(_) => self.strings.intern(&String::from_utf8_lossy(bytes)),
        }
    }

    fn get(&mut self, slot: usize) -> Step<()> {
        let value = self.memoized(slot).ok_or(Fault::Bad(msg!("a memo entry is missing")))?;
        self.stack.push(value);
        Ok(())
    }

    fn memoized(&self, slot: usize) -> Option<Value> {
        Some(match *self.memo.get(slot)? {
            Memo::Str(id) => Value::Str(id),
            Memo::Object(object) => Value::Object(object),
            Memo::Made(kind, index) => Value::Made(kind, index),
            Memo::Other(index) => self.other_memo.get(index as usize).copied().unwrap_or(Value::None),
        })
    }

    fn put(&mut self, slot: usize) -> Step<()> {
        let memo = match *self.stack.last().ok_or(Fault::Bad(msg!("the stack is empty")))? {
            Value::Str(id) => Memo::Str(id),
            Value::Object(object) => {
                self.objects[object as usize].memo_slot = slot as u32;
                Memo::Object(object)
            }
            Value::Made(kind, index) => Memo::Made(kind, index),
            other => {
                self.other_memo.push(other);
                Memo::Other(self.other_memo.len() as u32 - 1)
            }
        };
        match slot.cmp(&self.memo.len()) {
            std::cmp::Ordering::Less => {
                self.memo[slot] = memo;
                self.shortcuts.forget_lists();
            }
            std::cmp::Ordering::Equal => self.memo.push(memo),
            // Picklers number the memo without large gaps: an index far beyond the file's size is damage.
            std::cmp::Ordering::Greater if slot <= self.bytes.len() => {
                self.memo.resize(slot, Memo::Other(u32::MAX));
                self.memo.push(memo);
            }
            std::cmp::Ordering::Greater => return Err(Fault::Bad(msg!("a memo index is out of range"))),
        }
        Ok(())
    }

    fn pop(&mut self) -> Step<Value> {
        if self.marks.last().is_some_and(|&mark| mark >= self.stack.len()) {
            return Err(Fault::Bad(msg!("the stack is empty")));
        }
        self.stack.pop().ok_or(Fault::Bad(msg!("the stack is empty")))
    }

    /// Takes what stands above the last mark.
    fn items(&mut self) -> Step<Vec<Value>> {
        let mark = self
            .marks
            .pop()
            .filter(|&mark| mark <= self.stack.len())
            .ok_or(Fault::Bad(msg!("a mark is missing")))?;
        Ok(self.stack.split_off(mark))
    }

    fn new_object(&mut self, kind: Kind, items: Vec<Value>) {
        self.placed += items.len();
        let object = Object { kind, items, cached: 0, memo_slot: NO_SLOT };
        let index = match self.free.pop() {
            Some(index) => {
                let reused = &mut self.objects[index as usize];
                // Keep the room that the dict before it took.
                let mut room = std::mem::take(&mut reused.items);
                *reused = object;
                if reused.items.is_empty() {
                    room.clear();
                    reused.items = room;
                }
                index
            }
            None => {
                self.objects.push(object);
                self.objects.len() as u32 - 1
            }
        };
        self.stack.push(Value::Object(index));
    }

    /// SETITEMS: keys and values above the mark go to the dict below it. A dict that was empty is offered to the builder
    /// straight from the stack: of a snapshot's millions of events none is ever copied.
    fn set_items_from_mark(&mut self) -> Step<()> {
        let mark = self
            .marks
            .pop()
            .filter(|&mark| mark <= self.stack.len())
            .ok_or(Fault::Bad(msg!("a mark is missing")))?;
        let dict = match mark.checked_sub(1).and_then(|below| self.stack.get(below)) {
            Some(&Value::Object(dict)) if self.objects[dict as usize].kind == Kind::Dict => dict,
            // A dict that the builder took and that goes on: what comes late is not needed.
            Some(Value::Made(..)) => {
                self.stack.truncate(mark);
                return Ok(());
            }
            _ => return Err(Fault::Bad(msg!("items without a dict"))),
        };
        let made = if self.objects[dict as usize].items.is_empty() {
            self.builder.dict(&self.stack[mark..], &mut self.objects)
        } else {
            None
        };
        match made {
            Some(made) => self.replace(dict, made, mark - 1),
            None => {
                self.placed += self.stack.len() - mark;
                self.objects[dict as usize].items.extend_from_slice(&self.stack[mark..]);
            }
        }
        self.stack.truncate(mark);
        Ok(())
    }

    /// SETITEM and DICT: adds keys and values to the dict on top.
    fn set_items(&mut self, items: &[Value]) -> Step<()> {
        let dict = match self.stack.last() {
            Some(&Value::Object(dict)) if self.objects[dict as usize].kind == Kind::Dict => dict,
            Some(Value::Made(..)) => return Ok(()),
            _ => return Err(Fault::Bad(msg!("items without a dict"))),
        };
        self.placed += items.len();
        self.objects[dict as usize].items.extend_from_slice(items);
        // Protocol 0 sets items one by one: a dict is complete when the next thing happens to it, so that it is offered
        // when it joins a list or another dict (see `settle`).
        Ok(())
    }

    /// What the builder makes of a dict that is complete, or the value as it is.
    fn settle(&mut self, value: Value) -> Value {
        let Value::Object(dict) = value else { return value };
        let object = &self.objects[dict as usize];
        if object.kind != Kind::Dict || object.items.len() > MOST_ROW_ITEMS {
            return value;
        }
        let items = std::mem::take(&mut self.objects[dict as usize].items);
        let made = self.builder.dict(&items, &mut self.objects);
        let object = &mut self.objects[dict as usize];
        object.items = items;
        match made {
            Some(made) => {
                object.items.clear();
                self.forget(dict, made);
                made
            }
            None => value,
        }
    }

    /// Puts what the builder made of an object in its place, on the stack and in the memo.
    fn replace(&mut self, object: u32, made: Value, at: usize) {
        self.forget(object, made);
        self.stack[at] = made;
    }

    /// Lets the memo hold what the builder made of an object, whose place can be used again.
    fn forget(&mut self, object: u32, made: Value) {
        if let (Some(slot), Value::Made(kind, index)) =
            (self.memo.get_mut(self.objects[object as usize].memo_slot as usize), made)
        {
            *slot = Memo::Made(kind, index);
        }
        self.free.push(object);
    }

    /// APPENDS: items above the mark go to the list below it. A list that they complete is offered to the builder.
    fn append_from_mark(&mut self) -> Step<()> {
        let mark = self
            .marks
            .pop()
            .filter(|&mark| mark <= self.stack.len())
            .ok_or(Fault::Bad(msg!("a mark is missing")))?;
        let list = match mark.checked_sub(1).and_then(|below| self.stack.get(below)) {
            Some(&Value::Object(list)) => list,
            // A list that the builder took and that goes on: what comes late is not needed.
            Some(Value::Made(..)) => {
                self.stack.truncate(mark);
                return Ok(());
            }
            _ => return Err(Fault::Bad(msg!("items without a list"))),
        };
        for index in mark..self.stack.len() {
            let value = self.stack[index];
            if let Value::Object(_) = value {
                self.stack[index] = self.settle(value);
            }
        }
        let is_whole = self.objects[list as usize].items.is_empty() && self.stack.len() - mark < BATCH_ITEMS;
        let made = if is_whole { self.builder.list(&self.stack[mark..]) } else { None };
        match made {
            Some(made) => self.replace(list, made, mark - 1),
            None => {
                self.placed += self.stack.len() - mark;
                let object = &mut self.objects[list as usize];
                for &value in &self.stack[mark..] {
                    object.push(value);
                }
            }
        }
        self.stack.truncate(mark);
        Ok(())
    }

    fn append(&mut self, item: Value) -> Step<()> {
        match self.stack.last() {
            Some(&Value::Object(list)) => {
                self.placed += 1;
                self.objects[list as usize].push(item);
                Ok(())
            }
            _ => Err(Fault::Bad(msg!("items without a list"))),
        }
    }
}

/// The memo slot of an object that was never memoized.
const NO_SLOT: u32 = u32::MAX;
