/* A BMC behind /dev/ipmi0, which no test machine has: the calls of the kernel's interface are
 * answered here, after Documentation/driver-api/ipmi.rst and DCMI 1.5. */
#include "tap.h"

#include "meters/dcmi.h"

#include <linux/ipmi.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

static struct {
	int fd, late, watts;
	long asked;
	unsigned char code;
} bmc;

static void hear(const struct ipmi_req *question)
{
	const struct ipmi_system_interface_addr *to = (const void *)question->addr;
	const unsigned char wanted[] = {0xdc, 1, 0, 0};
	uint64_t one = 1;

	ok(to->addr_type == IPMI_SYSTEM_INTERFACE_ADDR_TYPE && to->channel == IPMI_BMC_CHANNEL &&
	       question->msg.netfn == 0x2c && question->msg.cmd == 0x02 &&
	       question->msg.data_len == 4 && !memcmp(question->msg.data, wanted, 4),
	   "it is asked for its power");
	bmc.asked = question->msgid;
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
	to->msgid = bmc.late ? bmc.asked - 1 : bmc.asked;
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
		hear(what);
	else if (request == IPMICTL_RECEIVE_MSG_TRUNC)
		answer(what);
	else
		return -1;
	return 0;
}

int main(void)
{
	struct sy_meter meter = {.reader = &sy_dcmi, .path = "/dev/ipmi0"};
	const char *why = "";

	meter.fd = bmc.fd = eventfd(0, 0);
	bmc.watts = 812;
	is_int(sy_dcmi.read(&meter, &why), 812000000, "its watts");
	bmc.late = 2;
	bmc.watts = 300;
	is_int(sy_dcmi.read(&meter, &why), 300000000,
	       "answers to earlier questions are no answers");
	bmc.late = 0;
	bmc.code = 0xc1;
	is_int(sy_dcmi.read(&meter, &why), -1, "a refusal");
	ok(strstr(why, "0xc1") != NULL, "is told: %s", why);
	(void)close(bmc.fd);
	return done_testing();
}
