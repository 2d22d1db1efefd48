//! Duty: the channel's rules as tests, named after the statements of the specification they prove.

mod bed;
mod bounds;
mod delivery;
mod differential;
mod model;
mod restart;
mod turns;
