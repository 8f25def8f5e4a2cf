#include "job/sampler_messages.h"

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

bool sy_queue_open(struct sy_message_queue *queue, const struct sockaddr_un *address)
{
	struct sockaddr_un own = {.sun_family = AF_UNIX};

	queue->count = queue->sent = 0;
	queue->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (queue->fd < 0)
		return false;
	/* Binding to the family alone makes the kernel choose an address, for answers; connecting
	 * makes it drop what others than the sampler send there. */
	if (bind(queue->fd, (struct sockaddr *)&own, sizeof(own.sun_family)) == 0 &&
	    connect(queue->fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return true;
	sy_queue_close(queue);
	return false;
}

void sy_queue_close(struct sy_message_queue *queue)
{
	if (queue->fd >= 0)
		(void)close(queue->fd);
	queue->fd = -1;
}

void sy_queue_flush(struct sy_message_queue *queue)
{
	while (queue->fd >= 0 && queue->sent < queue->count) {
		const char *text = queue->messages[queue->sent];

		if (send(queue->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
			if (errno == EAGAIN || errno == EINTR)
				return;
			sy_queue_close(queue); /* the sampler is gone */
			return;
		}
		queue->sent++;
	}
	queue->count = queue->sent = 0;
}

void sy_queue_send(struct sy_message_queue *queue, const char *format, ...)
{
	char *text;
	va_list list;
	int length;

	if (queue->fd < 0 || queue->count == SY_QUEUE_MAX)
		return;
	text = queue->messages[queue->count];
	va_start(list, format);
	length = vsnprintf(text, SY_MESSAGE_MAX, format, list);
	va_end(list);
	if (length < 0)
		return;
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ')
			*c = '\0';
	}
	queue->count++;
	sy_queue_flush(queue);
}

void sy_queue_drain(struct sy_message_queue *queue, int limit_ms)
{
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + limit_ms, left;

	sy_queue_flush(queue);
	while (queue->fd >= 0 && queue->count > 0 &&
	       (left = end - sy_now_ms(CLOCK_MONOTONIC)) > 0) {
		struct pollfd room = {.fd = queue->fd, .events = POLLOUT};

		(void)poll(&room, 1, (int)left);
		sy_queue_flush(queue);
	}
}

int sy_queue_request_totals(struct sy_message_queue *queue, char *answer, size_t size, int limit_ms)
{
	struct pollfd ready = {.events = POLLIN};
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + limit_ms, left;
	char beginning[40];

	(void)snprintf(beginning, sizeof(beginning), "{\"question\":%u,", ++queue->questions);
	sy_queue_send(queue, "totals %u", queue->questions);
	sy_queue_drain(queue, limit_ms);
	if (queue->fd < 0 || queue->count > 0)
		return -1;
	ready.fd = queue->fd;
	while ((left = end - sy_now_ms(CLOCK_MONOTONIC)) >= 0 && poll(&ready, 1, (int)left) == 1) {
		ssize_t length = recv(queue->fd, answer, size - 1, MSG_DONTWAIT);

		if (length <= 0)
			return -1;
		answer[length] = '\0';
		if (strncmp(answer, beginning, strlen(beginning)) == 0)
			return (int)length;
	}
	return -1;
}

bool sy_queue_await_answer(struct sy_message_queue *queue, int limit_ms)
{
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + limit_ms;
	char answer[4096];

	sy_queue_drain(queue, limit_ms);
	return sy_queue_request_totals(queue, answer, sizeof(answer),
				       (int)(end - sy_now_ms(CLOCK_MONOTONIC))) > 0;
}
