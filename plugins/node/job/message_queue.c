#include "job/message_queue.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

bool sy_outbox_open(struct sy_outbox *outbox, const struct sockaddr_un *address)
{
	struct sockaddr_un own = {.sun_family = AF_UNIX};

	outbox->count = outbox->sent = 0;
	outbox->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (outbox->fd < 0)
		return false;
	/* Binding to the family alone makes the kernel choose an address, for answers; connecting
	 * makes it drop what others than the sampler send there. */
	if (bind(outbox->fd, (struct sockaddr *)&own, sizeof(own.sun_family)) == 0 &&
	    connect(outbox->fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return true;
	sy_outbox_close(outbox);
	return false;
}

void sy_outbox_close(struct sy_outbox *outbox)
{
	if (outbox->fd >= 0)
		(void)close(outbox->fd);
	outbox->fd = -1;
}

void sy_outbox_flush(struct sy_outbox *outbox)
{
	while (outbox->fd >= 0 && outbox->sent < outbox->count) {
		const char *text = outbox->messages[outbox->sent];

		if (send(outbox->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
			if (errno == EAGAIN || errno == EINTR)
				return;
			sy_outbox_close(outbox); /* the sampler is gone */
			return;
		}
		outbox->sent++;
	}
	outbox->count = outbox->sent = 0;
}

void sy_outbox_send(struct sy_outbox *outbox, const char *format, ...)
{
	char *text;
	va_list list;
	int length;

	if (outbox->fd < 0 || outbox->count == SY_OUTBOX_MAX)
		return;
	text = outbox->messages[outbox->count];
	va_start(list, format);
	length = vsnprintf(text, SY_MESSAGE_MAX, format, list);
	va_end(list);
	if (length < 0)
		return;
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ')
			*c = '\0';
	}
	outbox->count++;
	sy_outbox_flush(outbox);
}

void sy_outbox_drain(struct sy_outbox *outbox, int limit_ms)
{
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + limit_ms, left;

	sy_outbox_flush(outbox);
	while (outbox->fd >= 0 && outbox->count > 0 &&
	       (left = end - sy_now_ms(CLOCK_MONOTONIC)) > 0) {
		struct pollfd room = {.fd = outbox->fd, .events = POLLOUT};

		(void)poll(&room, 1, (int)left);
		sy_outbox_flush(outbox);
	}
}

int sy_outbox_ask(struct sy_outbox *outbox, char *answer, size_t size, int limit_ms)
{
	struct pollfd ready = {.events = POLLIN};
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + limit_ms, left;
	char wanted[40];

	(void)snprintf(wanted, sizeof(wanted), "{\"question\":%u,", ++outbox->questions);
	sy_outbox_send(outbox, "totals %u", outbox->questions);
	sy_outbox_drain(outbox, limit_ms);
	if (outbox->fd < 0 || outbox->count > 0)
		return -1;
	ready.fd = outbox->fd;
	while ((left = end - sy_now_ms(CLOCK_MONOTONIC)) >= 0 && poll(&ready, 1, (int)left) == 1) {
		ssize_t length = recv(outbox->fd, answer, size - 1, MSG_DONTWAIT);

		if (length <= 0)
			return -1;
		answer[length] = '\0';
		if (strncmp(answer, wanted, strlen(wanted)) == 0)
			return (int)length;
	}
	return -1;
}

bool sy_outbox_await(struct sy_outbox *outbox, int limit_ms)
{
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + limit_ms;
	char answer[4096];

	sy_outbox_drain(outbox, limit_ms);
	return sy_outbox_ask(outbox, answer, sizeof(answer),
			     (int)(end - sy_now_ms(CLOCK_MONOTONIC))) > 0;
}
