/*
 * core_config.h - the settings in the form that travels to the Go core
 */
#ifndef SYNCHRO_CORE_CONFIG_H
#define SYNCHRO_CORE_CONFIG_H

#include "postgres.h"

#include "lib/stringinfo.h"

/* Appends who and where; a running core can't change these.  Holds the password: forget it after use. */
extern void synchro_config_identity(StringInfo buf, const char *database, const char *login, const char *password);

/* Appends the limits; a running core takes new ones. */
extern void synchro_config_limits(StringInfo buf);

/* The replication slot's name; into a buffer of NAMEDATALEN. */
extern void synchro_slot_name(char *name);

#endif							/* SYNCHRO_CORE_CONFIG_H */
