/* bpf(2), as much of it as a reader of our maps needs: no library, no header newer than RHEL 8's.
 */
#ifndef STEELYARD_BPF_SYSTEM_CALL_H
#define STEELYARD_BPF_SYSTEM_CALL_H

#include <stdint.h>

enum sy_bpf_map_type { SY_BPF_MAP_ARRAY = 2, SY_BPF_MAP_QUEUE = 22 };

#define SY_BPF_MMAPABLE (1U << 10)
#define SY_BPF_NOEXIST	1U

/* Each a descriptor, closed at exec; or -errno. */
int sy_bpf_map_create(enum sy_bpf_map_type type, uint32_t value_size, uint32_t entries,
		      uint32_t flags, const char *name);
int sy_bpf_get(const char *path);	   /* what is pinned there */
int sy_bpf_get_by_number(uint32_t number); /* a map; as root only */
int sy_bpf_iterate(int link);		   /* to be read as a file */

/* Each 0, or -errno. */
int sy_bpf_update(int map, const void *key, const void *value, uint64_t flags);
int sy_bpf_lookup(int map, const void *key, void *value);
int sy_bpf_delete(int map, const void *key);
int sy_bpf_next_key(int map, const void *key, void *next); /* key NULL: the first */
int sy_bpf_run(int program, void *context, uint32_t size);

#endif
