/* SPDX-License-Identifier: GPL-2.0-only */
/* An address and a port, of IPv4 or IPv6. */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

struct endpoint {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t size;
};

/* A port of every local address. */
static inline struct endpoint endpoint_here(int family, int port)
{
	if (family == AF_INET6)
		return (struct endpoint) { .v6 = { .sin6_family = AF_INET6,
						   .sin6_port = htons(port) },
					   .size = sizeof(struct sockaddr_in6) };
	return (struct endpoint) { .v4 = { .sin_family = AF_INET, .sin_port = htons(port) },
				   .size = sizeof(struct sockaddr_in) };
}

/* A port of an address given as text; false if that is no address. */
static inline bool endpoint_there(struct endpoint *end, const char *address, int port)
{
	*end = endpoint_here(AF_INET, port);
	if (inet_pton(AF_INET, address, &end->v4.sin_addr) == 1)
		return true;
	*end = endpoint_here(AF_INET6, port);
	return inet_pton(AF_INET6, address, &end->v6.sin6_addr) == 1;
}

#endif
