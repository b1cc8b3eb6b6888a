//! A pickle that ends early: what was complete is put together.

use super::{Builder, Kind, Machine, Value};

impl<B: Builder> Machine<'_, B> {
    /// Puts together what a cut pickle left open: items go to the list or dict that they were meant for, so that
    /// everything complete is reachable from the outermost container.
    pub(super) fn close_open_containers(&mut self) {
        while let Some(mark) = self.marks.pop() {
            if mark > self.stack.len() {
                continue;
            }
            let below = mark.checked_sub(1).and_then(|below| self.stack.get(below)).copied();
            // Below a key without its value yet, or nothing, what was collected stays on the stack for the next mark.
            let Some(Value::Object(target)) = below else { continue };
            let mut items = self.stack.split_off(mark);
            if self.objects[target as usize].kind == Kind::Dict {
                // One item of its own goes to a list by APPEND, without a mark: the list is the value before it.
                if items.len() % 2 == 1
                    && let [.., Value::Object(list), last] = items[..]
                    && self.objects[list as usize].kind == Kind::List
                {
                    self.objects[list as usize].push(last);
                }
                items.truncate(items.len() / 2 * 2);
                // Not offered to the builder unless it is the outermost: an event without all its keys is not complete.
                self.objects[target as usize].items.append(&mut items);
            } else {
                items.drain(..).for_each(|item| self.objects[target as usize].push(item));
            }
        }
        self.fold_single_items();
    }

    /// Without marks (SETITEM, APPEND) open containers stand on the stack with their keys between them.
    fn fold_single_items(&mut self) {
        while self.stack.len() > 1 {
            let Some(value) = self.stack.pop() else { return };
            let below = self.stack.len();
            let pair = match (below.checked_sub(2).map(|index| self.stack[index]), self.stack[below - 1]) {
                (Some(Value::Object(dict)), key @ Value::Str(_))
                    if self.objects[dict as usize].kind == Kind::Dict =>
                {
                    Some((dict, key))
                }
                _ => None,
            };
            if let Some((dict, key)) = pair {
                self.stack.pop();
                self.objects[dict as usize].items.extend([key, value]);
            } else if let Value::Object(list) = self.stack[below - 1]
                && self.objects[list as usize].kind == Kind::List
            {
                self.objects[list as usize].push(value);
            }
        }
    }
}
