/* Memory of the probe's document. */
#include "probe/probe.h"

#include "base/file.h"
#include "base/number.h"
#include "probe/document_values.h"

#include <string.h>

/* A line of /proc/meminfo, in its own unit: -1 when it is not there. */
static int64_t meminfo(char *text, const char *key)
{
	char value[64], *end;
	long long number;

	if (!sy_probe_find_value(text, key, value, sizeof(value)))
		return -1;
	number = strtoll(value, &end, 10);
	return end == value || number < 0 ? -1 : number;
}

static void put_kb(struct sy_document *document, const char *path, const char *key, int64_t kb)
{
	if (kb >= 0)
		sy_doc_put_int(document, path, kb * 1024);
	else
		sy_doc_put_null(document, path, "/proc/meminfo has no %s", key);
}

/* "always [madvise] never": the word in brackets. */
static void put_transparent_huge_pages(int root, struct sy_document *document)
{
	static const char path[] = "memory.transparent_huge_pages";
	static const char file[] = "/sys/kernel/mm/transparent_hugepage/enabled";
	char line[128], *word = NULL;
	ssize_t length = sy_read_line_at(root, file, line, sizeof(line));

	if (length > 0)
		word = strchr(line, '[');
	if (word && strchr(word, ']')) {
		*strchr(++word, ']') = '\0';
		sy_doc_put_text(document, path, word);
	} else if (length >= 0) {
		sy_doc_put_null(document, path, "%s has no word in brackets", file);
	} else {
		sy_doc_put_null(document, path, "%s: %s", file, strerror((int)-length));
	}
}

static void put_numa(int root, struct sy_document *document)
{
	static const char balancing[] = "/proc/sys/kernel/numa_balancing";
	static const char online[] = "/sys/devices/system/node/online";
	bool marks[1];
	char list[1024];
	int64_t value;
	int nodes = -1, failed = sy_read_int_at(root, balancing, &value);

	if (failed)
		sy_doc_put_null(document, "memory.numa_balancing", "%s: %s", balancing,
				strerror(-failed));
	else
		sy_doc_put_int(document, "memory.numa_balancing", value);
	if (sy_read_line_at(root, online, list, sizeof(list)) > 0)
		nodes = sy_parse_number_list(list, marks, 0);
	if (nodes > 0)
		sy_doc_put_int(document, "memory.numa_nodes", nodes);
	else
		sy_doc_put_null(document, "memory.numa_nodes", "%s cannot be read", online);
}

void sy_probe_memory(int root, struct sy_document *document)
{
	char text[8192];
	int64_t huge_kb;

	if (sy_read_at(root, "/proc/meminfo", text, sizeof(text)) < 0)
		text[0] = '\0';
	put_kb(document, "memory.memory_bytes", "MemTotal", meminfo(text, "MemTotal"));
	put_kb(document, "memory.swap_bytes", "SwapTotal", meminfo(text, "SwapTotal"));
	/* Hugetlb, since Linux 4.16, sums all page sizes. */
	huge_kb = meminfo(text, "Hugetlb");
	if (huge_kb < 0 && meminfo(text, "HugePages_Total") >= 0 &&
	    meminfo(text, "Hugepagesize") >= 0)
		huge_kb = meminfo(text, "HugePages_Total") * meminfo(text, "Hugepagesize");
	put_kb(document, "memory.huge_pages_bytes", "Hugetlb", huge_kb);
	put_transparent_huge_pages(root, document);
	put_numa(root, document);
}
