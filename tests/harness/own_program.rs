//! Duty: the `nsqd` of this repository, built before it is tested.
//!
//! In: the place of the running test binary. Out: the program of the same profile, never older than its
//! sources. It must not know what the program does.
//!
//! `cargo test --workspace` builds `nsqd` on its way and nothing is left to do here; testing this package
//! alone does not.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;
use std::{env, fs, io};

/// The program; it is built by the first call when it is missing or older than a source of it.
///
/// # Panics
/// When it cannot be built.
pub fn ours() -> &'static Path {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match PROGRAM.get_or_init(|| Place::of_this_test().program()) {
        Ok(program) => program,
        Err(reason) => panic!("nsqd cannot be built: {reason}"),
    }
}

/// A profile's folder in the target folder.
struct Place {
    target: PathBuf,
    folder: String,
}

impl Place {
    fn of_this_test() -> Self {
        let test = env::current_exe().expect("path of the test binary");
        // <target>/<folder>/deps/<test>
        let mut above = test.ancestors().skip(2);
        let folder = above.next().and_then(Path::file_name);
        let target = above.next();
        Self {
            target: target.expect("target folder").to_owned(),
            folder: folder
                .and_then(|name| name.to_str())
                .expect("profile folder")
                .to_owned(),
        }
    }

    fn program(&self) -> Result<PathBuf, String> {
        let program = self.target.join(&self.folder).join("nsqd");
        if !is_up_to_date(&program).unwrap_or(false) {
            self.build()?;
        }
        Ok(program)
    }

    fn build(&self) -> Result<(), String> {
        let profile = match self.folder.as_str() {
            "debug" => "dev",
            named => named,
        };
        let output = Command::new(env!("CARGO"))
            .args(["build", "--locked", "--package=nsqx-broker", "--bin=nsqd"])
            .arg(format!("--profile={profile}"))
            .arg("--target-dir")
            .arg(&self.target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .map_err(|error| format!("cargo does not start: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// True when nothing that went into `program` changed after it was built.
fn is_up_to_date(program: &Path) -> io::Result<bool> {
    let built = fs::metadata(program)?.modified()?;
    let list = fs::read_to_string(program.with_extension("d"))?;
    for source in sources(&list) {
        let changed: SystemTime = fs::metadata(source)?.modified()?;
        if changed > built {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The files named in cargo's `program: file file ...`; a space inside of a name is written `\ `.
fn sources(list: &str) -> Vec<String> {
    let Some((_, files)) = list.lines().next().and_then(|line| line.split_once(": ")) else {
        return Vec::new();
    };
    files
        .replace("\\ ", "\0")
        .split_whitespace()
        .map(|file| file.replace('\0', " "))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::sources;

    #[test]
    fn names_with_spaces_stay_whole() {
        assert_eq!(
            sources("/t/nsqd: /a/b.rs /my\\ code/c.rs\n"),
            ["/a/b.rs", "/my code/c.rs"]
        );
        assert!(sources("").is_empty());
    }
}
