CREATE FUNCTION synchro._pull_quick(p_user_id text, p_request text, OUT o_body text, OUT o_wait_on bigint[])
LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'synchro_pull_quick';
COMMENT ON FUNCTION synchro._pull_quick(text, text) IS
  'what _pull would answer and write when nothing has to be judged or refused; NULLs where _pull has to decide (extension/pull_quick.c)';
