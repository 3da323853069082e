/*
 * scope_rows.h
 *		The live rows of a scope in identity order, as compactly as its digest can be computed from.
 */
#ifndef SYNCHRO_SCOPE_ROWS_H
#define SYNCHRO_SCOPE_ROWS_H

#include "postgres.h"

/* Plain memory, which contexts of other interfaces are not: a state can be copied and kept. */
#ifndef OPENSSL_SUPPRESS_DEPRECATED
#define OPENSSL_SUPPRESS_DEPRECATED
#endif
#include <openssl/sha.h>

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

typedef SHA256_CTX SynHashState;

/* A state of the hash on the way to the digest of rows: the next digest goes on before the first row that has changed since. */
typedef struct SynRowsMark
{
	int			at;				/* the record that comes next */
	uint64		added;			/* rows before it */
	SynHashState state;
} SynRowsMark;

/* Records: number of the part u16 ‖ length of the key u16 ‖ compact key octets ‖ row digest. Integers as this machine has them. */
typedef struct SynScopeRows
{
	StringInfoData data;
	StringInfoData marks;		/* SynRowsMark, good for one scope and manifest and this count */
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

/* The rows after the changes, of which there is one a row; sorts them. Marks stay as far as they are good. */
extern void syn_rows_merge(const SynScopeRows *before, SynRowChange *changes, int n, SynScopeRows *after);

/* The digest of complete rows; goes on from their last mark, and adds marks. */
extern char *syn_rows_digest(SynScopeRows *rows, const SynManifestParts *manifest, const text *scope_id);

#endif							/* SYNCHRO_SCOPE_ROWS_H */
