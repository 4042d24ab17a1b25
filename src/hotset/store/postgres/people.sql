-- Projects, the people in them, and the tokens by which the database itself knows who asks. A gateway's
-- role may run these functions and see rows of its desk; it cannot read the tables below at all. So a
-- password of the database, which a whole team has, opens nobody's desk. What runs with the owner's rights
-- names its tables by pg_temp last: else anybody could plant one of the same name in front.

-- Read and compared by bytes, as Python and SQLite do, whatever the database's locale.
CREATE DOMAIN words AS text COLLATE "C";

CREATE TABLE project (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name words NOT NULL UNIQUE);

-- A desk is what the agents of one person share in a project. Every write begins by counting here: that
-- is the desk's lock, its order and its version at once. So the numbers (seq) of its rows are in the order
-- of its commits, and who follows them misses none.
CREATE TABLE desk (
    project uuid NOT NULL REFERENCES project ON DELETE CASCADE, id uuid NOT NULL DEFAULT gen_random_uuid(),
    person words NOT NULL, role words NOT NULL CHECK (role IN ('reader', 'member', 'owner')),
    commits bigint NOT NULL DEFAULT 0, PRIMARY KEY (project, id), UNIQUE (project, person)
);

-- A token is kept as its hash alone. An invitation is one too, good for a gateway's token once.
CREATE TABLE token (
    hash bytea PRIMARY KEY, project uuid NOT NULL, desk uuid NOT NULL, is_invitation boolean NOT NULL,
    made timestamptz NOT NULL DEFAULT now(), expires timestamptz NOT NULL, revoked timestamptz, used timestamptz,
    FOREIGN KEY (project, desk) REFERENCES desk ON DELETE CASCADE
);

-- What was done to a project and its people; for its owners.
CREATE TABLE access (
    project uuid NOT NULL REFERENCES project ON DELETE CASCADE, seq bigint GENERATED ALWAYS AS IDENTITY,
    time timestamptz NOT NULL DEFAULT now(), person words NOT NULL, did words NOT NULL, about words NOT NULL DEFAULT '',
    PRIMARY KEY (project, seq)
);

CREATE FUNCTION hash_of(secret text) RETURNS bytea LANGUAGE sql IMMUTABLE
    RETURN sha256(convert_to(secret, 'UTF8'));

-- The desk whose token this transaction has shown; no row if it is none, or no longer good.
CREATE FUNCTION own_desk() RETURNS TABLE (project uuid, desk uuid, person text, role text, commits bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT desk.project, desk.id, desk.person::text, desk.role::text, desk.commits
    FROM token JOIN desk ON desk.project = token.project AND desk.id = token.desk
    WHERE token.hash = hash_of(current_setting('hotset.token', true)) AND NOT token.is_invitation
        AND token.revoked IS NULL AND token.expires > now();
END;

-- Begins a write: its number. Nobody else writes at this desk until the transaction ends. NULL: whoever asks
-- may not write. By the name of its batch a gateway that lost its connection finds out how it ended.
CREATE FUNCTION count_commit(batch_name text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    counted record;
BEGIN
    UPDATE desk SET commits = desk.commits + 1 FROM own_desk() AS own
        WHERE desk.project = own.project AND desk.id = own.desk AND own.role <> 'reader'
        RETURNING desk.project, desk.id, desk.commits INTO counted;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM set_config('hotset.commit', counted.commits::text, true);
    IF batch_name <> '' THEN
        INSERT INTO batch (project, desk, id, commit) VALUES (counted.project, counted.id, batch_name, counted.commits);
    END IF;
    RETURN counted.commits;
END
$$;

CREATE FUNCTION note_access(project uuid, person text, did text, about text) RETURNS void LANGUAGE sql
BEGIN ATOMIC
    INSERT INTO access (project, person, did, about) VALUES (note_access.project, note_access.person, did, about);
END;

-- The desk of whoever asks, who has to be an owner.
CREATE FUNCTION as_owner() RETURNS TABLE (project uuid, desk uuid, person text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT own.project, own.desk, own.person FROM own_desk() AS own WHERE own.role = 'owner';
    IF NOT FOUND THEN
        RAISE insufficient_privilege USING MESSAGE = 'only an owner of the project may do this';
    END IF;
END
$$;

CREATE FUNCTION new_token(project uuid, desk uuid, is_invitation boolean, days integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    secret text := 'hst_' || replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
BEGIN
    INSERT INTO token (hash, project, desk, is_invitation, expires)
        VALUES (hash_of(secret), new_token.project, new_token.desk, new_token.is_invitation, now() + make_interval(days => days));
    RETURN secret;
END
$$;

-- Run by whoever made the tables: a project with its first owner, and an invitation for them.
CREATE FUNCTION make_project(project_name text, owner text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    made uuid;
    first_desk uuid;
BEGIN
    INSERT INTO project (name) VALUES (project_name) RETURNING id INTO made;
    INSERT INTO desk (project, person, role) VALUES (made, owner, 'owner') RETURNING id INTO first_desk;
    PERFORM note_access(made, owner, 'made the project', project_name);
    RETURN new_token(made, first_desk, true, 7);
END
$$;

-- An invitation, good for seven days and one gateway. Who is there already gets one for another machine.
CREATE FUNCTION invite(new_person text, new_role text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    owner record;
    invited uuid;
BEGIN
    SELECT * INTO owner FROM as_owner();
    INSERT INTO desk (project, person, role) VALUES (owner.project, new_person, new_role)
        ON CONFLICT (project, person) DO UPDATE SET role = excluded.role RETURNING id INTO invited;
    PERFORM note_access(owner.project, owner.person, 'invited as ' || new_role, new_person);
    RETURN new_token(owner.project, invited, true, 7);
END
$$;

-- An invitation for another machine of one's own.
CREATE FUNCTION invite_self() RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    own record;
BEGIN
    SELECT * INTO STRICT own FROM own_desk();
    PERFORM note_access(own.project, own.person, 'invited', 'another machine of their own');
    RETURN new_token(own.project, own.desk, true, 7);
END
$$;

-- The token of a gateway for an invitation, which is used up by that. NULL: it is none, or no longer good.
CREATE FUNCTION join_project(invitation text, days integer) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    invited record;
BEGIN
    UPDATE token SET used = now()
        WHERE hash = hash_of(invitation) AND is_invitation AND used IS NULL AND revoked IS NULL AND expires > now()
        RETURNING project, desk INTO invited;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    PERFORM note_access(desk.project, desk.person, 'joined', '') FROM desk
        WHERE desk.project = invited.project AND desk.id = invited.desk;
    RETURN new_token(invited.project, invited.desk, false, days);
END
$$;

-- A new token in place of the one that was shown, which ends.
CREATE FUNCTION rotate_token(days integer) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    own record;
BEGIN
    SELECT * INTO STRICT own FROM own_desk();
    PERFORM note_access(own.project, own.person, 'rotated a token', '');
    UPDATE token SET revoked = now() WHERE hash = hash_of(current_setting('hotset.token', true));
    RETURN new_token(own.project, own.desk, false, days);
END
$$;

-- Ends every token of a person; their rows stay. Owners may do that to anybody, others to themselves.
CREATE FUNCTION revoke_tokens(whose text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    own record;
    ended bigint;
BEGIN
    SELECT * INTO STRICT own FROM own_desk();
    IF own.person <> whose THEN
        PERFORM as_owner();
    END IF;
    UPDATE token SET revoked = now() FROM desk
        WHERE desk.project = own.project AND desk.person = whose
            AND token.project = desk.project AND token.desk = desk.id AND token.revoked IS NULL AND token.used IS NULL;
    GET DIAGNOSTICS ended = ROW_COUNT;
    PERFORM note_access(own.project, own.person, 'revoked the tokens of', whose);
    RETURN ended;
END
$$;

-- The people of one's project, with how many tokens are good and when each last wrote how much.
CREATE FUNCTION people() RETURNS TABLE (person text, role text, commits bigint, tokens bigint, expires timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT desk.person::text, desk.role::text, desk.commits, count(token.hash), max(token.expires)
    FROM own_desk() AS own JOIN desk ON desk.project = own.project
        LEFT JOIN token ON token.project = desk.project AND token.desk = desk.id AND NOT token.is_invitation
            AND token.revoked IS NULL AND token.expires > now()
    GROUP BY desk.person, desk.role, desk.commits ORDER BY desk.person;
END;

-- What was done in one's project; for owners.
CREATE FUNCTION accesses(most integer) RETURNS TABLE ("time" timestamptz, person text, did text, about text)
    LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT access.time, access.person::text, access.did::text, access.about::text
    FROM as_owner() AS owner JOIN access ON access.project = owner.project ORDER BY access.seq DESC LIMIT most;
END;

REVOKE EXECUTE ON FUNCTION hash_of, own_desk, count_commit, note_access, as_owner, new_token, make_project, invite,
    invite_self, join_project, rotate_token, revoke_tokens, people, accesses FROM PUBLIC;
