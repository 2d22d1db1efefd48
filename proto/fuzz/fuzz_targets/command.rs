//! Any bytes through `nsqx_proto::fuzzing::command`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| nsqx_proto::fuzzing::command(data));
