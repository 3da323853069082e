/*
 * actas.h
 *		Running a piece of our own code with another role's rights.
 *
 * Only for code that runs no function, expression or operator of an application: those run through seceval.h. The transaction
 * machinery restores the role when an error leaves in between.
 */
#ifndef SYNCHRO_ACTAS_H
#define SYNCHRO_ACTAS_H

#include "postgres.h"

typedef struct SynActor
{
	Oid			role;
	int			sec_context;
} SynActor;

extern void syn_act_as(SynActor *saved, Oid role);
extern void syn_act_back(const SynActor *saved);
extern Oid	syn_owner(void);	/* role synchro_owner */

#endif							/* SYNCHRO_ACTAS_H */
