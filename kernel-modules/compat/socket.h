/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel versions, for sockets. */
#ifndef TWOWAY_COMPAT_SOCKET_H
#define TWOWAY_COMPAT_SOCKET_H

#include <linux/socket.h>

#include "common.h"

/* What the socket layer calls an address of a length of its own: a type since 6.19. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define TWOWAY_SOCKADDR	struct sockaddr_unsized
#else
#define TWOWAY_SOCKADDR	struct sockaddr
#endif

/* What data comes from: WRITE until 6.2. */
#ifndef ITER_SOURCE
#define ITER_SOURCE	WRITE
#endif

/* Segments refer to the caller's pages: since 6.5. Before, they are copied. */
#ifndef MSG_SPLICE_PAGES
#define MSG_SPLICE_PAGES	0
#endif

#endif /* TWOWAY_COMPAT_SOCKET_H */
