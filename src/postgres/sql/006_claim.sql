-- Claiming work: whole streams, by whoever is first to lock their row, and never more than a call can carry.

create type wh_work as (
  lane smallint, message_id uuid, epoch bigint, stream_id uuid, partition_number integer, seq bigint, target text,
  message_type text, envelope_type text, event_data jsonb, metadata jsonb, scope jsonb, status integer, flags integer,
  deliveries integer, failures integer, failure_reason integer, error text, lease_expiry timestamptz);

create type wh_limits as (streams integer, messages integer, messages_per_stream integer, bytes bigint);

create function wh_held_partitions(instance uuid) returns integer[]
language sql stable
as $$ select coalesce(array_agg(distinct partition_number), '{}') from wh_streams where owner = instance $$;
comment on function wh_held_partitions is 'The partitions of which an instance holds streams.';

create function wh_pick_streams(
  instance uuid, service integer, in_lane smallint, stale_seconds integer, at_most wh_limits, partitions_max integer, wanted uuid[])
returns bigint[]
language plpgsql
as $$
declare
  standing constant record := wh_standing(instance, stale_seconds);
  offered_until constant timestamptz := now() - make_interval(secs => wh_setting('steal_after_seconds'));
  partitions integer[] := case when partitions_max is not null then wh_held_partitions(instance) end;
  picked bigint[] := '{}';
  room integer := at_most.messages;
  stream record;
begin
  if partitions_max is null and cardinality(wanted) > 0 then
    picked := array(select (select s.stream_no from wh_streams s where s.service_no = service and s.lane = in_lane and s.stream_id = w.id)
                    from unnest(wanted) as w(id));
    picked := array(select s.stream_no from wh_streams s where s.stream_no = any(picked) and s.ready_at <= now()
                    order by s.stream_no limit at_most.streams for update skip locked);
    room := room - cardinality(picked);  -- each has at least one message
  end if;
  -- Rows are locked as they are fetched, a few at a time, so little is locked that is not taken.
  for stream in
    select s.stream_no, s.partition_number, s.pending from wh_streams s
    where s.service_no = service and s.lane = in_lane and s.ready_at <= now()
      and (mod(s.partition_number, standing.active) = standing.rank or s.ready_at <= offered_until)
    order by s.ready_at, s.stream_no
    limit at_most.streams * 10
    for update skip locked
  loop
    exit when room <= 0 or cardinality(picked) >= at_most.streams;
    continue when cardinality(wanted) > 0 and stream.stream_no = any(picked);
    if partitions_max is not null and stream.partition_number <> all(partitions) then
      continue when cardinality(partitions) >= partitions_max;
      partitions := partitions || stream.partition_number;
    end if;
    picked := picked || stream.stream_no;
    room := room - least(stream.pending, at_most.messages_per_stream);
  end loop;
  return picked;
end $$;
comment on function wh_pick_streams is
  'Locks streams that can be handed out: those just stored by the caller, then those of its rank, and those that were offered in vain to another for too long. The one that has waited longest comes first.';

create function wh_note_abandoned(streams bigint[]) returns void
language sql
as $$
  update wh_messages m set deliveries = m.deliveries + 1
  from wh_streams s
  where s.stream_no = any(streams) and s.owner is not null and m.stream_no = s.stream_no and m.seq <= s.given_seq
    and m.settled_epoch is distinct from s.epoch
$$;
comment on function wh_note_abandoned is 'Counts the deliveries that ended because a lease did.';

create function wh_take_streams(instance uuid, in_lane smallint, streams bigint[], lease_seconds integer, at_most wh_limits)
returns setof wh_work
language plpgsql
as $$
declare
  claim constant bigint := nextval('wh_epochs');
  until constant timestamptz := now() + make_interval(secs => lease_seconds);
begin
  if (select bool_or(s.owner is not null) from wh_streams s where s.stream_no = any(streams)) then
    perform wh_note_abandoned(streams);
  end if;
  -- Places first, and whole messages only of what is taken: they are large, and copying them is most of the work.
  return query
  with given as materialized (
    select m.place as message_place, m.seq, s.place as stream_place, s.stream_id, s.partition_number,
           s.owner is not null and m.seq <= s.given_seq as was_given,
           row_number() over call as place, sum(m.bytes) over call as bytes_so_far,
           -- A retry that is not due holds up what is behind it.
           count(*) filter (where m.scheduled_for > now()) over (partition by p.nth order by m.seq) as held_up
    from unnest(streams) with ordinality as p(stream_no, nth)
    cross join lateral (select x.*, x.ctid as place from wh_streams x where x.stream_no = p.stream_no offset 0) as s
    cross join lateral (
      select x.ctid as place, x.seq, x.bytes, x.scheduled_for from wh_messages x
      where x.stream_no = p.stream_no order by x.seq limit at_most.messages_per_stream
    ) as m
    window call as (order by p.nth, m.seq)
  ), taken as materialized (
    select * from given g
    where g.held_up = 0 and (g.place = 1 or (g.place <= at_most.messages and g.bytes_so_far <= at_most.bytes))
    order by g.place
  ), leased as (
    update wh_streams s
    set owner = instance, epoch = claim, lease_until = until, ready_at = until, given_seq = t.last, outstanding = t.count
    from (select stream_place, max(seq) as last, count(*)::integer as count from taken group by stream_place) as t
    where s.ctid = t.stream_place
  )
  select in_lane, m.message_id, claim, t.stream_id, t.partition_number, m.seq, m.target::text, m.message_type::text,
         m.envelope_type::text, m.event_data, m.metadata, m.scope, m.status,
         (m.stored_at = now())::integer + 2 * t.was_given::integer,
         m.deliveries + 1, m.failures, m.failure_reason, m.error, until
  from taken t cross join lateral (select * from wh_messages x where x.ctid = t.message_place offset 0) as m;
end $$;
comment on function wh_take_streams is
  'Leases streams that are locked to an instance, and returns their first messages. One claim is one epoch.';

create function wh_take_loose(instance uuid, service integer, in_lane smallint, lease_seconds integer, at_most wh_limits)
returns setof wh_work
language plpgsql
as $$
declare
  until constant timestamptz := now() + make_interval(secs => lease_seconds);
begin
  if not exists (select from wh_messages m
                 where m.service_no = service and m.lane = in_lane and m.stream_no is null and m.ready_at <= now()) then
    return;
  end if;
  return query
  with found as materialized (
    select f.*, sum(f.bytes) over (order by f.ready_at, f.message_id) as bytes_so_far, row_number() over (order by f.ready_at, f.message_id) as place
    from (select m.ctid as place_in_table, m.message_id, m.bytes, m.ready_at, m.owner from wh_messages m
          where m.service_no = service and m.lane = in_lane and m.stream_no is null and m.ready_at <= now()
          order by m.ready_at limit at_most.messages
          for update skip locked) as f
  )
  update wh_messages m
  set owner = instance, epoch = claim.epoch, lease_until = until, ready_at = until,
      deliveries = m.deliveries + (f.owner is not null)::integer
  from (select nextval('wh_epochs') as epoch) as claim, found f
  where m.ctid = f.place_in_table and (f.place = 1 or f.bytes_so_far <= at_most.bytes)
  returning m.lane, m.message_id, m.epoch, null::uuid, null::integer, null::bigint, m.target::text, m.message_type::text,
            m.envelope_type::text, m.event_data, m.metadata, m.scope, m.status,
            (m.stored_at = now())::integer + 2 * (f.owner is not null)::integer,
            m.deliveries + 1, m.failures, m.failure_reason, m.error, until;
end $$;
comment on function wh_take_loose is
  'Claims messages without a stream. They have no order and no rank: whoever is first has them.';

create function wh_claim(
  instance uuid, lanes smallint[] default '{1,2}', lease_seconds integer default 300, stale_seconds integer default 600,
  max_streams integer default 300, max_messages integer default 300, max_per_stream integer default 100,
  max_bytes bigint default 8388608, partitions_max integer default null, wanted uuid[] default '{}')
returns setof wh_work
language plpgsql set search_path from current
  set jit = off set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  service constant integer := wh_service_of(instance);
  at_most wh_limits := (max_streams, max_messages, max_per_stream, max_bytes);
  picked bigint[];
  lane smallint;
  given integer;
begin
  perform wh_require(lease_seconds between 1 and 604800, 'lease_seconds is between 1 and 604800');
  perform wh_require(stale_seconds between 1 and 604800, 'stale_seconds is between 1 and 604800');
  perform wh_require(max_streams between 1 and 10000 and max_messages between 1 and 10000 and max_per_stream between 1 and 10000
                     and max_bytes between 1 and 268435456,
                     'a claim takes between 1 and 10000 streams, messages and messages per stream, and up to 256 MiB');
  perform wh_require(coalesce(partitions_max >= 1, true), 'the most partitions an instance holds are at least 1; null means any number');
  foreach lane in array lanes loop
    picked := wh_pick_streams(instance, service, lane, stale_seconds, at_most, partitions_max,
                              case when lane = 1 then wanted else '{}' end);
    given := 0;
    if cardinality(picked) > 0 then
      return query select * from wh_take_streams(instance, lane, picked, lease_seconds, at_most);
      get diagnostics given = row_count;
    end if;
    if given < max_messages then
      return query select * from wh_take_loose(instance, service, lane, lease_seconds,
                                               (max_streams, max_messages - given, max_per_stream, max_bytes)::wh_limits);
    end if;
  end loop;
end $$;
comment on function wh_claim is
  'Claims work for an instance and returns it. The limits hold for each lane. Streams in `wanted` (of the outbox) are taken whatever the rank.';

create function wh_resume(instance uuid) returns setof wh_work
language sql stable set search_path from current as $$
  select m.lane, m.message_id, s.epoch, s.stream_id, s.partition_number, m.seq, m.target::text, m.message_type::text, m.envelope_type::text,
         m.event_data, m.metadata, m.scope, m.status, 0, m.deliveries + 1, m.failures, m.failure_reason, m.error, s.lease_until
  from wh_streams s join wh_messages m on m.stream_no = s.stream_no and m.seq <= s.given_seq and m.settled_epoch is distinct from s.epoch
  where s.owner = instance and wh_service_of(instance) = s.service_no
  union all
  select m.lane, m.message_id, m.epoch, null, null, null, m.target::text, m.message_type::text, m.envelope_type::text,
         m.event_data, m.metadata, m.scope, m.status, 0, m.deliveries + 1, m.failures, m.failure_reason, m.error, m.lease_until
  from wh_messages m
  where m.owner = instance and wh_service_of(instance) = m.service_no
  order by 1, 4, 6
$$;
comment on function wh_resume is 'All that an instance holds and has not reported on, for one that has lost track.';
