//! Names can hold anything; on a terminal they must stay where they are.

use std::borrow::Cow;

/// Text as a terminal shows it and nothing else: a name that holds control codes can't move the cursor, change the title
/// or turn the direction of the line.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_code = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if text.contains(is_code) { Cow::Owned(text.replace(is_code, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_codes_are_shown_and_not_obeyed() {
        assert_eq!(printable("batch_norm\n\t归一化"), "batch_norm\n\t归一化");
        assert_eq!(printable("\u{1b}]0;title\u{7}\u{9b}2J\u{202e}x\r"), "�]0;title��2J�x�");
    }
}
