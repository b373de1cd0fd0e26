-- Everything in one call, for any language that can call a function. Lists are JSON, with the names of fields
-- that docs/streams.md gives; none is needed. All of it happens, or nothing.

create type wh_batch_row as (
  kind text,          -- 'standing', 'verdict' or 'work'
  source text,        -- verdict: the list the item stood in; work: 'outbox' or 'inbox'
  nth integer,        -- verdict: the item's place in that list, from 1
  verdict text,       -- ok, lost_lease, unknown, duplicate
  instance_rank integer, active_instance_count integer,  -- standing
  message_id uuid, epoch bigint, stream_id uuid, partition_number integer, seq bigint, destination text,
  message_type text, envelope_type text, event_data json, metadata json, scope json, status integer, flags integer,
  deliveries integer, attempts integer, failure_reason integer, error text, lease_expiry timestamptz);

create function wh_verdict_row(source text, nth integer, verdict text) returns wh_batch_row
language sql immutable as $$
  select row('verdict', source, nth, verdict, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
             null, null, null, null, null)::wh_batch_row
$$;

create function wh_complete_json(instance uuid, in_lane smallint, items jsonb, keep boolean) returns table (nth integer, verdict text)
language sql set search_path from current as $$
  select wh_check_fields(items, array['MessageId', 'Status'], array['Epoch']);
  select r.* from (
    select array_agg("MessageId" order by n) as ids, array_agg("Status" order by n) as statuses, array_agg("Epoch" order by n) as epochs
    from rows from (jsonb_to_recordset(items) as ("MessageId" uuid, "Status" integer, "Epoch" bigint)) with ordinality as i("MessageId", "Status", "Epoch", n)
    having count(*) > 0) as a, wh_complete(instance, in_lane, a.ids, a.statuses, a.epochs, keep) as r
$$;
comment on function wh_complete_json is 'Completions as JSON: MessageId, Status and perhaps Epoch.';

create function wh_fail_json(instance uuid, in_lane smallint, items jsonb) returns table (nth integer, verdict text)
language sql set search_path from current as $$
  select wh_check_fields(items, array['MessageId', 'Error'], array['Reason', 'CompletedStatus', 'Epoch', 'Policy']);
  select r.* from (
    select array_agg("MessageId" order by n) as ids, array_agg(coalesce("CompletedStatus", 0) order by n) as statuses, array_agg("Epoch" order by n) as epochs,
           array_agg("Error" order by n) as errors, array_agg("Reason" order by n) as reasons, array_agg("Policy" order by n) as policies
    from rows from (jsonb_to_recordset(items) as ("MessageId" uuid, "CompletedStatus" integer, "Epoch" bigint, "Error" text, "Reason" integer, "Policy" smallint))
      with ordinality as i("MessageId", "CompletedStatus", "Epoch", "Error", "Reason", "Policy", n)
    having count(*) > 0) as a, wh_fail(instance, in_lane, a.ids, a.statuses, a.epochs, a.errors, a.reasons, a.policies) as r
$$;
comment on function wh_fail_json is 'Failures as JSON: MessageId, Error, Reason, and perhaps CompletedStatus, Epoch and Policy.';

create function wh_store_json(instance uuid, in_lane smallint, items jsonb, partitions integer) returns table (nth integer, verdict text)
language sql set search_path from current as $$
  select wh_check_fields(items, array['MessageId', 'MessageType', 'Envelope'],
    array['StreamId', 'Destination', 'HandlerName', 'EnvelopeType', 'Metadata', 'Scope', 'IsEvent', 'Policy']);
  select r.* from (
    select array_agg("MessageId" order by n) as ids, array_agg("StreamId" order by n) as streams,
           array_agg(coalesce("Destination", "HandlerName") order by n) as targets, array_agg("MessageType" order by n) as types,
           array_agg("EnvelopeType" order by n) as envelope_types, array_agg("Envelope" order by n) as bodies,
           array_agg("Metadata" order by n) as abouts, array_agg("Scope" order by n) as scopes,
           array_agg(coalesce("IsEvent", false) order by n) as events, array_agg(coalesce("Policy", 0::smallint) order by n) as policies
    from rows from (jsonb_to_recordset(items) as ("MessageId" uuid, "StreamId" uuid, "Destination" text, "HandlerName" text, "MessageType" text,
                    "EnvelopeType" text, "Envelope" json, "Metadata" json, "Scope" json, "IsEvent" boolean, "Policy" smallint)) with ordinality
      as i("MessageId", "StreamId", "Destination", "HandlerName", "MessageType", "EnvelopeType", "Envelope", "Metadata", "Scope", "IsEvent", "Policy", n)
    having count(*) > 0) as a,
    wh_store(instance, in_lane, a.ids, a.streams, a.targets, a.types, a.envelope_types, a.bodies, a.abouts, a.scopes, a.events, a.policies, partitions) as r
$$;
comment on function wh_store_json is
  'New messages as JSON: MessageId, MessageType, Envelope, Destination or HandlerName, and perhaps StreamId, EnvelopeType, Metadata, Scope, IsEvent and Policy.';

create function wh_receptors_json(instance uuid, items jsonb, failed boolean) returns table (nth integer, verdict text)
language sql set search_path from current as $$
  select wh_check_fields(items, array['EventId', 'ReceptorName'], array['Status', 'Error', 'Attempt']);
  select r.* from (
    select array_agg("EventId" order by n) as events, array_agg("ReceptorName" order by n) as receptors,
           array_agg(case when failed then 4 else coalesce("Status", 2) end::smallint order by n) as statuses,
           array_agg("Error" order by n) as errors, array_agg(coalesce("Attempt", 1) order by n) as attempts
    from rows from (jsonb_to_recordset(items) as ("EventId" uuid, "ReceptorName" text, "Status" smallint, "Error" text, "Attempt" integer))
      with ordinality as i("EventId", "ReceptorName", "Status", "Error", "Attempt", n)
    having count(*) > 0) as a, wh_record_receptors(instance, a.events, a.receptors, a.statuses, a.errors, a.attempts) as r
$$;
comment on function wh_receptors_json is 'Results of receptors as JSON: EventId, ReceptorName, and perhaps Status, Error and Attempt.';

create function wh_ids_in(lists jsonb[], field text) returns uuid[]
language sql immutable as $$
  select array(select (e.item ->> field)::uuid from unnest(lists) as l(items) cross join jsonb_array_elements(l.items) as e(item)
               where e.item ->> field is not null)
$$;
comment on function wh_ids_in is 'What these lists have in one field.';

create function wh_lock_results_json(receptors jsonb, perspectives jsonb) returns void
language sql set search_path from current as $$
  select wh_lock_results(r.events, r.names, p.streams, p.names, p.events)
  from (select array_agg((e.item ->> 'EventId')::uuid) as events, array_agg(e.item ->> 'ReceptorName') as names
        from jsonb_array_elements(receptors) as e(item)) as r,
       (select array_agg((e.item ->> 'StreamId')::uuid) as streams, array_agg(e.item ->> 'PerspectiveName') as names,
               array_agg((e.item ->> 'LastEventId')::uuid) as events
        from jsonb_array_elements(perspectives) as e(item)) as p
$$;

create function process_work_batch(
  p_instance_id uuid, p_service_name text, p_host_name text default '', p_process_id integer default 0, p_metadata jsonb default null,
  p_outbox_completions jsonb default '[]', p_outbox_failures jsonb default '[]',
  p_inbox_completions jsonb default '[]', p_inbox_failures jsonb default '[]',
  p_receptor_completions jsonb default '[]', p_receptor_failures jsonb default '[]',
  p_perspective_completions jsonb default '[]', p_perspective_failures jsonb default '[]',
  p_new_outbox_messages jsonb default '[]', p_new_inbox_messages jsonb default '[]',
  p_renew_outbox_lease_ids uuid[] default '{}', p_renew_inbox_lease_ids uuid[] default '{}',
  p_flags integer default 0, p_partition_count integer default 10000, p_max_partitions_per_instance integer default null,
  p_lease_seconds integer default 300, p_stale_threshold_seconds integer default 600,
  p_max_streams integer default 300, p_max_messages integer default 300, p_max_messages_per_stream integer default 100,
  p_max_bytes bigint default 8388608)
returns setof wh_batch_row
language plpgsql set search_path from current
  set plan_cache_mode = force_generic_plan set jit = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  keep constant boolean := p_flags & 4 <> 0;
  lanes constant smallint[] := case p_flags & 192 when 192 then '{}' when 64 then '{1}' when 128 then '{2}' else '{1,2}' end;
  outbox uuid[];
  inbox uuid[];
  standing record;
begin
  perform wh_require(p_flags & ~196 = 0, 'flags are 4 (debug mode), 64 (no inbox claims) and 128 (no outbox claims); the others are reserved');
  perform wh_check_list(l.argument, l.items)
  from (values ('p_outbox_completions', p_outbox_completions), ('p_outbox_failures', p_outbox_failures),
               ('p_inbox_completions', p_inbox_completions), ('p_inbox_failures', p_inbox_failures),
               ('p_receptor_completions', p_receptor_completions), ('p_receptor_failures', p_receptor_failures),
               ('p_perspective_completions', p_perspective_completions), ('p_perspective_failures', p_perspective_failures),
               ('p_new_outbox_messages', p_new_outbox_messages), ('p_new_inbox_messages', p_new_inbox_messages)) as l(argument, items)
  where l.items is distinct from '[]';
  outbox := wh_ids_in(array[p_outbox_completions, p_outbox_failures], 'MessageId') || p_renew_outbox_lease_ids;
  inbox := wh_ids_in(array[p_inbox_completions, p_inbox_failures], 'MessageId') || p_renew_inbox_lease_ids;
  standing := wh_begin_batch(
    p_instance_id, p_service_name, p_host_name, p_process_id, p_metadata, p_stale_threshold_seconds,
    outbox, array_fill(null::bigint, array[cardinality(outbox)]), inbox, array_fill(null::bigint, array[cardinality(inbox)]),
    wh_ids_in(array[p_new_outbox_messages], 'StreamId'), wh_ids_in(array[p_new_inbox_messages], 'StreamId'),
    wh_ids_in(array[jsonb_path_query_array(p_new_outbox_messages || p_new_inbox_messages, '$[*] ? (@.IsEvent == true)')], 'StreamId'),
    p_partition_count);
  if '[]' not in (p_receptor_completions, p_receptor_failures) or '[]' not in (p_perspective_completions, p_perspective_failures) then
    perform wh_lock_results_json(p_receptor_completions || p_receptor_failures, p_perspective_completions || p_perspective_failures);
  end if;
  return next row('standing', null, null, null, standing.rank, standing.active, null, null, null, null, null, null, null, null, null, null,
                  null, null, null, null, null, null, null, null)::wh_batch_row;
  return query
  select v.* from wh_complete_json(p_instance_id, 1::smallint, p_outbox_completions, keep) as c, wh_verdict_row('outbox_completions', c.nth, c.verdict) as v;
  return query
  select v.* from wh_complete_json(p_instance_id, 2::smallint, p_inbox_completions, keep) as c, wh_verdict_row('inbox_completions', c.nth, c.verdict) as v;
  return query
  select v.* from wh_fail_json(p_instance_id, 1::smallint, p_outbox_failures) as f, wh_verdict_row('outbox_failures', f.nth, f.verdict) as v;
  return query
  select v.* from wh_fail_json(p_instance_id, 2::smallint, p_inbox_failures) as f, wh_verdict_row('inbox_failures', f.nth, f.verdict) as v;
  return query
  select v.* from wh_receptors_json(p_instance_id, p_receptor_completions, false) as r, wh_verdict_row('receptor_completions', r.nth, r.verdict) as v;
  return query
  select v.* from wh_receptors_json(p_instance_id, p_receptor_failures, true) as r, wh_verdict_row('receptor_failures', r.nth, r.verdict) as v;
  return query
  select v.* from wh_record_perspectives(p_instance_id, p_perspective_completions, false) as p, wh_verdict_row('perspective_completions', p.nth, p.verdict) as v;
  return query
  select v.* from wh_record_perspectives(p_instance_id, p_perspective_failures, true) as p, wh_verdict_row('perspective_failures', p.nth, p.verdict) as v;
  if cardinality(p_renew_outbox_lease_ids) > 0 then
    return query
    select v.*
    from wh_renew(p_instance_id, 1::smallint, p_renew_outbox_lease_ids, array_fill(null::bigint, array[cardinality(p_renew_outbox_lease_ids)]), p_lease_seconds) as r, wh_verdict_row('renew_outbox', r.nth, r.verdict) as v;
  end if;
  if cardinality(p_renew_inbox_lease_ids) > 0 then
    return query
    select v.*
    from wh_renew(p_instance_id, 2::smallint, p_renew_inbox_lease_ids, array_fill(null::bigint, array[cardinality(p_renew_inbox_lease_ids)]), p_lease_seconds) as r, wh_verdict_row('renew_inbox', r.nth, r.verdict) as v;
  end if;
  return query
  select v.* from wh_store_json(p_instance_id, 1::smallint, p_new_outbox_messages, p_partition_count) as s, wh_verdict_row('new_outbox_messages', s.nth, s.verdict) as v;
  return query
  select v.* from wh_store_json(p_instance_id, 2::smallint, p_new_inbox_messages, p_partition_count) as s, wh_verdict_row('new_inbox_messages', s.nth, s.verdict) as v;
  return query
  select 'work', case w.lane when 1 then 'outbox' else 'inbox' end, null::integer, null::text, null::integer, null::integer,
         w.message_id, w.epoch, w.stream_id, w.partition_number, w.seq, w.target, w.message_type, w.envelope_type, w.event_data, w.metadata,
         w.scope, w.status, w.flags, w.deliveries, w.failures, w.failure_reason, w.error, w.lease_expiry
  from wh_claim(p_instance_id, lanes, p_lease_seconds, p_stale_threshold_seconds, p_max_streams, p_max_messages, p_max_messages_per_stream,
                p_max_bytes, p_max_partitions_per_instance,
                wh_ids_in(array[p_new_outbox_messages], 'StreamId')) as w;
end $$;
comment on function process_work_batch is
  'The whole turn of an instance in one atomic call: it is alive, this is done, this failed, this is new, what is next? In this order: heartbeat and eviction, completions, failures, receptors, perspectives, renewals, new messages, claim.';
