/*
 * semver.h
 *		SemVer 2.0.0, and the minimum version of clients.
 */
#ifndef SYNCHRO_SEMVER_H
#define SYNCHRO_SEMVER_H

#include "postgres.h"

/* Setting synchro.min_client_version (guc.c); empty: none. */
extern char *semver_minimum;

extern bool semver_is_valid(const char *text, int len);

/* True without a minimum; false for a malformed version. */
extern bool semver_at_least_minimum(const char *text, int len);

#endif							/* SYNCHRO_SEMVER_H */
