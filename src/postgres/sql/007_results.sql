-- What receptors and perspectives have done with events. No lease guards these: each report says enough by
-- itself that repeating it changes nothing.

create function wh_check_fields(items jsonb, needed text[], others text[]) returns void
language plpgsql as $$
declare
  wrong text;
begin
  perform wh_require(jsonb_typeof(items) = 'array', 'a list is a JSON array');
  if jsonb_array_length(items) > 10000 then perform wh_refuse('WH004', 'a list has at most 10000 items'); end if;
  select k.field into wrong from jsonb_array_elements(items) as e(item) cross join jsonb_object_keys(e.item) as k(field)
  where k.field <> all(needed || others) limit 1;
  perform wh_require(wrong is null, 'there is no field ' || wrong || ': an item has ' || array_to_string(needed || others, ', '));
  perform wh_require(not exists (select from jsonb_array_elements(items) as e(item) where not e.item ?& needed),
                     'an item needs ' || array_to_string(needed, ', '));
  select n.field into wrong from jsonb_array_elements(items) as e(item) cross join unnest(needed) as n(field)
  where n.field <> 'Error' and jsonb_typeof(e.item -> n.field) = 'null' limit 1;
  perform wh_require(wrong is null, 'an item needs ' || wrong || ', which is not null');
end $$;
comment on function wh_check_fields is 'A field that is misspelt would otherwise be one that is left out, such as a stream.';

create function wh_check_list(argument text, items jsonb) returns void
language plpgsql as $$
declare
  place bigint;
  wrong text;
begin
  perform wh_require(jsonb_typeof(items) = 'array', argument || ' has to be a JSON array');
  select i.nth into place from jsonb_array_elements(items) with ordinality as i(item, nth) where jsonb_typeof(i.item) <> 'object' limit 1;
  perform wh_require(place is null, argument || ': item ' || place || ' is no object');
  select i.nth, f.field into place, wrong
  from jsonb_array_elements(items) with ordinality as i(item, nth) cross join jsonb_each_text(i.item) as f(field, value)
  where f.field in ('MessageId', 'StreamId', 'EventId', 'LastEventId')
        and coalesce(f.value !~ '^\{?([0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}\}?$', f.field <> 'StreamId')
     or f.field in ('Status', 'CompletedStatus', 'Reason', 'Epoch', 'Attempt') and f.value !~ '^-?[0-9]{1,18}$' limit 1;
  perform wh_require(wrong is null, argument || ': ' || wrong || ' of item ' || place || ' is no ' || case when wrong like '%Id' then 'UUID' else 'number' end);
end $$;
comment on function wh_check_list is 'Of an argument: a list of objects whose ids and numbers are such, before anything is made of them.';

create function wh_lock_results(events uuid[], receptors text[], streams uuid[], perspectives text[], last_events uuid[]) returns void
language plpgsql set search_path from current as $$
begin
  -- As wh_lock_streams does: what is there is locked, and what is not is made, with nothing in it yet.
  insert into wh_receptor_processing as r (event_id, receptor_name, status, attempts)
  select distinct i.event, i.receptor, 0, 0 from unnest(events, receptors) as i(event, receptor)
  where i.event is not null and i.receptor is not null order by i.event, i.receptor
  on conflict (event_id, receptor_name) do update set status = r.status where false;
  insert into wh_perspective_checkpoints as c (stream_id, perspective_name, status)
  select distinct e.stream_id, i.perspective, 0 from unnest(streams, perspectives, last_events) as i(stream, perspective, event)
  cross join lateral (select * from wh_event_store x where x.event_id = i.event offset 0) as e
  where i.perspective is not null and e.stream_id = i.stream order by e.stream_id, i.perspective
  on conflict (stream_id, perspective_name) do update set status = c.status where false;
end $$;
comment on function wh_lock_results is
  'Locks the results of receptors and perspectives that a batch has in more than one list, in one order, so that two batches never wait for each other.';

create function wh_record_receptors(instance uuid, events uuid[], receptors text[], statuses smallint[], errors text[], attempt_numbers integer[])
returns table (nth integer, verdict text)
language plpgsql set search_path from current as $$
begin
  perform wh_service_of(instance);
  if cardinality(events) > 10000 then perform wh_refuse('WH004', 'a list has at most 10000 items'); end if;
  perform wh_require(cardinality(events) = all(array[cardinality(receptors), cardinality(statuses), cardinality(errors), cardinality(attempt_numbers)]),
                     'every list has one entry for each receptor');
  perform wh_require(coalesce(statuses <@ array[0, 1, 2, 4]::smallint[], true), 'a receptor''s status is 0, 1, 2 or 4');
  perform wh_check_ids(events, 'an event has an id that is not nil');
  perform wh_require(array_position(receptors, null) is null and '' <> all(receptors), 'a receptor needs a name');
  perform wh_require(coalesce(1 <= all(attempt_numbers), true), 'an attempt is at least 1');
  perform wh_check_errors(errors);
  return query
  with item as (
    select distinct on (i.event, i.receptor) i.*
    from unnest(events, receptors, statuses, errors, attempt_numbers) with ordinality as i(event, receptor, status, error, attempt, nth)
    order by i.event, i.receptor, i.nth
  ), recorded as (
    insert into wh_receptor_processing as r (event_id, receptor_name, status, attempts, error, processed_at)
    select event, receptor, status, coalesce(attempt, 1), nullif(error, ''), case when status in (2, 4) then now() end from item
    on conflict (event_id, receptor_name) do update
    set status = excluded.status, attempts = greatest(r.attempts, excluded.attempts), error = excluded.error, processed_at = excluded.processed_at
    -- What is completed stays so, and an earlier attempt has nothing to add.
    where r.status <> 2 and (r.attempts, r.status) <> (excluded.attempts, excluded.status) and excluded.attempts >= r.attempts
    returning event_id, receptor_name
  )
  select i.nth::integer, case when r.event_id is null then 'duplicate' else 'ok' end
  from unnest(events, receptors) with ordinality as i(event, receptor, nth)
  left join item on item.nth = i.nth
  left join recorded r on r.event_id = item.event and r.receptor_name = item.receptor;
end $$;
comment on function wh_record_receptors is 'Takes note of what became of an event in a receptor, by attempt.';

create function wh_advance(stream uuid, perspective text, reached integer) returns void
language plpgsql as $$
begin
  -- While the next one is missing, it does not matter how many have come after it.
  if exists (select from wh_perspective_events x
             where x.stream_id = stream and x.perspective_name = perspective and x.version = reached + 1) then
    -- Versions that follow each other are as far from the first as their place among those that are there.
    select max(e.version) into reached
    from (select x.version, row_number() over (order by x.version) as place from wh_perspective_events x
          where x.stream_id = stream and x.perspective_name = perspective and x.version > reached) as e
    where e.version = reached + e.place;
  end if;
  delete from wh_perspective_events e where e.stream_id = stream and e.perspective_name = perspective and e.version <= reached;
  update wh_perspective_checkpoints c
  set version = reached,
      last_event_id = (select e.event_id from wh_event_store e where e.stream_id = stream and e.version = reached)
  where c.stream_id = stream and c.perspective_name = perspective and c.version < reached;
end $$;
comment on function wh_advance is 'Moves a checkpoint to a version, and on to the last event before which none is missing.';

create function wh_record_perspective(stream uuid, perspective text, last_event uuid, processed uuid[], new_status smallint, said text)
returns text
language plpgsql as $$
declare
  known wh_perspective_checkpoints;
  goal integer;
begin
  select e.version into goal from (select * from wh_event_store x where x.event_id = last_event offset 0) as e where e.stream_id = stream;
  if not found then return 'unknown'; end if;
  insert into wh_perspective_checkpoints (stream_id, perspective_name, status) values (stream, perspective, 0) on conflict do nothing;
  select * into known from wh_perspective_checkpoints c where c.stream_id = stream and c.perspective_name = perspective for update;
  if known.version >= goal then return 'duplicate'; end if;
  update wh_perspective_checkpoints c set status = new_status, error = nullif(said, ''), processed_at = now()
  where c.stream_id = stream and c.perspective_name = perspective;
  if new_status = 4 then return 'ok'; end if;  -- it failed, and stays where it is
  if cardinality(processed) > 0 then
    insert into wh_perspective_events
    select stream, perspective, e.version from unnest(processed) as i(id)
    cross join lateral (select * from wh_event_store x where x.event_id = i.id offset 0) as e
    where e.stream_id = stream and e.version > known.version
    on conflict do nothing;
    goal := known.version;
  end if;
  perform wh_advance(stream, perspective, goal);
  return 'ok';
end $$;
comment on function wh_record_perspective is
  'Takes note of what a perspective has processed: the events named, or all up to the last one. An event that failed or is missing holds the checkpoint back.';

create function wh_record_perspectives(instance uuid, items jsonb, failed boolean) returns table (nth integer, verdict text)
language plpgsql set search_path from current as $$
begin
  perform wh_service_of(instance);
  perform wh_check_fields(items, array['StreamId', 'PerspectiveName', 'LastEventId'], array['ProcessedEventIds', 'Status', 'Error']);
  perform wh_require(not exists (select from jsonb_array_elements(items) as e(item) where (e.item ->> 'Status')::bigint not in (0, 1, 2, 4, 8)),
                     'a perspective''s status is 0, 1, 2, 4 or 8');
  perform wh_check_ids(array_agg((e.item ->> f.field)::uuid), 'a perspective reports on a stream and an event with ids that are not nil')
  from jsonb_array_elements(items) as e(item) cross join (values ('StreamId'), ('LastEventId')) as f(field);
  perform wh_require(not exists (select from jsonb_array_elements(items) as e(item) where e.item ->> 'PerspectiveName' = ''),
                     'a perspective needs a name');
  perform wh_check_errors(array_agg(e.item ->> 'Error')) from jsonb_array_elements(items) as e(item);
  return query
  select i.nth::integer, wh_record_perspective(
    (i.item ->> 'StreamId')::uuid, i.item ->> 'PerspectiveName', (i.item ->> 'LastEventId')::uuid,
    array(select jsonb_array_elements_text(coalesce(i.item -> 'ProcessedEventIds', '[]'))::uuid),
    case when failed then 4 else coalesce((i.item ->> 'Status')::smallint, 2) end::smallint, i.item ->> 'Error')
  from (select * from jsonb_array_elements(items) with ordinality as e(item, nth)
        order by (e.item ->> 'StreamId')::uuid, e.item ->> 'PerspectiveName', e.nth) as i;
end $$;
comment on function wh_record_perspectives is 'The same for many, each with the fields StreamId, PerspectiveName, LastEventId, ProcessedEventIds, Status and Error.';
