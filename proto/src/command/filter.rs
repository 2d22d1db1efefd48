//! Duty: the filter that a consumer may ask for in IDENTIFY (`ext_filter`, youzan-extension 4.3). JSON comes in, a usable
//! rule or nothing goes out. Must not evaluate it.

use crate::go_json::{Mismatch, Value, set};

/// `ext_filter` as it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtFilter {
    /// Kind of filter.
    pub kind: i64,
    /// True when the result is negated.
    pub inverse: bool,
    /// Header key, or `all` / `any`.
    pub key: String,
    /// Value, expression or pattern.
    pub data: String,
    /// Keys and values of kind 4.
    pub list: Vec<(String, String)>,
}

/// A filter that can be evaluated; expressions are not compiled yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterRule {
    /// What a header must have.
    pub condition: Condition,
    /// True when the result is negated.
    pub inverse: bool,
}

/// What a header must have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "key and value explain themselves")]
pub enum Condition {
    /// The value of `key` is `value`.
    Equal { key: String, value: String },
    /// `expression` (RE2 syntax) is found in the value of `key`.
    Regex { key: String, expression: String },
    /// `pattern` covers the whole value of `key`.
    Glob { key: String, pattern: String },
    /// Every one of these keys has its value.
    All(Vec<(String, String)>),
    /// At least one of these keys has its value.
    Any(Vec<(String, String)>),
    /// No header can match: an unknown relation between the keys of a list.
    Never,
}

impl ExtFilter {
    /// The rule; nothing when the filter is none or cannot be used, which is not an error.
    pub fn rule(&self) -> Option<FilterRule> {
        let usable = !self.key.is_empty() && !self.data.is_empty();
        let (key, data) = (self.key.clone(), self.data.clone());
        let condition = match self.kind {
            1 if usable => Condition::Equal { key, value: data },
            2 if usable => Condition::Regex {
                key,
                expression: data,
            },
            3 if usable => Condition::Glob { key, pattern: data },
            4 if !self.list.is_empty()
                && self
                    .list
                    .iter()
                    .all(|(key, data)| !key.is_empty() && !data.is_empty()) =>
            {
                match self.key.as_str() {
                    "all" => Condition::All(self.list.clone()),
                    "any" => Condition::Any(self.list.clone()),
                    _ => Condition::Never,
                }
            }
            _ => return None,
        };
        Some(FilterRule {
            condition,
            inverse: self.inverse,
        })
    }

    /// Takes over what `value` says; `null` says nothing.
    pub(crate) fn merge(&mut self, value: Value<'_>) -> Result<(), Mismatch> {
        value.object(|key, value| {
            match key {
                "type" => set(&mut self.kind, value.integer()?),
                "inverse" => set(&mut self.inverse, value.boolean()?),
                "filter_ext_key" => set(&mut self.key, value.string()?),
                "filter_data" => set(&mut self.data, value.string()?),
                "filter_data_list" => {
                    let items = value.array()?.unwrap_or_default();
                    self.list = items.into_iter().map(list_item).collect::<Result<_, _>>()?;
                }
                _ => {}
            }
            Ok(())
        })
    }
}

fn list_item(value: Value<'_>) -> Result<(String, String), Mismatch> {
    let mut item = (String::new(), String::new());
    value.object(|key, value| {
        match key {
            "filter_ext_key" => set(&mut item.0, value.string()?),
            "filter_data" => set(&mut item.1, value.string()?),
            _ => {}
        }
        Ok(())
    })?;
    Ok(item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::identify::IdentifyRequest;

    fn rule(filter: &str) -> Option<FilterRule> {
        let body = format!("{{\"ext_filter\":{filter}}}");
        let request = IdentifyRequest::decode(body.as_bytes()).unwrap();
        request.ext_filter.and_then(|filter| filter.rule())
    }

    #[test]
    fn y_34_what_cannot_be_used_is_ignored() {
        for filter in [
            r#"{"type":1,"inverse":false,"filter_ext_key":"","filter_data":""}"#,
            r#"{"type":null,"inverse":null,"filter_ext_key":null,"filter_data":null,"filter_data_list":null}"#,
            r#"{"type":3,"filter_ext_key":"k","filter_data_list":[{"filter_ext_key":"a","filter_data":"b"}]}"#,
            r#"{"type":99,"filter_ext_key":"k","filter_data":"v"}"#,
            r#"{"type":4,"filter_ext_key":"all","filter_data_list":[{"filter_ext_key":"a"}]}"#,
            "null",
        ] {
            assert_eq!(rule(filter), None, "{filter}");
        }
        assert!(IdentifyRequest::decode(br#"{"ext_filter":1}"#).is_err());
    }

    #[test]
    fn y_55_y_57_kinds_and_their_negation() {
        let exact = rule(r#"{"type":1,"inverse":true,"filter_ext_key":"k","filter_data":"v"}"#).unwrap();
        assert_eq!(
            exact.condition,
            Condition::Equal {
                key: "k".into(),
                value: "v".into()
            }
        );
        assert!(exact.inverse);
        let list = r#""filter_data_list":[{"filter_ext_key":"a","filter_data":"1"}]"#;
        let several =
            |relation| rule(&format!(r#"{{"type":4,"filter_ext_key":"{relation}",{list}}}"#)).unwrap();
        let pairs = vec![("a".to_owned(), "1".to_owned())];
        assert_eq!(several("all").condition, Condition::All(pairs.clone()));
        assert_eq!(several("any").condition, Condition::Any(pairs));
        assert_eq!(several("some").condition, Condition::Never);
    }
}
