/* Whose a TCP connection is. */
#ifndef STEELYARD_COUNTERS_TCP_OWNER_H
#define STEELYARD_COUNTERS_TCP_OWNER_H

#include "counters/processes.h"
#include "counters/tcp_sockets.h"

/* The job's cgroup below `root`; of no effect when it is none of version 2. */
void sy_tcp_cgroup(struct sy_tcp *tcp, int root, const char *path);

/* Find out whose the unknown connections are. */
void sy_tcp_find_owners(struct sy_tcp *tcp, struct sy_processes *processes);

#endif
