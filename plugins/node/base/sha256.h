/* SHA-256 (FIPS 180-4): which version of a file was used. Equal to the output of `sha256sum
 * FILE`. */
#ifndef STEELYARD_BASE_SHA256_H
#define STEELYARD_BASE_SHA256_H

#include <stddef.h>

#define SY_SHA256_SIZE 65 /* as hexadecimal digits, with the NUL */

const char *sy_sha256(const void *bytes, size_t length, char text[SY_SHA256_SIZE]);

#endif
