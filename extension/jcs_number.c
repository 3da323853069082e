/*
 * jcs_number.c
 *		Numbers as ECMAScript writes them, which RFC 8785 prescribes.
 */
#include "postgres.h"

#include <math.h>

#include "common/shortest_dec.h"

#include "jcs.h"

/* Significant digits, the decimal point behind the first n of them (n may be negative or beyond them). */
typedef struct Digits
{
	char		digit[48];
	int			count;
	int			n;
} Digits;

static void
strip_zeros(Digits *d)
{
	while (d->count > 1 && d->digit[d->count - 1] == '0')
		d->count--;
}

/* The server's own shortest form of a positive number. */
static void
shortest_digits(double num, Digits *out)
{
	char		buf[DOUBLE_SHORTEST_DECIMAL_LEN];
	bool		point = false;
	char	   *s = buf;

	out->count = 0;
	out->n = 0;
	double_to_shortest_decimal_buf(num, buf);
	for (; *s && *s != 'e'; s++)
	{
		if (*s == '.')
		{
			point = true;
			continue;
		}
		if (out->count == 0 && *s == '0')
		{
			/* a leading zero only moves the point */
			if (point)
				out->n--;
			continue;
		}
		out->digit[out->count++] = *s;
		if (!point)
			out->n++;
	}
	if (*s == 'e')
		out->n += atoi(s + 1);
	strip_zeros(out);
}

/* Exact digits of odd * 2^doublings. */
static void
exact_digits(uint64 odd, int doublings, Digits *out)
{
	out->count = snprintf(out->digit, sizeof(out->digit), UINT64_FORMAT, odd);
	while (doublings-- > 0)
	{
		int			carry = 0;

		for (int i = out->count - 1; i >= 0; i--)
		{
			int			digit = (out->digit[i] - '0') * 2 + carry;

			out->digit[i] = '0' + digit % 10;
			carry = digit / 10;
		}
		if (carry)
		{
			memmove(out->digit + 1, out->digit, out->count++);
			out->digit[0] = '1';
		}
	}
	out->n = out->count;
	strip_zeros(out);
}

/*
 * The server looks for a shortest form strictly between the halfway points to the neighbours. ECMAScript allows the halfway points
 * themselves where they round to the number, that is when its significand is even: 1e23 instead of 9.999999999999999e22. Such a
 * point, odd * 2^(exponent - 1), is shorter only if it ends in j zeros and has at most 16 digits before them: it is an integer, 5^j
 * divides odd < 2^54, so j <= 23, and 2^(exponent - 1) is not much above 10^j < 2^77.
 */
static void
try_halfway(double num, Digits *best)
{
	int			exponent;
	uint64		significand = (uint64) ldexp(frexp(num, &exponent), 53);
	bool		power = significand == UINT64CONST(1) << 52;
	Digits		halfway;

	exponent -= 53;
	if (exponent < 1 || exponent > 80 || significand % 2 != 0)
		return;
	exact_digits(2 * significand + 1, exponent - 1, &halfway);
	if (halfway.count < best->count)
		*best = halfway;
	/* below a power of two the neighbour is half as far */
	if (power && exponent < 2)
		return;
	if (power)
		exact_digits(4 * significand - 1, exponent - 2, &halfway);
	else
		exact_digits(2 * significand - 1, exponent - 1, &halfway);
	if (halfway.count < best->count)
		*best = halfway;
}

void
jcs_append_number(StringInfo out, double num)
{
	Digits		d;

	if (num == 0)				/* -0 too */
	{
		appendStringInfoCharMacro(out, '0');
		return;
	}
	if (num < 0)
	{
		appendStringInfoCharMacro(out, '-');
		num = -num;
	}
	shortest_digits(num, &d);
	try_halfway(num, &d);

	if (d.n > 21 || d.n <= -6)
	{
		appendStringInfoCharMacro(out, d.digit[0]);
		if (d.count > 1)
		{
			appendStringInfoCharMacro(out, '.');
			appendBinaryStringInfo(out, d.digit + 1, d.count - 1);
		}
		appendStringInfo(out, "e%c%d", d.n > 0 ? '+' : '-', abs(d.n - 1));
	}
	else if (d.n <= 0)
	{
		appendStringInfoString(out, "0.");
		for (int i = d.n; i < 0; i++)
			appendStringInfoCharMacro(out, '0');
		appendBinaryStringInfo(out, d.digit, d.count);
	}
	else if (d.n < d.count)
	{
		appendBinaryStringInfo(out, d.digit, d.n);
		appendStringInfoCharMacro(out, '.');
		appendBinaryStringInfo(out, d.digit + d.n, d.count - d.n);
	}
	else
	{
		appendBinaryStringInfo(out, d.digit, d.count);
		for (int i = d.count; i < d.n; i++)
			appendStringInfoCharMacro(out, '0');
	}
}
