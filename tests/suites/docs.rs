//! Duty: the documents tell the truth. Every command they show is run against a broker and answers as shown.
//!
//! A block that opens with `sh run` is run by `sh -eu`, all blocks of one document in order, in one empty
//! folder, with one fresh broker at the default addresses, `nsqd` on the path and its process id in
//! `$NSQD_PID`. A block that opens with `sh run stock` needs stock's tools, see `tests/stock/build.sh`, and is
//! left out without them. A `text` block right behind is what the commands print; `...` in it stands for
//! anything.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::process::Process;
use e2e::{Broker, Node, tree};

#[test]
fn every_command_that_is_shown_answers_as_shown() {
    let mut ran = 0;
    for (path, text) in tree::texts_with("md") {
        let blocks = blocks(&text);
        if blocks.iter().any(|block| block.how != How::Elsewhere) {
            ran += run(&path, &blocks);
        }
    }
    assert!(ran > 0, "no document has a block to run");
}

#[test]
fn no_command_is_shown_that_nothing_runs() {
    for (path, text) in tree::texts_with("md") {
        for block in blocks(&text) {
            if block.how == How::Elsewhere {
                for line in block.script.lines() {
                    assert!(
                        RUN_BY_CI.iter().any(|start| line.contains(start)),
                        "{}: mark the block `sh run`, or let .ci/run do this: {line}",
                        path.display()
                    );
                }
            }
        }
    }
}

#[test]
fn the_readme_and_the_checks_test_alike() {
    let command = "cargo test --workspace --profile ci";
    for (path, text) in tree::texts() {
        if path == Path::new("README.md") || path == Path::new(".ci/run") {
            assert!(
                text.contains(command),
                "{} does not say `{command}`",
                path.display()
            );
        }
    }
}

#[test]
fn dots_in_an_answer_stand_for_anything() {
    assert!(answers_as("OK", "OK\n"));
    assert!(!answers_as("OK", "OK again"));
    assert!(answers_as("{\"a\":1,...,\"b\":...}", "{\"a\":1,\"x\":2,\"b\":3}"));
    assert!(!answers_as("{...,\"b\":...}", "{\"a\":1}"));
    assert!(!answers_as("ab...ba", "aba"));
}

/// What happens to the commands of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Here,
    WithStockTools,
    Elsewhere,
}

#[derive(Debug)]
struct Block {
    how: How,
    script: String,
    answer: Option<String>,
}

fn blocks(document: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = document.lines();
    let mut answerable = false;
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            answerable &= line.is_empty();
            continue;
        };
        let content: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let content = content.join("\n");
        let how = match info {
            "sh run" => Some(How::Here),
            "sh run stock" => Some(How::WithStockTools),
            "sh" => Some(How::Elsewhere),
            _ => None,
        };
        if let Some(how) = how {
            blocks.push(Block {
                how,
                script: content,
                answer: None,
            });
        } else if info == "text"
            && answerable
            && let Some(asked) = blocks.last_mut()
        {
            asked.answer = Some(content);
        }
        answerable = how.is_some();
    }
    blocks
}

/// Runs the blocks of one document; gives their number.
fn run(document: &Path, blocks: &[Block]) -> usize {
    let broker = Broker::ours();
    let desk = Desk {
        node: broker.start(),
        folder: tempfile::tempdir().expect("folder for the commands"),
        stock_tools: stock_tools(),
        program: broker.program().to_owned(),
    };
    let mut ran = 0;
    for block in blocks {
        match block.how {
            How::Elsewhere => continue,
            How::WithStockTools if desk.stock_tools.is_none() => {
                println!("skipped: stock tools not given for\n{}", block.script);
                continue;
            }
            How::WithStockTools | How::Here => desk.run(document, block),
        }
        ran += 1;
    }
    ran
}

/// Where the commands of one document are run.
struct Desk {
    node: Node,
    folder: tempfile::TempDir,
    stock_tools: Option<PathBuf>,
    program: PathBuf,
}

impl Desk {
    fn run(&self, document: &Path, block: &Block) {
        let mut command = Command::new("sh");
        command
            .args(["-eu", "-c", &self.readdressed(&block.script)])
            .current_dir(self.folder.path())
            .env("PATH", self.path())
            .env("NSQD_PID", self.node.process_id().to_string());
        let exit = Process::spawn(&mut command).expect_exit(Duration::from_mins(1));
        let (document, script) = (document.display(), &block.script);
        assert_eq!(
            exit.code,
            Some(0),
            "{document}:\n{script}\nstdout: {}\nstderr: {}",
            exit.stdout,
            exit.stderr
        );
        if let Some(answer) = &block.answer {
            assert!(
                answers_as(answer, &exit.stdout),
                "{document}:\n{script}\nshown:\n{answer}\nprinted:\n{}",
                exit.stdout
            );
        }
    }

    /// The script with the addresses of this test's broker in place of the default ones.
    fn readdressed(&self, script: &str) -> String {
        script
            .replace(TCP, &self.node.tcp_address().to_string())
            .replace(HTTP, &self.node.http_address().to_string())
    }

    fn path(&self) -> OsString {
        let inherited = env::var_os("PATH").unwrap_or_default();
        let ours = self.program.parent().map(Path::to_owned);
        env::join_paths(
            ours.into_iter()
                .chain(self.stock_tools.clone())
                .chain(env::split_paths(&inherited)),
        )
        .expect("a search path")
    }
}

/// The folder of stock's programs, if its tools lie there too.
fn stock_tools() -> Option<PathBuf> {
    let nsqd = PathBuf::from(env::var_os("NSQX_STOCK_NSQD")?);
    let folder = nsqd.parent()?;
    folder.join("nsq_tail").is_file().then(|| folder.to_owned())
}

/// True when `printed` is `shown`, with anything in place of each `...`. Blanks at the ends of lines do not count.
fn answers_as(shown: &str, printed: &str) -> bool {
    let (shown, printed) = (without_trailing_blanks(shown), without_trailing_blanks(printed));
    let mut rest = printed.as_str();
    let Some((head, tail)) = shown.rsplit_once("...") else {
        return rest == shown;
    };
    for (number, piece) in head.split("...").enumerate() {
        let found = match number {
            0 => rest.starts_with(piece).then_some(0),
            _ => rest.find(piece),
        };
        let Some(place) = found else {
            return false;
        };
        rest = &rest[place + piece.len()..];
    }
    rest.ends_with(tail)
}

fn without_trailing_blanks(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    lines.join("\n")
}

const TCP: &str = "127.0.0.1:4150";
const HTTP: &str = "127.0.0.1:4151";

/// What `.ci/run` or `ci/deep` run themselves, so that no test has to.
const RUN_BY_CI: [&str; 5] = [
    "cargo ",
    ".ci/run",
    "ci/deep",
    "tests/stock/build.sh",
    "tests/interop/prepare.sh",
];
