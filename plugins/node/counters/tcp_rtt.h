/* TCP sockets of this network namespace and their round-trip times, from the kernel by netlink:
 * sock_diag(7); and statistics of these times.
 *
 * Listing them walks the kernel's whole hash table (262,144 buckets on a machine of 4 GB: 180 µs,
 * however few sockets there are). Querying a known socket costs 4 µs, and 2 for each further one.
 * So list seldom. Neither needs a right. Nothing is allocated. */
#ifndef STEELYARD_COUNTERS_TCP_RTT_H
#define STEELYARD_COUNTERS_TCP_RTT_H

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

/* --- statistics of round-trip times, and of other whole numbers, in room that does not grow --- */

/* Buckets of a logarithmic scale with 64 steps an octave: a median is off by half a bucket, 0.8 %
 * at most. Below 128 µs a bucket holds one value. The idea is that of HdrHistogram. */
#define SY_RTT_BUCKETS 1728

struct sy_rtt_counts {
	uint32_t count[SY_RTT_BUCKETS];
};

/* Mean and sum of squared deviations, value by value: B. P. Welford, Technometrics 4 (1962) 419. */
struct sy_rtt {
	int64_t readings;
	double mean_us, squares;
	uint32_t min_us, max_us;
};

void sy_rtt_add(struct sy_rtt *rtt, struct sy_rtt_counts *counts, uint32_t us);

/* Of the sample (n - 1), µs; negative with fewer than two readings. */
double sy_rtt_sd_us(const struct sy_rtt *rtt);

/* The value below which half of them lie, µs; never outside of min and max; negative: no readings.
 */
double sy_rtt_median_us(const struct sy_rtt *rtt, const struct sy_rtt_counts *counts);

#endif
