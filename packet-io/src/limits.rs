//! The most of everything that grows.

/// The most bytes of an IP packet: an IPv6 header, and what its length can say.
pub const PACKET_BYTES_MAX: usize = 40 + 65_535;
/// The most bytes of packets joined into one: what an IPv4 header's length can say.
pub(crate) const JOINED_BYTES_MAX: usize = 65_535;
/// Flows of which a packet is held to be joined with the next. They are searched one after the other.
pub(crate) const FLOWS_MAX: usize = 64;
/// The most datagrams of a joined UDP packet, and of a call with `UDP_SEGMENT`: `UDP_MAX_SEGMENTS` of Linux before 6.9.
pub(crate) const SEGMENTS_MAX: usize = 64;
/// The most bytes of one UDP or ESP datagram: an IPv4 packet's, less its headers.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 65_507;
/// The most bytes of datagrams in a call with `UDP_SEGMENT`. With all headers it is less than 64 KiB.
pub(crate) const BURST_BYTES_MAX: usize = 65_000;
/// The most messages of one `sendmmsg` or `recvmmsg`.
pub(crate) const MESSAGES_MAX: usize = 64;
/// Bytes of datagrams that wait to be sent. More leave the second-level cache before the kernel has read them.
pub(crate) const WAITING_BYTES_MAX: usize = 256 << 10;
/// How long a flush waits for room in a socket's buffer, in milliseconds.
pub(crate) const ROOM_WAIT_MILLISECONDS: u32 = 5;
/// Bytes of a message to or from rtnetlink.
pub(crate) const NETLINK_BYTES_MAX: usize = 32 << 10;
/// Packets that wait in a TUN device to be read. Its own 500 are gone in the time that a busy machine lets a thread wait.
pub(crate) const QUEUE_PACKETS_MAX: u32 = 1_000;
