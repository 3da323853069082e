/*
 * secret.h
 *		Keys of synchro.secret_key, cached per backend.
 */
#ifndef SYNCHRO_SECRET_H
#define SYNCHRO_SECRET_H

#include "postgres.h"

#define SYNCHRO_SECRET_MAX 32

typedef struct SynchroSecret
{
	char		purpose[32];
	char		key_id[64];
	uint8		secret[SYNCHRO_SECRET_MAX];
	int			len;
	bool		active;			/* signs; otherwise it verifies only */
} SynchroSecret;

/*
 * The key of a purpose that signs, or NULL. Like every pointer from here it is valid until the backend next opens a relation
 * or otherwise may process invalidations: use it at once.
 */
extern const SynchroSecret *synchro_active_secret(const char *purpose);

/* The key of that id unless it is retired, or NULL. */
extern const SynchroSecret *synchro_secret_by_id(const char *purpose, const char *key_id);

/* Walks the keys of a purpose that are not retired: start with NULL, ends with NULL. */
extern const SynchroSecret *synchro_next_secret(const char *purpose, const SynchroSecret *previous);

#endif							/* SYNCHRO_SECRET_H */
