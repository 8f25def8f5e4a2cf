/* Memory of the kernels: zeroed, aligned, and counted, so that main finds what was not freed. */
#define _DEFAULT_SOURCE /* madvise */
#include "npb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static long allocations;

long npb_count_allocations(void)
{
	return allocations;
}

/* Large blocks begin on pages of 2 MiB, where the kernel has them: fewer pages to look up. */
static void *allocate(size_t total)
{
	enum { LINE = 64, PAGE = 2 << 20 };
	const size_t align = total < 2 * (size_t)PAGE ? LINE : PAGE;
	const size_t rounded = (total + align) / align * align; /* never 0 */
	void *memory = rounded > total ? aligned_alloc(align, rounded) : NULL;

#ifdef MADV_HUGEPAGE
	if (memory && align == PAGE)
		madvise(memory, rounded, MADV_HUGEPAGE);
#endif
	return memory;
}

void *npb_alloc(size_t count, size_t bytes)
{
	const bool fits = bytes == 0 || count <= SIZE_MAX / bytes;
	void *memory = fits ? allocate(count * bytes) : NULL;

	if (!memory) {
		fprintf(stderr, "npb: no memory for %zu times %zu bytes; use a smaller class\n",
			count, bytes);
		MPI_Abort(MPI_COMM_WORLD, 2);
		exit(2);
	}
	memset(memory, 0, count * bytes);
	allocations++;
	return memory;
}

void npb_free(void *memory)
{
	allocations -= memory != NULL;
	free(memory);
}
