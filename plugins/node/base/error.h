/* Room base: what all other rooms stand on, and which knows none of them: errors (here), clocks,
 * files below a root and folders that root writes into (file.h), programs with a time limit
 * (exec.h), open descriptors (descriptors.h), JSON documents (json_document.h), samples with their
 * columns and totals (samples.h), numbers, hashes, capabilities (rights.h), and what the kernel
 * offers before its headers name it (kernel_uapi.h).
 *
 * Its conventions hold in all rooms. Errors travel up as one value with a sentence; leaf functions
 * neither log nor exit. A function that can fail takes a `struct sy_error *` as its last argument
 * and returns 0, or -1 with the sentence set: what was tried on which object, and why it failed.
 * Functions that read small files return -errno instead. What a function allocates or opens is
 * freed at the end of its scope (cleanup_free, cleanup_close); what it returns is the caller's to
 * free, and its header says so. Paths are resolved below a root
 * descriptor, which is "/" or a recorded tree.
 *
 * It promises that nothing in here writes to stdout or stderr, ends the process, or blocks without
 * a limit, but for files of a file system that does not answer: it also runs within daemons of
 * others. */
#ifndef STEELYARD_BASE_ERROR_H
#define STEELYARD_BASE_ERROR_H

#include <stdbool.h>

struct sy_error {
	char text[512];
};

/* Set the sentence; always -1, so that `return sy_fail(err, …)` reads well. `err` may be NULL. */
__attribute__((format(printf, 2, 3))) int sy_fail(struct sy_error *err, const char *format, ...);

/* The same, followed by ": " and strerror(errnum). */
__attribute__((format(printf, 3, 4))) int sy_fail_errno(struct sy_error *err, int errnum,
							const char *format, ...);

/* Memory and descriptors that were missing. What was read or built meanwhile may lack a part
 * that nobody misses, so nobody may take it for the whole. */

/* No memory, or no descriptor left: it may be there in the next moment. */
bool sy_is_shortage(int errnum);

/* Count it if it is one; returns -errnum. */
int sy_count_shortage(int errnum);

/* How many there have been in this process: more than before, then what was done lacks something.
 */
unsigned sy_get_shortages(void);

#endif
