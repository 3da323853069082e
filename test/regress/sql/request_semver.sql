-- SemVer 2.0.0: order, and what is no version.
WITH v (v, n) AS (SELECT * FROM unnest('{0.0.0,0.9.9,1.0.0-0,1.0.0-1,1.0.0-9,1.0.0-10,1.0.0-99999999999999999999,1.0.0--,1.0.0-alpha,1.0.0-alpha.1,1.0.0-alpha.beta,1.0.0-beta,1.0.0-beta.2,1.0.0-beta.11,1.0.0-rc.1,1.0.0,1.0.1,1.2.0,1.10.0,2.0.0,99999999999999999999.0.0}'::text[]) WITH ORDINALITY t (v, n))
SELECT count(*) AS pairs, bool_and(synchro._semver_compare(a.v, b.v) = sign(a.n - b.n)) AS ordered FROM v a, v b;
SELECT synchro._semver_compare('1.0.0+a.1', '1.0.0+b'), synchro._semver_compare('1.0.0-rc.1+x', '1.0.0-rc.1'), synchro._semver_compare('1.0.0+001', '1.0.0');
SELECT v, synchro._semver_compare(v, '1.0.0') FROM unnest(ARRAY['', '1', '1.0', '1.0.0.0', 'v1.0.0', '01.0.0', '1.00.0', '1.0.0-', '1.0.0-01', '1.0.0-a..b', '1.0.0-a.', '1.0.0+', '1.0.0+a..b', '1.0.0-a_b', ' 1.0.0', '1.0.0 ', '-1.0.0', '1.0.0-é', '1.0.x', '1..0']) v;
SELECT synchro._semver_compare('1.0.0-01a', '1.0.0-1') AS letters_may_follow_a_zero;
