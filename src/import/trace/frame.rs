//! Names of Python functions in a trace as frames.

use crate::model::{Frame, StrId, Strings};

/// `file.py(12): function` as a frame; built-ins lose their address, which differs in every run.
pub(super) fn frame_of(name: StrId, strings: &mut Strings) -> Frame {
    let text = strings.get(name).to_owned();
    if let Some((place, function)) = text.split_once("): ")
        && let Some((file, line)) = place.rsplit_once('(')
        && let Ok(line) = line.parse()
    {
        return Frame { file: strings.intern(file), function: strings.intern(function), line };
    }
    let function = match without_addresses(&text) {
        Some(text) => strings.intern(&text),
        None => name,
    };
    Frame { file: StrId::EMPTY, function, line: 0 }
}

/// The text without ` at 0x7f0d10bfe460`; `None` when it has none.
fn without_addresses(text: &str) -> Option<String> {
    const MARK: &str = " at 0x";
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        kept.push_str(&rest[..at]);
        rest = rest[at + MARK.len()..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    (rest.len() < text.len()).then(|| kept + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Stacks;

    #[test]
    fn names_become_frames() {
        for (name, line, text) in [
            ("torch/nn/modules/module.py(1783): _call_impl", 1783, "module.py:1783 _call_impl"),
            (r"C:\work (old)\train.py(7): <lambda>", 7, "train.py:7 <lambda>"),
            (
                "<built-in method randn of type object at 0x7f0d10bfe460>",
                0,
                "<built-in method randn of type object>",
            ),
            ("a at 0x1f of b at 0x2 end", 0, "a of b end"),
            ("plain", 0, "plain"),
        ] {
            let mut strings = Strings::default();
            let id = strings.intern(name);
            let frame = frame_of(id, &mut strings);
            assert_eq!((frame.line, Stacks::format_frame(&strings, frame).as_str()), (line, text));
        }
    }
}
