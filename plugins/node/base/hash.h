/* Hashes: SHA-256 of files, FNV-1a of names. */
#ifndef STEELYARD_BASE_HASH_H
#define STEELYARD_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define SY_SHA256_SIZE 65 /* as hexadecimal digits, with the NUL */

/* SHA-256 (FIPS 180-4): which version of a file was used. Equal to the output of `sha256sum FILE`.
 */
const char *sy_sha256(const void *bytes, size_t length, char text[SY_SHA256_SIZE]);

/* FNV-1a, 64 bits, of short names and numbers, continued over more bytes; it begins with SY_HASH.
 */
#define SY_HASH 0xcbf29ce484222325ULL
uint64_t sy_hash(uint64_t hash, const void *bytes, size_t size);

#endif
