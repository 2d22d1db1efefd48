//! Duty: one regular expression of a grant: RE2 syntax, matching anywhere in a name (nsq-tcp 5.4). Comes in: the
//! pattern, names. Goes out: whether one matches. Must not know what is granted.
//!
//! The engine is Rust's, whose syntax is RE2's but for corners: a literal `{` or a `[` inside a class has to be
//! escaped (else the pattern is refused), and `\<`, `\>` are word boundaries.
//!
//! Most grants spell a name or say "all", and every connection holds its own: these two forms are kept as
//! themselves, since a compiled expression takes some kilobytes and more time on each publish.

use regex::bytes::{Regex, RegexBuilder};

/// A pattern as the auth server gave it, ready to match.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    /// Matches every name.
    All,
    /// Matches names that contain `text`, begin with it (`at_start`), end with it (`at_end`) or are it (both).
    Text {
        text: Box<str>,
        at_start: bool,
        at_end: bool,
    },
    Expression(Regex),
}

/// A pattern that is no regular expression, or one that grows too large when compiled.
#[derive(Debug, thiserror::Error)]
#[error("bad pattern: {0}")]
pub struct PatternError(#[from] regex::Error);

impl Pattern {
    pub(super) fn parse(pattern: &str) -> Result<Self, PatternError> {
        if matches!(pattern, "" | ".*" | "^.*$" | "^(?:.*)$") {
            return Ok(Self::All);
        }
        if let Some(text) = Self::parse_text(pattern) {
            return Ok(text);
        }
        // Names are ASCII, so ASCII classes suffice and are far smaller; only `\p{..}` needs the others.
        compile(pattern, false)
            .or_else(|_| compile(pattern, true))
            .map(Self::Expression)
            .map_err(PatternError)
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Text {
                text,
                at_start,
                at_end,
            } => match (at_start, at_end) {
                (true, true) => name == &**text,
                (true, false) => name.starts_with(&**text),
                (false, true) => name.ends_with(&**text),
                (false, false) => name.contains(&**text),
            },
            Self::Expression(expression) => expression.is_match(name.as_bytes()),
        }
    }

    /// A pattern of characters that stand for themselves, with or without anchors.
    fn parse_text(pattern: &str) -> Option<Self> {
        let (at_start, rest) = strip(pattern.strip_prefix('^'), pattern);
        let (at_end, rest) = strip(rest.strip_suffix('$'), rest);
        let (_, rest) = strip(
            rest.strip_prefix("(?:").and_then(|rest| rest.strip_suffix(')')),
            rest,
        );
        let mut text = String::with_capacity(rest.len());
        let mut characters = rest.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' => text.push(characters.next().filter(|escaped| ".-#".contains(*escaped))?),
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '#' => text.push(character),
                _ => return None,
            }
        }
        Some(Self::Text {
            text: text.into_boxed_str(),
            at_start,
            at_end,
        })
    }
}

fn strip<'a>(stripped: Option<&'a str>, whole: &'a str) -> (bool, &'a str) {
    stripped.map_or((false, whole), |rest| (true, rest))
}

fn compile(pattern: &str, unicode: bool) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .unicode(unicode)
        .size_limit(COMPILED_MAX)
        .dfa_size_limit(CACHE_MAX)
        .build()
}

/// Largest compiled form of a pattern, in bytes.
const COMPILED_MAX: usize = 1024 * 1024;
/// Most working memory that a pattern may use to match faster, in bytes.
const CACHE_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(name)
    }

    #[test]
    fn a_pattern_matches_anywhere_unless_it_is_anchored() {
        assert!(matches("est", "xtesty"));
        assert!(!matches("^est$", "xtesty"));
        assert!(matches("^est$", "est"));
        assert!(matches("e.t", "xtesty"));
        assert!(!matches("^(?:e.t)$", "xtesty"));
        assert!(matches("^a|b$", "xb"));
    }

    #[test]
    fn all_means_every_name_and_the_empty_one() {
        for pattern in ["", ".*", "^.*$", "^(?:.*)$", "(.*)"] {
            assert!(
                matches(pattern, "") && matches(pattern, "a.b-c_d#ephemeral"),
                "{pattern}"
            );
        }
        assert!(matches("^$", "") && !matches("^$", "a"));
    }

    #[test]
    fn classes_of_both_kinds_are_understood() {
        assert!(matches(r"^\w+\.\d{1,4}$", "orders.2024"));
        assert!(matches(r"^\pL+$", "orders") && !matches(r"^\pL+$", "orders1"));
        assert!(matches(r"(?i)^ORDERS$", "orders"));
    }

    #[test]
    fn broken_and_huge_patterns_are_refused() {
        for pattern in ["(", "[a", "a**{", "(?=a)", r"(a)\1", r"(((\pL{100}){100}){100})"] {
            assert!(Pattern::parse(pattern).is_err(), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn text_matches_as_its_expression_does(
            pattern in r"\^?(\(\?:)?([a-c]|\\\.|-|_|\\-){0,3}\)?\$?", name in r"[a-c.\-_]{0,6}"
        ) {
            if let Ok(expression) = compile(&pattern, false) {
                prop_assert_eq!(matches(&pattern, &name), expression.is_match(name.as_bytes()));
            } else {
                prop_assert!(Pattern::parse(&pattern).is_err());
            }
        }
    }
}
