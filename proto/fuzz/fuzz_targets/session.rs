#![no_main]
//! Any bytes through `nsqx_proto::fuzzing::session`.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| nsqx_proto::fuzzing::session(data));
