/* charon's socket, by the gateway: it has UDP 500 and 4500, and hands over what is IKE. */

#ifndef KEYWAY_SOCKET_H_
#define KEYWAY_SOCKET_H_

#include <network/socket.h>

socket_t *keyway_socket_create(void);

#endif
