#include "bpf/system_call.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/uapi/linux/bpf.h: enum bpf_cmd */
enum { MAP_CREATE, MAP_LOOKUP, MAP_UPDATE, MAP_DELETE, MAP_NEXT_KEY };
enum { OBJ_GET = 7, PROG_TEST_RUN = 10, MAP_GET_BY_ID = 14, ITER_CREATE = 33 };

/* Likewise the first members of union bpf_attr: the kernel takes what is not given for 0. */
struct create {
	uint32_t type, key_size, value_size, max_entries, flags, inner_map_fd, numa_node;
	char name[16];
};

struct element {
	uint32_t map, unused;
	uint64_t key, value, flags;
};

struct object {
	uint64_t path;
	uint32_t fd, flags;
};

struct run {
	uint32_t program, retval, data_size_in, data_size_out;
	uint64_t data_in, data_out;
	uint32_t repeat, duration, ctx_size_in, ctx_size_out;
	uint64_t ctx_in, ctx_out;
};

struct iterate {
	uint32_t link, flags;
};

static int call(int command, void *attr, size_t size)
{
	int result = (int)syscall(SYS_bpf, command, attr, size);

	return result < 0 ? -errno : result;
}

static int element(int command, int map, const void *key, const void *value, uint64_t flags)
{
	struct element attr = {
	    .map = (uint32_t)map, .key = (uintptr_t)key, .value = (uintptr_t)value, .flags = flags};

	return call(command, &attr, sizeof(attr));
}

int sy_bpf_map_create(enum sy_bpf_map_type type, uint32_t value_size, uint32_t entries,
		      uint32_t flags, const char *name)
{
	struct create attr = {.type = type,
			      .key_size = type == SY_BPF_MAP_QUEUE ? 0 : sizeof(uint32_t),
			      .value_size = value_size,
			      .max_entries = entries,
			      .flags = flags};

	(void)strncpy(attr.name, name, sizeof(attr.name) - 1);
	return call(MAP_CREATE, &attr, sizeof(attr));
}

int sy_bpf_get(const char *path)
{
	struct object attr = {.path = (uintptr_t)path};

	return call(OBJ_GET, &attr, sizeof(attr));
}

int sy_bpf_get_by_number(uint32_t number)
{
	return call(MAP_GET_BY_ID, &number, sizeof(number));
}

int sy_bpf_iterate(int link)
{
	struct iterate attr = {.link = (uint32_t)link};

	return call(ITER_CREATE, &attr, sizeof(attr));
}

int sy_bpf_update(int map, const void *key, const void *value, uint64_t flags)
{
	return element(MAP_UPDATE, map, key, value, flags);
}

int sy_bpf_lookup(int map, const void *key, void *value)
{
	return element(MAP_LOOKUP, map, key, value, 0);
}

int sy_bpf_delete(int map, const void *key)
{
	return element(MAP_DELETE, map, key, NULL, 0);
}

int sy_bpf_next_key(int map, const void *key, void *next)
{
	return element(MAP_NEXT_KEY, map, key, next, 0);
}

int sy_bpf_run(int program, void *context, uint32_t size)
{
	struct run attr = {
	    .program = (uint32_t)program, .ctx_in = (uintptr_t)context, .ctx_size_in = size};
	int result = call(PROG_TEST_RUN, &attr, sizeof(attr));

	if (result < 0)
		return result;
	return attr.retval ? -ENOENT : 0;
}
