#include "sampler/memory_footprint.h"

#include "base/file.h"
#include "base/samples.h"
#include "counters/parse.h"

#include <link.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
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
	ssize_t length = sy_read_path("/proc/self/status", text, sizeof(text));
	const char *found = length > 0 ? strstr(text, "VmHWM:") : NULL;
	int64_t kilobytes;

	return found && sy_parse_number(found + strlen("VmHWM:"), &kilobytes) == 0
		   ? kilobytes * 1024
		   : SY_UNKNOWN;
}
