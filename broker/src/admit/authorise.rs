//! Duty: does what a connection was granted cover the command it sent (nsq-tcp 5.1). Comes in: grants, the
//! command's claim, now. Goes out: a verdict. Must not know auth servers or other commands' rules.

use super::AuthRefusal;
use super::grant::{Grants, Permission};
use crate::clock::Moment;

/// What a command wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The command as the refusal names it: `SUB`, `PUB`, ...
    pub command: &'static str,
    /// What it needs.
    pub permission: Permission,
    /// The topic.
    pub topic: &'a str,
    /// The channel, empty for publishes.
    pub channel: &'a str,
}

/// The answer to a [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on.
    Allowed,
    /// The grants are too old to say: refresh them, then ask again.
    Expired,
    /// The client gets this and the connection ends.
    Refused(AuthRefusal),
}

/// Judges a claim by the grants of its connection, `None` before AUTH.
pub fn authorise(grants: Option<&Grants>, claim: &Claim<'_>, now: Moment) -> Verdict {
    let Some(grants) = grants else {
        return Verdict::Refused(AuthRefusal::First {
            command: claim.command,
        });
    };
    if grants.has_expired(now) {
        Verdict::Expired
    } else if grants.allows(claim.permission, claim.topic, claim.channel) {
        Verdict::Allowed
    } else {
        Verdict::Refused(AuthRefusal::Unauthorized {
            command: claim.command,
            topic: claim.topic.to_owned(),
            channel: claim.channel.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const CLAIM: Claim<'_> = Claim {
        command: "PUB",
        permission: Permission::Publish,
        topic: "t",
        channel: "",
    };

    fn refusal(verdict: Verdict) -> String {
        let Verdict::Refused(refusal) = verdict else {
            panic!("not refused: {verdict:?}");
        };
        format!("{} {refusal}", refusal.code())
    }

    #[test]
    fn before_auth_the_client_is_told_to_authenticate() {
        let verdict = authorise(None, &CLAIM, Moment::default());
        assert_eq!(refusal(verdict), "E_AUTH_FIRST AUTH required before PUB");
    }

    #[test]
    fn a_claim_outside_the_grants_is_refused_with_its_names() {
        let body =
            br#"{"ttl":1,"authorizations":[{"topic":"t","channels":["ch"],"permissions":["publish"]}]}"#;
        let grants = Grants::parse(body, Moment::default()).unwrap();
        let verdict = authorise(Some(&grants), &CLAIM, Moment::default());
        assert_eq!(
            refusal(verdict),
            r#"E_UNAUTHORIZED AUTH failed for PUB on "t" """#
        );
    }

    #[test]
    fn grants_are_used_until_they_expire() {
        let body = br#"{"ttl":1,"authorizations":[{"topic":"t","channels":[""],"permissions":["publish"]}]}"#;
        let grants = Grants::parse(body, Moment::default()).unwrap();
        let at = |millis| Moment::default() + Duration::from_millis(millis);
        assert_eq!(authorise(Some(&grants), &CLAIM, at(1000)), Verdict::Allowed);
        assert_eq!(authorise(Some(&grants), &CLAIM, at(1001)), Verdict::Expired);
    }
}
