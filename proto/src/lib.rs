//! Duty: the NSQ wire as pure values. Bytes and `now` come in, commands, frames and deadlines go out.
//! This crate must not know sockets, clocks or async.
//!
//! | room | holds |
//! |---|---|
//! | [`name`], [`message`] | topic and channel names, ids, the extended header, a message as it travels |
//! | [`command`] | what a client may say: one value per command, its decoder, its encoder |
//! | [`refusal`], [`code`] | what a server says when it does not like it, and whether the connection survives |
//! | [`frame`] | what a server says: responses, errors, messages, receipts; read by clients |
//! | [`session`] | the server's side of a connection: magic, command decoder, negotiated features, heartbeats |
//! | [`lookup`] | the protocol between a broker and nsqlookupd, both sides |
//! | [`limits`], [`dialect`], [`error`] | bounds, the two families of clients, what is wrong with undecodable bytes |
//!
//! Way of the bytes on a server: [`session::Protocol::from_magic`] once, then [`session::Session::next`] until it
//! answers [`session::Step::NeedMore`]; answers are written with the functions of [`frame`].

pub mod code;
pub mod command;
pub mod dialect;
pub mod error;
pub mod frame;
pub mod limits;
pub mod lookup;
pub mod message;
pub mod name;
pub mod refusal;
pub mod session;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

mod coding;
mod go_json;
mod quote;

pub use code::ErrorCode;
pub use command::{Command, Verb};
pub use dialect::Dialect;
pub use error::ProtoError;
pub use message::MessageId;
pub use name::{ChannelName, ChannelRef, TopicName, TopicRef};
pub use refusal::WireError;
