//! Duty: a command line as every NSQ program has it. A program describes its flags once, as a clap `Args`
//! struct; this crate reads them with the rules of Go's flag package from the command line, the environment
//! and a TOML file. It must not know what any flag means, and it logs nothing.
//!
//! In the struct a field's name is its key in the file, `long` is the flag, the doc comment is the help text.
//!
//! | file | duty |
//! |---|---|
//! | `program` | reads all sources in their order of precedence |
//! | `layer` | what environment and file say |
//! | `scan` | Go's command line to clap's |
//! | `kind` | what a flag takes; gives a clap command Go's meaning of values |
//! | `file` | a TOML value as the text a flag would have |
//! | `misuse` | a wrong command line in Go's words |
//! | `exit` | what ends a program before it starts, and with which code |
//! | `reference` | the flags as a Markdown page |
//! | `version` | the lines of `--version` |
//! | `duration`, `size`, `literal`, `level` | values |

mod duration;
mod exit;
mod file;
mod kind;
mod layer;
mod level;
mod literal;
mod misuse;
mod program;
mod reference;
mod scan;
mod size;
mod version;

pub use duration::{DurationError, GoDuration};
pub use exit::Exit;
pub use level::{LogFormat, LogLevel, LogLevelError};
pub use literal::{LiteralError, boolean};
pub use program::{Given, Program};
pub use reference::reference;
pub use size::{ByteSize, SizeError};
pub use version::{STOCK_VERSION, daemon_version, tool_version};
