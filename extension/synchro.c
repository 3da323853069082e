/*
 * synchro.c
 *		Module entry: lists what the library initializes at load.
 */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
}
