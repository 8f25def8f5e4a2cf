/* A hash of bytes for short names and numbers, not for checksums (sha256.h). */
#ifndef STEELYARD_BASE_FNV_HASH_H
#define STEELYARD_BASE_FNV_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a, 64 bits, continued over more bytes; it begins with SY_HASH. */
#define SY_HASH 0xcbf29ce484222325ULL
uint64_t sy_hash(uint64_t hash, const void *bytes, size_t size);

#endif
