//! Duty: the channel's rules as tests, named after the statements of the specification they prove.
