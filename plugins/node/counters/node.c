#include "counters/node.h"

#include "base/file.h"
#include "counters/parse.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The greatest age of a reading of each kind, µs, and its cost on a 2-core machine. */
#define OTHERS_US   10000000 /* devices that do not count: bridges, veth, tunnels; 0.9 µs each */
#define PRESSURE_US 1000000  /* 1.6 µs a file, three files */
#define CPU_US	    1000000  /* 20 µs, more with the CPUs: the kernel sums up every interrupt */
#define SNMP_US	    10000000 /* 11 µs: sums over all CPUs and all protocols */
#define SLACK_US    1000     /* a sample that comes a little early is in time */

void sy_node_find(struct sy_node *node, int root)
{
	struct sy_error err = {""};

	node->root = root;
	sy_meters_find(&node->meters, root);
	node->devices = sy_netdev_find(root, node->device, SY_MAX_DEVICES, &err);
	(void)snprintf(node->no_devices, sizeof(node->no_devices), "%s", err.text);
	for (int i = 0; i < node->devices; i++) { /* `lo` is no traffic */
		if (node->device[i].kind != SY_NETDEV_LOOPBACK)
			continue;
		memmove(&node->device[i], &node->device[i + 1],
			sizeof(node->device[0]) * (size_t)(node->devices - i - 1));
		node->devices--;
		i--;
	}
	node->labels.zones = node->meters.count;
	node->labels.devices = node->devices;
	for (int i = 0; i < node->meters.count; i++)
		sy_label_set(node->labels.zone, i, node->meters.meter[i].name);
	for (int i = 0; i < node->devices; i++)
		sy_label_set(node->labels.device, i, node->device[i].name);
}

static struct sy_counter counter(int fd)
{
	return (struct sy_counter){fd < 0 ? -1 : fd, SY_UNKNOWN, SY_UNKNOWN};
}

static struct sy_counter device_counter(const struct sy_node *node, int i, const char *file)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/%s", node->device[i].name,
		       file);
	return counter(sy_open_at(node->root, path));
}

void sy_node_open(struct sy_node *node)
{
	static const char *const pressure[] = {"/proc/pressure/cpu", "/proc/pressure/io",
					       "/proc/pressure/memory"};

	sy_meters_open(&node->meters, node->root);
	for (int i = 0; i < node->devices; i++) {
		node->rx[i] = device_counter(node, i, "rx_bytes");
		node->tx[i] = device_counter(node, i, "tx_bytes");
	}
	for (int i = 0; i < 3; i++)
		node->pressure[i] = counter(sy_open_at(node->root, pressure[i]));
	node->snmp_fd = sy_open_at(node->root, "/proc/net/snmp");
	node->sent = node->retransmitted = counter(-1);
	/* Only to say what of the node's joules is the job's. */
	node->cpu = counter(
	    sy_meters_follow_cpu(&node->meters) ? sy_open_at(node->root, "/proc/stat") : -1);
	node->stolen = counter(sy_open_at(node->root, "/proc/stat"));
	node->other_at_us = node->snmp_at_us = node->pressure_at_us = -1;
	node->cpu_at_us = -1;
}

static void set_counter(struct sy_counter *counter, int64_t value)
{
	if (counter->base == SY_UNKNOWN)
		counter->base = value;
	/* A driver that was reset counts from 0: the bytes so far stay. */
	if (counter->value != SY_UNKNOWN && value < counter->value)
		counter->base -= counter->value - value;
	counter->value = value;
}

static int64_t counter_delta(const struct sy_counter *counter)
{
	return counter->value == SY_UNKNOWN ? SY_UNKNOWN : counter->value - counter->base;
}

/* A device that is taken away takes its last bytes with it, and one that is made again under its
 * name counts from 0: there is no value from then on. */
static void read_number(struct sy_counter *of_device)
{
	char text[64];
	int64_t value;

	if (of_device->fd < 0)
		return;
	if (sy_read_counters(of_device->fd, text, sizeof(text)) > 0 &&
	    sy_parse_number(text, &value) == 0) {
		set_counter(of_device, value);
		return;
	}
	(void)close(of_device->fd);
	*of_device = counter(-1);
}

/* Is a reading of this age due? Marks it as taken. */
static bool is_due(int64_t *at_us, int64_t age_us, int64_t now_us, bool all_of_them)
{
	if (!all_of_them && *at_us >= 0 && now_us - *at_us < age_us - SLACK_US)
		return false;
	*at_us = now_us;
	return true;
}

static void read_devices(struct sy_node *node, int64_t now_us, bool all_of_them,
			 struct sy_line *line)
{
	bool other_due = is_due(&node->other_at_us, OTHERS_US, now_us, all_of_them);
	bool counted = false, known = true;
	int64_t rx = 0, tx = 0;

	for (int i = 0; i < node->devices; i++) {
		if (node->device[i].counted || other_due) {
			read_number(&node->rx[i]);
			read_number(&node->tx[i]);
		}
		line->cell[SY_RX_DEVICE + i] = counter_delta(&node->rx[i]);
		line->cell[SY_TX_DEVICE + i] = counter_delta(&node->tx[i]);
		if (!node->device[i].counted)
			continue;
		counted = true;
		known &= node->rx[i].value != SY_UNKNOWN && node->tx[i].value != SY_UNKNOWN;
		if (!known)
			continue;
		rx += counter_delta(&node->rx[i]);
		tx += counter_delta(&node->tx[i]);
	}
	if (!counted || !known)
		return;
	line->cell[SY_RX] = rx;
	line->cell[SY_TX] = tx;
}

static void read_tcp(struct sy_node *node)
{
	int64_t sent, retransmitted;
	char text[8192];

	if (sy_read_counters(node->snmp_fd, text, sizeof(text)) <= 0 ||
	    sy_parse_snmp(text, &sent, &retransmitted) < 0)
		return;
	set_counter(&node->sent, sent);
	set_counter(&node->retransmitted, retransmitted);
}

/* What `parse` finds at the beginning of a file, in units of `unit_us`. */
static void read_parsed(struct sy_counter *counter, int (*parse)(const char *text, int64_t *value),
			int64_t unit_us)
{
	char text[160];
	int64_t value;

	if (sy_read_counters(counter->fd, text, sizeof(text)) > 0 && parse(text, &value) == 0)
		set_counter(counter, value * unit_us);
}

int64_t sy_node_stolen_us(const struct sy_node *node)
{
	return counter_delta(&node->stolen);
}

void sy_node_read(struct sy_node *node, int64_t now_us, bool all_of_them, struct sy_line *line)
{
	const int64_t tick_us = 1000000 / sysconf(_SC_CLK_TCK);

	sy_meters_read(&node->meters, now_us, line);
	read_devices(node, now_us, all_of_them, line);
	if (is_due(&node->snmp_at_us, SNMP_US, now_us, all_of_them))
		read_tcp(node);
	if (is_due(&node->pressure_at_us, PRESSURE_US, now_us, all_of_them))
		for (int i = 0; i < 3; i++)
			read_parsed(&node->pressure[i], sy_parse_pressure, 1);
	if (all_of_them)
		read_parsed(&node->stolen, sy_parse_stolen, tick_us);
	if (is_due(&node->cpu_at_us, CPU_US, now_us, all_of_them))
		read_parsed(&node->cpu, sy_parse_busy, tick_us);
	line->cell[SY_NODE_CPU] = counter_delta(&node->cpu);
	line->cell[SY_SENT] = counter_delta(&node->sent);
	line->cell[SY_RETRANSMITTED] = counter_delta(&node->retransmitted);
	for (int i = 0; i < 3; i++)
		line->cell[SY_PRESSURE_CPU + i] = counter_delta(&node->pressure[i]);
}

void sy_node_pressure_from(struct sy_node *node, const int fds[3])
{
	for (int i = 0; i < 3; i++) {
		if (node->pressure[i].fd >= 0)
			(void)close(node->pressure[i].fd);
		node->pressure[i] = counter(fds[i]);
		/* The group was made for the job: all of its waiting is the job's. */
		node->pressure[i].base = 0;
	}
	node->pressure_at_us = -1;
}

int64_t sy_node_dropped(const struct sy_node *node, int device, const char *file)
{
	struct sy_counter dropped = device_counter(node, device, file);

	read_number(&dropped);
	if (dropped.fd >= 0)
		(void)close(dropped.fd);
	return dropped.value;
}
