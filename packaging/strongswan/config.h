/* strongSwan's headers look at these: what Debian's build of 5.9.8 defines in its own config.h. ME (--enable-mediation) and
 * the clocks change the layout and meaning of what is shared with charon, the others choose between equal functions. */

#ifndef CONFIG_H_INCLUDED
#define CONFIG_H_INCLUDED

#define ME 1
#define USE_IKEV1 1
#define USE_IKEV2 1
#define HAVE_ALLOCA_H 1
#define HAVE_CLOCK_GETTIME 1
#define HAVE_CLOSEFROM 1
#define HAVE_CONDATTR_CLOCK_MONOTONIC 1
#define HAVE_EXPLICIT_BZERO 1
#define HAVE_FMEMOPEN 1
#define HAVE_GCC_ATOMIC_OPERATIONS 1
#define HAVE_GCC_SYNC_OPERATIONS 1
#define HAVE_INT128 1
#define HAVE_MEMRCHR 1
#define HAVE_SIGWAITINFO 1
#define HAVE_STDBOOL_H 1
#define HAVE_SYS_PARAM_H 1

#endif
