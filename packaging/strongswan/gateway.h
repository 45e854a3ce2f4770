/* charon's two connections to the gateway. */

#ifndef KEYWAY_GATEWAY_H_
#define KEYWAY_GATEWAY_H_

#include "protocol.h"

#include <library.h>
#include <networking/host.h>
#include <selectors/traffic_selector.h>

/* The gateway as its welcome described it. */
struct gateway_description {
	uint32_t flags;
	uint16_t port;
	uint16_t port_nat_t;
};

/* Once, before all others. That no gateway answers is no error: the next call tries again. */
void gateway_open(void);
void gateway_close(void);

struct gateway_description gateway_describe(void);

/* Sends a request and waits for its answer, of which it keeps `size` bytes. What the gateway refused or could not do is
 * logged with the name `what`. Wipes the request. */
status_t gateway_request(char *what, uint8_t kind, struct keyway_header *request, size_t length,
						 struct keyway_header *answer, size_t size);

/* Sends a message that is not answered. */
bool gateway_send(struct keyway_packet *packet, chunk_t payload);

/* Waits for the next message of the gateway's, at most KEYWAY_MESSAGE_MAX bytes, and returns its bytes: 0 where there was
 * none and the caller should ask again. Sets *restarted where this gateway knows nothing of what the last one was told.
 * The thread may be cancelled in it. */
size_t gateway_receive(void *message, bool *restarted);

void address_of_host(struct keyway_address *address, host_t *host);
/* NULL where the address is none. */
host_t *host_of_address(const struct keyway_address *address);
/* FALSE where the two cannot belong to one packet. */
bool selector_of_traffic(struct keyway_selector *selector, traffic_selector_t *source, traffic_selector_t *destination);
traffic_selector_t *traffic_of_selector(const struct keyway_selector *selector, bool source);

#endif
