#include "npb.h"

/* What the loops have that are compiled once. */
#if defined(__AVX512F__)
enum { COMPILED_BITS = 512 };
#elif defined(__AVX__)
enum { COMPILED_BITS = 256 };
#elif defined(__SSE2__) || defined(__ARM_NEON)
enum { COMPILED_BITS = 128 };
#else
enum { COMPILED_BITS = 0 };
#endif

/* The order and the tests of the resolver that GCC makes for NPB_VECTOR's clones. */
struct npb_vectors npb_vectors(void)
{
#ifdef NPB_CLONES
	__builtin_cpu_init();
	if (__builtin_cpu_supports("x86-64-v4"))
		return (struct npb_vectors){"x86-64-v4", 512};
	if (__builtin_cpu_supports("x86-64-v3"))
		return (struct npb_vectors){"x86-64-v3", 256};
	return (struct npb_vectors){"default", COMPILED_BITS};
#else
	return (struct npb_vectors){"compiled", COMPILED_BITS};
#endif
}
