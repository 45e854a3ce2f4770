/* charon's kernel interface for IPsec, by the gateway. */

#ifndef KEYWAY_IPSEC_H_
#define KEYWAY_IPSEC_H_

#include "protocol.h"

#include <kernel/kernel_ipsec.h>

kernel_ipsec_t *keyway_ipsec_create(void);

/* What the gateway reports. */
void ipsec_expire(const struct keyway_expire *expire);
void ipsec_acquire(const struct keyway_acquire *acquire);
/* A new gateway has none of our SAs and policies: it is told the policies again, and charon makes new SAs. */
void ipsec_restarted(void);

#endif
