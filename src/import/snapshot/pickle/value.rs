//! What the stack machine works with: values, containers, and the memo's entries.

use crate::model::StrId;

/// A value of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Value {
    None,
    Bool(bool),
    /// Unsigned 64-bit handles and addresses keep their bits.
    Int(i64),
    Float(f64),
    Str(StrId),
    /// A list, tuple, dict or set: an index into the machine's objects.
    Object(u32),
    /// What the builder made of a dict: its kind and index.
    Made(u8, u32),
    /// In lists: so many made values of [`RUN_KIND`] in a row, from this index on.
    Run(u32, u32),
}

/// The kind of made values that lists keep as runs, since snapshots list millions of them.
pub(in super::super) const RUN_KIND: u8 = 0;

/// A container.
#[derive(Debug, Default)]
pub(in super::super) struct Object {
    pub kind: Kind,
    /// Items; for a dict keys and values in turn.
    pub items: Vec<Value>,
    /// What the builder keeps beside a list, 0 at first.
    pub cached: u32,
    /// Where the memo holds it, so that a dict can be replaced there.
    pub(super) memo_slot: u32,
}

impl Object {
    /// Adds an item to a list; made values in a row become a run.
    pub(super) fn push(&mut self, value: Value) {
        if let Value::Made(RUN_KIND, index) = value {
            match self.items.last_mut() {
                Some(Value::Run(start, count)) if start.wrapping_add(*count) == index => *count += 1,
                _ => self.items.push(Value::Run(index, 1)),
            }
            return;
        }
        self.items.push(value);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Kind {
    #[default]
    List,
    Dict,
}

/// A value of the memo, half as large: what is memoized is nearly always a text or a container.
#[derive(Clone, Copy, Debug)]
pub(super) enum Memo {
    Str(StrId),
    Object(u32),
    Made(u8, u32),
    /// An index into the machine's other memo.
    Other(u32),
}
