/*
 * credential.h - the zero-configuration login of the Go core
 */
#ifndef SYNCHRO_CREDENTIAL_H
#define SYNCHRO_CREDENTIAL_H

#include "postgres.h"

#include "worker_state.h"

/* Name of the login role; into a buffer of NAMEDATALEN. */
extern void synchro_login_name(char *name);

/* The password of this server run; into a buffer of SYNCHRO_PASSWORD_LEN + 1. */
extern void synchro_password(char *password);

/* Makes the login usable with that password.  Inside a transaction; raises an error when it can't or mustn't. */
extern void synchro_prepare_login(const char *login, const char *password);

#endif							/* SYNCHRO_CREDENTIAL_H */
