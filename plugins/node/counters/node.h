/* Room counters: what the kernel has counted, read from its files and sockets; the sampler decides
 * what of it is the job's.
 *
 * - of a job: its cgroup and those of its steps (cgroup.h), its processes (processes.h,
 *   process_members.h, process_table.h), and its TCP connections (job_connections.h);
 * - of a command that we start and wait for: child_processes.h;
 * - of the whole node (this header): energy (meters/), network devices (netdev_inventory.h), TCP,
 *   pressure.
 *
 * Parsers of the kernel's texts are pure functions (parse.h). It promises that no reading allocates
 * memory, and that what could not be read is SY_UNKNOWN, never 0. The kernel's own count of a job
 * is bpf/'s.
 *
 * Files are opened once, as root, and read by pread. What costs much and changes slowly is read
 * less often than every sample; its last value is repeated in between. docs/sampler.md has the
 * table. */
#ifndef STEELYARD_COUNTERS_NODE_H
#define STEELYARD_COUNTERS_NODE_H

#include "base/samples.h"
#include "counters/netdev_inventory.h"
#include "meters/meters.h"

struct sy_counter {
	int fd;
	int64_t base, value; /* first and last reading; SY_UNKNOWN */
};

struct sy_node {
	int root;
	int devices;
	struct sy_meters meters;
	struct sy_netdev device[SY_MAX_DEVICES];
	struct sy_labels labels;
	char no_devices[160]; /* why there are none */
	struct sy_counter rx[SY_MAX_DEVICES], tx[SY_MAX_DEVICES];
	struct sy_counter pressure[3]; /* cpu, io, memory; µs */
	struct sy_counter sent, retransmitted;
	struct sy_counter cpu;	  /* of everybody, µs */
	struct sy_counter stolen; /* by the host, µs; read at the ends */
	int snmp_fd;
	int64_t other_at_us, snmp_at_us, pressure_at_us, cpu_at_us;
};

/* Find meters and devices below `root`. */
void sy_node_find(struct sy_node *node, int root);

/* Open their counters; those that cannot be read have no value. */
void sy_node_open(struct sy_node *node);

/* Read everything that is due at the monotonic time `now_us` into the cells of `line`; with
 * `all_of_them`, everything. */
void sy_node_read(struct sy_node *node, int64_t now_us, bool all_of_them, struct sy_line *line);

/* Take pressure from these descriptors from now on (cpu, io, memory of the job's cgroup). */
void sy_node_pressure_from(struct sy_node *node, const int fds[3]);

/* What the host gave to others from the first reading to that of the job's end, µs, or SY_UNKNOWN.
 */
int64_t sy_node_stolen_us(const struct sy_node *node);

/* Packets dropped so far by a device ("rx_dropped", "tx_dropped"), or SY_UNKNOWN. */
int64_t sy_node_dropped(const struct sy_node *node, int device, const char *file);

#endif
