//! Duty: the files of this repository, for tests that read what was written instead of what runs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder that holds the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the workspace")
}

/// Every text file below the root with its path from there, in order; what git ignores is left out.
pub fn texts() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    collect(root(), &mut found);
    found.sort();
    found
}

/// The texts whose name ends in `.extension`.
pub fn texts_with(extension: &str) -> Vec<(PathBuf, String)> {
    let mut found = texts();
    found.retain(|(path, _)| path.extension() == Some(OsStr::new(extension)));
    found
}

fn collect(folder: &Path, into: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("folder of the repository") {
        let path = entry.expect("entry of the repository").path();
        if IGNORED.iter().any(|ignored| path.ends_with(ignored)) {
            continue;
        }
        if path.is_dir() {
            collect(&path, into);
        } else if let Ok(text) = fs::read_to_string(&path) {
            // What is not UTF-8, such as a fuzz input, is no text.
            let path = path.strip_prefix(root()).expect("below the root");
            into.push((path.to_owned(), text));
        }
    }
}

/// What `.gitignore` names, and git's own.
const IGNORED: [&str; 4] = [".git", "data", "node_modules", "target"];
