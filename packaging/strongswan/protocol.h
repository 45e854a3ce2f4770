/* The messages between charon and Keyway's ESP gateway, over Unix sockets of type SOCK_SEQPACKET: one message a packet.
 *
 * Numbers are in network byte order; bytes named `zero` are 0. charon opens two connections to the gateway's socket and says
 * KEYWAY_HELLO on each, with the same instance: a random number for as long as charon lives.
 *
 * KEYWAY_REQUESTS: every message of charon's is answered by one KEYWAY_ANSWER with the same number, in turn. An answer whose
 * status is not KEYWAY_OK goes on with a text that says why, to its end.
 * KEYWAY_EVENTS: packets of IKE in both directions, and what the gateway reports. Nothing is answered but the hello.
 *
 * A hello with another instance than the last one deletes all SAs and policies of the last one. The gateway's side is in
 * crypto/esp-gateway/src/ike/message.rs. */

#ifndef KEYWAY_PROTOCOL_H_
#define KEYWAY_PROTOCOL_H_

#include <stdint.h>

#define KEYWAY_VERSION 1
/* Bytes of the longest message: a UDP payload and its header. */
#define KEYWAY_MESSAGE_MAX 65600
#define KEYWAY_SELECTORS_MAX 64

enum keyway_kind {
	KEYWAY_HELLO = 1,           /* keyway_hello, answered by keyway_welcome */
	KEYWAY_GET_SPI = 2,         /* keyway_sa with spi 0, answered by keyway_spi */
	KEYWAY_ADD_SA = 3,          /* keyway_add_sa */
	KEYWAY_UPDATE_SA = 4,       /* keyway_update_sa */
	KEYWAY_QUERY_SA = 5,        /* keyway_sa, answered by keyway_use */
	KEYWAY_DELETE_SA = 6,       /* keyway_sa */
	KEYWAY_FLUSH_SAS = 7,       /* a header */
	KEYWAY_ADD_POLICY = 8,      /* keyway_policy */
	KEYWAY_DELETE_POLICY = 9,   /* keyway_policy */
	KEYWAY_FLUSH_POLICIES = 10, /* a header */
	KEYWAY_ANSWER = 64,
	KEYWAY_PACKET = 65,         /* keyway_packet, then the UDP payload with its non-ESP marker, if it has one */
	KEYWAY_EXPIRE = 66,         /* keyway_expire */
	KEYWAY_ACQUIRE = 67,        /* keyway_acquire */
};

enum keyway_status {
	KEYWAY_OK = 0,
	KEYWAY_FAILED = 1,
	KEYWAY_NOT_SUPPORTED = 2,
	KEYWAY_NOT_FOUND = 3,
};

enum keyway_channel {
	KEYWAY_REQUESTS = 0,
	KEYWAY_EVENTS = 1,
};

struct keyway_header {
	uint8_t kind;
	uint8_t zero;
	uint16_t status; /* of answers */
	uint32_t number; /* of requests, and of their answers */
};

struct keyway_address {
	uint8_t family; /* 4 or 6 */
	uint8_t zero;
	uint16_t port;
	uint8_t bytes[16]; /* IPv4: the first four */
};

/* Packets: those from any of the sources to any of the destinations. First and last belong to a range. */
struct keyway_selector {
	uint8_t family;   /* 4 or 6 */
	uint8_t protocol; /* 0: any */
	uint16_t zero;
	uint16_t source_ports[2]; /* ICMP: the type and the code, as RFC 7296 section 3.13.1 has them */
	uint16_t destination_ports[2];
	uint8_t sources[2][16];
	uint8_t destinations[2][16];
};

struct keyway_hello {
	struct keyway_header header;
	uint16_t version; /* KEYWAY_VERSION */
	uint16_t channel;
	uint32_t zero;
	uint64_t instance;
};

/* The gateway has nothing of this instance yet. */
#define KEYWAY_NEW 1
/* ESP goes in UDP only. */
#define KEYWAY_UDP_ONLY 2
#define KEYWAY_IPV4 4
#define KEYWAY_IPV6 8

struct keyway_welcome {
	struct keyway_header header;
	uint32_t flags;
	uint16_t port;       /* that the gateway receives IKE without a marker on; 0: on none */
	uint16_t port_nat_t; /* with a marker, beside ESP */
	char device[16];     /* the network device's name, zeros behind it */
};

struct keyway_sa {
	struct keyway_header header;
	uint32_t spi;
	struct keyway_address source;
	struct keyway_address destination;
};

struct keyway_spi {
	struct keyway_header header;
	uint32_t spi;
};

struct keyway_use {
	struct keyway_header header;
	uint64_t bytes;
	uint64_t packets;
	uint64_t idle; /* seconds since the last packet; all ones: there was none */
};

struct keyway_add_sa {
	struct keyway_header header;
	uint32_t spi;
	struct keyway_address source;
	struct keyway_address destination;
	uint32_t reqid;
	uint64_t seconds[2]; /* soft and hard limits; 0: none */
	uint64_t bytes[2];
	uint64_t packets[2];
	uint32_t window;      /* of numbers that may come late */
	uint16_t encryption;  /* IANA's number of the IKEv2 transform */
	uint16_t integrity;   /* 0: none */
	uint8_t mode;         /* 1: transport, 2: tunnel */
	uint8_t inbound;      /* 1, or 0 */
	uint8_t esn;          /* 1: extended sequence numbers */
	uint8_t encapsulated; /* 1: in UDP */
	uint8_t zero;
	uint8_t encryption_bytes; /* of its key, with the salt at its end */
	uint8_t integrity_bytes;
	uint8_t selectors; /* so many keyway_selector follow */
	uint8_t encryption_key[40];
	uint8_t integrity_key[32];
};

struct keyway_update_sa {
	struct keyway_header header;
	uint32_t spi;
	struct keyway_address source;
	struct keyway_address destination;
	struct keyway_address new_source;
	struct keyway_address new_destination;
	uint8_t encapsulated;
	uint8_t zero[3];
};

enum keyway_action {
	KEYWAY_PROTECT = 1,
	KEYWAY_PASS = 2,
	KEYWAY_DROP = 3,
};

/* Outbound policies only: an inbound SA brings its selectors along. Of policies for the same packets that with the lower
 * priority counts, and of those with one priority the newest. */
struct keyway_policy {
	struct keyway_header header;
	uint8_t action;
	uint8_t priority;
	uint16_t zero;
	uint32_t reqid;
	uint32_t spi; /* 0: of no SA yet; a packet makes the gateway send KEYWAY_ACQUIRE */
	struct keyway_address source;
	struct keyway_address destination;
	struct keyway_selector selector;
};

struct keyway_packet {
	struct keyway_header header;
	struct keyway_address source;
	struct keyway_address destination;
};

struct keyway_expire {
	struct keyway_header header;
	uint32_t spi;
	struct keyway_address destination;
	uint8_t hard;
	uint8_t zero[3];
};

struct keyway_acquire {
	struct keyway_header header;
	uint32_t reqid;
	struct keyway_selector packet;
};

_Static_assert(sizeof(struct keyway_selector) == 76, "no gaps");
_Static_assert(sizeof(struct keyway_hello) == 24, "no gaps");
_Static_assert(sizeof(struct keyway_welcome) == 32, "no gaps");
_Static_assert(sizeof(struct keyway_sa) == 52, "no gaps");
_Static_assert(sizeof(struct keyway_use) == 32, "no gaps");
_Static_assert(sizeof(struct keyway_add_sa) == 192, "no gaps");
_Static_assert(sizeof(struct keyway_update_sa) == 96, "no gaps");
_Static_assert(sizeof(struct keyway_policy) == 136, "no gaps");
_Static_assert(sizeof(struct keyway_packet) == 48, "no gaps");
_Static_assert(sizeof(struct keyway_expire) == 36, "no gaps");
_Static_assert(sizeof(struct keyway_acquire) == 88, "no gaps");

#endif
