/* Lines of samples that wait: when they are written, on a full disk, and after a writer was killed
 * between any two of its steps. */
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sampler/sample_buffer.h"

static struct sy_sample_buffer lines;

static int new_file(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_APPEND, 0600);

	memset(&lines, 0, sizeof(lines));
	ok(fd >= 0, "a file");
	return fd;
}

static void add(const char *line)
{
	memcpy(sy_sample_buffer_room(&lines), line, strlen(line));
	sy_sample_buffer_add(&lines, strlen(line));
}

static void holds(int fd, const char *expected, const char *name)
{
	static char text[2 * SY_SAMPLE_BUFFER_SIZE];
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);

	text[length > 0 ? length : 0] = '\0';
	is_string(text, expected, name);
}

static void test_order(void)
{
	int fd = new_file(), failure = 0;

	add("a,b\n");
	add("1,2\n");
	holds(fd, "", "nothing is written by itself");
	is_int(sy_sample_buffer_flush(&lines, fd, 0, &failure), 0, "no line is lost");
	add("3,4\n");
	is_int(sy_sample_buffer_flush(&lines, fd, 0, &failure), 0, "nor of the second time");
	is_int(sy_sample_buffer_flush(&lines, fd, 0, &failure), 0, "nor of none");
	holds(fd, "a,b\n1,2\n3,4\n", "all lines, in order, once");
	is_int(failure, 0, "no failure");
	(void)close(fd);
}

static void test_due(void)
{
	int fd = new_file(), failure = 0;
	int room = 0;

	(void)sy_sample_buffer_flush(&lines, fd, 5000000, &failure);
	ok(!sy_sample_buffer_is_due(&lines, 6000000), "the next line comes in time");
	ok(sy_sample_buffer_is_due(&lines, 6000001), "it would come too late");
	while (!sy_sample_buffer_is_due(&lines, 0) && room < SY_SAMPLE_BUFFER_SIZE) {
		add("0123456789\n");
		room++;
	}
	ok(room < SY_SAMPLE_BUFFER_SIZE && lines.used + SY_LINE_SIZE > SY_SAMPLE_BUFFER_SIZE &&
	       lines.used <= SY_LINE_SIZE + strlen("0123456789\n"),
	   "full: one more line might not fit");
	(void)close(fd);
}

/* Of a write that the limit cuts short, whole lines stay. */
static void test_full(void)
{
	struct rlimit limit = {.rlim_cur = 10, .rlim_max = RLIM_INFINITY}, before;
	int fd = new_file(), failure = 0;

	(void)getrlimit(RLIMIT_FSIZE, &before);
	limit.rlim_max = before.rlim_max;
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	add("a,b\n");
	add("1,2\n");
	add("3,4\n");
	add("5,6\n");
	is_int(sy_sample_buffer_flush(&lines, fd, 0, &failure), 2, "two of four lines are lost");
	ok(failure != 0, "and there is a reason: %s", strerror(failure));
	holds(fd, "a,b\n1,2\n", "a part of a line is taken back");
	limit.rlim_cur = 8;
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	add("7,8\n");
	is_int(sy_sample_buffer_flush(&lines, fd, 0, &failure), 1, "still full");
	is_int(failure, EFBIG, "the kernel's reason");
	(void)setrlimit(RLIMIT_FSIZE, &before);
	add("9,9\n");
	is_int(sy_sample_buffer_flush(&lines, fd, 0, &failure), 0, "room again");
	holds(fd, "a,b\n1,2\n9,9\n", "whole lines only");
	(void)close(fd);
}

/* A disk that is full from the start has room later. */
static void test_header_waits(void)
{
	int full = open("/dev/full", O_WRONLY), fd = new_file(), failure = 0;

	add("a,b\n");
	add("1,2\n");
	is_int(sy_sample_buffer_flush(&lines, full, 0, &failure), 1, "the sample is lost");
	is_int(failure, ENOSPC, "for want of room");
	add("3,4\n");
	is_int(sy_sample_buffer_flush(&lines, full, 0, &failure), 1, "and so is the next one");
	add("5,6\n");
	is_int(sy_sample_buffer_flush(&lines, fd, 0, &failure), 0, "no more of them");
	add("7,8\n");
	is_int(sy_sample_buffer_flush(&lines, fd, 0, &failure), 0, "nor later");
	holds(fd, "a,b\n5,6\n7,8\n", "the header is there, and once");
	(void)close(fd);
	(void)close(full);
}

static void test_rescue_without_room(void)
{
	struct rlimit none = {.rlim_cur = 0}, before;
	int fd = new_file(), failure = 0;

	(void)getrlimit(RLIMIT_FSIZE, &before);
	none.rlim_max = before.rlim_max;
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)setrlimit(RLIMIT_FSIZE, &none);
	add("a,b\n");
	add("1,2\n");
	add("3,4\n");
	is_int(sy_sample_buffer_rescue(&lines, fd, &failure), 2, "a header is no lost sample");
	(void)setrlimit(RLIMIT_FSIZE, &before);
	(void)close(fd);
}

/* The writer's steps: write (perhaps a part of it), nothing waits any more, the new length. */
static void test_rescue(void)
{
	static const struct {
		const char *written;
		size_t used;
		int64_t file_bytes;
		const char *name;
	} deaths[] = {
	    {"", 8, 4, "before it wrote"},
	    {"1,2\n3", 8, 4, "while it wrote"},
	    {"1,2\n3,4\n", 8, 4, "after it wrote"},
	    {"1,2\n3,4\n", 0, 4, "after it had emptied the buffer"},
	    {"1,2\n3,4\n", 0, 12, "after all of it"},
	};

	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
		int fd = new_file(), failure = 0;

		add("a,b\n");
		(void)sy_sample_buffer_flush(&lines, fd, 0, &failure);
		add("1,2\n");
		add("3,4\n");
		ok(write(fd, deaths[i].written, strlen(deaths[i].written)) >= 0, "a writer");
		lines.used = deaths[i].used;
		lines.file_bytes = deaths[i].file_bytes;
		is_int(sy_sample_buffer_rescue(&lines, fd, &failure), 0, "nothing is lost");
		is_int(sy_sample_buffer_rescue(&lines, fd, &failure), 0, "twice does no harm");
		holds(fd, "a,b\n1,2\n3,4\n", deaths[i].name);
		(void)close(fd);
	}
	is_int(sy_sample_buffer_rescue(&lines, -1, NULL), 0, "no file of samples");
}

/* The sampling child has few rights: what stands in the memory it shares with root proves nothing.
 */
static void test_rescue_of_a_liar(void)
{
	static const struct {
		size_t used;
		int64_t file_bytes;
		const char *name;
	} lies[] = {
	    {SY_SAMPLE_BUFFER_SIZE + 1, 4, "more lines than fit are not read"},
	    {SIZE_MAX, 4, "nor when their number has a sign"},
	    {8, 1 << 20, "a file that is shorter does not grow"},
	    {8, 5, "not by a byte"},
	    {8, INT64_MAX, "no sum overflows"},
	    {8, -4, "no length is negative"},
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		int fd = new_file(), failure = 0;

		add("a,b\n");
		(void)sy_sample_buffer_flush(&lines, fd, 0, &failure);
		add("1,2\n");
		lines.used = lies[i].used;
		lines.file_bytes = lies[i].file_bytes;
		is_int(sy_sample_buffer_rescue(&lines, fd, &failure), 0, "no line is counted");
		is_int(lseek(fd, 0, SEEK_END), 4, "the file keeps its length");
		holds(fd, "a,b\n", lies[i].name);
		(void)close(fd);
	}
}

int main(void)
{
	test_order();
	test_due();
	test_full();
	test_header_waits();
	test_rescue_without_room();
	test_rescue();
	test_rescue_of_a_liar();
	return done_testing();
}
