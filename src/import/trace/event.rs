//! One event of a Chrome trace: the fields that are used, borrowed from the file's bytes.
//!
//! Keys are matched by hand rather than derived, so that a key that stands twice is no error (the last one wins) and
//! numbers may be integers, decimals, texts or missing.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// An event of `traceEvents`.
#[derive(Debug, Default)]
pub(super) struct Event<'a> {
    pub ph: Text<'a>,
    pub cat: Text<'a>,
    pub name: Text<'a>,
    /// Numbers and texts alike, as written.
    pub pid: Raw<'a>,
    pub tid: Raw<'a>,
    pub ts: Raw<'a>,
    pub dur: Raw<'a>,
    pub args: Args<'a>,
}

impl Event<'_> {
    /// Whether nothing is in it, as in the `{}` that some tools write last.
    pub(super) fn is_empty(&self) -> bool {
        self.ph.is_empty() && self.name.is_empty() && self.ts.is_empty()
    }
}

/// The arguments that are used, of any kind of event.
#[derive(Debug, Default)]
pub(super) struct Args<'a> {
    pub address: Option<i64>,
    pub bytes: Option<i64>,
    pub total_allocated: Option<i64>,
    pub total_reserved: Option<i64>,
    pub device_type: Option<i64>,
    pub device_id: Option<i64>,
    pub sequence: Option<i64>,
    pub forward_thread: Option<i64>,
    pub python_id: Option<i64>,
    pub python_parent: Option<i64>,
    pub dims: Raw<'a>,
    pub types: Raw<'a>,
    /// `Concrete Inputs`: the values of inputs that are no tensors.
    pub concrete: Raw<'a>,
    pub call_stack: Text<'a>,
    /// `args.name` of metadata events.
    pub name: Raw<'a>,
}

/// A text, borrowed unless it had escapes; empty when missing or not a text.
pub(super) type Text<'a> = Cow<'a, str>;

/// A value as it is written, quotes and all; empty when missing.
pub(super) type Raw<'a> = &'a str;

struct Borrowed<'a>(Text<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Borrowed<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = Borrowed<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Borrowed(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Borrowed(Cow::Owned(text.to_owned())))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Borrowed(Cow::Borrowed("")))
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Borrowed(Cow::Borrowed("")))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Borrowed(Cow::Borrowed("")))
            }
        }
        deserializer.deserialize_any(Texts)
    }
}

/// An integer however it is written; `None` for anything else.
struct Integer(Option<i64>);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw: &RawValue = Deserialize::deserialize(deserializer)?;
        Ok(Self(integer(raw.get())))
    }
}

/// An integer from JSON text: quoted or not, signed, unsigned with its bits kept, or with decimals that are zero.
pub(super) fn integer(raw: &str) -> Option<i64> {
    let text = raw.trim_matches('"').trim();
    text.parse().ok().or_else(|| text.parse::<u64>().ok().map(|value| value as i64)).or_else(|| {
        let (whole, decimals) = text.split_once('.')?;
        decimals.bytes().all(|byte| byte == b'0').then(|| whole.parse().ok())?
    })
}

impl<'de: 'a, 'a> Deserialize<'de> for Event<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Events;
        impl<'de> Visitor<'de> for Events {
            type Value = Event<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a trace event")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut event = Event::default();
                while let Some(Borrowed(key)) = map.next_key()? {
                    match &*key {
                        "ph" => event.ph = map.next_value::<Borrowed<'de>>()?.0,
                        "cat" => event.cat = map.next_value::<Borrowed<'de>>()?.0,
                        "name" => event.name = map.next_value::<Borrowed<'de>>()?.0,
                        "pid" => event.pid = map.next_value::<&'de RawValue>()?.get(),
                        "tid" => event.tid = map.next_value::<&'de RawValue>()?.get(),
                        "ts" => event.ts = map.next_value::<&'de RawValue>()?.get(),
                        "dur" => event.dur = map.next_value::<&'de RawValue>()?.get(),
                        "args" => event.args = map.next_value::<MaybeArgs<'de>>()?.0,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(event)
            }
        }
        deserializer.deserialize_map(Events)
    }
}

struct MaybeArgs<'a>(Args<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for MaybeArgs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ArgsOf;
        impl<'de> Visitor<'de> for ArgsOf {
            type Value = MaybeArgs<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("arguments")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(MaybeArgs(Args::default()))
            }
            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(MaybeArgs(Args::default()))
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut args = Args::default();
                while let Some(Borrowed(key)) = map.next_key()? {
                    let slot = match &*key {
                        "Addr" => &mut args.address,
                        "Bytes" => &mut args.bytes,
                        "Total Allocated" => &mut args.total_allocated,
                        "Total Reserved" => &mut args.total_reserved,
                        "Device Type" => &mut args.device_type,
                        "Device Id" => &mut args.device_id,
                        "Sequence number" => &mut args.sequence,
                        "Fwd thread id" => &mut args.forward_thread,
                        "Python id" => &mut args.python_id,
                        "Python parent id" => &mut args.python_parent,
                        "Input Dims" | "Input dims" => {
                            args.dims = map.next_value::<&'de RawValue>()?.get();
                            continue;
                        }
                        "Input type" | "Input Types" => {
                            args.types = map.next_value::<&'de RawValue>()?.get();
                            continue;
                        }
                        "Concrete Inputs" => {
                            args.concrete = map.next_value::<&'de RawValue>()?.get();
                            continue;
                        }
                        "Call stack" => {
                            args.call_stack = map.next_value::<Borrowed<'de>>()?.0;
                            continue;
                        }
                        "name" => {
                            args.name = map.next_value::<&'de RawValue>()?.get();
                            continue;
                        }
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    *slot = map.next_value::<Integer>()?.0;
                }
                Ok(MaybeArgs(args))
            }
        }
        deserializer.deserialize_any(ArgsOf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_but_valid_events_are_read() {
        let text = r#"{"ph":"i","name":"[memory]","pid":"Spans","ts":"12.5","ts":13.25,
            "args":{"Addr":18446744073709551615,"Bytes":"-8","Bytes":-512,"x":{"y":[1,2]}}}"#;
        let event: Event<'_> = serde_json::from_str(text).unwrap();
        assert_eq!((event.ts, event.pid), ("13.25", "\"Spans\""));
        assert_eq!((event.args.address, event.args.bytes), (Some(-1), Some(-512)));
        let bare: Event<'_> = serde_json::from_str("{\"args\": null}").unwrap();
        assert!(bare.name.is_empty() && bare.ts.is_empty());
    }
}
