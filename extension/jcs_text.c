/*
 * jcs_text.c
 *		Text that has a portable form.
 */
#include "postgres.h"

#include "jcs.h"

/*
 * Looks for noncharacters. Their UTF-8 forms start with EF or F0..F4, so eight octets at a time are passed over while none is
 * EF or above: (octet & 7f) + 11 reaches 80 exactly for 6f..7f.
 */
bool
syn_text_ok(const char *str, int len)
{
	const unsigned char *s = (const unsigned char *) str;
	const unsigned char *end = s + len;

	while (s < end)
	{
		if (end - s >= 8)
		{
			uint64		w;

			memcpy(&w, s, 8);
			if ((((w & UINT64CONST(0x7f7f7f7f7f7f7f7f)) + UINT64CONST(0x1111111111111111)) &
				 w & UINT64CONST(0x8080808080808080)) == 0)
			{
				s += 8;
				continue;
			}
		}
		if (*s == 0xEF && end - s >= 3)
		{
			/* EF B7 90..AF, EF BF BE..BF */
			if (s[1] == 0xB7 && s[2] >= 0x90 && s[2] <= 0xAF)
				return false;
			if (s[1] == 0xBF && s[2] >= 0xBE)
				return false;
			s += 3;
		}
		else if (*s >= 0xF0 && end - s >= 4)
		{
			/* xFFFE and xFFFF of planes 1 to 16 */
			if ((s[1] & 0x0F) == 0x0F && s[2] == 0xBF && s[3] >= 0xBE)
				return false;
			s += 4;
		}
		else
			s++;
	}
	return true;
}
