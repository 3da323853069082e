/*
 * request.h
 *		Shape checks of requests. Each check raises invalid_request unless the value has the shape; "member" names it.
 */
#ifndef SYNCHRO_REQUEST_H
#define SYNCHRO_REQUEST_H

#include "compat.h"
#include "jcs.h"

typedef struct Member
{
	const char *name;
	void		(*check) (const JcsNode *value, const char *member);
	bool		required;
} Member;

pg_noreturn extern void refuse_request(const char *member, const char *rule);
extern void check_members(const JcsNode *object, const Member *members);

/*
 * The request as a tree, NULL if it is none. A push asks for it several times: while the transaction lasts, the same text is not parsed
 * again. Nobody may change the tree.
 */
extern JcsNode *parse_request(const text *request, JcsError *error);

/* Kinds of values (request_shape.c). */
extern void check_anything(const JcsNode *value, const char *member);
extern void check_text(const JcsNode *value, const char *member);
extern void check_id(const JcsNode *value, const char *member);
extern void check_uuid(const JcsNode *value, const char *member);
extern void check_version(const JcsNode *value, const char *member);
extern void check_boolean(const JcsNode *value, const char *member);
extern void check_true(const JcsNode *value, const char *member);
extern void check_positive(const JcsNode *value, const char *member);
extern void check_counter(const JcsNode *value, const char *member);
extern void check_limit(const JcsNode *value, const char *member);
extern void check_cursor(const JcsNode *value, const char *member);
extern void check_cursors(const JcsNode *value, const char *member);
extern void check_receipts(const JcsNode *value, const char *member);
extern void check_mutations(const JcsNode *value, const char *member);
extern void check_schema(const JcsNode *value, const char *member);
extern bool is_schema_reference(const JcsNode *value, bool fresh_allowed);

#endif							/* SYNCHRO_REQUEST_H */
