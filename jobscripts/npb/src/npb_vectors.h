/*
 * Which vectors the processor lets the loops use that are compiled for several (NPB_VECTOR): a
 * machine that hides AVX, as some virtual ones do, computes the same more slowly.
 */
#ifndef NPB_VECTORS_H
#define NPB_VECTORS_H

#include <stdint.h> /* __GLIBC__, below */

struct npb_vectors {
	char level[16]; /* as GCC names it: "x86-64-v4"; "compiled": there was no choice */
	int bits;	/* width of a register; 0: not known, or not used */
};

/* Of this rank's processor. */
struct npb_vectors npb_vectors(void);

/*
 * A loop that gains from wide vectors is compiled three times and the machine's own version picked
 * when the program starts (npb_vectors tells which), so that one build is fast everywhere. No
 * version fuses multiplications with additions (-ffp-contract=off): results do not depend on the
 * machine.
 */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&       \
    !defined(NPB_NO_CLONES)
#if __GNUC__ >= 12
#define NPB_CLONES
#define NPB_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
#endif
#ifndef NPB_VECTOR
#define NPB_VECTOR
#endif
/* For helpers of such loops: they must become part of each version. */
#define NPB_INLINE static inline __attribute__((always_inline))

#endif
