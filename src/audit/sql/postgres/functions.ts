/** Functions of SQLite that the statements use, and that PostgreSQL lacks. */

/**
 * Creates functions that SQLite has and that the statements use.
 *
 * PostgreSQL converts neither an escaped NUL nor an escaped lone surrogate of JSON to text, so
 * `json_document` replaces both: an erasure must find a person beside them.
 */
export const FUNCTIONS = `
CREATE OR REPLACE FUNCTION json_each(list text) RETURNS TABLE (value json)
LANGUAGE sql IMMUTABLE AS $$ SELECT json_array_elements(list::json) $$;

CREATE OR REPLACE FUNCTION instr(string text, part text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$ SELECT strpos(string, part) $$;

CREATE OR REPLACE FUNCTION instr(string bytea, part bytea) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$ SELECT position(part IN string) $$;

CREATE OR REPLACE FUNCTION json_document(document text) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT regexp_replace(document, '\\\\u(0000|d[89a-f][0-9a-f]{2})', '\\\\ufffd', 'gi')::jsonb
$$;

CREATE OR REPLACE FUNCTION json_valid(document text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN json_document(document) IS NOT NULL;
EXCEPTION WHEN data_exception THEN
  RETURN false;
END
$$;

CREATE OR REPLACE FUNCTION json_extract(document text, path text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_path_query_first(json_document(document), path::jsonpath) #>> '{}'
$$;
`
