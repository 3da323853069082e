-- The application: what would be there without sync, too.

CREATE ROLE archive LOGIN;              -- owns the tables and runs the migrations
GRANT synchro_operator TO archive;      -- and may register them
CREATE SCHEMA archive AUTHORIZATION archive;

SET ROLE archive;

CREATE TABLE archive.package (
  id             text PRIMARY KEY,      -- name/architecture
  name           text NOT NULL,
  architecture   text NOT NULL,
  version        text NOT NULL,
  section        text NOT NULL,
  priority       text NOT NULL,
  maintainer     text NOT NULL,         -- address of the team
  installed_size bigint,                -- KiB
  download_size  bigint,                -- bytes
  depends        text[] NOT NULL DEFAULT '{}',
  homepage       text,
  summary        text NOT NULL,
  essential      boolean NOT NULL DEFAULT false
);

CREATE TABLE archive.follow (
  team    text NOT NULL,
  section text NOT NULL,
  PRIMARY KEY (team, section)
);

CREATE TABLE archive.note (
  id         uuid PRIMARY KEY,
  team       text NOT NULL DEFAULT synchro.synchro_subject(),
  package_id text NOT NULL,
  body       text NOT NULL CHECK (length(body) <= 4000),
  written_at timestamptz NOT NULL DEFAULT now()
);

-- A team sees and writes its own notes, whatever a client sends.
ALTER TABLE archive.note ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_notes ON archive.note TO synchro_writer
  USING (team = (SELECT synchro.synchro_subject()))
  WITH CHECK (team = (SELECT synchro.synchro_subject()));

RESET ROLE;
