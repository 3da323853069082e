/*
 * canonical_manifest.h
 *		Manifest bodies.
 */
#ifndef SYNCHRO_CANONICAL_MANIFEST_H
#define SYNCHRO_CANONICAL_MANIFEST_H

#include "canonical.h"

/* May a manifest of this version follow that parent (0: none) with that class and floor? */
extern bool syn_lineage_ok(int64 version, int64 parent, const char *class, int64 floor);

/*
 * Checks a body, with or without schema_hash (which is verified), and raises where a rule is broken. The result is in canonical
 * order, without schema_hash.
 */
extern JcsNode *syn_manifest_parse(const char *str, int len, uint8 *hash);

#endif							/* SYNCHRO_CANONICAL_MANIFEST_H */
