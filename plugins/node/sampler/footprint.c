/* Being small: a sampler lives as long as the job, and most of what its start has touched is never
 * needed again. */
#include "sampler/sampler.h"

#include <link.h>
#include <malloc.h>
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
	(void)malloc_trim(0);
	(void)dl_iterate_phdr(forget, NULL);
}
