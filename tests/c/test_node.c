/* How often the node's counters are read: each kind as often as it must be. */
#include "tap.h"

#include "counters/node.h"

#include <unistd.h>

static void write_counter(int fd, const char *text)
{
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, strlen(text), 0) != (ssize_t)strlen(text))
		exit(99);
}

static int open_temporary(void)
{
	FILE *made = tmpfile();

	if (!made)
		exit(99);
	return fileno(made);
}

static struct sy_counter make_counter(int fd)
{
	return (struct sy_counter){fd, SY_UNKNOWN, SY_UNKNOWN};
}

/* A device that counts, and a bridge that does not. */
static struct sy_node two_devices(const int fds[2])
{
	struct sy_node node = {.devices = 2, .snmp_fd = -1};

	for (int i = 0; i < 2; i++)
		node.rx[i] = node.tx[i] = make_counter(fds[i]);
	for (int i = 0; i < 3; i++)
		node.pressure[i] = make_counter(-1);
	node.cpu = node.sent = node.retransmitted = make_counter(-1);
	node.device[0].counted = true;
	node.other_at_us = node.snmp_at_us = -1;
	node.pressure_at_us = node.cpu_at_us = -1;
	return node;
}

static int64_t read_device(struct sy_node *node, int device, int64_t now_us, bool all_of_them)
{
	struct sy_line line;

	sy_line_clear(&line);
	sy_node_read(node, now_us, all_of_them, &line);
	return line.cell[SY_RX_DEVICE + device];
}

int main(void)
{
	const int fds[2] = {open_temporary(), open_temporary()};
	static struct sy_node node;

	node = two_devices(fds);
	write_counter(fds[0], "100\n");
	write_counter(fds[1], "100\n");
	is_int(read_device(&node, 1, 0, true), 0, "what went by before the job is not its");
	write_counter(fds[0], "107\n");
	write_counter(fds[1], "105\n");
	is_int(read_device(&node, 0, 1000000, false), 7,
	       "a device that counts is read at every sample");
	is_int(read_device(&node, 1, 9900000, false), 0,
	       "a bridge is not, each time costs a sample 1 µs");
	is_int(read_device(&node, 1, 9999500, false), 5, "but every ten seconds");
	write_counter(fds[1], "109\n");
	is_int(read_device(&node, 1, 11000000, true), 9, "and at the job's end");
	return done_testing();
}
