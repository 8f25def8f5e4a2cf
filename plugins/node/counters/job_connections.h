/* The job's TCP connections to other nodes, their round-trip times and windows.
 *
 * Whose a connection is: on cgroup version 2 the kernel reports the cgroup it was made in; else it
 * is looked for among the open files of the job's processes, once. Only connections of the job's
 * user are considered, where he is known: a step's daemon is root's. Those within the node
 * (loopback, or to its own address) are left out: they would drown the network.
 *
 * Listing costs far more than asking (tcp_rtt.h). So connections are listed only when the
 * kernel's count of TCP sockets has changed, when one of ours has gone, and every LIST_US; at most
 * once a second, so seldom that it takes 1/4000 of a CPU, and every 8 s while nothing of the job's
 * is new. Between that the known ones are asked for, with the same limits. What lived for less than
 * that is not seen. */
#ifndef STEELYARD_COUNTERS_JOB_CONNECTIONS_H
#define STEELYARD_COUNTERS_JOB_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/samples.h"
#include "counters/processes.h"
#include "counters/tcp_rtt.h"

#define SY_MAX_CONNECTIONS 4096
#define SY_ANY_USER	   ((uid_t)-1)

/* What is known so far, for the record. */
struct sy_tcp_status {
	bool has_answered; /* the kernel has answered at least once */
	bool overflowed;   /* more than SY_MAX_CONNECTIONS of the user at once */
	int failure;	   /* errno of what went wrong, or 0 */
	int64_t connections, retransmitted;
	uint32_t floor_us; /* smallest single round trip; 0: none known */
	struct sy_rtt rtt;
	struct sy_rtt snd_cwnd; /* segments */
	struct sy_rtt rcv_space_bytes;
};

/* How often each value was read, for the medians. */
struct sy_tcp_counts {
	struct sy_rtt_counts rtt, snd_cwnd, rcv_space_bytes;
};

enum sy_whose { SY_WHOSE_UNKNOWN, SY_WHOSE_OURS, SY_WHOSE_OTHERS };

struct sy_connection {
	struct sy_tcp_socket socket; /* as last reported */
	uint32_t counted; /* retransmissions in the total, or from before the sampler started */
	enum sy_whose whose;
	uint8_t tries; /* how often it was looked for in vain */
	bool known;    /* ours, and in the count of connections */
	bool fresh;    /* has had an answer since its last reading */
	bool moved;    /* has sent or received data since its last reading */
	bool listed;   /* in this listing */
};

struct sy_group_id {
	uint64_t id;
	bool ours;
};

#define SY_MAX_GROUP_IDS 64

struct sy_tcp {
	int diag_fd, sockstat_fd;
	int group_fd; /* the job's cgroup, version 2, or -1 */
	uid_t uid;
	struct sy_tcp_counts *counts;
	struct sy_tcp_status status;
	int64_t next_us, listed_at_us, wait_us; /* wait_us: from one listing to the next */
	int64_t inuse, allocated;		/* of /proc/net/sockstat at the last listing */
	bool must_list;
	int listings; /* up to those that may cost what they cost */
	int ours, count;
	int next; /* where the next one is looked for first */
	struct sy_connection connection[SY_MAX_CONNECTIONS];
	int group_ids, next_group_id;
	struct sy_group_id group_id[SY_MAX_GROUP_IDS];
};

/* Open what is needed; `uid` the job's user or SY_ANY_USER. */
void sy_tcp_init(struct sy_tcp *tcp, uid_t uid, struct sy_tcp_counts *counts);

/* The job's cgroup below `root`; of no effect when it is none of version 2. */
void sy_tcp_cgroup(struct sy_tcp *tcp, int root, const char *path);

/* More processes are the job's: look at every connection again. */
void sy_tcp_recheck(struct sy_tcp *tcp);

/* Take a reading when one is due, or `now`: the mean of the smoothed round-trip times of this
 * reading, µs, or SY_UNKNOWN. A connection counts when its peer has acknowledged something since
 * its last reading: the value of one that is idle is an old one. Windows also count when data was
 * received. */
int64_t sy_tcp_read(struct sy_tcp *tcp, struct sy_processes *processes, int64_t now_us, bool now);

#endif
