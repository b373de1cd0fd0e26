-- Claiming work: whole streams, by whoever is first to lock their row, and never more than a call can carry.

create type wh_work as (
  lane smallint, message_id uuid, epoch bigint, stream_id uuid, partition_number integer, seq bigint, target text,
  message_type text, envelope_type text, event_data json, metadata json, scope json, status integer, flags integer,
  deliveries integer, failures integer, failure_reason integer, error text, lease_expiry timestamptz);

create type wh_limits as (streams integer, messages integer, messages_per_stream integer, bytes bigint);

create function wh_held_partitions(instance uuid) returns integer[]
language plpgsql stable as $$
begin
  return array(select distinct partition_number from wh_streams where owner = instance);
end $$;
comment on function wh_held_partitions is 'The partitions of which an instance holds streams.';

create function wh_pick_streams(
  instance uuid, service integer, in_lane smallint, stale_seconds integer, at_most wh_limits, partitions_max integer, wanted uuid[],
  out picked bigint[], out messages integer, out bytes bigint, out whole boolean)
language plpgsql
as $$
declare
  standing constant record := wh_standing(instance, service, stale_seconds);
  offered_until constant timestamptz := now() - make_interval(secs => wh_setting('steal_after_seconds'));
  partitions integer[] := case when partitions_max is not null then wh_held_partitions(instance) end;
  stream record;
begin
  picked := '{}';
  bytes := 0;
  if partitions_max is null and cardinality(wanted) > 0 then
    picked := array(select (select s.stream_no from wh_streams s where s.service_no = service and s.lane = in_lane and s.stream_id = w.id)
                    from unnest(wanted) as w(id));
    picked := array(select s.stream_no from wh_streams s where s.stream_no = any(picked) and s.ready_at <= now()
                    order by s.stream_no limit at_most.streams for update skip locked);
  end if;
  messages := cardinality(picked);  -- each has at least one
  whole := messages = 0;
  -- Rows are locked as they are fetched, a few at a time, so little is locked that is not taken.
  for stream in
    select s.stream_no, s.partition_number, s.pending, s.bytes, s.retried or s.owner is not null as is_special from wh_streams s
    where s.service_no = service and s.lane = in_lane and s.ready_at <= now()
      and (mod(s.partition_number, standing.active) = standing.rank or s.ready_at <= offered_until)
    order by s.ready_at, s.stream_no
    limit at_most.streams * 10
    for update skip locked
  loop
    exit when messages >= at_most.messages or cardinality(picked) >= at_most.streams;
    continue when cardinality(wanted) > 0 and stream.stream_no = any(picked);
    if partitions_max is not null and stream.partition_number <> all(partitions) then
      continue when cardinality(partitions) >= partitions_max;
      partitions := partitions || stream.partition_number;
    end if;
    picked := picked || stream.stream_no;
    messages := messages + least(stream.pending, at_most.messages_per_stream);
    bytes := bytes + stream.bytes;
    whole := whole and not stream.is_special and stream.pending <= at_most.messages_per_stream;
  end loop;
  if found or messages > 0 then perform wh_note_locks(); end if;
  whole := whole and messages <= at_most.messages and bytes <= at_most.bytes;
end $$;
comment on function wh_pick_streams is
  'Locks streams that can be handed out: those just stored by the caller, then those of its rank, and those that were offered in vain to another for too long. The one that has waited longest comes first. `whole`: all they have can be given.';

create function wh_await_stream(instance uuid, service integer, in_lane smallint, stale_seconds integer) returns boolean
language plpgsql set lock_timeout = '300ms' as $$
declare
  standing constant record := wh_standing(instance, service, stale_seconds);
  offered_until constant timestamptz := now() - make_interval(secs => wh_setting('steal_after_seconds'));
  passed_over constant bigint := (
    select s.stream_no from wh_streams s
    where s.service_no = service and s.lane = in_lane and s.ready_at <= now()
      and (mod(s.partition_number, standing.active) = standing.rank or s.ready_at <= offered_until)
    order by s.ready_at, s.stream_no limit 1);
begin
  if passed_over is null then return false; end if;
  perform from wh_streams s where s.stream_no = passed_over for update;
  perform wh_note_locks();
  return true;
exception when lock_not_available then
  return false;  -- whoever has it keeps it for long, and then others are due, and what else the caller has to say
end $$;
comment on function wh_await_stream is
  'Waits a moment for a stream that a claim passed over because somebody had locked it. One that is always being stored into would be passed over for ever. Only for whoever has no stream locked: so nobody waits in a circle.';

create function wh_note_abandoned(stream bigint) returns void
language plpgsql as $$
begin
  update wh_messages m set deliveries = m.deliveries + 1
  from (select * from wh_streams x where x.stream_no = stream offset 0) as s
  cross join lateral (select x.ctid as place from wh_messages x
                      where x.stream_no = s.stream_no and x.seq <= s.given_seq
                        and wh_is_out(s.owner, s.given_seq, s.epoch, x.seq, x.settled_epoch) offset 0) as at
  where m.ctid = at.place;
end $$;
comment on function wh_note_abandoned is 'Counts the deliveries that end because a lease did: of a stream that is about to be taken from its holder.';

create function wh_bury_poison(instance uuid, streams bigint[]) returns void
language plpgsql as $$
declare
  losses_max constant integer := wh_setting('max_lost_deliveries');
  poison wh_messages;
begin
  -- Only what is first: those behind it were lost with it, and may be harmless.
  for poison in
    select m.* from unnest(streams) as u(stream)
    cross join lateral (select * from wh_streams x where x.stream_no = u.stream offset 0) as s
    cross join lateral (select * from wh_messages x where x.stream_no = u.stream order by x.seq limit 1) as m
    where losses_max > 0
      and m.deliveries - m.failures + wh_is_out(s.owner, s.given_seq, s.epoch, m.seq, m.settled_epoch)::integer >= losses_max
  loop
    perform wh_note_abandoned(poison.stream_no);
    update wh_messages m
    set failure_reason = 5, error = 'it was handed out too often to somebody who was not heard of again'
    where m.stream_no = poison.stream_no and m.seq = poison.seq;
    perform wh_bury(instance, poison.service_no, poison.lane, array[poison.message_id], array[poison.policy = 2]);
    update wh_streams s
    set pending = s.pending - 1, bytes = s.bytes - poison.bytes, owner = null, lease_until = null, outstanding = 0,
        parked = s.parked or poison.policy = 2, idle_since = now(),
        ready_at = case when s.pending > 1 and poison.policy <> 2 then greatest(now(), wh_head_due(s.stream_no)) end
    where s.stream_no = poison.stream_no;
  end loop;
end $$;
comment on function wh_bury_poison is
  'The first message of a stream becomes a dead letter when it was lost too often with whoever had it, as one is that kills its handler.';

create function wh_lease_whole(instance uuid, claim bigint, until timestamptz, streams bigint[]) returns void
language plpgsql as $$
begin
  update wh_streams s
  set owner = instance, epoch = claim, lease_until = until, ready_at = until, given_seq = s.next_seq - 1, outstanding = s.pending, lost_seq = 0
  where s.stream_no = any(streams);
end $$;
comment on function wh_lease_whole is 'Leases streams that are locked to an instance, with all they have.';

create function wh_lease_streams(instance uuid, claim bigint, until timestamptz, streams bigint[], at_most wh_limits,
                                 is_first boolean, out given integer, out bytes bigint)
language plpgsql
as $$
declare
  suspect_after constant integer := wh_setting('suspect_after_lost_deliveries');
begin
  perform wh_bury_poison(instance, streams);
  with waiting as materialized (
    select m.seq, m.bytes, s.place as stream_place, p.nth as stream_nth,
           -- A retry that is not due holds up what is behind it.
           count(*) filter (where m.scheduled_for > now()) over behind as held_up,
           -- One that was lost several times is handed out alone, so that it shows which one it is.
           count(*) filter (where m.lost >= suspect_after) over behind as suspects, row_number() over behind as place
    from unnest(streams) with ordinality as p(stream_no, nth)
    cross join lateral (select x.*, x.ctid as place from wh_streams x where x.stream_no = p.stream_no and not x.parked offset 0) as s
    cross join lateral (
      select x.seq, x.bytes, x.scheduled_for,
             x.deliveries - x.failures + wh_is_out(s.owner, s.given_seq, s.epoch, x.seq, x.settled_epoch)::integer as lost
      from wh_messages x
      where x.stream_no = p.stream_no order by x.seq limit at_most.messages_per_stream
    ) as m
    window behind as (partition by p.nth order by m.seq)
  ), free as (
    select w.stream_place, w.seq, w.bytes, row_number() over call as nth, sum(w.bytes) over call as bytes_so_far from waiting w
    where w.held_up = 0 and (w.place = 1 or w.suspects = 0)
    window call as (order by w.stream_nth, w.seq)
  ), taken as materialized (
    select stream_place, max(seq) as last, count(*)::integer as count, sum(f.bytes) as bytes from free f
    where (is_first and f.nth = 1) or (f.nth <= at_most.messages and f.bytes_so_far <= at_most.bytes)
    group by stream_place
  ), abandoned as (
    -- Streams that do not fit any more stay with whoever lost them, and nothing is counted. All parts of a statement see
    -- what was before it: here the former holder.
    update wh_messages m set deliveries = m.deliveries + 1
    from taken t
    cross join lateral (select * from wh_streams x where x.ctid = t.stream_place and x.owner is not null offset 0) as s
    cross join lateral (select x.ctid as place from wh_messages x
                        where x.stream_no = s.stream_no and x.seq <= s.given_seq
                          and wh_is_out(s.owner, s.given_seq, s.epoch, x.seq, x.settled_epoch) offset 0) as at
    where m.ctid = at.place
  ), leased as (
    update wh_streams s
    set owner = instance, epoch = claim, lease_until = until, ready_at = until, given_seq = t.last, outstanding = t.count,
        lost_seq = case when s.owner is not null then s.given_seq else 0 end, retried = s.retried or s.owner is not null
    from taken t
    where s.ctid = t.stream_place
    returning t.count, t.bytes
  )
  select coalesce(sum(l.count), 0), coalesce(sum(l.bytes), 0) into given, bytes from leased l;
end $$;
comment on function wh_lease_streams is
  'The same, message by message, up to what a call can carry or may not be tried yet. If nothing was given before, the first message is, however large it is. How many messages that gives it, and bytes.';

create function wh_lease_loose(instance uuid, claim bigint, until timestamptz, service integer, in_lane smallint, at_most wh_limits,
                               is_first boolean, out given integer, out bytes bigint)
language plpgsql
as $$
declare
  losses_max constant integer := wh_setting('max_lost_deliveries');
  poison uuid[];
begin
  with found as materialized (
    select f.*, sum(f.bytes) over (order by f.ready_at, f.message_id) as bytes_so_far, row_number() over (order by f.ready_at, f.message_id) as nth
    from (select m.ctid as place, m.message_id, m.bytes, m.ready_at from wh_messages m
          where m.service_no = service and m.lane = in_lane and m.stream_no is null and m.ready_at <= now()
          order by m.ready_at limit at_most.messages
          for update skip locked) as f
  ), leased as (
    update wh_messages m
    set owner = instance, epoch = claim, lease_until = until, ready_at = until,
        was_lost = m.owner is not null, deliveries = m.deliveries + (m.owner is not null)::integer
    from found f
    where m.ctid = f.place and ((is_first and f.nth = 1) or f.bytes_so_far <= at_most.bytes)
    returning m.message_id, m.bytes, losses_max > 0 and m.deliveries - m.failures >= losses_max as is_poison
  )
  select count(*) filter (where not l.is_poison), coalesce(sum(l.bytes) filter (where not l.is_poison), 0),
         array_agg(l.message_id) filter (where l.is_poison)
  into given, bytes, poison from leased l;
  if poison is not null then
    update wh_messages m
    set failure_reason = 5, error = 'it was handed out too often to somebody who was not heard of again'
    from unnest(poison) as i(id)
    cross join lateral (select x.ctid as place from wh_messages x
                        where x.service_no = service and x.lane = in_lane and x.message_id = i.id offset 0) as at
    where m.ctid = at.place;
    perform wh_bury(instance, service, in_lane, poison, array_fill(false, array[cardinality(poison)]));
  end if;
end $$;
comment on function wh_lease_loose is
  'Claims messages without a stream. They have no order and no rank: whoever is first has them. How many messages that gives it, and bytes.';

create function wh_lease_lane(
  instance uuid, service integer, in_lane smallint, until timestamptz, stale_seconds integer, at_most wh_limits, partitions_max integer,
  wanted uuid[], inout claim bigint)
language plpgsql
as $$
declare
  room wh_limits := at_most;  -- what is left of that
  streams constant record := wh_pick_streams(instance, service, in_lane, stale_seconds, at_most, partitions_max, wanted);
  loose_since constant timestamptz := (
    select m.ready_at from wh_messages m
    where m.service_no = service and m.lane = in_lane and m.stream_no is null and m.ready_at <= now()
    order by m.ready_at limit 1);
  loose_first boolean;
  given record;
begin
  if streams.messages > 0 or loose_since is not null then claim := coalesce(claim, nextval('wh_epochs')); end if;
  -- Whoever has waited longest comes first, and the other has what is left: so neither waits for ever behind the other,
  -- however little a claim may bring.
  loose_first := loose_since is not null and streams.messages > 0;
  if loose_first then
    loose_first := loose_since < (select s.ready_at from wh_streams s where s.stream_no = streams.picked[1]);
  end if;
  if loose_first then
    given := wh_lease_loose(instance, claim, until, service, in_lane, room, true);
    room.messages := room.messages - given.given;
    room.bytes := room.bytes - given.bytes;
  end if;
  if streams.messages > 0 and room.messages > 0 and room.bytes > 0 then
    if streams.whole and streams.messages <= room.messages and streams.bytes <= room.bytes then
      perform wh_lease_whole(instance, claim, until, streams.picked);
      room.messages := room.messages - streams.messages;
      room.bytes := room.bytes - streams.bytes;
    else
      given := wh_lease_streams(instance, claim, until, streams.picked, room, room.messages = at_most.messages);
      room.messages := room.messages - given.given;
      room.bytes := room.bytes - given.bytes;
    end if;
  end if;
  if loose_since is not null and not loose_first and room.messages > 0 and room.bytes > 0 then
    perform wh_lease_loose(instance, claim, until, service, in_lane, room, room.messages = at_most.messages);
  end if;
end $$;
comment on function wh_lease_lane is 'Leases what one lane has to give, under the epoch of this claim, or a new one if there is none yet. That epoch, or null.';

create function wh_lease(
  instance uuid, lanes smallint[], lease_seconds integer, stale_seconds integer, max_streams integer, max_messages integer,
  max_per_stream integer, max_bytes bigint, partitions_max integer, wanted uuid[])
returns bigint
language plpgsql set search_path from current
  set plan_cache_mode = force_generic_plan set jit = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  service constant integer := wh_service_of(instance);
  until constant timestamptz := wh_moment() + make_interval(secs => lease_seconds);
  at_most constant wh_limits := (max_streams, max_messages, max_per_stream, max_bytes);
  claim bigint;
  in_lane smallint;
begin
  perform wh_require(lease_seconds between 1 and 604800, 'lease_seconds is between 1 and 604800');
  perform wh_require(stale_seconds between 1 and 604800, 'stale_seconds is between 1 and 604800');
  perform wh_require(max_streams between 1 and 10000 and max_messages between 1 and 10000 and max_per_stream between 1 and 10000
                     and max_bytes between 1 and 268435456,
                     'a claim takes between 1 and 10000 streams, messages and messages per stream, and up to 256 MiB');
  perform wh_require(lanes <@ array[1, 2]::smallint[], 'a lane is 1, the outbox, or 2, the inbox');
  perform wh_require(coalesce(partitions_max >= 1, true), 'the most partitions an instance holds are at least 1; null means any number');
  -- From its first claim on the instance has a rank; as in wh_note_life, nobody waits for that.
  update wh_service_instances i set claims_work = true
  from (select instance_id from wh_service_instances
        where instance_id = instance and not claims_work and lanes <> '{}' for no key update skip locked) as new
  where i.instance_id = new.instance_id;
  foreach in_lane in array lanes loop
    claim := wh_lease_lane(instance, service, in_lane, until, stale_seconds, at_most, partitions_max,
                           case when in_lane = 1 then wanted else '{}' end, claim);
  end loop;
  -- Not while there is something else to give, in whichever lane: who keeps a stream for long would keep all the others too.
  foreach in_lane in array lanes loop
    exit when claim is not null or current_setting('wh.locks', true) <> '';
    if wh_await_stream(instance, service, in_lane, stale_seconds) then
      claim := wh_lease_lane(instance, service, in_lane, until, stale_seconds, at_most, partitions_max, '{}', claim);
    end if;
  end loop;
  perform set_config('wh.claim', coalesce(claim::text, ''), true);
  return claim;
end $$;
comment on function wh_lease is
  'Claims work for an instance, and returns the epoch of that, or null if there is nothing to do. The next statement reads the work with wh_given.';

create function wh_last_claim() returns bigint
language sql stable as $$ select nullif(current_setting('wh.claim', true), '')::bigint $$;
comment on function wh_last_claim is 'The epoch of the claim that this transaction made last; null: it found nothing.';

-- Plain enough for the planner to put in the place of its call, so that messages go from the table to the caller without a stop.
create function wh_given(instance uuid, claim bigint) returns setof wh_work
language sql stable as $$
  select m.lane, m.message_id, s.epoch, s.stream_id, s.partition_number, m.seq, m.target::text, m.message_type::text, m.envelope_type::text,
         m.event_data, m.metadata, m.scope, m.status, (m.stored_at = now())::integer + 2 * (m.seq <= s.lost_seq)::integer,
         m.deliveries + 1, m.failures, m.failure_reason, m.error, s.lease_until
  from wh_streams s
  cross join lateral (select * from wh_messages x where x.stream_no = s.stream_no and x.seq <= s.given_seq offset 0) as m
  where s.owner = instance and s.epoch = claim and m.settled_epoch is distinct from s.epoch
  union all
  select m.lane, m.message_id, m.epoch, null, null, null, m.target::text, m.message_type::text, m.envelope_type::text,
         m.event_data, m.metadata, m.scope, m.status, (m.stored_at = now())::integer + 2 * coalesce(m.was_lost, false)::integer,
         m.deliveries + 1, m.failures, m.failure_reason, m.error, m.lease_until
  from wh_messages m
  where m.owner = instance and m.epoch = claim
  order by 1, 4, 6
$$;
comment on function wh_given is 'What an instance was given by one claim and has not reported on, stream by stream, in order.';

create function wh_claim(
  instance uuid, lanes smallint[] default '{1,2}', lease_seconds integer default 300, stale_seconds integer default 600,
  max_streams integer default 300, max_messages integer default 300, max_per_stream integer default 100,
  max_bytes bigint default 8388608, partitions_max integer default null, wanted uuid[] default '{}')
returns setof wh_work
language plpgsql set search_path from current
  set plan_cache_mode = force_generic_plan set jit = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  claim constant bigint := wh_lease(instance, lanes, lease_seconds, stale_seconds, max_streams, max_messages, max_per_stream, max_bytes,
                                    partitions_max, wanted);
begin
  return query select * from wh_given(instance, claim);
end $$;
comment on function wh_claim is
  'Claims work for an instance and returns it. The limits hold for each lane. Streams in `wanted` (of the outbox) are taken whatever the rank.';

create function wh_resume(instance uuid) returns setof wh_work
language plpgsql set search_path from current as $$
declare
  service integer;
begin
  -- A call whose answer was lost may still be under way.
  perform pg_advisory_xact_lock(hashtext('wh_instance'), uuid_hash(instance));
  service := wh_service_of(instance);
  return query
  select w.* from (
    select s.epoch from wh_streams s where s.owner = instance and s.service_no = service
    union
    select m.epoch from wh_messages m where m.owner = instance and m.service_no = service) as claim
  cross join lateral wh_given(instance, claim.epoch) as w
  order by w.lane, w.stream_id, w.seq;
end $$;
comment on function wh_resume is 'All that an instance holds and has not reported on, for one that has lost track.';
