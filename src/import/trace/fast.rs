//! The quick way to read an event: one pass over its bytes, for JSON as torch.profiler writes it.
//!
//! Anything unusual (escapes, bare words, a value of another kind) makes it give up, and the strict reader decides.

use std::borrow::Cow;

use memchr::memchr;

use super::event::{Args, Event, Raw, Text, integer};

/// Reads the event at the beginning of `bytes` and tells how many bytes it takes. `None` decides nothing.
pub(super) fn event(bytes: &[u8]) -> Option<(Event<'_>, usize)> {
    let mut reader = Reader { bytes, at: 0 };
    let mut event = Event::default();
    reader.object(|reader, key| {
        match key {
            b"ph" => event.ph = reader.text()?,
            b"cat" => event.cat = reader.text()?,
            b"name" => event.name = reader.text()?,
            b"pid" => event.pid = reader.raw()?,
            b"tid" => event.tid = reader.raw()?,
            b"ts" => event.ts = reader.raw()?,
            b"dur" => event.dur = reader.raw()?,
            b"args" if reader.peek()? == b'{' => reader.args(&mut event.args)?,
            b"traceEvents" => return None,
            _ => reader.skip()?,
        }
        Some(())
    })?;
    Some((event, reader.at))
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The next byte that is not blank.
    fn next(&mut self) -> Option<u8> {
        loop {
            match self.peek()? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Hands each key to `field`, which must read its value.
    fn object(&mut self, mut field: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        self.at += 1;
        if self.next()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            if self.next()? != b'"' {
                return None;
            }
            let key = self.quoted()?;
            if self.next()? != b':' {
                return None;
            }
            self.at += 1;
            self.next()?;
            field(self, key)?;
            match self.next()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn args(&mut self, args: &mut Args<'a>) -> Option<()> {
        self.object(|reader, key| {
            let slot = match key {
                b"Addr" => &mut args.address,
                b"Bytes" => &mut args.bytes,
                b"Total Allocated" => &mut args.total_allocated,
                b"Total Reserved" => &mut args.total_reserved,
                b"Device Type" => &mut args.device_type,
                b"Device Id" => &mut args.device_id,
                b"Sequence number" => &mut args.sequence,
                b"Fwd thread id" => &mut args.forward_thread,
                b"Python id" => &mut args.python_id,
                b"Python parent id" => &mut args.python_parent,
                _ => {
                    match key {
                        b"Input Dims" | b"Input dims" => args.dims = reader.raw()?,
                        b"Input type" | b"Input Types" => args.types = reader.raw()?,
                        b"Concrete Inputs" => args.concrete = reader.raw()?,
                        b"Call stack" => args.call_stack = reader.text()?,
                        b"name" => args.name = reader.raw()?,
                        _ => reader.skip()?,
                    }
                    return Some(());
                }
            };
            *slot = integer(reader.raw()?);
            Some(())
        })
    }

    /// The bytes between two quotes; an escape among them shows where they are used.
    fn quoted(&mut self) -> Option<&'a [u8]> {
        let start = self.at + 1;
        let end = start + memchr(b'"', self.bytes.get(start..)?)?;
        self.at = end + 1;
        Some(&self.bytes[start..end])
    }

    fn text(&mut self) -> Option<Text<'a>> {
        if self.peek()? != b'"' {
            return None;
        }
        let bytes = self.quoted()?;
        let is_odd = bytes.iter().fold(false, |odd, &byte| odd | (byte < b' ') | (byte == b'\\'));
        if is_odd { None } else { Some(Cow::Borrowed(std::str::from_utf8(bytes).ok()?)) }
    }

    /// A value as it is written.
    fn raw(&mut self) -> Option<Raw<'a>> {
        let start = self.at;
        self.skip()?;
        std::str::from_utf8(&self.bytes[start..self.at]).ok()
    }

    fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => {
                let bytes = self.quoted()?;
                (memchr(b'\\', bytes).is_none()).then_some(())
            }
            b'[' | b'{' => self.skip_nested(),
            _ => {
                let rest = &self.bytes[self.at..];
                let length =
                    rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r'))?;
                let value = &rest[..length];
                let is_number = value.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'-');
                self.at += length;
                (is_number || matches!(value, b"null" | b"true" | b"false")).then_some(())
            }
        }
    }

    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => {
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Some(());
                    }
                }
                b'"' => {
                    let bytes = self.quoted()?;
                    if memchr(b'\\', bytes).is_some() {
                        return None;
                    }
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_profiler_writes_and_leaves_the_rest() {
        let text = br#"{
            "ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 445, "tid": "stream 7",
            "ts": 5247302593449.899, "dur": 45.550,
            "args": {
              "External id": 1,"Sequence number": 4398, "Fwd thread id": 1, "Input Dims": [[2, 3], []], "Python parent id": null
            }
          }, {"#;
        let (event, length) = event(text).unwrap();
        assert_eq!(&text[length..], b", {");
        assert_eq!((&*event.name, event.pid, event.tid), ("aten::add", "445", "\"stream 7\""));
        assert_eq!((event.ts, event.dur), ("5247302593449.899", "45.550"));
        assert_eq!((event.args.sequence, event.args.dims), (Some(4398), "[[2, 3], []]"));
        assert_eq!(event.args.python_parent, None);
        for odd in [
            &br#"{"name": "say "hi"", "ts": 1}"#[..],
            br#"{"name": "a\tb", "ts": 1}"#,
            br#"{"tid": stream 7, "ts": 1}"#,
            br#"{"args": {"bandwidth": inf}}"#,
            br#"{"ts": 1"#,
        ] {
            assert!(super::event(odd).is_none(), "{}", String::from_utf8_lossy(odd));
        }
    }
}
