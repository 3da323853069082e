/*
 * siphash.c
 *		SipHash-2-4-128 after Aumasson and Bernstein. Little-endian words, whatever the machine.
 */
#include "postgres.h"

#include "fmgr.h"
#include "port/pg_bswap.h"

#include "compat.h"
#include "errcodes.h"
#include "siphash.h"

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

#define SIPROUND \
	do { \
		v0 += v1; v1 = ROTL(v1, 13); v1 ^= v0; v0 = ROTL(v0, 32); \
		v2 += v3; v3 = ROTL(v3, 16); v3 ^= v2; \
		v0 += v3; v3 = ROTL(v3, 21); v3 ^= v0; \
		v2 += v1; v1 = ROTL(v1, 17); v1 ^= v2; v2 = ROTL(v2, 32); \
	} while (0)

static inline uint64
read_le64(const uint8 *p)
{
	uint64		word;

	memcpy(&word, p, sizeof(word));
#ifdef WORDS_BIGENDIAN
	word = pg_bswap64(word);
#endif
	return word;
}

static inline void
write_le64(uint8 *p, uint64 word)
{
#ifdef WORDS_BIGENDIAN
	word = pg_bswap64(word);
#endif
	memcpy(p, &word, sizeof(word));
}

void
siphash128(const uint8 *key, const uint8 *data, size_t len, uint8 *out)
{
	uint64		k0 = read_le64(key);
	uint64		k1 = read_le64(key + 8);
	uint64		v0 = UINT64CONST(0x736f6d6570736575) ^ k0;
	uint64		v1 = UINT64CONST(0x646f72616e646f6d) ^ k1 ^ 0xee;
	uint64		v2 = UINT64CONST(0x6c7967656e657261) ^ k0;
	uint64		v3 = UINT64CONST(0x7465646279746573) ^ k1;
	uint64		last = ((uint64) len) << 56;
	const uint8 *end = data + (len & ~((size_t) 7));

	for (; data < end; data += 8)
	{
		uint64		word = read_le64(data);

		v3 ^= word;
		SIPROUND;
		SIPROUND;
		v0 ^= word;
	}
	for (int i = (int) (len & 7) - 1; i >= 0; i--)
		last |= ((uint64) data[i]) << (8 * i);
	v3 ^= last;
	SIPROUND;
	SIPROUND;
	v0 ^= last;

	v2 ^= 0xee;
	for (int i = 0; i < 4; i++)
		SIPROUND;
	write_le64(out, v0 ^ v1 ^ v2 ^ v3);
	v1 ^= 0xdd;
	for (int i = 0; i < 4; i++)
		SIPROUND;
	write_le64(out + 8, v0 ^ v1 ^ v2 ^ v3);
}

PG_FUNCTION_INFO_V1(synchro_siphash);

/* _siphash(key bytea, data bytea) bytea */
Datum
synchro_siphash(PG_FUNCTION_ARGS)
{
	bytea	   *key = PG_GETARG_BYTEA_PP(0);
	bytea	   *data = PG_GETARG_BYTEA_PP(1);
	bytea	   *result = palloc(VARHDRSZ + SIPHASH_LEN);

	if (VARSIZE_ANY_EXHDR(key) != SIPHASH_KEY_LEN)
		ereport(ERROR, (errcode(SYNCHRO_ERR_INVALID_PARAMETER), errmsg("a key has %d octets", SIPHASH_KEY_LEN)));
	SET_VARSIZE(result, VARHDRSZ + SIPHASH_LEN);
	siphash128((uint8 *) VARDATA_ANY(key), (uint8 *) VARDATA_ANY(data), VARSIZE_ANY_EXHDR(data), (uint8 *) VARDATA(result));
	PG_RETURN_BYTEA_P(result);
}
