//! What the program says, in English and in simplified Chinese.
//!
//! [`t!`] says something: its English literal is the key and the words, `zh_CN.po` beside this file has the Chinese.
//!
//! ```ignore
//! t!("Kept")                                          // &'static str
//! t!("{count} allocations, {size}", count, size = format_bytes(bytes))  // String
//! const TITLE: &str = msg!("Kept"); say(TITLE)  // of constants, and of names that a contract has in English
//! ```
//!
//! Placeholders are plain names, each given as an argument: the compiler checks them for English, a test compares
//! them with the Chinese. The same test names every literal that `zh_CN.po` lacks, and every entry that nothing uses.
//! Names that scripts rely on (columns, keys, kinds) are not said with `t!`: they are the same in both languages.

mod catalogue;
#[cfg(test)]
mod sources;

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

/// The font of Chinese texts: the glyphs of all of them; `assets/fonts/make_subset.py` makes it.
pub const CHINESE_FONT: &[u8] = include_bytes!("../../assets/fonts/NotoSansSC-subset.otf");

/// A language that the program speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Simplified Chinese.
    Chinese,
}

/// The language of the whole process.
static IS_CHINESE: AtomicBool = AtomicBool::new(false);

impl Language {
    /// Both.
    pub const ALL: [Self; 2] = [Self::English, Self::Chinese];

    /// The language that is spoken now: English until [`Self::speak`] is called.
    pub fn spoken() -> Self {
        if IS_CHINESE.load(Ordering::Relaxed) { Self::Chinese } else { Self::English }
    }

    /// From now on the whole process speaks this language.
    pub fn speak(self) {
        IS_CHINESE.store(self == Self::Chinese, Ordering::Relaxed);
    }

    /// The language's tag, as in HTML.
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh-CN",
        }
    }

    /// The language's own name.
    pub fn own_name(self) -> &'static str {
        match self {
            Self::English => "English",
            Self::Chinese => "中文",
        }
    }

    /// The language of a locale or tag: `zh_CN.UTF-8`, `zh-CN`, `en_US`.
    pub fn of_locale(locale: &str) -> Option<Self> {
        let is = |code: &str| {
            let (start, rest) = locale.split_at_checked(code.len()).unwrap_or(("", ""));
            start.eq_ignore_ascii_case(code) && !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
        };
        if is("zh") {
            Some(Self::Chinese)
        } else {
            ["en", "C", "POSIX"].into_iter().any(is).then_some(Self::English)
        }
    }

    /// What the environment variable `VRAMSCOPE_LANG` asks for.
    pub fn asked_for() -> Option<Self> {
        Self::of_locale(&std::env::var("VRAMSCOPE_LANG").ok()?)
    }

    /// The language of the system, by `LC_ALL`, `LC_MESSAGES` and `LANG`.
    pub fn of_system() -> Self {
        let set = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(set);
        locale.and_then(|locale| Self::of_locale(&locale)).unwrap_or_default()
    }
}

/// Says something in the language that is spoken; see the [module](self).
macro_rules! t {
    ($english:literal $(,)?) => {{
        const { assert!(!$crate::text::has_placeholder($english), "give each placeholder as an argument") };
        $crate::text::translated($english).unwrap_or($english)
    }};
    ($english:literal, $($name:ident $(= $value:expr)?),+ $(,)?) => {
        match $crate::text::translated($english) {
            // `concat!` forbids names that are not given.
            None => ::std::format!(::std::concat!($english), $($name = $crate::text::value!($name $(, $value)?)),+),
            Some(template) => {
                $crate::text::fill(template, &[$((::std::stringify!($name), &$crate::text::value!($name $(, $value)?))),+])
            }
        }
    };
}

/// The value of a placeholder: its own, or the variable of its name.
macro_rules! value {
    ($name:ident) => {
        $name
    };
    ($name:ident, $value:expr) => {
        $value
    };
}

/// Marks the words of a constant, which [`say`] says later: `msg!("Kept")` is `"Kept"`.
macro_rules! msg {
    ($english:literal) => {
        $english
    };
}

pub(crate) use {msg, t, value};

/// Words that are known at run time only: those of a constant, or a name that a file gives, which stays as it is.
pub(crate) fn say(english: &str) -> &str {
    translated(english).unwrap_or(english)
}

/// All Chinese texts, for a test of the font.
#[cfg(test)]
pub(crate) fn all_chinese() -> String {
    catalogue::all()
        .into_iter()
        .map(|(_, chinese)| chinese)
        .chain([Language::Chinese.own_name().to_owned()])
        .collect()
}

/// Whether a text has a placeholder.
pub(crate) const fn has_placeholder(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'{' {
            return true;
        }
        at += 1;
    }
    false
}

/// The words in the language that is spoken, unless that is English.
pub(crate) fn translated(english: &str) -> Option<&'static str> {
    match Language::spoken() {
        Language::English => None,
        Language::Chinese => catalogue::chinese(english),
    }
}

/// Puts values into the placeholders of a template.
pub(crate) fn fill(template: &str, values: &[(&str, &dyn Display)]) -> String {
    let mut text = String::with_capacity(template.len() + 16 * values.len());
    let mut rest = template;
    while let Some((before, (name, after))) =
        rest.split_once('{').and_then(|(before, from)| Some((before, from.split_once('}')?)))
    {
        text.push_str(before);
        if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
            text.push_str(&value.to_string());
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_is_what_the_source_says() {
        let count = 3;
        assert_eq!(t!("Kept"), "Kept");
        assert_eq!(t!("{count} of {total}", count, total = 2 + 2), "3 of 4");
    }

    #[test]
    fn values_go_where_the_template_says() {
        assert_eq!(fill("在 {b} 之前有 {a}", &[("a", &1), ("b", &"x")]), "在 x 之前有 1");
        assert_eq!(fill("{lost} {", &[]), " {");
    }

    #[test]
    fn locales() {
        for locale in ["zh", "zh_CN.UTF-8", "zh-CN", "ZH_cn", "zh_SG"] {
            assert_eq!(Language::of_locale(locale), Some(Language::Chinese), "{locale}");
        }
        for locale in ["en", "en_US.UTF-8", "C", "C.UTF-8", "POSIX"] {
            assert_eq!(Language::of_locale(locale), Some(Language::English), "{locale}");
        }
        for locale in ["", "z", "zha", "de_DE.UTF-8", "中文"] {
            assert_eq!(Language::of_locale(locale), None, "{locale}");
        }
    }
}
