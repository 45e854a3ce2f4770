//! The limits of a gateway, each with its unit.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Longest configuration, in bytes.
pub const CONFIGURATION_BYTES_MAX: u64 = 16 << 20;
/// Longest file of a key, in bytes: hexadecimal, with blanks.
pub const KEY_FILE_BYTES_MAX: u64 = 1024;
/// Tunnels of a configuration.
pub const TUNNELS_MAX: usize = 4096;
/// Selectors of a tunnel.
pub const SELECTORS_MAX: usize = 256;
/// Queues of the device: threads a direction.
pub const QUEUES_MAX: usize = 64;
/// Longest name of a tunnel, in bytes.
pub const TUNNEL_NAME_BYTES_MAX: usize = 64;
/// Longest name of a network interface, in bytes.
pub const INTERFACE_BYTES_MAX: usize = 15;
/// Least and greatest MTU of the device, in bytes. The least is IPv6's (RFC 8200 § 5).
pub const MTU_MIN: u64 = 1280;
/// See [`MTU_MIN`].
pub const MTU_MAX: u64 = 65_000;
/// Longest time for which an inbound SA that a reload replaced still takes packets, in seconds.
pub const RETIRE_S_MAX: u64 = 86_400;
/// Longest time between two NAT keepalives, in seconds.
pub const KEEPALIVE_S_MAX: u64 = 3600;

/// Sequence numbers that are leased at once, at first.
pub const LEASE_MIN: u64 = 1 << 18;
/// Sequence numbers that are leased at once, at most. A lease grows while it is used up fast.
pub const LEASE_MAX: u64 = 1 << 24;
/// A lease that is half used within this time is followed by one twice as long.
pub const LEASE_FAST: Duration = Duration::from_secs(10);

/// SPIs that charon is given: those that it takes from other kernels as well.
pub const IKE_SPIS: RangeInclusive<u32> = 0xc000_0000..=0xcfff_ffff;
/// SPIs that wait for their security associations, at most, and how long each does.
pub const IKE_SPIS_MAX: usize = 4096;
/// See [`IKE_SPIS_MAX`].
pub const IKE_SPI_KEPT: Duration = Duration::from_secs(300);
/// Security associations that charon adds, at most, and policies.
pub const IKE_SAS_MAX: usize = 16_384;
/// See [`IKE_SAS_MAX`].
pub const IKE_POLICIES_MAX: usize = 16_384;

/// Packets that a thread has sealed or opened together, at most.
pub const BATCH_PACKETS: usize = 64;

/// Packets that wait for keys of the daemon, at most, of each queue and direction.
pub const ASIDE_PACKETS: usize = 512;

/// Time between two looks at lifetimes, paths and what is to be retired.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Looks between two records of how far inbound SAs have come.
pub const RECORD_LOOKS: u64 = 5;
/// Looks between two questions for the paths' MTU.
pub const PATH_LOOKS: u64 = 10;

/// Longest request over the control socket, in bytes.
pub const REQUEST_BYTES_MAX: u64 = 4096;
/// Longest time for a request over the control socket to arrive, and for its answer to be taken.
pub const CONTROL_WAIT: Duration = Duration::from_secs(1);
/// Longest time that a command waits for the gateway's answer: a reload may wait for a disk.
pub const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// Longest record of the state folder, in bytes.
pub const RECORD_BYTES_MAX: u64 = 16 << 20;
/// Keys whose use is kept; those first used longest ago give way.
pub const KEYS_KEPT_MAX: usize = 65_536;
/// The pause of a thread whose device or socket is in trouble.
pub const TROUBLE_PAUSE: Duration = Duration::from_millis(50);
/// Longest time for which a start waits for the daemon of named keys.
pub const DAEMON_WAIT: Duration = Duration::from_secs(3);
