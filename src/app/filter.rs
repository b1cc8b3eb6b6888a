//! The text that tables are filtered by.

use crate::text::t;
use regex::Regex;

/// Words that must all be there, in any order and case: `conv backward`. `-word` must not be there; `/…/` is a regular
/// expression.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    terms: Vec<(bool, Term)>,
}

#[derive(Clone, Debug)]
enum Term {
    Word(String),
    Pattern(Regex),
}

impl Filter {
    /// Reads a filter as it was typed.
    ///
    /// # Errors
    /// A sentence when a regular expression can't be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (is_wanted, term) = match rest.strip_prefix('-') {
                Some(term) if !term.is_empty() => (false, term),
                _ => (true, rest),
            };
            if let Some(pattern) = term.strip_prefix('/') {
                let end = pattern.find('/').unwrap_or(pattern.len());
                let regex = regex::RegexBuilder::new(&pattern[..end]).case_insensitive(true).build();
                let regex = regex
                    .map_err(|_| t!("not a regular expression: {pattern}", pattern = &pattern[..end]))?;
                terms.push((is_wanted, Term::Pattern(regex)));
                rest = pattern.get(end + 1..).unwrap_or("").trim_start();
            } else {
                let end = term.find(char::is_whitespace).unwrap_or(term.len());
                terms.push((is_wanted, Term::Word(term[..end].to_lowercase())));
                rest = term[end..].trim_start();
            }
        }
        Ok(Self { terms })
    }

    /// Whether everything passes.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether a text passes.
    pub fn admits(&self, text: &str) -> bool {
        let lower = text.to_lowercase();
        self.terms.iter().all(|(is_wanted, term)| {
            let is_there = match term {
                Term::Word(word) => lower.contains(word),
                Term::Pattern(regex) => regex.is_match(text),
            };
            is_there == *is_wanted
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_negatives_and_patterns() {
        let admits = |filter: &str, text: &str| Filter::parse(filter).unwrap().admits(text);
        assert!(admits("", "anything"));
        assert!(admits("conv RECORD", "record.py:63 validate aten::Conv2d"));
        assert!(!admits("conv -validate", "record.py:63 validate aten::conv2d"));
        assert!(admits("/conv[12]d/ -relu", "aten::conv2d"));
        assert!(!admits("-/conv[12]d/", "aten::conv2d"));
        assert!(admits("-", "a-b"));
        assert!(Filter::parse("/(/").is_err());
        assert!(admits("/unclosed", "an unclosed pattern"));
    }
}
