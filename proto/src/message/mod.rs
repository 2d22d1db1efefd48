//! Duty: map of the message room: ids, the extended header, and a message as a consumer receives it.

pub mod codec;
pub mod header;
pub mod id;
pub mod tag;

pub use codec::{Delivery, Detail, Layout, put_message, put_message_head};
pub use header::{Header, HeaderFacts};
pub use id::{IdForm, MessageId};
