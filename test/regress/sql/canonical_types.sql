-- Portable types: which PostgreSQL types have one, plain and as text (p_text_columns).
BEGIN;
SET LOCAL search_path = canonical_types, pg_catalog;
CREATE SCHEMA canonical_types;
CREATE TYPE color AS ENUM ('red', 'Grün');
CREATE TYPE "Color" AS ENUM ('RED');
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE DOMAIN tags AS text[];
CREATE DOMAIN money_domain AS money;
CREATE TYPE pair AS (a int, b text);
CREATE TYPE floatrange AS RANGE (subtype = float8);
CREATE TYPE pairrange AS RANGE (subtype = pair);

SELECT t AS type, synchro._portable_type(t::regtype, false) AS plain, synchro._portable_type(t::regtype, true) AS as_text
FROM unnest('{text,varchar,bpchar,name,"\"char\"",uuid,color,"\"Color\"",
  int2,int4,int8,positive,numeric,float4,float8,bool,timestamp,timestamptz,date,time,json,jsonb,bytea,
  timetz,interval,inet,cidr,macaddr,macaddr8,bit,varbit,tsvector,tsquery,jsonpath,pg_lsn,oid,xid,tid,point,box,refcursor,
  int4range,daterange,tstzrange,nummultirange,floatrange,int2vector,oidvector,
  int4[],text[],color[],positive[],interval[],bytea[],json[],box[],tags,tags[],
  xml,money,money_domain,money[],regclass,regtype,aclitem,pair,pair[],pairrange,record,anyelement}'::text[]) WITH ORDINALITY u(t, n)
ORDER BY n;
ROLLBACK;
