/* Echo requests, all in flight together, and how long each answer took. */
#ifndef STEELYARD_NETEM_VERIFY_PING_H
#define STEELYARD_NETEM_VERIFY_PING_H

#include <stdint.h>

#include "base/error.h"

#define SY_PING_MAX   100
#define SY_ECHO_BYTES 98 /* an echo request of IPv4 with its Ethernet header */

struct sy_ping {
	const char *peer;  /* IPv4 or IPv6 address as text */
	int port;	   /* 0: ICMP echo; else TCP: accepted or refused, both answer */
	int count;	   /* 1 to SY_PING_MAX */
	int64_t gap_us;	   /* between two */
	int64_t wait_us;   /* for answers after the last one */
	uint32_t priority; /* SO_PRIORITY; above 6 it needs CAP_NET_ADMIN */
};

struct sy_pongs {
	int sent, received;
	double s[SY_PING_MAX]; /* the first `received`: ascending, seconds */
};

/* 0, answers or none; -1: could not even ask. ICMP needs CAP_NET_RAW, or a group within
 * net.ipv4.ping_group_range (icmp(7)). An answer is timed when the kernel took it in
 * (SO_TIMESTAMPNS, socket(7)) where it says so. Once half have come, no more is waited than twice
 * the longest so far. */
int sy_ping(const struct sy_ping *ping, struct sy_pongs *pongs, struct sy_error *err);

#endif
