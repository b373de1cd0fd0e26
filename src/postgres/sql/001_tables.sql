-- What there is: instances, streams, messages, and what is remembered of them.
--
-- A message that belongs to a stream is held through the stream's row: whoever may work on it stands there,
-- and the message itself is only inserted and deleted. A message without a stream is held by itself.

create table wh_settings (
  setting_key varchar(100) primary key,
  setting_value text not null,
  value_type varchar(20) not null default 'integer',
  value_min integer not null,
  value_max integer not null,
  description text not null,
  updated_at timestamptz not null default now()
);
insert into wh_settings (setting_key, setting_value, value_min, value_max, description) values
  ('dedup_retention_days', '30', 0, 36500, 'how long an inbox message is known again; 0: for ever'),
  ('max_failures', '10', 0, 10000, 'the failure after which a message becomes a dead letter; 0: never'),
  ('max_lost_deliveries', '10', 0, 10000, 'how often a message may be handed out to somebody who is not heard of again, before it is a dead letter; 0: any number'),
  ('suspect_after_lost_deliveries', '3', 1, 10000, 'how many such deliveries make it suspect: from then on it is handed out alone, for those behind it are not to blame'),
  ('retry_seconds', '30', 1, 86400, 'the unit of the wait after a failure: 2, 4, 8 and then 10 of them'),
  ('steal_after_seconds', '10', 0, 86400, 'how long a stream is offered only to the instance with its rank'),
  ('kept_message_hours', '24', 0, 876000, 'how long a finished message is kept that debug mode did not delete'),
  ('idle_stream_hours', '24', 1, 876000, 'how long the row of a stream without messages is kept'),
  ('tombstone_days', '7', 1, 36500, 'how long an evicted instance is refused');

-- A value that makes no sense is refused here, where somebody reads the answer, and not in the middle of a call.
create function wh_check_setting() returns trigger
language plpgsql as $$
declare
  complaint text;
  number integer;
begin
  if tg_op = 'DELETE' then
    complaint := 'setting ' || old.setting_key || ' is needed: change its value instead';
  elsif tg_op = 'INSERT' or new.setting_key <> old.setting_key then
    complaint := 'there is no setting ' || new.setting_key || '; select setting_key, description from wh_settings lists them';
  else
    new.value_min := old.value_min;
    new.value_max := old.value_max;
    new.updated_at := now();
    number := substring(new.setting_value from '^[0-9]{1,9}$');
    if number is null or number not between old.value_min and old.value_max then
      complaint := new.setting_key || ' is a whole number from ' || old.value_min || ' to ' || old.value_max || ', and not ' ||
                   quote_literal(new.setting_value);
    end if;
  end if;
  if complaint is not null then raise exception using errcode = 'WH003', message = complaint; end if;
  return new;
end $$;
create trigger wh_check_setting before insert or update or delete on wh_settings
for each row execute function wh_check_setting();

-- Small functions that look something up are in plpgsql too: it keeps their plans, and plain SQL would make them anew
-- for every call.
create function wh_setting(wanted text) returns integer
language plpgsql stable parallel safe as $$
begin
  return (select setting_value::integer from wh_settings where setting_key = wanted);
end $$;
comment on function wh_setting is 'A number somebody may have changed.';

create table wh_services (
  service_no integer generated always as identity primary key,
  service_name varchar(200) not null unique
);

-- A few rows that change all the time, so there is room in each page for the next version of each.
create table wh_service_instances (
  instance_id uuid primary key,
  service_no integer not null references wh_services,
  service_name varchar(200) not null,
  host_name varchar(200) not null,
  process_id integer not null,
  started_at timestamptz not null default now(),
  last_heartbeat_at timestamptz not null default now(),
  claims_work boolean not null default false,  -- it has asked for work; who only stores has no rank
  metadata jsonb
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Tombstones: an instance that was evicted may still be running, and must not come back.
create table wh_evicted_instances (
  instance_id uuid primary key,
  evicted_at timestamptz not null default now()
);

create sequence wh_epochs;

-- One row for each lane of a stream that has messages, or had some lately.
--
--   owner null, ready_at set    waits; handed out from ready_at on
--   owner set                   held; ready_at is when the lease ends, so a lost stream waits by itself
--   ready_at null               nothing to hand out: drained, or parked, whoever holds it
create table wh_streams (
  stream_no bigint generated always as identity primary key,
  service_no integer not null,
  lane smallint not null,             -- 1 outbox, 2 inbox
  stream_id uuid not null,
  partition_number integer not null,
  owner uuid,
  epoch bigint not null default 0,    -- of the last claim
  lease_until timestamptz,
  ready_at timestamptz,
  next_seq bigint not null default 1,
  given_seq bigint not null default 0,      -- handed out up to here, under this epoch
  lost_seq bigint not null default 0,       -- of those, handed out before up to here, to somebody who lost them
  outstanding integer not null default 0,   -- of those, not yet reported on
  pending integer not null default 0,       -- messages that are there
  bytes bigint not null default 0,          -- of all of them
  retried boolean not null default false,   -- one of them may have failed or been lost before
  parked boolean not null default false,    -- until a dead letter is replayed or purged
  idle_since timestamptz not null default now(),  -- since it was last given back
  unique (service_no, lane, stream_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
create index wh_streams_ready on wh_streams (service_no, lane, ready_at, stream_no) where ready_at is not null;
create index wh_streams_owner on wh_streams (owner, epoch) where owner is not null;
-- For maintenance. The condition names only columns that are in an index anyway, for a change of any of them needs a new
-- entry in each index, and `pending` changes with every message.
create index wh_streams_idle on wh_streams (idle_since) where ready_at is null and owner is null;

create table wh_messages (
  message_id uuid not null,
  service_no integer not null,
  lane smallint not null,
  stream_no bigint,
  seq bigint,
  target varchar(500),                -- destination (outbox), handler (inbox)
  message_type varchar(500) not null,
  envelope_type varchar(500),
  event_data json not null,           -- as it was said, to the letter
  metadata json not null,
  scope json,
  bytes integer not null check (bytes <= 1179648),  -- of event_data, metadata and scope: 1 MiB, and twice 64 KiB
  is_event boolean not null,
  policy smallint not null,           -- of a failure: 0 block, 1 park, 2 park the stream
  status integer not null default 1,
  deliveries integer not null default 0,   -- that ended, and neither well nor by being given back
  failures integer not null default 0,
  failure_reason integer not null default 99,
  error text,
  scheduled_for timestamptz,
  settled_epoch bigint,               -- reported on under this epoch, and still here
  stored_at timestamptz not null default now(),
  -- Only of messages without a stream, which are held by themselves; as in wh_streams.
  owner uuid,
  epoch bigint,
  lease_until timestamptz,
  ready_at timestamptz,
  was_lost boolean,                   -- handed out before, to somebody who lost it
  primary key (service_no, lane, message_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
create unique index wh_messages_order on wh_messages (stream_no, seq) where stream_no is not null;
create index wh_messages_loose on wh_messages (service_no, lane, ready_at) where stream_no is null;
create index wh_messages_owner on wh_messages (owner, epoch) where owner is not null;

-- Finished messages that debug mode did not delete. Apart from the others, so that nobody has to step over them.
create table wh_kept_messages (
  like wh_messages,
  stream_id uuid,
  partition_number integer,
  published_at timestamptz,
  processed_at timestamptz not null default now()
);
create index wh_kept_messages_age on wh_kept_messages (processed_at);
create index wh_kept_messages_id on wh_kept_messages (message_id);

create table wh_dead_letters (
  dead_letter_id bigint generated always as identity primary key,
  like wh_messages,
  stream_id uuid,
  partition_number integer,
  parks_stream boolean not null,
  dead_lettered_at timestamptz not null default now(),
  dead_lettered_by uuid not null
);
create index wh_dead_letters_stream on wh_dead_letters (stream_no);
create index wh_dead_letters_id on wh_dead_letters (message_id);

create table wh_message_deduplication (
  service_no integer not null,
  message_id uuid not null,
  first_seen_at timestamptz not null default now(),
  primary key (service_no, message_id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000);
-- Not a BRIN index: space of those that were forgotten is used again, and then old and new lie side by side.
create index wh_message_deduplication_age on wh_message_deduplication (first_seen_at);

-- One row: when what is past its time was last looked for. Every instance does so, and one of them is enough.
create table wh_maintenance (
  done_at timestamptz not null
);
insert into wh_maintenance values ('-infinity');

-- The row of a stream here is what two writers of its events wait for, so that versions have no gaps.
create table wh_event_streams (
  stream_id uuid primary key,
  version integer not null
) with (fillfactor = 50);

create table wh_event_store (
  event_id uuid primary key,          -- the message's
  stream_id uuid not null,
  aggregate_id uuid not null,         -- the stream's
  aggregate_type varchar(500) not null,
  event_type varchar(500) not null,
  event_data jsonb not null,          -- the payload, if there is an envelope around it
  metadata jsonb not null,
  scope jsonb,
  version integer not null,
  created_at timestamptz not null default now(),
  unique (stream_id, version)
);

create table wh_receptor_processing (
  event_id uuid not null,
  receptor_name varchar(200) not null,
  status smallint not null,
  attempts integer not null,
  error text,
  started_at timestamptz not null default now(),
  processed_at timestamptz,
  primary key (event_id, receptor_name)
);

create table wh_perspective_checkpoints (
  stream_id uuid not null,
  perspective_name varchar(200) not null,
  last_event_id uuid,
  version integer not null default 0,   -- of that event
  status smallint not null,
  error text,
  processed_at timestamptz not null default now(),
  primary key (stream_id, perspective_name)
);

-- Events that a perspective has processed although an earlier one is missing.
create table wh_perspective_events (
  stream_id uuid not null,
  perspective_name varchar(200) not null,
  version integer not null,
  primary key (stream_id, perspective_name, version)
);

create function wh_partition_of(stream uuid, partitions integer) returns integer
language plpgsql immutable strict parallel safe as $$
declare
  hash constant bigint := ('x' || encode(substr(sha256(uuid_send(stream)), 1, 8), 'hex'))::bit(64)::bigint;
begin
  -- The hash has no sign, but a bigint has one; so it is taken in two halves.
  return mod(mod((hash >> 32) & 4294967295, partitions) * mod(4294967296, partitions) + (hash & 4294967295), partitions);
end $$;
comment on function wh_partition_of is
  'The partition of a stream: the first 8 bytes of the SHA-256 of its 16, unsigned, modulo the number of partitions.';

create function wh_is_out(owner uuid, given_seq bigint, epoch bigint, seq bigint, settled_epoch bigint) returns boolean
language sql immutable as $$ select owner is not null and seq <= given_seq and settled_epoch is distinct from epoch $$;
comment on function wh_is_out is 'Whether a message was given to the holder of its stream, and not yet reported on.';

create function wh_head_due(stream bigint) returns timestamptz
language plpgsql stable as $$
begin
  return (select scheduled_for from wh_messages where stream_no = stream order by seq limit 1);
end $$;
comment on function wh_head_due is
  'When the first message of a stream may be tried again. All behind it wait as long.';
