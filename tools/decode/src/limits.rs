//! The bounds of the memory and the work that a capture, or a peer of the proxy, can claim.

use std::time::Duration;

/// The longest packet a capture may have, in bytes: what tcpdump takes at most.
pub const PACKET_BYTES_MAX: usize = 1 << 18;

/// The longest block of a pcapng file, in bytes: a key log may be long.
pub const BLOCK_BYTES_MAX: usize = 1 << 24;

/// How many interfaces a section of a pcapng file may describe.
pub const INTERFACES_MAX: usize = 4096;

/// How many VLAN tags a frame may have.
pub const VLAN_TAGS_MAX: usize = 8;

/// How many extension headers an IPv6 packet may have before its TCP header.
pub const EXTENSION_HEADERS_MAX: usize = 16;

/// How many datagrams may be waiting for fragments at a time.
pub const DATAGRAMS_MAX: usize = 256;

/// The longest datagram, in bytes.
pub const DATAGRAM_BYTES_MAX: usize = 1 << 16;

/// How many fragments one datagram may come in.
pub const FRAGMENTS_MAX: usize = 1024;

/// How many TCP connections are followed at a time.
pub const CONNECTIONS_MAX: usize = 1 << 16;

/// How many bytes of one direction may wait for those before them.
pub const WAITING_BYTES_MAX: usize = 1 << 22;

/// How many segments of one direction may wait for those before them.
pub const WAITING_SEGMENTS_MAX: usize = 4096;

/// How many packets of a connection wait for one that their sender had and the capture has not yet:
/// captures are a little out of order themselves.
pub const DEFERRED_PACKETS_MAX: usize = 8;

/// How long they wait, in nanoseconds of the capture.
pub const DEFERRED_NS_MAX: u64 = 50_000_000;

/// How many bytes all connections together may hold back.
pub const HELD_BYTES_MAX: usize = 1 << 28;

/// The longest message that is kept whole, in bytes; of a longer one only the beginning is.
pub const MESSAGE_BYTES_MAX: usize = 1 << 24;

/// How much is kept of a message that is too long, or lacks a piece, in bytes.
pub const HEAD_BYTES_MAX: usize = 1 << 16;

/// The longest message that is believed in after a gap if all of it is not there, in bytes.
pub const PLAUSIBLE_BYTES_MAX: usize = 1 << 20;

/// How many operations of a connection may wait for their answers.
pub const PENDING_MAX: usize = 4096;

/// How many bytes of entries found are kept for one operation where they are shown.
pub const ANSWERS_BYTES_MAX: usize = 1 << 20;

/// How many message ids of abandoned operations are remembered, to know answers that come late.
pub const ABANDONED_MAX: usize = 64;

/// How many distinct values of a kind a report counts.
pub const DISTINCT_MAX: usize = 1 << 16;

/// How many jobs a scenario has at most, those that were rarest left out: as many as keyway load takes.
pub const SCENARIO_JOBS_MAX: usize = 100;

/// How many values a list of a scenario has at most.
pub const SCENARIO_VALUES_MAX: usize = 10_000;

/// How much memory the requests take that are to be sent again, in bytes; further ones are left out.
pub const REPLAY_BYTES_MAX: usize = 1 << 30;

/// How many bytes wait to be decoded in the proxy before some are left out.
pub const QUEUE_BYTES_MAX: usize = 1 << 25;

/// How many pieces wait to be decoded in the proxy before some are left out.
pub const QUEUE_PIECES_MAX: usize = 1 << 14;

/// How many secrets of key logs are kept.
pub const KEY_LOG_SECRETS_MAX: usize = 1 << 20;

/// The longest message of a TLS handshake that is read, in bytes: chains of certificates are long.
pub const HANDSHAKE_BYTES_MAX: usize = 1 << 18;

/// How many records a gap may have swallowed if TLS is to be read after it.
pub const RECORD_NUMBERS_TRIED: u64 = 256;

/// How many places after a gap are tried for the begin of a record.
pub const RECORDS_TRIED: usize = 32;

/// How many connections the proxy forwards at a time.
pub const PROXY_CONNECTIONS_MAX: usize = 1 << 14;

/// How much the proxy reads of a connection at a time, in bytes.
pub const PROXY_BUFFER_BYTES: usize = 1 << 14;

/// How long the proxy waits for a server to be there, and for a TLS handshake.
pub const PROXY_WAIT: Duration = Duration::from_secs(10);

/// How many connections a replay has open at a time.
pub const REPLAY_CONNECTIONS_MAX: usize = 1 << 14;

/// The longest answer that a replay reads, in bytes.
pub const REPLAY_ANSWER_BYTES_MAX: usize = 1 << 26;

/// The longest file of passwords for a replay, in bytes.
pub const REPLAY_PASSWORDS_BYTES_MAX: u64 = 1 << 26;

/// The longest password in a file, in bytes.
pub const PASSWORD_BYTES_MAX: u64 = 4096;

/// How many operations a list that is browsed keeps.
pub const BROWSER_ITEMS_MAX: usize = 500_000;

/// How much memory they take, in bytes.
pub const BROWSER_BYTES_MAX: usize = 1 << 28;

/// How many remarks it keeps.
pub const BROWSER_REMARKS_MAX: usize = 100;

/// The longest text that is typed in or given to the terminal to be copied, in bytes.
pub const BROWSER_TEXT_BYTES_MAX: usize = 1 << 16;
