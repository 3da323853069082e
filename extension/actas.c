/*
 * actas.c
 *		Running a piece of our own code with another role's rights.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/acl.h"

#include "actas.h"

/* SET ROLE and SET SESSION AUTHORIZATION are refused while it lasts. */
void
syn_act_as(SynActor *saved, Oid role)
{
	GetUserIdAndSecContext(&saved->role, &saved->sec_context);
	SetUserIdAndSecContext(role, saved->sec_context | SECURITY_LOCAL_USERID_CHANGE);
}

void
syn_act_back(const SynActor *saved)
{
	SetUserIdAndSecContext(saved->role, saved->sec_context);
}

Oid
syn_owner(void)
{
	return get_role_oid("synchro_owner", false);
}
