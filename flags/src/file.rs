//! Duty: a value of the configuration file as the texts its flag would have on the command line, so that one
//! parser judges both. Source: the coercions of nsq-http-and-tools 4.2.

use clap::Arg;
use toml::Value;

use crate::kind::{self, Kind};

/// A value whose TOML type the flag does not take.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {wanted} value type {found}")]
pub(crate) struct TypeFault {
    wanted: &'static str,
    found: &'static str,
}

/// One text for a plain flag; for a list any number.
pub(crate) fn texts(arg: &Arg, value: &Value) -> Result<Vec<String>, TypeFault> {
    let kind = Kind::of(arg);
    match value {
        Value::Array(items) if kind::is_list(arg) => items.iter().map(|item| text(arg, kind, item)).collect(),
        Value::String(list) if kind::is_list(arg) => Ok(split(kind, list)),
        _ if kind::is_list(arg) => Err(fault(kind, value)),
        _ => text(arg, kind, value).map(|text| vec![text]),
    }
}

/// The elements of a list written as one text. As in stock only numbers may have spaces around them.
pub(crate) fn split(kind: Kind, list: &str) -> Vec<String> {
    if list.is_empty() {
        return Vec::new();
    }
    let elements = list.split(',');
    match kind {
        Kind::Float => elements.map(|element| element.trim().to_owned()).collect(),
        _ => elements.map(str::to_owned).collect(),
    }
}

fn text(arg: &Arg, kind: Kind, value: &Value) -> Result<String, TypeFault> {
    Ok(match (value, kind) {
        (Value::String(text), _) => text.clone(),
        // A bare number of a duration counts milliseconds.
        (Value::Integer(number), Kind::Duration) => format!("{number}ms"),
        (Value::Integer(number), Kind::Boolean | Kind::Integer | Kind::Float | Kind::Size) => {
            number.to_string()
        }
        (Value::Float(number), Kind::Float) => number.to_string(),
        (Value::Boolean(on), _) if kind::is_switch(arg) => on.to_string(),
        _ => return Err(fault(kind, value)),
    })
}

fn fault(kind: Kind, value: &Value) -> TypeFault {
    TypeFault {
        wanted: kind.word(),
        found: value.type_str(),
    }
}
