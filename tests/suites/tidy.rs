//! Duty: keeps the tree as CONTRIBUTING.md says it is. What is checked here is what no compiler checks: headers,
//! names, sizes, doors between rooms, links.

use std::fmt::Display;
use std::path::{Component, Path};

use e2e::tree;

#[test]
fn every_file_opens_with_its_duty() {
    let mut faults = Faults::default();
    for (path, text) in tree::texts_with("rs") {
        faults.unless(text.starts_with("//!"), &path, "does not open with `//!`");
    }
    faults.none();
}

#[test]
fn names_say_what_a_file_is_about() {
    let mut faults = Faults::default();
    for (path, _) in tree::texts_with("rs") {
        let says_nothing = path.with_extension("").components().any(|part| {
            SAYING_NOTHING
                .iter()
                .any(|name| part == Component::Normal(name.as_ref()))
        });
        faults.unless(!says_nothing, &path, "has a name that says nothing");
    }
    faults.none();
}

#[test]
fn files_stay_short() {
    let mut faults = Faults::default();
    for (path, text) in tree::texts_with("rs") {
        let lines = own_part(&text).lines().count();
        faults.unless(
            is_test_module(&path) || lines <= LONGEST_FILE,
            &path,
            format!("has {lines} lines"),
        );
    }
    faults.none();
}

#[test]
fn nothing_is_left_open() {
    let mut faults = Faults::default();
    // Written in two pieces, so that this file does not find itself.
    let open = [
        concat!("todo", "!("),
        concat!("unimple", "mented!("),
        concat!("#[ig", "nore"),
    ];
    for (path, text) in tree::texts_with("rs") {
        for mark in open {
            faults.unless(!text.contains(mark), &path, format!("has `{mark}`"));
        }
    }
    faults.none();
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let mut faults = Faults::default();
    let places = [
        concat!("/wo", "rk/"),
        concat!("/far", "m/"),
        concat!("/tmp/", "wt"),
        concat!("/ro", "ot/"),
    ];
    for (path, text) in tree::texts() {
        for place in places {
            faults.unless(!text.contains(place), &path, format!("names `{place}`"));
        }
    }
    faults.none();
}

#[test]
fn the_protocol_knows_no_socket_and_no_clock() {
    let mut faults = Faults::default();
    for (path, text) in tree::texts_with("rs") {
        if path.starts_with("proto/src") {
            for thing in OUTSIDE_OF_PROTO {
                faults.unless(!own_part(&text).contains(thing), &path, format!("uses {thing}"));
            }
        }
    }
    for (path, text) in tree::texts_with("toml") {
        if path == Path::new("proto/Cargo.toml") {
            for dependency in ["tokio", "nsqx", "mio", "socket2"] {
                let line = format!("\n{dependency}");
                faults.unless(!text.contains(&line), &path, format!("depends on {dependency}"));
            }
        }
    }
    faults.none();
}

#[test]
fn rooms_use_only_the_rooms_behind_their_doors() {
    let mut faults = Faults::default();
    for (path, text) in tree::texts_with("rs") {
        let Some(room) = room_of(&path) else {
            continue;
        };
        let Some((_, doors)) = DOORS.iter().find(|(name, _)| *name == room) else {
            continue;
        };
        for entered in own_part(&text).split("crate::").skip(1) {
            let named = |door: &str| {
                let rest = entered.strip_prefix(door);
                rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
            };
            let closed = ROOMS.iter().find(|other| **other != room && named(other));
            let open = doors.iter().chain(VALUES).any(|door| named(door));
            if let Some(other) = closed {
                faults.unless(open, &path, format!("enters the room {other}"));
            }
        }
    }
    faults.none();
}

#[test]
fn every_decision_is_in_the_list_of_decisions() {
    let mut faults = Faults::default();
    let texts = tree::texts_with("md");
    let list = texts
        .iter()
        .find(|(path, _)| path == Path::new("docs/decisions/README.md"))
        .map(|(_, text)| text.as_str())
        .expect("the list of decisions");
    for (path, _) in &texts {
        if path.starts_with("docs/decisions") {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            let listed = name == "README.md" || list.contains(&format!("({name})"));
            faults.unless(listed, path, "is not in docs/decisions/README.md");
        }
    }
    faults.none();
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut faults = Faults::default();
    for (path, text) in tree::texts_with("md") {
        let folder = tree::root().join(path.parent().expect("a folder"));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let target = link.0.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                faults.unless(folder.join(target).exists(), &path, format!("links to {target}"));
            }
        }
    }
    faults.none();
}

/// What a check found; all of it is told at once.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn unless(&mut self, holds: bool, path: &Path, fault: impl Display) {
        if !holds {
            self.0.push(format!("{} {fault}", path.display()));
        }
    }

    fn none(self) {
        assert!(self.0.is_empty(), "{}", self.0.join("\n"));
    }
}

/// The text without the test module at its end.
fn own_part(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

/// True for `tests.rs` and its like beside the code they test.
fn is_test_module(path: &Path) -> bool {
    let mut folders = path.components().skip_while(|part| part.as_os_str() != "src");
    folders.any(|part| {
        let name = part.as_os_str().to_string_lossy();
        name.trim_end_matches(".rs").ends_with("tests")
    })
}

/// The folder or file right below `broker/src`, tests left out.
fn room_of(path: &Path) -> Option<&str> {
    let inside = path.strip_prefix("broker/src").ok()?;
    let room = Path::new(inside.components().next()?.as_os_str());
    (!is_test_module(path)).then(|| room.file_stem()?.to_str())?
}

/// CONTRIBUTING.md asks for 300.
const LONGEST_FILE: usize = 500;

const SAYING_NOTHING: [&str; 8] = [
    "common",
    "helper",
    "helpers",
    "impls",
    "misc",
    "shared_utils",
    "util",
    "utils",
];

const OUTSIDE_OF_PROTO: [&str; 8] = [
    "tokio::",
    "std::net",
    "std::fs",
    "std::io::",
    "std::thread",
    "std::env",
    "SystemTime",
    "Instant",
];

/// The rooms of the broker that doors are drawn between; what is not here may be used by all.
const ROOMS: [&str; 9] = [
    "admit",
    "channel",
    "egress",
    "ingress",
    "log",
    "node",
    "registration",
    "store",
    "topic",
];

/// Which rooms a room may enter, as docs/ARCHITECTURE.md says. `node` knows all and is not listed.
const DOORS: [(&str, &[&str]); 8] = [
    ("admit", &[]),
    ("channel", &["egress", "log", "store"]),
    ("egress", &[]),
    ("ingress", &["admit", "channel", "egress", "topic"]),
    ("log", &[]),
    ("registration", &[]),
    ("store", &[]),
    ("topic", &["channel", "log", "registration", "store"]),
];

/// Plain values that cross doors; any room may name them.
const VALUES: &[&str] = &[
    "log::engine",
    "log::record",
    "log::sequence",
    "store::cursor",
    "topic::handed",
];
