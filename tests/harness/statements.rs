//! Duty: turns one statement body into a test for each broker.
//!
//! A statement is a function `fn(&Broker)`. The table at the head of each suite lists the functions; those
//! under `both` run as `stock::name` and `ours::name`. A statement that our broker deliberately answers in
//! another way has two bodies, one under `stock` and one under `ours`.

use crate::Broker;

/// Runs `statement` on stock nsqd if one was given.
pub fn check_stock(statement: fn(&Broker)) {
    match Broker::stock() {
        Some(broker) => statement(&broker),
        None => println!("skipped: stock nsqd not given"),
    }
}

/// Runs `statement` on our broker.
pub fn check_ours(statement: fn(&Broker)) {
    statement(&Broker::ours());
}

/// The table of a suite: `statements! { both { a, b } stock { c } ours { d } }`, in this order, parts
/// without entries left out.
#[macro_export]
macro_rules! statements {
    (
        $(both { $($both:ident),* $(,)? })?
        $(stock { $($stock:ident),* $(,)? })?
        $(ours { $($ours:ident),* $(,)? })?
    ) => {
        mod stock {
            $($(#[test] fn $both() { $crate::statements::check_stock(super::$both); })*)?
            $($(#[test] fn $stock() { $crate::statements::check_stock(super::$stock); })*)?
        }
        mod ours {
            $($(#[test] fn $both() { $crate::statements::check_ours(super::$both); })*)?
            $($(#[test] fn $ours() { $crate::statements::check_ours(super::$ours); })*)?
        }
    };
}
