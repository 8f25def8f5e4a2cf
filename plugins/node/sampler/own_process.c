#include "sampler/own_process.h"

#include "base/line.h"
#include "counters/parse.h"

#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Program text and constants are clean and come back from the page cache when they are needed
 * again. Segments that are written to, by relocation too, are writable in the file. */
static int forget(struct dl_phdr_info *info, size_t size, void *unused)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start[8], end[8];
	int count = 0;

	(void)size;
	(void)unused;
	/* The headers themselves lie in such a segment: read them before it goes. */
	for (int i = 0; i < info->dlpi_phnum && count < 8; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type != PT_LOAD || (part->p_flags & PF_W))
			continue;
		start[count] = (info->dlpi_addr + part->p_vaddr) & ~(page - 1);
		end[count++] = info->dlpi_addr + part->p_vaddr + part->p_memsz;
	}
	while (count-- > 0)
		(void)madvise((void *)start[count], end[count] - start[count], MADV_DONTNEED);
	return 0;
}

void sy_shrink(void)
{
#ifdef __GLIBC__
	(void)malloc_trim(0);
#endif
	(void)dl_iterate_phdr(forget, NULL);
}

int64_t sy_own_max_memory_bytes(void)
{
	char text[2048];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	int64_t kilobytes;

	if (fd >= 0)
		(void)close(fd);
	if (got < 0)
		return SY_UNKNOWN;
	text[got] = '\0';
	if (!strstr(text, "VmHWM:") ||
	    sy_parse_number(strstr(text, "VmHWM:") + strlen("VmHWM:"), &kilobytes) < 0)
		return SY_UNKNOWN;
	return kilobytes * 1024;
}

int sy_raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	if (limit.rlim_max > 16384)
		limit.rlim_max = 16384;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur > 512 ? (int)limit.rlim_cur - 512 : 0;
}

int64_t sy_add_own_memory(int64_t bytes)
{
	int64_t own = sy_own_max_memory_bytes();

	return own == SY_UNKNOWN || bytes == SY_UNKNOWN ? SY_UNKNOWN : bytes + own;
}

void sy_silence_standard_streams(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		(void)dup2(null, fd);
	if (null > 2)
		(void)close(null);
}
