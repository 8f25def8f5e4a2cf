/* JSON documents: bounded reading, and building one in which every null has its reason under
 * "missing".
 *
 * Values go to dotted paths ("cpu.model"); the objects on the way are made when they are not there.
 * Running out of memory shows in `failed` only, so that callers need not look at every step. */
#ifndef STEELYARD_BASE_JSON_DOCUMENT_H
#define STEELYARD_BASE_JSON_DOCUMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Why a total is null in the record that is written at the job's start. */
#define SY_NOT_YET "not known yet: the job was still running when this was written"

/* And in the one of its end. */
#define SY_NO_VALUE "no value in the last sample"

struct sy_document {
	json_t *top;
	json_t *missing;
	bool failed;
};

/* A string for JSON: bytes that are no UTF-8 (a mount point may have any) become U+FFFD. */
json_t *sy_json_text(const char *text);

/* A JSON file of at most 4 MB; NULL: cannot be read, is none, or fd is negative. In one read:
 * json_loadfd makes a system call for every byte. */
json_t *sy_json_read_fd(int fd);

/* The document that `make` makes of `context` in a process of its own (base/exec.h); NULL: none
 * within `limit_ms`. For folders on a shared file system, which may not answer. */
json_t *sy_json_within(int limit_ms, json_t *(*make)(const void *context), const void *context);

/* From this call on memory that JSON cannot get is a shortage (base/error.h). For our own
 * programs, not for other daemons that share their jansson with us. */
void sy_json_watch_memory(void);

/* As json_dumps(3), but NULL when the object may lack something: there was a shortage of memory for
 * JSON in this process. */
char *sy_json_dump(const json_t *json, size_t flags);

/* Put a value, whose reference is taken. */
void sy_doc_put(struct sy_document *document, const char *path, json_t *value);
void sy_doc_put_text(struct sy_document *document, const char *path, const char *text);
void sy_doc_put_int(struct sy_document *document, const char *path, int64_t value);

/* Put null, and why. */
__attribute__((format(printf, 3, 4))) void
sy_doc_put_null(struct sy_document *document, const char *path, const char *format, ...);

/* A reason alone, for a value inside a list: "rapl.0.readable". */
__attribute__((format(printf, 3, 4))) void
sy_doc_put_reason(struct sy_document *document, const char *path, const char *format, ...);

/* The first line of a file, or null with the kernel's error. */
void sy_doc_put_line(struct sy_document *document, const char *path, int root, const char *file);

/* The words of a file's first line as a list; empty, with a reason, when it cannot be read. */
void sy_doc_put_list(struct sy_document *document, const char *path, int root, const char *file);

/* Set the value at a dotted path of a document that is not being filled in but changed
 * ("energy.zones.0.energy_j": lists have numbers), making objects on the way. A null has its reason
 * `reason` under `missing` of `top`; a value takes the reason away. Takes `value`. */
void sy_json_put(json_t *top, const char *path, json_t *value, const char *reason);

/* The reason of a null in such a document; NULL: it has none. */
const char *sy_json_reason(const json_t *top, const char *path);

/* Replace that reason, where there is one, by `reason`, unless this is empty. */
void sy_json_explain(json_t *top, const char *path, const char *reason);

/* A text into the list `key` of an object, once. */
void sy_json_add_once(json_t *object, const char *key, const char *text);

/* A sentence into `notes` of an object, once. */
__attribute__((format(printf, 2, 3))) void sy_json_note(json_t *object, const char *format, ...);

#endif
