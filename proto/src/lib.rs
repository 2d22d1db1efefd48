//! Duty: the NSQ wire as pure values. Bytes and `now` come in, commands, frames and deadlines go out.
//! This crate must not know sockets, clocks or async.
