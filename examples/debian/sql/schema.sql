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
  homepage       text,
  summary        text NOT NULL,
  essential      boolean NOT NULL DEFAULT false
);

-- What a package needs: one row for each item of its list, alternatives included.
CREATE TABLE archive.dependency (
  id         bigint PRIMARY KEY,
  package_id text NOT NULL REFERENCES archive.package,
  kind       text NOT NULL,             -- depends, pre-depends
  needs      text NOT NULL              -- as in debhelper-compat (= 13) | debhelper
);
CREATE INDEX ON archive.dependency (package_id);

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

-- Work that several packaging teams share: a task is a group's, and seen by the members of the group while it is active.
CREATE TABLE archive.team (
  id     uuid PRIMARY KEY,
  name   text NOT NULL UNIQUE,
  active boolean NOT NULL DEFAULT true
);

CREATE TABLE archive.team_member (
  id      uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES archive.team ON DELETE CASCADE,
  member  text NOT NULL,                -- a packaging team's address
  UNIQUE (team_id, member)
);

CREATE TABLE archive.task (
  id      uuid PRIMARY KEY,
  team_id uuid NOT NULL REFERENCES archive.team ON DELETE CASCADE,
  title   text NOT NULL,
  done    boolean NOT NULL DEFAULT false
);
CREATE INDEX ON archive.task (team_id);

-- A member works on the tasks of its teams.
ALTER TABLE archive.task ENABLE ROW LEVEL SECURITY;
CREATE POLICY team_tasks ON archive.task TO synchro_writer
  USING (EXISTS (SELECT FROM archive.team_member m WHERE m.team_id = task.team_id AND m.member = (SELECT synchro.synchro_subject())));

-- A team sees and writes its own notes, whatever a client sends.
ALTER TABLE archive.note ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_notes ON archive.note TO synchro_writer
  USING (team = (SELECT synchro.synchro_subject()))
  WITH CHECK (team = (SELECT synchro.synchro_subject()));

RESET ROLE;
