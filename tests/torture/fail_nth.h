/* What tests/torture/torture.py and a program that it tortures share: a file, named by FAIL_NTH. */
#ifndef STEELYARD_FAIL_NTH_H
#define STEELYARD_FAIL_NTH_H

#include <stdint.h>

#define FAIL_NTH_DEPTH	24
#define FAIL_NTH_PLACES 16384
#define FAIL_NTH_PATHS	8

/* Of all processes of one run together. torture.py has its layout, too. */
struct fail_nth {
	uint64_t calls;			 /* that could have failed so far */
	uint64_t fail_at;		 /* which of them does; 0: none */
	uint64_t failed;		 /* it has */
	char function[32];		 /* which one it was */
	uint64_t trace[FAIL_NTH_DEPTH];	 /* and from where */
	char made[FAIL_NTH_PATHS][64];	 /* folders of mkdtemp(3), to be removed */
	uint64_t place[FAIL_NTH_PLACES]; /* of a trace's hash; 0: free */
	uint64_t first[FAIL_NTH_PLACES]; /* the first call from there */
};

#endif
