/* Being small: a sampler lives as long as the job, and most of what its start has touched is never
 * needed again. */
#include "sampler.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

/* Program text is clean and comes back from the page cache when it is run again. Segments that are
 * written to, by relocation too, are never executable here. */
static int forget_text(struct dl_phdr_info *info, size_t size, void *unused)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t start = (info->dlpi_addr + part->p_vaddr) & ~(page - 1);
		uintptr_t end = info->dlpi_addr + part->p_vaddr + part->p_memsz;

		if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && !(part->p_flags & PF_W))
			(void)madvise((void *)start, end - start, MADV_DONTNEED);
	}
	return 0;
}

void sy_shrink(void)
{
	(void)malloc_trim(0);
	(void)dl_iterate_phdr(forget_text, NULL);
}
