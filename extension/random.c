/*
 * random.c
 *		Versions and ids from the server's strong random source, drawn in blocks: one call of the source per row would be
 *		what a fence costs most.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "random.h"

static uint8 pool[4096];
static size_t pool_left = 0;
static int	pool_pid = 0;		/* a child process must never hand out what its parent hands out */

void
syn_random(void *out, size_t len)
{
	Assert(len <= sizeof(pool));
	if (pool_left < len || pool_pid != MyProcPid)
	{
		if (!pg_strong_random(pool, sizeof(pool)))
			ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not obtain random octets")));
		pool_left = sizeof(pool);
		pool_pid = MyProcPid;
	}
	pool_left -= len;
	memcpy(out, pool + pool_left, len);
	memset(pool + pool_left, 0, len);
}

void
syn_random_version(char *out)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint8		raw[12];

	syn_random(raw, sizeof(raw));
	for (int i = 0; i < 12; i += 3, out += 4)
	{
		uint32		bits = ((uint32) raw[i] << 16) | ((uint32) raw[i + 1] << 8) | raw[i + 2];

		out[0] = alphabet[bits >> 18];
		out[1] = alphabet[(bits >> 12) & 63];
		out[2] = alphabet[(bits >> 6) & 63];
		out[3] = alphabet[bits & 63];
	}
}

void
syn_random_uuid(uint8 *out)
{
	syn_random(out, 16);
	out[6] = (out[6] & 0x0f) | 0x40;
	out[8] = (out[8] & 0x3f) | 0x80;
}

PG_FUNCTION_INFO_V1(synchro_new_version);

/* _new_version() text */
Datum
synchro_new_version(PG_FUNCTION_ARGS)
{
	char		version[SYN_VERSION_LEN];

	syn_random_version(version);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(version, SYN_VERSION_LEN));
}
