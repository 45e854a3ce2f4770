#include "socket.h"

#include "gateway.h"
#include "ipsec.h"

#include <daemon.h>

struct socket {
	socket_t public;
	/* One thread of charon's receives. */
	char message[KEYWAY_MESSAGE_MAX];
};

static packet_t *packet_of(char *message, size_t length)
{
	struct keyway_packet head;
	host_t *source, *destination;

	memcpy(&head, message, sizeof(head));
	source = host_of_address(&head.source);
	destination = host_of_address(&head.destination);
	if (!source || !destination)
	{
		DESTROY_IF(source);
		DESTROY_IF(destination);
		return NULL;
	}
	return packet_create_from_data(source, destination,
								   chunk_clone(chunk_create((u_char *)message + sizeof(head), length - sizeof(head))));
}

METHOD(socket_t, receiver, status_t, struct socket *this, packet_t **packet)
{
	struct keyway_header head;
	struct keyway_expire expire;
	struct keyway_acquire acquire;
	bool restarted;
	size_t length;

	*packet = NULL;
	while (!*packet)
	{
		length = gateway_receive(this->message, &restarted);
		if (restarted)
		{
			ipsec_restarted();
		}
		if (length < sizeof(head))
		{
			continue;
		}
		memcpy(&head, this->message, sizeof(head));
		if (head.kind == KEYWAY_PACKET && length >= sizeof(struct keyway_packet))
		{
			*packet = packet_of(this->message, length);
		}
		else if (head.kind == KEYWAY_EXPIRE && length == sizeof(expire))
		{
			memcpy(&expire, this->message, sizeof(expire));
			ipsec_expire(&expire);
		}
		else if (head.kind == KEYWAY_ACQUIRE && length == sizeof(acquire))
		{
			memcpy(&acquire, this->message, sizeof(acquire));
			ipsec_acquire(&acquire);
		}
	}
	return SUCCESS;
}

METHOD(socket_t, sender, status_t, struct socket *this, packet_t *packet)
{
	struct keyway_packet head = { .header = { .kind = KEYWAY_PACKET } };

	address_of_host(&head.source, packet->get_source(packet));
	address_of_host(&head.destination, packet->get_destination(packet));
	return gateway_send(&head, packet->get_data(packet)) ? SUCCESS : FAILED;
}

METHOD(socket_t, get_port, uint16_t, struct socket *this, bool nat_t)
{
	struct gateway_description description = gateway_describe();

	return nat_t ? description.port_nat_t : description.port;
}

METHOD(socket_t, supported_families, socket_family_t, struct socket *this)
{
	uint32_t flags = gateway_describe().flags;

	return (flags & KEYWAY_IPV4 ? SOCKET_FAMILY_IPV4 : 0) | (flags & KEYWAY_IPV6 ? SOCKET_FAMILY_IPV6 : 0);
}

METHOD(socket_t, destroy, void, struct socket *this)
{
	free(this);
}

socket_t *keyway_socket_create(void)
{
	struct socket *this;

	INIT(this,
		.public = {
			.receive = _receiver,
			.send = _sender,
			.get_port = _get_port,
			.supported_families = _supported_families,
			.destroy = _destroy,
		},
	);
	return &this->public;
}
