#include "unwritten.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *sy_unwritten_room(struct sy_unwritten *lines)
{
	return lines->text + atomic_load(&lines->used);
}

void sy_unwritten_add(struct sy_unwritten *lines, size_t length)
{
	atomic_fetch_add(&lines->used, length);
}

bool sy_unwritten_is_due(const struct sy_unwritten *lines, int64_t next_us)
{
	return next_us > lines->written_at_us + SY_UNWRITTEN_US ||
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
static size_t whole_lines(const char *text, size_t length)
{
	const char *end = memrchr(text, '\n', length);

	return end ? (size_t)(end + 1 - text) : 0;
}

int64_t sy_unwritten_flush(struct sy_unwritten *lines, int fd, int64_t now_us, int *failure)
{
	size_t used = atomic_load(&lines->used), whole = used;
	ssize_t done = used ? write(fd, lines->text, used) : 0;

	lines->written_at_us = now_us;
	if (done != (ssize_t)used) {
		*failure = done < 0 ? errno : ENOSPC;
		whole = done > 0 ? whole_lines(lines->text, (size_t)done) : 0;
	}
	if (done > (ssize_t)whole)
		(void)ftruncate(fd, lines->file_bytes + (off_t)whole);
	/* Nothing waits any more, then the file's new length: sy_unwritten_rescue() relies on it.
	 */
	atomic_store(&lines->used, 0);
	lines->file_bytes += (int64_t)whole;
	return count_lines(lines->text + whole, used - whole);
}

/* The file's length tells how far the writer has come. */
int64_t sy_unwritten_rescue(struct sy_unwritten *lines, int fd, int *failure)
{
	int64_t used = (int64_t)atomic_load(&lines->used);
	struct stat info;

	if (fd < 0 || !used || fstat(fd, &info) < 0 || info.st_size >= lines->file_bytes + used ||
	    ftruncate(fd, lines->file_bytes) < 0)
		return 0;
	return sy_unwritten_flush(lines, fd, 0, failure);
}
