/* A BMC behind /dev/ipmi0, which no test machine has: the calls of the kernel's interface are
 * answered here, after Documentation/driver-api/ipmi.rst and DCMI 1.5. */
#include "tap.h"

#include "meters/readers.h"

#include "base/clock.h"
#include "base/file.h"

#include <linux/ipmi.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	int fd, late, watts;
	long requested;
	unsigned char code;
	bool quiet;
	_Atomic int *questions; /* of all processes */
} bmc;

static void receive_question(const struct ipmi_req *question)
{
	const struct ipmi_system_interface_addr *to = (const void *)question->addr;
	const unsigned char wanted[] = {0xdc, 1, 0, 0};
	uint64_t one = 1;

	atomic_fetch_add(bmc.questions, 1);
	bmc.requested = question->msgid;
	if (bmc.quiet) {
		(void)!write(bmc.fd, &one, sizeof(one));
		return;
	}
	ok(to->addr_type == IPMI_SYSTEM_INTERFACE_ADDR_TYPE && to->channel == IPMI_BMC_CHANNEL &&
	       question->msg.netfn == 0x2c && question->msg.cmd == 0x02 &&
	       question->msg.data_len == 4 && !memcmp(question->msg.data, wanted, 4),
	   "it is asked for its power");
	ok(write(bmc.fd, &one, sizeof(one)) == sizeof(one), "and answers");
}

static void answer(struct ipmi_recv *to)
{
	unsigned char text[] = {bmc.code, 0xdc, 0, 0, 1, 0, 2, 0, 3,   0,
				0,	  0,	0, 0, 0, 0, 0, 0, 0x40};
	uint64_t count;

	text[2] = (unsigned char)(bmc.watts & 0xff);
	text[3] = (unsigned char)(bmc.watts >> 8);
	to->recv_type = IPMI_RESPONSE_RECV_TYPE;
	to->msgid = bmc.late ? bmc.requested - 1 : bmc.requested;
	memcpy(to->msg.data, text, sizeof(text));
	to->msg.data_len = bmc.code ? 1 : sizeof(text);
	if (bmc.late-- <= 0)
		(void)!read(bmc.fd, &count, sizeof(count));
}

/* In the C library's place. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *what;

	va_start(list, request);
	what = va_arg(list, void *);
	va_end(list);
	if (fd != bmc.fd)
		return -1;
	if (request == IPMICTL_SEND_COMMAND)
		receive_question(what);
	else if (request == IPMICTL_RECEIVE_MSG_TRUNC)
		answer(what);
	else
		return -1;
	return 0;
}

/* A sampler's process; its exit code shows whether it has read `watts`. */
static void read_in_child(int root, int64_t watts, int64_t max_age_us)
{
	struct sy_meter meter = {
	    .reader = &sy_dcmi, .path = "/dev/ipmi0", .fd = bmc.fd, .max_age_us = max_age_us};
	const char *reason = "";
	int64_t before = sy_now_us(CLOCK_MONOTONIC);

	if (fork() != 0)
		return;
	sy_dcmi_share(&meter, root);
	_exit(sy_dcmi.read(&meter, &reason) != watts * 1000000 ||
	      meter.at_us < before - max_age_us || meter.at_us > sy_now_us(CLOCK_MONOTONIC));
}

static int failed_children(void)
{
	int failed = 0, status;

	while (wait(&status) > 0)
		failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	return failed;
}

/* 128 jobs on a node queried their BMC 26 times a second, which answers some 10. */
static void test_one_question_a_node(void)
{
	char folder[] = "/tmp/steelyard-test-XXXXXX", path[64], command[64];
	struct sy_error err;
	int root;

	(void)mkdtemp(folder);
	(void)snprintf(path, sizeof(path), "%s/run", folder);
	(void)mkdir(path, 0700);
	(void)snprintf(path, sizeof(path), "%s/run/steelyard", folder);
	(void)mkdir(path, 0700);
	root = sy_root_open(folder, &err);
	bmc.quiet = true;
	bmc.late = 0;
	bmc.code = 0;
	bmc.watts = 250;
	*bmc.questions = 0;
	for (int i = 0; i < 128; i++)
		read_in_child(root, 250, 60000000);
	is_int(failed_children(), 0, "128 samplers have its watts");
	is_int(*bmc.questions, 1, "by one question");
	bmc.watts = 400;
	read_in_child(root, 250, 60000000);
	is_int(failed_children(), 0, "and of the minute after");
	read_in_child(root, 400, 0);
	is_int(failed_children(), 0, "who needs it now asks");
	is_int(*bmc.questions, 2, "once more");
	(void)close(root);
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	ok(system(command) == 0, "tidy");
}

int main(void)
{
	struct sy_meter meter = {.reader = &sy_dcmi, .path = "/dev/ipmi0"};
	const char *reason = "";

	meter.fd = bmc.fd = eventfd(0, 0);
	bmc.questions = mmap(NULL, sizeof(*bmc.questions), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bmc.watts = 812;
	is_int(sy_dcmi.read(&meter, &reason), 812000000, "its watts");
	bmc.late = 2;
	bmc.watts = 300;
	is_int(sy_dcmi.read(&meter, &reason), 300000000,
	       "answers to earlier questions are no answers");
	bmc.late = 0;
	bmc.code = 0xc1;
	is_int(sy_dcmi.read(&meter, &reason), -1, "a refusal");
	ok(strstr(reason, "0xc1") != NULL, "is told: %s", reason);
	test_one_question_a_node();
	(void)close(bmc.fd);
	return done_testing();
}
