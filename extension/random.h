/*
 * random.h
 *		Identities from the server's strong random source.
 */
#ifndef SYNCHRO_RANDOM_H
#define SYNCHRO_RANDOM_H

#include "postgres.h"

#define SYN_VERSION_LEN 16		/* base64url of 12 random octets */

extern void syn_random(void *out, size_t len);
extern void syn_random_version(char *out);	/* SYN_VERSION_LEN octets, no terminator */
extern void syn_random_uuid(uint8 *out);	/* 16 octets, version 4 */

#endif							/* SYNCHRO_RANDOM_H */
