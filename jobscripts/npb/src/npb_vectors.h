/*
 * Which vectors the processor lets the loops use that are compiled for several (NPB_VECTOR): a
 * machine that hides AVX, as some virtual ones do, computes the same more slowly.
 */
#ifndef NPB_VECTORS_H
#define NPB_VECTORS_H

struct npb_vectors {
	char level[16]; /* as GCC names it: "x86-64-v4"; "compiled": there was no choice */
	int bits;	/* width of a register; 0: not known, or not used */
};

/* Of this rank's processor. */
struct npb_vectors npb_vectors(void);

#endif
