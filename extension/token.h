/*
 * token.h
 *		Sealing and opening of signed tokens.
 */
#ifndef SYNCHRO_TOKEN_H
#define SYNCHRO_TOKEN_H

#include "postgres.h"

#include "lib/stringinfo.h"

#include "secret.h"

/* Wraps a canonical payload, which names this key, into a token. */
extern text *token_seal(const SynchroSecret *key, const StringInfoData *payload);

/*
 * The authenticated payload (NUL-terminated) and the key that signed it, or NULL. That the payload is canonical and names that
 * key remains to be checked.
 */
extern char *token_unseal(const char *purpose, const text *token, int *payload_len, const SynchroSecret **signer);

#endif							/* SYNCHRO_TOKEN_H */
