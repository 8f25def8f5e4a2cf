/* /proc/self/mountinfo in the probe's document. */
#include "fuzz.h"

#include <jansson.h>

#include "base/json_document.h"
#include "probe/probe.h"

/* A root folder with nothing but that file in it. */
static int root_with(const char *text, size_t size)
{
	static char folder[256], path[300];
	const char *base = getenv("TMPDIR");
	static int root = -1;
	int fd;

	if (root < 0) {
		(void)snprintf(folder, sizeof(folder), "%s/root-XXXXXX", base ? base : "/tmp");
		must(mkdtemp(folder) != NULL);
		root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		must(root >= 0 && !mkdirat(root, "proc", 0700) &&
		     !mkdirat(root, "proc/self", 0700));
		(void)snprintf(path, sizeof(path), "%s/proc/self/mountinfo", folder);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(fd >= 0 && write(fd, text, size) == (ssize_t)size);
	(void)close(fd);
	return root;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sy_document document = {json_object(), json_object(), false};
	char *text = text_of(data, size), *dumped;
	size_t lines = 1;

	sy_probe_filesystems(root_with((const char *)data, size), &document);
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	must(!document.failed);
	must(json_array_size(json_object_get(document.top, "filesystems")) <= lines);
	dumped = json_dumps(document.top, 0);
	must(dumped);
	free(dumped);
	sy_unescape_mount(text);
	must(strlen(text) <= size);
	json_decref(document.top);
	json_decref(document.missing);
	free(text);
	return 0;
}
