/* Messages to the sampler (docs/formats.md, part 4): sent without waiting, kept when its queue is
 * full (the kernel holds 10 while the sampler still starts), dropped when it is gone. */
#ifndef STEELYARD_JOB_MESSAGE_QUEUE_H
#define STEELYARD_JOB_MESSAGE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>

#define SY_MESSAGE_MAX 4096 /* what the sampler reads of one */
#define SY_OUTBOX_MAX  64

struct sy_outbox {
	int fd; /* connected to the sampler; -1: there is none */
	size_t count, sent;
	unsigned questions;
	char messages[SY_OUTBOX_MAX][SY_MESSAGE_MAX];
};

/* Connect to a sampler that listens there; false when none does. */
bool sy_outbox_open(struct sy_outbox *outbox, const struct sockaddr_un *address);

/* Append one message and try to send all that wait. Control characters end it. */
__attribute__((format(printf, 2, 3))) void sy_outbox_send(struct sy_outbox *outbox,
							  const char *format, ...);

/* Send what waits, as far as it goes without waiting. */
void sy_outbox_flush(struct sy_outbox *outbox);

/* The same, and wait at most `limit_ms` until nothing waits any more: a sampler that still starts
 * reads none. */
void sy_outbox_drain(struct sy_outbox *outbox, int limit_ms);

/* Send `totals` and wait at most `limit_ms` for the answer to this very question, not to one before
 * that was given up: its length, or -1. */
int sy_outbox_ask(struct sy_outbox *outbox, char *answer, size_t size, int limit_ms);

void sy_outbox_close(struct sy_outbox *outbox);

/* Whether the sampler has taken all messages and answered within that time. */
bool sy_outbox_await(struct sy_outbox *outbox, int limit_ms);

#endif
