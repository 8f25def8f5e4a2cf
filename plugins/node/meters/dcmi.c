/* The watts of a whole node as its BMC reports them: IPMI's DCMI, "Get Power Reading", sent through
 * /dev/ipmi0. Slow: some BMCs take a tenth of a second, and the driver may poll meanwhile. So the
 * samplers of a node share a reading, in /run/steelyard/dcmi: one of them asks every 5 s, and where
 * a job begins or ends, if the last answer is older than a second.
 *
 * In a recorded tree the answer's bytes are in /.steelyard/ipmi/dcmi-power, as
 * `ipmitool raw 0x2c 0x02 0xdc 0x01 0x00 0x00` prints them.
 * Sources: Data Center Manageability Interface Specification 1.5, 6.6.1;
 * Documentation/driver-api/ipmi.rst of the kernel. */
#include "meters/readers.h"

#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ipmi.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>

#define RUN_DIR	      "/run/steelyard"
#define RECORDED      "/.steelyard/ipmi/dcmi-power"
#define DCMI	      0xdc /* its group of commands */
#define GROUP	      0x2c /* network function of such groups */
#define POWER_READING 0x02
#define MEASURING     0x40 /* of the state: the BMC does measure */
#define LENGTH	      18   /* group, four powers, time stamp, time frame, state */
#define PERIOD_US     5000000
#define ANSWER_MS     5000
#define RESOLUTION_UW 1000000

enum { QUESTIONS, SHARED_FD }; /* of `key`; the descriptor plus 1, 0: none */

/* In RUN_DIR/dcmi. */
struct shared {
	int64_t uw, at_us; /* CLOCK_MONOTONIC */
};

static const char *const devices[] = {"/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0"};

int64_t sy_dcmi_power_uw(const unsigned char *answer, size_t length, const char **reason)
{
	int64_t watts;

	*reason = "the BMC's answer is no DCMI power reading";
	if (length < LENGTH || answer[0] != DCMI)
		return -1;
	*reason = "the BMC does not measure power at the moment (DCMI)";
	if (!(answer[LENGTH - 1] & MEASURING))
		return -1;
	watts = answer[1] | answer[2] << 8;
	*reason = "the BMC says that this node draws 0 W (DCMI)";
	return watts ? watts * RESOLUTION_UW : -1;
}

/* An answer that came too late, to a question before, is passed over. */
static int send_question(int fd, long number)
{
	struct ipmi_system_interface_addr bmc = {.addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE,
						 .channel = IPMI_BMC_CHANNEL};
	unsigned char data[] = {DCMI, 0x01, 0x00, 0x00}; /* mode: system power statistics */
	struct ipmi_req question = {
	    .addr = (unsigned char *)&bmc,
	    .addr_len = sizeof(bmc),
	    .msgid = number,
	    .msg = {.netfn = GROUP, .cmd = POWER_READING, .data_len = sizeof(data), .data = data}};

	return ioctl(fd, IPMICTL_SEND_COMMAND, &question);
}

/* The answer with its completion code; its length, or -1. */
static int receive_answer(int fd, long number, unsigned char *text, unsigned short size)
{
	struct pollfd ready = {fd, POLLIN, 0};

	while (poll(&ready, 1, ANSWER_MS) > 0) {
		struct ipmi_addr from;
		struct ipmi_recv answer = {.addr = (unsigned char *)&from,
					   .addr_len = sizeof(from),
					   .msg = {.data = text, .data_len = size}};

		if (ioctl(fd, IPMICTL_RECEIVE_MSG_TRUNC, &answer) < 0)
			return -1;
		if (answer.msgid == number && answer.recv_type == IPMI_RESPONSE_RECV_TYPE)
			return answer.msg.data_len;
	}
	return -1;
}

static int64_t query(struct sy_meter *meter, const char **reason)
{
	long number = (long)++meter->key[QUESTIONS];
	unsigned char text[64];
	int length;

	*reason = "the BMC does not answer";
	if (send_question(meter->fd, number) < 0)
		return -1;
	length = receive_answer(meter->fd, number, text, sizeof(text));
	if (length < 1)
		return -1;
	if (text[0]) {
		(void)snprintf(meter->reason, sizeof(meter->reason),
			       "the BMC refuses DCMI's power reading: completion code 0x%02x",
			       text[0]);
		*reason = meter->reason;
		return -1;
	}
	return sy_dcmi_power_uw(text + 1, (size_t)length - 1, reason);
}

/* "dc 2c 01 …" */
static int64_t read_recorded(const struct sy_meter *meter, const char **reason)
{
	unsigned char answer[64];
	char text[256], *at = text;
	size_t length = 0;

	if (sy_read_fd(meter->fd, text, sizeof(text)) < 0)
		return -1;
	while (length < sizeof(answer)) {
		char *end;
		unsigned long byte = strtoul(at, &end, 16);

		if (end == at || byte > UCHAR_MAX)
			break;
		answer[length++] = (unsigned char)byte;
		at = end;
	}
	return sy_dcmi_power_uw(answer, length, reason);
}

static int64_t read_own(struct sy_meter *meter, const char **reason)
{
	return strcmp(meter->path, RECORDED) ? query(meter, reason) : read_recorded(meter, reason);
}

static bool find_recent(const struct sy_meter *meter, int fd, struct shared *shared)
{
	int64_t now = sy_now_us(CLOCK_MONOTONIC);

	return pread(fd, shared, sizeof(*shared), 0) == sizeof(*shared) && shared->at_us <= now &&
	       now - shared->at_us < meter->max_age_us;
}

/* A BMC answers some ten requests a second in all, so the samplers of a node share each other's
 * readings. */
static int64_t read_uw(struct sy_meter *meter, const char **reason)
{
	int fd = (int)meter->key[SHARED_FD] - 1;
	struct shared shared;
	int64_t before;
	bool locked;

	if (fd < 0)
		return read_own(meter, reason);
	/* A sampler that is stuck while it has the lock holds up nobody for longer than an answer
	 * may take. */
	locked = !find_recent(meter, fd, &shared) && sy_lock(fd, ANSWER_MS);
	if (!find_recent(meter, fd, &shared)) {
		before = sy_now_us(CLOCK_MONOTONIC);
		shared.uw = read_own(meter, reason);
		shared.at_us = before + (sy_now_us(CLOCK_MONOTONIC) - before) / 2;
		if (shared.uw >= 0)
			(void)!pwrite(fd, &shared, sizeof(shared), 0);
	}
	if (locked)
		(void)flock(fd, LOCK_UN);
	if (shared.uw >= 0)
		meter->at_us = shared.at_us;
	return shared.uw;
}

/* Without a writable folder this process queries the BMC for itself alone. */
void sy_dcmi_share(struct sy_meter *meter, int root)
{
	cleanup_close int folder = sy_open_at(root, RUN_DIR);
	int fd = folder < 0
		     ? -1
		     : openat(folder, "dcmi", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	meter->key[SHARED_FD] = fd + 1;
}

static int open_device(int root, struct sy_meter *meter, struct sy_error *err)
{
	if (!strcmp(meter->path, RECORDED))
		return sy_meter_open_file(root, meter->path, meter, err);
	meter->fd = open(meter->path, O_RDWR | O_CLOEXEC);
	return meter->fd < 0 ? sy_fail(err, "%s: %s", meter->path, strerror(errno)) : 0;
}

static int open_shared(int root, struct sy_meter *meter, struct sy_error *err)
{
	if (open_device(root, meter, err) < 0)
		return -1;
	sy_dcmi_share(meter, root);
	return 0;
}

/* The device's name; NULL: there is none. */
static const char *find_device(int root)
{
	if (!sy_root_is_machine(root))
		return sy_exists_at(root, RECORDED) ? RECORDED : NULL;
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (sy_exists_at(root, devices[i]))
			return devices[i];
	return NULL;
}

static void find(int root, struct sy_meter_list *found, struct sy_error *err)
{
	const char *path = find_device(root);
	struct sy_meter *meter = path ? sy_meter_list_add(found, &sy_dcmi) : NULL;

	if (!meter)
		return;
	(void)snprintf(meter->path, sizeof(meter->path), "%s", path);
	(void)snprintf(meter->name, sizeof(meter->name), "dcmi-node");
	meter->domain = SY_DOMAIN_NODE;
	meter->power = true;
	meter->period_us = PERIOD_US;
	meter->resolution = RESOLUTION_UW;
	meter->readable = open_device(root, meter, err) == 0;
	if (meter->readable)
		(void)close(meter->fd);
	else
		(void)snprintf(meter->reason, sizeof(meter->reason), "%.90s", err->text);
	meter->fd = -1;
}

const struct sy_reader sy_dcmi = {
    .name = "dcmi", .who = "root", .find = find, .open = open_shared, .read = read_uw};
