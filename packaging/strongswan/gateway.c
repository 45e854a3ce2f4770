#include "gateway.h"

#include <daemon.h>
#include <threading/mutex.h>
#include <threading/thread.h>

#include <errno.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* Where `keyway esp up` has it by default. */
#define SOCKET "/run/keyway-esp/ike.socket"
/* The gateway answers at once: one that does not for so long hangs, and charon should not. */
#define PATIENCE_SECONDS 10
#define RETRY_MILLISECONDS 1000
#define TEXT_MAX 256

/* One a process: charon has one kernel interface and one socket. */
static struct {
	char *path;
	uint64_t instance;
	/* Held from a request to its answer. */
	mutex_t *asking;
	uint32_t number;
	int requests;
	/* Held while `events` is replaced, written to or described. */
	mutex_t *telling;
	int events;
	struct gateway_description description;
	bool told;
} gateway;

static int dial(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE_SECONDS };
	int fd;

	if (strlen(gateway.path) >= sizeof(name.sun_path))
	{
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(name.sun_path, gateway.path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd == -1)
	{
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) == -1)
	{
		int why = errno;

		close(fd);
		errno = why;
		return -1;
	}
	return fd;
}

/* A connection on which the hello was answered, or -1. */
static int join(enum keyway_channel channel, struct keyway_welcome *welcome)
{
	struct keyway_hello hello = {
		.header = { .kind = KEYWAY_HELLO },
		.version = htons(KEYWAY_VERSION),
		.channel = htons(channel),
		.instance = gateway.instance,
	};
	char answer[sizeof(*welcome) + TEXT_MAX] = "";
	ssize_t got;
	int fd, why = ECONNRESET;

	fd = dial();
	if (fd == -1)
	{
		return -1;
	}
	if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello))
	{
		got = recv(fd, answer, sizeof(answer) - 1, 0);
		why = got == -1 ? errno : got ? EPROTO : ECONNRESET;
		memcpy(welcome, answer, sizeof(*welcome));
		if (got == sizeof(*welcome) && welcome->header.kind == KEYWAY_ANSWER && !welcome->header.status)
		{
			return fd;
		}
		if (got >= (ssize_t)sizeof(struct keyway_header) && welcome->header.kind == KEYWAY_ANSWER)
		{
			DBG1(DBG_KNL, "the gateway at %s refuses charon: %s", gateway.path,
				 answer + sizeof(struct keyway_header));
		}
	}
	close(fd);
	errno = why;
	return -1;
}

/* Joins the channel of events, where it is not joined. */
static bool attend(bool *restarted)
{
	struct keyway_welcome welcome;
	int fd, why;

	gateway.telling->lock(gateway.telling);
	fd = gateway.events;
	gateway.telling->unlock(gateway.telling);
	if (fd != -1)
	{
		return TRUE;
	}
	fd = join(KEYWAY_EVENTS, &welcome);
	why = errno;
	gateway.telling->lock(gateway.telling);
	if (fd == -1)
	{
		if (!gateway.told)
		{
			DBG1(DBG_KNL, "no gateway at %s: %s. `keyway esp up` serves it, with [ike] in its configuration; charon "
				 "goes on trying", gateway.path, strerror(why));
		}
		gateway.told = TRUE;
	}
	else
	{
		welcome.device[sizeof(welcome.device) - 1] = 0;
		DBG1(DBG_KNL, "joined the gateway at %s, device %s", gateway.path, welcome.device);
		/* Addresses that a peer assigns belong on the device that their packets come from. */
		lib->settings->set_str(lib->settings, "%s.install_virtual_ip_on", welcome.device, lib->ns);
		gateway.description = (struct gateway_description){
			.flags = ntohl(welcome.flags),
			.port = ntohs(welcome.port),
			.port_nat_t = ntohs(welcome.port_nat_t),
		};
		*restarted = gateway.description.flags & KEYWAY_NEW;
		gateway.told = FALSE;
		gateway.events = fd;
	}
	gateway.telling->unlock(gateway.telling);
	return fd != -1;
}

void gateway_open(void)
{
	bool restarted;

	gateway.path = lib->settings->get_str(lib->settings, "%s.plugins.keyway-esp.socket", SOCKET, lib->ns);
	gateway.asking = mutex_create(MUTEX_TYPE_DEFAULT);
	gateway.telling = mutex_create(MUTEX_TYPE_DEFAULT);
	gateway.requests = gateway.events = -1;
	gateway.description = (struct gateway_description){
		.flags = KEYWAY_UDP_ONLY | KEYWAY_IPV4 | KEYWAY_IPV6,
		.port = IKEV2_UDP_PORT,
		.port_nat_t = IKEV2_NATT_PORT,
	};
	while (getrandom(&gateway.instance, sizeof(gateway.instance), 0) != sizeof(gateway.instance))
	{
	}
	attend(&restarted);
}

void gateway_close(void)
{
	if (gateway.requests != -1)
	{
		close(gateway.requests);
	}
	if (gateway.events != -1)
	{
		close(gateway.events);
	}
	gateway.asking->destroy(gateway.asking);
	gateway.telling->destroy(gateway.telling);
}

struct gateway_description gateway_describe(void)
{
	struct gateway_description description;

	gateway.telling->lock(gateway.telling);
	description = gateway.description;
	gateway.telling->unlock(gateway.telling);
	return description;
}

/* Sends, and takes the answer into `answer`, of TEXT_MAX bytes and a zero. Returns the answer's bytes, 0 where there is none. */
static size_t ask(const struct keyway_header *request, size_t length, char *answer)
{
	struct keyway_welcome welcome;
	struct keyway_header head;
	ssize_t got;
	int attempt;

	for (attempt = 0; attempt < 2; attempt++)
	{
		if (gateway.requests == -1)
		{
			gateway.requests = join(KEYWAY_REQUESTS, &welcome);
			if (gateway.requests == -1)
			{
				return 0;
			}
		}
		if (send(gateway.requests, request, length, MSG_NOSIGNAL) == (ssize_t)length)
		{
			got = recv(gateway.requests, answer, TEXT_MAX, 0);
			if (got >= (ssize_t)sizeof(head))
			{
				memcpy(&head, answer, sizeof(head));
				if (head.kind == KEYWAY_ANSWER && head.number == request->number)
				{
					answer[got] = 0;
					return got;
				}
				errno = EPROTO;
			}
			attempt = got ? 1 : attempt;
		}
		close(gateway.requests);
		gateway.requests = -1;
	}
	return 0;
}

status_t gateway_request(char *what, uint8_t kind, struct keyway_header *request, size_t length,
						 struct keyway_header *answer, size_t size)
{
	char whole[TEXT_MAX + 1];
	size_t got;
	uint16_t status;

	gateway.asking->lock(gateway.asking);
	request->kind = kind;
	request->number = htonl(++gateway.number);
	got = ask(request, length, whole);
	gateway.asking->unlock(gateway.asking);
	memwipe(request, length);
	if (!got)
	{
		DBG1(DBG_KNL, "%s: no answer from the gateway at %s", what, gateway.path);
		return FAILED;
	}
	memcpy(&status, whole + offsetof(struct keyway_header, status), sizeof(status));
	switch (ntohs(status))
	{
		case KEYWAY_OK:
			if (got < size)
			{
				DBG1(DBG_KNL, "%s: the gateway's answer is short", what);
				return FAILED;
			}
			memcpy(answer, whole, size);
			return SUCCESS;
		case KEYWAY_NOT_FOUND:
			DBG2(DBG_KNL, "%s: %s", what, whole + sizeof(struct keyway_header));
			return NOT_FOUND;
		case KEYWAY_NOT_SUPPORTED:
			DBG1(DBG_KNL, "%s: %s", what, whole + sizeof(struct keyway_header));
			return NOT_SUPPORTED;
		default:
			DBG1(DBG_KNL, "%s: %s", what, whole + sizeof(struct keyway_header));
			return FAILED;
	}
}

bool gateway_send(struct keyway_packet *packet, chunk_t payload)
{
	struct iovec parts[] = {
		{ .iov_base = packet, .iov_len = sizeof(*packet) },
		{ .iov_base = payload.ptr, .iov_len = payload.len },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = countof(parts) };
	bool sent = FALSE;

	gateway.telling->lock(gateway.telling);
	if (gateway.events != -1)
	{
		sent = sendmsg(gateway.events, &message, MSG_NOSIGNAL) == (ssize_t)(sizeof(*packet) + payload.len);
	}
	gateway.telling->unlock(gateway.telling);
	return sent;
}

size_t gateway_receive(void *message, bool *restarted)
{
	struct pollfd waiting = { .fd = -1, .events = POLLIN };
	ssize_t got;
	bool before;

	*restarted = FALSE;
	if (attend(restarted))
	{
		if (*restarted)
		{
			return 0;
		}
		waiting.fd = gateway.events;
	}
	before = thread_cancelability(TRUE);
	poll(&waiting, 1, waiting.fd == -1 ? RETRY_MILLISECONDS : -1);
	thread_cancelability(before);
	if (!waiting.revents)
	{
		return 0;
	}
	got = recv(waiting.fd, message, KEYWAY_MESSAGE_MAX, MSG_DONTWAIT);
	if (got > 0)
	{
		return got;
	}
	if (got == 0 || (errno != EAGAIN && errno != EINTR))
	{
		DBG1(DBG_KNL, "the gateway at %s is gone", gateway.path);
		gateway.telling->lock(gateway.telling);
		close(gateway.events);
		gateway.events = -1;
		gateway.telling->unlock(gateway.telling);
	}
	return 0;
}

void address_of_host(struct keyway_address *address, host_t *host)
{
	chunk_t bytes = host->get_address(host);

	*address = (struct keyway_address){
		.family = host->get_family(host) == AF_INET ? 4 : 6,
		.port = htons(host->get_port(host)),
	};
	memcpy(address->bytes, bytes.ptr, min(bytes.len, sizeof(address->bytes)));
}

host_t *host_of_address(const struct keyway_address *address)
{
	bool old = address->family == 4;

	return host_create_from_chunk(old ? AF_INET : AF_INET6,
								  chunk_create((u_char *)address->bytes, old ? 4 : 16), ntohs(address->port));
}

static void side(traffic_selector_t *traffic, uint16_t ports[2], uint8_t addresses[2][16])
{
	chunk_t from = traffic->get_from_address(traffic), to = traffic->get_to_address(traffic);

	ports[0] = htons(traffic->get_from_port(traffic));
	ports[1] = htons(traffic->get_to_port(traffic));
	memcpy(addresses[0], from.ptr, min(from.len, 16));
	memcpy(addresses[1], to.ptr, min(to.len, 16));
}

bool selector_of_traffic(struct keyway_selector *selector, traffic_selector_t *source, traffic_selector_t *destination)
{
	uint8_t protocol = source->get_protocol(source), other = destination->get_protocol(destination);

	if (source->get_type(source) != destination->get_type(destination) || (protocol && other && protocol != other))
	{
		return FALSE;
	}
	*selector = (struct keyway_selector){
		.family = source->get_type(source) == TS_IPV4_ADDR_RANGE ? 4 : 6,
		.protocol = max(protocol, other),
	};
	side(source, selector->source_ports, selector->sources);
	side(destination, selector->destination_ports, selector->destinations);
	return TRUE;
}

traffic_selector_t *traffic_of_selector(const struct keyway_selector *selector, bool source)
{
	const uint16_t *ports = source ? selector->source_ports : selector->destination_ports;
	const uint8_t(*addresses)[16] = source ? selector->sources : selector->destinations;
	size_t length = selector->family == 4 ? 4 : 16;

	return traffic_selector_create_from_bytes(
		selector->protocol, selector->family == 4 ? TS_IPV4_ADDR_RANGE : TS_IPV6_ADDR_RANGE,
		chunk_create((u_char *)addresses[0], length), ntohs(ports[0]),
		chunk_create((u_char *)addresses[1], length), ntohs(ports[1]));
}
