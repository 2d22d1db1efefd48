//! Duty: settings that are defined, so that names and files are settled, but that this version does not act on. Most of
//! them guard something: a broker that took them without a word would be a trap. Must not know why they are not served.

use std::time::Duration;

use super::{Changeable, Config, HttpAuth, OnRateLimit};

impl Config {
    /// The flags that are set to something this version can not do.
    pub fn unserved(&self, changeable: &Changeable) -> Vec<&'static str> {
        let admit = &self.admit;
        let extension = &self.extension;
        [
            ("auth-jwks-url", admit.jwt.is_some()),
            ("http-auth", admit.http_auth != HttpAuth::Off),
            ("auth-expiry", admit.expiry.is_some()),
            ("on-rate-limit", admit.on_rate_limit != OnRateLimit::Slow),
            (
                "rate-limit-max-wait",
                admit.rate_limit_max_wait != Duration::from_secs(5),
            ),
            (
                "audit-log",
                admit.audit_log != self.node.data_path.join("audit.log"),
            ),
            ("allow-ext-compatible", changeable.allow_ext_compatible),
            ("allow-sub-ext-compatible", !changeable.allow_sub_ext_compatible),
            ("ext-json-version", extension.ext_json_version != 4),
            ("load-test-key", extension.load_test_keys != ["zan_test"]),
            ("strict-partition", extension.strict_partition),
            ("forbid-sub-ext-on-plain", extension.forbid_sub_ext_on_plain),
        ]
        .into_iter()
        .filter_map(|(flag, is_set)| is_set.then_some(flag))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::args::{Invocation, parse};

    fn unserved(args: &[&str]) -> Vec<&'static str> {
        let line = std::iter::once("nsqd")
            .chain(args.iter().copied())
            .map(Into::into);
        let Ok(Invocation {
            config, changeable, ..
        }) = parse(line, |_| None, "host")
        else {
            panic!("{args:?}")
        };
        config.unserved(&changeable)
    }

    #[test]
    fn the_defaults_are_all_served() {
        assert!(unserved(&[]).is_empty());
    }

    #[test]
    fn what_is_not_acted_on_is_named() {
        let set = [
            "--auth-jwks-url=https://a/keys",
            "--strict-partition",
            "--on-rate-limit=refuse",
        ];
        assert_eq!(
            unserved(&set),
            ["auth-jwks-url", "http-auth", "on-rate-limit", "strict-partition"]
        );
    }
}
