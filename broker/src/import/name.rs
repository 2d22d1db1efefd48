//! Duty: which names topics and channels may have (nsq-tcp 0). Must not know what is done with them.

/// True for 1 to 64 bytes of letters, digits, `.`, `_` and `-`, with or without `#ephemeral` at the end.
pub fn is_valid(name: &str) -> bool {
    let base = name.strip_suffix(EPHEMERAL).unwrap_or(name);
    name.len() <= MAX_BYTES
        && !base.is_empty()
        && base
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// True for the name of something that ends with its last use.
pub fn is_ephemeral(name: &str) -> bool {
    name.ends_with(EPHEMERAL)
}

const EPHEMERAL: &str = "#ephemeral";
const MAX_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_stock_rule() {
        let longest = "x".repeat(64);
        for name in ["a", "..", "a.b_c-D9", "a#ephemeral", &longest] {
            assert!(is_valid(name), "{name}");
        }
        let too_long = "x".repeat(65);
        for name in [
            "",
            "#ephemeral",
            "a b",
            "a/b",
            "a:b",
            "a#ephemera",
            "ä",
            &too_long,
        ] {
            assert!(!is_valid(name), "{name}");
        }
    }
}
