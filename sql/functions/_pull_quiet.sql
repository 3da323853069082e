CREATE FUNCTION synchro._pull_quiet(p_user_id text, p_request text, OUT o_body text, OUT o_wait_on bigint[])
LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'synchro_pull_quiet';
COMMENT ON FUNCTION synchro._pull_quiet(text, text) IS
  'what _pull would answer when nothing has to be judged, written or rendered; NULLs where _pull has to decide (extension/pull_quiet.c)';
