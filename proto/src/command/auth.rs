//! Duty: AUTH: the secret of a client and the answer to it (nsq-tcp 2.12). Must not know auth servers.

use super::{Command, Decoded, Line, Rules, Verb, invalid, sized_body};
use crate::go_json;

pub(super) fn decode<'a>(rules: &Rules, line: &Line<'a>, input: &'a [u8]) -> Decoded<'a> {
    if line.count() != 1 {
        return Err(invalid(Verb::Auth, "", " invalid number of parameters").into());
    }
    let (secret, end) = sized_body(Verb::Auth, rules.limits.max_body_size, input, line.len)?;
    Ok((Command::Auth { secret }, end))
}

/// Data of the response to a successful AUTH. `permission_count` is the number of authorization entries.
pub fn answer(identity: &str, identity_url: &str, permission_count: usize) -> Vec<u8> {
    let (identity, identity_url) = (go_json::string(identity), go_json::string(identity_url));
    format!(
        r#"{{"identity":{identity},"identity_url":{identity_url},"permission_count":{permission_count}}}"#
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::answer;

    #[test]
    fn c_92_the_answer_names_identity_url_and_count() {
        assert_eq!(
            answer("a<b>&\"c\"\n\u{2028}", "http://x/?a=1&b", 1),
            br#"{"identity":"a\u003cb\u003e\u0026\"c\"\n\u2028","identity_url":"http://x/?a=1\u0026b","permission_count":1}"#
        );
    }
}
