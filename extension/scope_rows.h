/*
 * scope_rows.h
 *		The live rows of a scope in identity order, as compactly as its digest can be computed from.
 */
#ifndef SYNCHRO_SCOPE_ROWS_H
#define SYNCHRO_SCOPE_ROWS_H

#include "postgres.h"

#include "lib/stringinfo.h"

#include "canonical.h"

/* The relations of a manifest, in identity order. Valid until the transaction ends. */
typedef struct SynManifestParts
{
	int64		schema_version;
	uint8		schema_hash[SYN_HASH_LEN];
	int			n;
	struct SynPart
	{
		int			rel_no;
		const SynRelation *rel;
	}		   *parts;
} SynManifestParts;

extern SynManifestParts *syn_manifest_parts(int64 schema_version);
extern int	syn_manifest_part(const SynManifestParts *manifest, int rel_no);	/* -1: not in it */

/* Records: number of the part u16 ‖ length of the key u16 ‖ compact key octets ‖ row digest. Integers as this machine has them. */
typedef struct SynScopeRows
{
	StringInfoData data;
	uint64		count;
	Size		limit;			/* of octets */
	bool		complete;		/* false: there were more, and what is here is of no use */
} SynScopeRows;

/* What has become of a row. */
typedef struct SynRowChange
{
	int			part;
	const char *key;
	int			keylen;
	bool		live;
	uint8		digest[SYN_HASH_LEN];
} SynRowChange;

/* So many octets are gathered where nothing else limits them. */
#define SYN_ROWS_GATHERED ((Size) 4 * 1024 * 1024)

extern void syn_rows_init(SynScopeRows *rows, Size limit);
extern void syn_rows_reset(SynScopeRows *rows, Size room);

/* The next row; counts it in any case. */
extern void syn_rows_add(SynScopeRows *rows, int part, const char *key, int keylen, const void *digest);

/* The rows after the changes, of which there is one a row; sorts them. */
extern void syn_rows_merge(const SynScopeRows *before, SynRowChange *changes, int n, SynScopeRows *after);

/* The digest of complete rows. */
extern char *syn_rows_digest(const SynScopeRows *rows, const SynManifestParts *manifest, const text *scope_id);

#endif							/* SYNCHRO_SCOPE_ROWS_H */
