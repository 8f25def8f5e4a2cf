/* Messages to the sampler (docs/formats.md, part 4): sent without waiting, kept when its queue is
 * full (the kernel holds 10 while the sampler still starts), dropped when it is gone. */
#ifndef STEELYARD_JOB_SAMPLER_MESSAGES_H
#define STEELYARD_JOB_SAMPLER_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>

#define SY_MESSAGE_MAX 4096 /* what the sampler reads of one */
#define SY_QUEUE_MAX   64

struct sy_message_queue {
	int fd; /* connected to the sampler; -1: there is none */
	size_t count, sent;
	unsigned questions;
	char messages[SY_QUEUE_MAX][SY_MESSAGE_MAX];
};

/* Connect to a sampler that listens there; false when none does. */
bool sy_queue_open(struct sy_message_queue *queue, const struct sockaddr_un *address);

/* Append one message and try to send all that wait. Control characters end it. */
__attribute__((format(printf, 2, 3))) void sy_queue_send(struct sy_message_queue *queue,
							 const char *format, ...);

/* Send what waits, as far as it goes without waiting. */
void sy_queue_flush(struct sy_message_queue *queue);

/* The same, and wait at most `limit_ms` until nothing waits any more: a sampler that still starts
 * reads none. */
void sy_queue_drain(struct sy_message_queue *queue, int limit_ms);

/* Send `totals` and wait at most `limit_ms` for the answer to this very question, not to one before
 * that was given up: its length, or -1. */
int sy_queue_request_totals(struct sy_message_queue *queue, char *answer, size_t size,
			    int limit_ms);

void sy_queue_close(struct sy_message_queue *queue);

/* Whether the sampler has taken all messages and answered within that time. */
bool sy_queue_await_answer(struct sy_message_queue *queue, int limit_ms);

#endif
