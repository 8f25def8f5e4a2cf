/* Lines of samples on their way to their file. They wait in memory that the sampler's two processes
 * share: one system call writes those of a second, and a child that is killed loses none. */
#ifndef STEELYARD_SAMPLER_SAMPLE_BUFFER_H
#define STEELYARD_SAMPLER_SAMPLE_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/samples.h"

#define SY_SAMPLE_BUFFER_US   1000000 /* how long a line may wait */
#define SY_SAMPLE_BUFFER_SIZE (2 * SY_LINE_SIZE)

struct sy_sample_buffer {
	int64_t file_bytes; /* whole lines that are in the file */
	int64_t written_at_us;
	_Atomic size_t used;
	char text[SY_SAMPLE_BUFFER_SIZE];
};

/* Room for the next line, SY_LINE_SIZE; sy_sample_buffer_add() sets its length. */
char *sy_sample_buffer_room(struct sy_sample_buffer *lines);
void sy_sample_buffer_add(struct sy_sample_buffer *lines, size_t length);

/* Must what waits be written now, when the next line comes at `next_us`? */
bool sy_sample_buffer_is_due(const struct sy_sample_buffer *lines, int64_t next_us);

/* Write all of it: how many samples could not be written, and why in `failure` (errno). A part of a
 * line is taken back, so that the file holds whole lines only; its first line, the header, waits
 * until there is room. */
int64_t sy_sample_buffer_flush(struct sy_sample_buffer *lines, int fd, int64_t now_us,
			       int *failure);

/* The same of a writer that was killed, at whatever step. What no writer of ours leaves there (more
 * than fits, a length that the file has not) is not touched: reads stay inside, no file grows. */
int64_t sy_sample_buffer_rescue(struct sy_sample_buffer *lines, int fd, int *failure);

#endif
