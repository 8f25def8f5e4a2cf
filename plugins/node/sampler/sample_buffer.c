#include "sampler/sample_buffer.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *sy_sample_buffer_room(struct sy_sample_buffer *lines)
{
	return lines->text + atomic_load(&lines->used);
}

void sy_sample_buffer_add(struct sy_sample_buffer *lines, size_t length)
{
	atomic_fetch_add(&lines->used, length);
}

bool sy_sample_buffer_is_due(const struct sy_sample_buffer *lines, int64_t next_us)
{
	return next_us > lines->written_at_us + SY_SAMPLE_BUFFER_US ||
	       atomic_load(&lines->used) + SY_LINE_SIZE > sizeof(lines->text);
}

static int64_t count_lines(const char *text, size_t length)
{
	int64_t lines = 0;

	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	return lines;
}

/* The length of the whole lines at the start of a text. */
static size_t complete_lines_length(const char *text, size_t length)
{
	const char *end = memrchr(text, '\n', length);

	return end ? (size_t)(end + 1 - text) : 0;
}

/* Append `used` bytes to a file of `file_bytes`: how many of them are whole lines in the file now.
 */
static size_t append(const char *text, size_t used, int fd, int64_t file_bytes, int *failure)
{
	ssize_t done = used ? write(fd, text, used) : 0;
	size_t complete = used;

	if (done != (ssize_t)used) {
		*failure = done < 0 ? errno : ENOSPC;
		complete = done > 0 ? complete_lines_length(text, (size_t)done) : 0;
	}
	if (done > (ssize_t)complete)
		(void)ftruncate(fd, file_bytes + (off_t)complete);
	return complete;
}

/* The columns' names wait until the file has them: without them no sample could be read. */
static size_t header_that_waits(const char *text, size_t used, int64_t file_bytes, size_t complete)
{
	const char *end = file_bytes || complete ? NULL : memchr(text, '\n', used);

	return end ? (size_t)(end + 1 - text) : 0;
}

int64_t sy_sample_buffer_flush(struct sy_sample_buffer *lines, int fd, int64_t now_us, int *failure)
{
	size_t used = atomic_load(&lines->used);
	size_t complete = append(lines->text, used, fd, lines->file_bytes, failure);
	size_t header = header_that_waits(lines->text, used, lines->file_bytes, complete);

	lines->written_at_us = now_us;
	/* No sample waits any more, then the file's new length: sy_sample_buffer_rescue() relies on
	 * it.
	 */
	atomic_store(&lines->used, header);
	lines->file_bytes += (int64_t)complete;
	return count_lines(lines->text + complete + header, used - complete - header);
}

/* The file's length shows how far the writer has come. Both numbers are read once, and accepted
 * only if a writer can have left them: it has no rights, and an intruder in it must gain none. */
int64_t sy_sample_buffer_rescue(struct sy_sample_buffer *lines, int fd, int *failure)
{
	size_t used = atomic_exchange(&lines->used, 0), complete, header;
	int64_t file_bytes = *(volatile int64_t *)&lines->file_bytes;
	struct stat info;

	if (fd < 0 || !used || used > sizeof(lines->text) || fstat(fd, &info) < 0 ||
	    file_bytes < 0 || file_bytes > info.st_size ||
	    info.st_size - file_bytes >= (int64_t)used || ftruncate(fd, file_bytes) < 0)
		return 0;
	complete = append(lines->text, used, fd, file_bytes, failure);
	header = header_that_waits(lines->text, used, file_bytes, complete);
	return count_lines(lines->text + complete + header, used - complete - header);
}
