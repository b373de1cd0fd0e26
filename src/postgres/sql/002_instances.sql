-- Who works: instances make themselves known by a heartbeat, and are evicted when they fall silent.
-- Only the database's clock counts. Errors that a caller acts on have a code of their own:
--   WH001 evicted: start again under a new id    WH002 not registered: send a heartbeat first
--   WH003 an argument is wrong                   WH004 an argument is too large
--   WH006 what is asked for is in the way of something that is there
--
-- Functions that others call fix the search path, so that it does not matter from where they are called, and how
-- plans are made: once, for any arguments, since making one takes longer than using it; a plan that was good while the
-- tables were empty must still be good when a million messages wait. So tables are never read from end to end, lists
-- come first and are looked up row by row (`lateral … offset 0` keeps the planner from turning that around), and rows
-- that are locked are found again by their place (ctid).

create function wh_refuse(code text, complaint text) returns void
language plpgsql as $$ begin raise exception using errcode = code, message = complaint; end $$;
comment on function wh_refuse is 'Ends the call with an error that says what is wrong; nothing of it has happened.';

create function wh_require(holds boolean, complaint text) returns void
language plpgsql as $$
begin
  if holds is not true then perform wh_refuse('WH003', complaint); end if;
end $$;
comment on function wh_require is 'For arguments: they are all looked at before anything is changed.';

create function wh_check_ids(ids uuid[], complaint text) returns void
language plpgsql as $$
begin
  perform wh_require(array_position(ids, '00000000-0000-0000-0000-000000000000') is null and array_position(ids, null) is null, complaint);
end $$;
comment on function wh_check_ids is 'The nil id is what a program has that forgot to give one, or null.';

create function wh_check_errors(errors text[]) returns void
language plpgsql as $$
begin
  if exists (select from unnest(errors) as e(said) where octet_length(e.said) > 65536) then
    perform wh_refuse('WH004', 'an error has at most 65536 bytes');
  end if;
end $$;
comment on function wh_check_errors is 'Texts that are kept with what failed are no place for data.';

create function wh_moment() returns timestamptz
language plpgsql volatile as $$
begin
  return case when clock_timestamp() < now() + interval '1 second' then now() else clock_timestamp() end;
end $$;
comment on function wh_moment is
  'The time of a call: one for all its parts, and so the transaction''s; but not if that began long ago, and what is to last from here would be over already.';

create function wh_in_call(instance uuid) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(hashtext('wh_instance'), uuid_hash(instance));
end $$;
comment on function wh_in_call is
  'Until the end of the transaction nobody can evict the instance. Not a lock of its row, so that a call without work writes nothing.';

create function wh_note_again_before() returns timestamptz
language sql stable as $$ select now() - interval '1 second' / 3 $$;
comment on function wh_note_again_before is
  'A third of the shortest time after which an instance may count as silent; and for a transaction always the same, so that it takes the note once, before it locks anything else.';

create function wh_note_life(instance uuid) returns void
language plpgsql as $$
begin
  -- Several calls of an instance may be under way, in transactions that last. None waits for another here: if the row is
  -- locked, somebody is just taking the same note.
  update wh_service_instances i set last_heartbeat_at = wh_moment()
  from (select instance_id from wh_service_instances where instance_id = instance for no key update skip locked) as free
  where i.instance_id = free.instance_id;
end $$;
comment on function wh_note_life is 'Takes note that an instance was heard of.';

create function wh_service_of(instance uuid) returns integer
language plpgsql as $$
declare
  known record;
begin
  perform wh_in_call(instance);
  select service_no, last_heartbeat_at into known from wh_service_instances where instance_id = instance;
  if found then
    -- Whatever an instance says, it is alive.
    if known.last_heartbeat_at < wh_note_again_before() then perform wh_note_life(instance); end if;
    return known.service_no;
  end if;
  if exists (select from wh_evicted_instances where instance_id = instance) then
    perform wh_refuse('WH001', 'instance ' || instance || ' was evicted: start again under a new id');
  end if;
  perform wh_refuse('WH002', 'instance ' || coalesce(instance::text, 'null') || ' is not registered: send a heartbeat first');
end $$;
comment on function wh_service_of is
  'The service of an instance. Every function that changes something asks here first, so an evicted instance changes nothing, and one that calls is alive.';

create function wh_standing(instance uuid, service integer, stale_seconds integer, out rank integer, out active integer)
language plpgsql stable as $$
begin
  select count(*) filter (where i.instance_id < instance), greatest(count(*), 1) into rank, active
  from wh_service_instances i
  where i.service_no = service
    and ((i.claims_work and i.last_heartbeat_at >= now() - make_interval(secs => stale_seconds)) or i.instance_id = instance);
end $$;
comment on function wh_standing is
  'The place of an instance among the active ones of its service that ask for work. Partition p belongs to rank p % active: to exactly one, for any number of them. An instance that only stores has no share, and does not keep others waiting for it.';

create function wh_ring(service integer) returns void
language plpgsql as $$
begin
  perform pg_notify('wh_work', (select service_name from wh_services where service_no = service));
end $$;
comment on function wh_ring is 'Wakes whoever works for a service: there is something to claim that was not there before.';

create function wh_note_locks() returns void
language plpgsql as $$
begin
  perform set_config('wh.locks', 'held', true);
end $$;
comment on function wh_note_locks is
  'Takes note that this transaction has streams locked. Whoever has waits for no other out of turn: so nobody waits in a circle.';

create function wh_give_back(service integer, instances uuid[], lost boolean) returns void
language plpgsql as $$
begin
  perform from wh_streams where owner = any(instances) order by service_no, lane, stream_id for update;
  if found then perform wh_note_locks(); end if;
  -- Whoever was lost may have begun; whoever leaves has not.
  if lost then
    update wh_messages m set deliveries = m.deliveries + 1
    from (select * from wh_streams x where x.owner = any(instances) offset 0) as s
    cross join lateral (select x.ctid as place from wh_messages x
                        where x.stream_no = s.stream_no and x.seq <= s.given_seq
                          and wh_is_out(s.owner, s.given_seq, s.epoch, x.seq, x.settled_epoch) offset 0) as at
    where m.ctid = at.place;
  end if;
  update wh_streams s
  set owner = null, lease_until = null, outstanding = 0, retried = s.retried or lost,
      ready_at = case when s.pending > 0 and not s.parked then greatest(now(), wh_head_due(s.stream_no)) end
  where s.owner = any(instances);
  update wh_messages m
  set owner = null, lease_until = null, deliveries = m.deliveries + lost::integer,
      ready_at = greatest(now(), m.scheduled_for)
  where m.owner = any(instances);
  perform wh_ring(service);
end $$;
comment on function wh_give_back is 'All that these instances hold can be claimed by others at once.';

create function wh_remove_stale(caller uuid, service integer, stale_seconds integer) returns uuid[]
language plpgsql as $$
declare
  since constant timestamptz := now() - make_interval(secs => stale_seconds);
  silent uuid;
  gone uuid[] := '{}';
begin
  for silent in
    select instance_id from wh_service_instances
    where service_no = service and last_heartbeat_at < since and instance_id <> caller
    order by instance_id
  loop
    -- Whoever is in a call is not gone, and whoever is being removed by another need not be removed again.
    continue when not pg_try_advisory_xact_lock(hashtext('wh_instance'), uuid_hash(silent));
    delete from wh_service_instances where instance_id = silent and last_heartbeat_at < since;
    continue when not found;
    insert into wh_evicted_instances (instance_id) values (silent) on conflict do nothing;
    gone := gone || silent;
  end loop;
  return gone;
end $$;
comment on function wh_remove_stale is
  'Removes other instances of a service that have been silent for too long, and leaves a tombstone for each. The caller, which is alive though that may not be noted yet, gives back what they held.';

create function wh_register(instance uuid, service text, host text, process integer, about jsonb, stale_seconds integer) returns integer
language plpgsql as $$
declare
  known wh_service_instances;
  number integer;
begin
  perform wh_require(instance <> '00000000-0000-0000-0000-000000000000', 'an instance needs an id that is not nil');
  perform wh_require(length(service) between 1 and 200, 'the service name has 1 to 200 characters');
  perform wh_require(length(host) <= 200, 'the host name has at most 200 characters');
  perform wh_require(coalesce(octet_length(about::text) <= 131072, true), 'the metadata of an instance has at most 128 KiB');
  perform wh_require(stale_seconds between 1 and 604800, 'stale_seconds is between 1 and 604800');
  perform wh_in_call(instance);
  select * into known from wh_service_instances where instance_id = instance;
  if not found then
    if exists (select from wh_evicted_instances where instance_id = instance) then
      perform wh_service_of(instance);  -- says so
    end if;
    insert into wh_services (service_name) values (service) on conflict do nothing;
    select service_no into number from wh_services where service_name = service;
    insert into wh_service_instances (instance_id, service_no, service_name, host_name, process_id, metadata)
    values (instance, number, service, host, coalesce(process, 0), about) on conflict do nothing;
    return number;
  end if;
  perform wh_require(known.service_name = service, 'instance ' || instance || ' belongs to service ' || known.service_name);
  -- A call without work that comes soon after another writes nothing.
  if (known.host_name, known.process_id, known.metadata) is distinct from
     (coalesce(nullif(host, ''), known.host_name), coalesce(nullif(process, 0), known.process_id), coalesce(about, known.metadata)) then
    update wh_service_instances i
    set last_heartbeat_at = wh_moment(), host_name = coalesce(nullif(host, ''), i.host_name),
        process_id = coalesce(nullif(process, 0), i.process_id), metadata = coalesce(about, i.metadata)
    where i.instance_id = instance;
  elsif known.last_heartbeat_at < wh_note_again_before() then
    perform wh_note_life(instance);
  end if;
  return known.service_no;
end $$;
comment on function wh_register is 'Takes note that an instance is alive, and registers it the first time. The number of its service.';

create function wh_heartbeat(
  instance uuid, service text, host text default '', process integer default 0, about jsonb default null,
  stale_seconds integer default 600, out rank integer, out active integer)
language plpgsql set search_path from current
  set plan_cache_mode = force_generic_plan set jit = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  number constant integer := wh_register(instance, service, host, process, about, stale_seconds);
  gone constant uuid[] := wh_remove_stale(instance, number, stale_seconds);
begin
  if gone <> '{}' then perform wh_give_back(number, gone, lost => true); end if;
  select s.rank, s.active into rank, active from wh_standing(instance, number, stale_seconds) s;
end $$;
comment on function wh_heartbeat is
  'Says that an instance is alive, and registers it the first time. Evicts those that have fallen silent. Tells the caller where it stands.';

create function wh_leave(instance uuid) returns void
language plpgsql set search_path from current as $$
declare
  service integer;
begin
  -- What it is still calling ends first, so that it leaves with nothing in its hands.
  perform pg_advisory_xact_lock(hashtext('wh_instance'), uuid_hash(instance));
  delete from wh_service_instances where instance_id = instance returning service_no into service;
  if found then perform wh_give_back(service, array[instance], lost => false); end if;
end $$;
comment on function wh_leave is 'The instance goes of its own accord: nothing it held counts as a delivery.';
