//! Duty: hands out loopback ports that nothing listens on.
//!
//! Ports come from below the range that the kernel takes for outgoing connections, so that a node can be
//! restarted on its port while other tests connect all around it.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};

/// A loopback address with a TCP port that is free now and is not given out again by this process.
pub fn free() -> SocketAddr {
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        // Two test binaries at a time begin at different places.
        let place = (std::process::id().wrapping_mul(997)).wrapping_add(step) % COUNT;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + place as u16));
        // Not tried by binding: a child that another test starts at this moment would hold the probe open.
        if TcpStream::connect(address).is_err() {
            return address;
        }
    }
    panic!("no free loopback port in {FIRST}..{}", u32::from(FIRST) + COUNT);
}

static NEXT: AtomicU32 = AtomicU32::new(0);
const FIRST: u16 = 12_000;
const COUNT: u32 = 20_000;
