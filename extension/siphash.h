/*
 * siphash.h
 *		SipHash-2-4 with 128-bit output: the MAC of messages in the WAL.
 */
#ifndef SYNCHRO_SIPHASH_H
#define SYNCHRO_SIPHASH_H

#include "postgres.h"

#define SIPHASH_KEY_LEN 16
#define SIPHASH_LEN 16

extern void siphash128(const uint8 *key, const uint8 *data, size_t len, uint8 *out);

#endif							/* SYNCHRO_SIPHASH_H */
