-- Storing messages: each gets the next number of its stream, under the lock of the stream's row. So numbers
-- have no gaps, and are in the order in which the storing transactions commit.

create function wh_check_messages(
  lane smallint, ids uuid[], streams uuid[], targets text[], types text[], envelope_types text[], bodies json[],
  abouts json[], scopes json[], events boolean[], policies smallint[], partitions integer) returns void
language plpgsql as $$
declare
  items constant integer := cardinality(ids);
  nil constant uuid := '00000000-0000-0000-0000-000000000000';
begin
  perform wh_require(lane in (1, 2), 'a lane is 1, the outbox, or 2, the inbox');
  perform wh_require(partitions >= 1, 'the number of partitions is at least 1');
  if items > 10000 then perform wh_refuse('WH004', 'a call stores at most 10000 messages'); end if;
  perform wh_require(
    items = all(array[cardinality(streams), cardinality(targets), cardinality(types), cardinality(envelope_types),
                      cardinality(bodies), cardinality(abouts), cardinality(scopes), cardinality(events), cardinality(policies)]),
    'every list has one entry for each message');
  perform wh_require(nil <> all(ids) and array_position(ids, null) is null, 'a message needs an id that is not nil');
  perform wh_require(coalesce(nil <> all(streams), true), 'a stream needs an id that is not nil; null means no stream');
  perform wh_require(array_position(types, null) is null and '' <> all(types), 'a message needs a type');
  -- An event has its place in the event store; anything else would be published nowhere, and be gone.
  perform wh_require(
    lane = 2 or (array_position(targets, null) is null and '' <> all(targets)) or not exists (
      select from unnest(targets, streams, events) as i(target, stream, event)
      where coalesce(i.target, '') = '' and (i.stream is null or i.event is not true)),
    'a message of the outbox needs a destination; only an event of a stream, which the event store keeps, may do without');
  perform wh_require((select count(body) from unnest(bodies) as u(body)) = items, 'a message needs data');
  perform wh_require(coalesce(policies <@ array[0, 1, 2]::smallint[], true), 'a failure policy is 0, 1 or 2');
  if exists (
    select from unnest(types, envelope_types, targets, bodies, abouts, scopes) as i(type, envelope_type, target, body, about, scope)
    where octet_length(i.body::text) > 1048576 or octet_length(i.about::text) > 65536 or octet_length(i.scope::text) > 65536
       or greatest(octet_length(i.type), octet_length(i.envelope_type), octet_length(i.target)) > 500) then
    perform wh_refuse('WH004', 'a message has at most 1 MiB of data, 64 KiB each of metadata and scope, and 500 bytes each of a type, envelope type and target');
  end if;
end $$;
comment on function wh_check_messages is 'Looks at everything before anything is stored.';

create function wh_fresh(service integer, in_lane smallint, ids uuid[]) returns boolean[]
language plpgsql
as $$
declare
  days constant integer := case when in_lane = 2 then wh_setting('dedup_retention_days') end;
  -- What is older than the window counts as forgotten, even if maintenance has not come by yet.
  since constant timestamptz := case when days > 0 then now() - make_interval(days => days) else '-infinity' end;
  remembered uuid[];
  new integer;
begin
  if in_lane = 2 then
    -- Another call that stores the same message is waited for.
    with noted as (
      insert into wh_message_deduplication as d (service_no, message_id)
      select distinct service, id from unnest(ids) as u(id) order by id
      on conflict (service_no, message_id) do update set first_seen_at = now() where d.first_seen_at < since
      returning message_id, xmax = 0 as is_new  -- and not one that was forgotten
    )
    select array_agg(message_id), count(*) filter (where is_new) into remembered, new from noted;
    -- What waits is remembered, so it does not have to be looked for.
    if new = cardinality(ids) then return array_fill(true, array[new]); end if;
  end if;
  return array(
    select row_number() over (partition by u.id order by u.nth) = 1 and (in_lane <> 2 or r.id is not null)
           and (select true from wh_messages m
                where m.service_no = service and m.lane = in_lane and m.message_id = u.id limit 1) is null
    from unnest(ids) with ordinality as u(id, nth)
    -- As in wh_insert: never done row by row.
    full join unnest(remembered) as r(id) on r.id = u.id
    order by u.nth);
end $$;
comment on function wh_fresh is
  'Of each id whether it was not stored before, nor stands earlier in the list. The inbox remembers what it has seen for a while; the outbox leaves that to the caller''s transaction.';

create function wh_lock_streams(service integer, lanes smallint[], streams uuid[], partitions integer) returns void
language plpgsql as $$
begin
  -- A conflict locks the row that is there, or makes one if it was deleted meanwhile: `where false` changes nothing.
  insert into wh_streams as s (service_no, lane, stream_id, partition_number)
  select service, i.lane, i.id,
         coalesce((select x.partition_number from wh_streams x where x.service_no = service and x.lane = i.lane and x.stream_id = i.id),
                  wh_partition_of(i.id, partitions))
  from (select distinct u.lane, u.id from unnest(lanes, streams) as u(lane, id) where u.id is not null order by u.lane, u.id) as i
  on conflict (service_no, lane, stream_id) do update set parked = s.parked where false;
  if cardinality(array_remove(streams, null)) > 0 then perform wh_note_locks(); end if;
end $$;
comment on function wh_lock_streams is
  'Locks streams, and makes the rows of new ones. Everybody locks in the order of service, lane and stream, and all that a call needs at once, so that two calls never wait for each other.';

create function wh_lock_event_streams(streams uuid[]) returns void
language plpgsql as $$
begin
  insert into wh_event_streams as s (stream_id, version)
  select distinct id, 0 from unnest(streams) as u(id) order by id
  on conflict (stream_id) do update set version = s.version where false;
end $$;
comment on function wh_lock_event_streams is 'The same for the event store. These come after the streams of messages.';

create function wh_append_events(ids uuid[], streams uuid[], types text[], bodies json[], abouts json[], scopes json[])
returns void
language plpgsql
as $$
begin
  perform wh_lock_event_streams(streams);
  with added as (
    insert into wh_event_store (event_id, stream_id, aggregate_id, aggregate_type, event_type, event_data, metadata, scope, version)
    select e.id, e.stream, e.stream, e.type, e.type,
           coalesce(e.body -> 'Payload', e.body -> 'payload', e.body -> 'p', e.body)::jsonb, e.about::jsonb, e.scope::jsonb,
           s.version + row_number() over (partition by e.stream order by e.nth)
    from unnest(ids, streams, types, bodies, abouts, scopes) with ordinality as e(id, stream, type, body, about, scope, nth)
    cross join lateral (select * from wh_event_streams x where x.stream_id = e.stream offset 0) as s
    where (select true from wh_event_store known where known.event_id = e.id limit 1) is null
    returning stream_id, version
  )
  update wh_event_streams s set version = a.last
  from (select stream_id, max(version) as last from added group by stream_id) as a
  where s.stream_id = a.stream_id;
end $$;
comment on function wh_append_events is
  'Appends events in the order given, each with the next version of its stream. An event that is there already stays as it is.';

create function wh_insert(
  service integer, in_lane smallint, ids uuid[], streams uuid[], targets text[], types text[], envelope_types text[],
  bodies json[], abouts json[], scopes json[], events boolean[], policies smallint[]) returns boolean
language plpgsql
as $$
declare
  awoke boolean;
  ordered integer;
begin
  with added as (
    insert into wh_messages (message_id, service_no, lane, stream_no, seq, target, message_type, envelope_type, event_data,
                             metadata, scope, bytes, is_event, policy, ready_at)
    select i.id, service, in_lane, s.stream_no,
           s.next_seq + row_number() over (partition by s.stream_no order by i.nth) - 1,
           i.target, i.type, i.envelope_type, i.body, coalesce(i.about, '{}'), i.scope,
           octet_length(i.body::text) + coalesce(octet_length(i.about::text), 0) + coalesce(octet_length(i.scope::text), 0),
           coalesce(i.event, false), coalesce(i.policy, 0), case when s.stream_no is null then now() end
    from unnest(ids, streams, targets, types, envelope_types, bodies, abouts, scopes, events, policies) with ordinality
      as i(id, stream, target, type, envelope_type, body, about, scope, event, policy, nth)
    -- Streams are few beside their messages; a full join is the one kind that is never done row by row.
    full join (select x.* from (select distinct id from unnest(streams) as u(id) where id is not null) as w
               cross join lateral (select * from wh_streams x
                                   where x.service_no = service and x.lane = in_lane and x.stream_id = w.id offset 0) as x) as s
      on s.stream_id = i.stream
    -- Whatever their order in the list: two calls with the same messages wait for each other one way round only.
    order by i.id
    returning stream_no, bytes
  ), grown as (
    update wh_streams s
    set next_seq = s.next_seq + a.count, pending = s.pending + a.count, bytes = s.bytes + a.bytes,
        ready_at = case when s.pending = 0 and s.owner is null and not s.parked then now() else s.ready_at end
    from (select stream_no, count(*)::integer as count, sum(bytes) as bytes from added where stream_no is not null group by stream_no) as a
    cross join lateral (select x.ctid as place from wh_streams x where x.stream_no = a.stream_no offset 0) as at
    where s.ctid = at.place
    returning a.count, s.pending = a.count and s.owner is null and not s.parked as awoke
  )
  select coalesce((select bool_or(grown.awoke) from grown), false) or exists (select from added where stream_no is null),
         coalesce((select sum(grown.count) from grown), 0)
  into awoke, ordered;
  -- A message that lost its stream here would lose its order for good.
  if ordered <> cardinality(array_remove(streams, null)) then raise exception 'the stream of a message is not there'; end if;
  return awoke;
end $$;
comment on function wh_insert is
  'Adds messages to their streams, whose rows are locked. True if something can be claimed that could not before.';

create function wh_add(
  service integer, lane smallint, fresh boolean[], ids uuid[], streams uuid[], targets text[], types text[], envelope_types text[],
  bodies json[], abouts json[], scopes json[], events boolean[], policies smallint[]) returns void
language plpgsql as $$
begin
  if array_position(fresh, false) is not null then
    select coalesce(array_agg(id), '{}'), array_agg(stream), array_agg(target), array_agg(type), array_agg(envelope_type),
           array_agg(body), array_agg(about), array_agg(scope), array_agg(event), array_agg(policy)
    into ids, streams, targets, types, envelope_types, bodies, abouts, scopes, events, policies
    from unnest(ids, streams, targets, types, envelope_types, bodies, abouts, scopes, events, policies, fresh)
      as i(id, stream, target, type, envelope_type, body, about, scope, event, policy, is_fresh)
    where i.is_fresh;
  end if;
  if ids = '{}' then return; end if;
  -- Only when there was nothing to do before: whoever works already asks again by itself.
  if wh_insert(service, lane, ids, streams, targets, types, envelope_types, bodies, abouts, scopes, events, policies) then
    perform wh_ring(service);
  end if;
  if array_position(events, true) is not null then
    perform wh_append_events(array_agg(id), array_agg(stream), array_agg(type), array_agg(body), array_agg(coalesce(about, '{}')), array_agg(scope))
    from unnest(ids, streams, types, bodies, abouts, scopes, events) as i(id, stream, type, body, about, scope, event)
    where event and stream is not null
    having count(*) > 0;
  end if;
end $$;
comment on function wh_add is 'Stores those messages that are fresh, with what follows from it.';

create function wh_store_all(
  instance uuid, lane smallint, ids uuid[], streams uuid[], targets text[], types text[], envelope_types text[],
  bodies json[], abouts json[], scopes json[], events boolean[], policies smallint[], partitions integer)
returns text[]
language plpgsql set search_path from current
  set plan_cache_mode = force_generic_plan set jit = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  service constant integer := wh_service_of(instance);
  items constant integer := cardinality(ids);
  fresh boolean[];
begin
  perform wh_check_messages(lane, ids, streams, targets, types, envelope_types, bodies, abouts, scopes, events, policies, partitions);
  perform wh_lock_streams(service, array_fill(lane, array[items]), streams, partitions);
  for tries in 1 .. 3 loop
    begin
      fresh := wh_fresh(service, lane, ids);
      perform wh_add(service, lane, fresh, ids, streams, targets, types, envelope_types, bodies, abouts, scopes, events, policies);
      exit;
    exception when unique_violation then
      -- Another call has stored one of them in the meantime: now it is found.
      if tries = 3 then raise; end if;
    end;
  end loop;
  return array(select case when f.is_fresh then 'ok' else 'duplicate' end
               from unnest(fresh) with ordinality as f(is_fresh, nth) order by f.nth);
end $$;
comment on function wh_store_all is 'As wh_store, with the verdicts as a list in the order of the messages.';

create function wh_store(
  instance uuid, lane smallint, ids uuid[], streams uuid[], targets text[], types text[], envelope_types text[],
  bodies json[], abouts json[], scopes json[], events boolean[], policies smallint[], partitions integer default 10000)
returns table (nth integer, verdict text)
language sql set search_path from current as $$
  select v.nth::integer, v.verdict
  from unnest(wh_store_all(instance, lane, ids, streams, targets, types, envelope_types, bodies, abouts, scopes, events, policies,
                           partitions)) with ordinality as v(verdict, nth)
$$;
comment on function wh_store is
  'Stores messages, and appends those that are events to the event store. A message that is known already is a duplicate.';
