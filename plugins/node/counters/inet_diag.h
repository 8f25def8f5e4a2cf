/* TCP sockets of this network namespace, from the kernel by netlink: sock_diag(7).
 *
 * Listing them walks the kernel's whole hash table (262,144 buckets on a machine of 4 GB: 180 µs,
 * however few sockets there are). Querying a known socket costs 4 µs, and 2 for each further one.
 * So list seldom. Neither needs a right. Nothing is allocated. */
#ifndef STEELYARD_COUNTERS_INET_DIAG_H
#define STEELYARD_COUNTERS_INET_DIAG_H

#include <linux/inet_diag.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* A connection as the kernel reports it: tcp(7) TCP_INFO, struct tcp_info of linux/tcp.h. */
struct sy_tcp_socket {
	struct inet_diag_sockid id; /* with the cookie, which is never given twice */
	uint8_t family;
	uid_t uid;
	uint32_t inode;		/* of socket:[N] in /proc/PID/fd; 0: no process has it open */
	uint64_t cgroup_id;	/* of version 2; 0: unknown */
	uint32_t rtt_us;	/* smoothed; 0: not known */
	uint32_t min_rtt_us;	/* smallest single one; 0: not known */
	uint32_t retransmitted; /* segments so far */
	uint64_t acked_bytes;	/* of ours, by the peer */
	uint64_t received_bytes;
	uint32_t snd_cwnd;	  /* congestion window, segments; 0: not known */
	uint32_t rcv_space_bytes; /* what the receiver's buffer is tuned by; 0: not known */
	bool same_node;		  /* it talks to its own address */
};

/* Called for each; `index` is that of the queried list, 0 when all were listed. */
typedef void sy_diag_visit(void *context, int index, const struct sy_tcp_socket *socket);

/* A netlink socket, or -1. */
int sy_diag_open(struct sy_error *err);

/* Every open connection of both families, those to loopback addresses (127.0.0.0/8, ::1) left out:
 * 0, or -errno. */
int sy_diag_list(int fd, sy_diag_visit *visit, void *context);

#define SY_DIAG_QUERY_MAX 16

/* At most SY_DIAG_QUERY_MAX known connections at once (family, id); closed ones are not reported.
 * 0, or -errno. */
int sy_diag_query(int fd, const struct sy_tcp_socket *const known[], int count,
		  sy_diag_visit *visit, void *context);

/* One answer, without its header of netlink: 0, or -1 when it is none. For sockets made of text in
 * tests as well. */
int sy_diag_parse(const void *answer, size_t size, struct sy_tcp_socket *socket);

#endif
