-- Reporting on messages: done, done in part, given back, failed, or still at work.
--
-- Whoever reports must hold the message. With an epoch, that claim must be the last one; without, the instance
-- that holds the message now may speak. Otherwise the item is refused by its verdict and changes nothing.

create function wh_streams_of(instance uuid, service integer, in_lane smallint, ids uuid[], epochs bigint[]) returns bigint[]
language plpgsql as $$
declare
  items constant integer := cardinality(ids);
  claim constant bigint := case when items > 1 and array[epochs[1]] @> epochs then epochs[1] end;
  streams bigint[];
  given bigint;
begin
  -- Nearly always all that a claim gave is reported at once. One stream more than there are reports shows that it is not.
  if claim is not null then
    select array_agg(c.stream_no), sum(c.outstanding) into streams, given
    from (select s.stream_no, s.outstanding from wh_streams s
          where s.owner = instance and s.epoch = claim and s.lane = in_lane limit items + 1) as c;
    if given = items then return streams; end if;
  end if;
  return array(
    select distinct m.stream_no from unnest(ids) as i(id)
    cross join lateral (select x.stream_no from wh_messages x
                        where x.service_no = service and x.lane = in_lane and x.message_id = i.id offset 0) as m
    cross join lateral (select from wh_streams x where x.stream_no = m.stream_no and x.owner = instance offset 0) as s);
end $$;
comment on function wh_streams_of is 'The streams of these messages, as far as the instance holds them.';

create function wh_hold_still(instance uuid, service integer, in_lane smallint, ids uuid[], epochs bigint[]) returns bigint[]
language plpgsql as $$
declare
  touched bigint[];
begin
  perform wh_require(in_lane in (1, 2), 'a lane is 1, the outbox, or 2, the inbox');
  if cardinality(ids) > 10000 then perform wh_refuse('WH004', 'a list has at most 10000 items'); end if;
  perform wh_require(cardinality(ids) = cardinality(epochs), 'every list has one entry for each message');
  perform wh_check_ids(ids, 'a message needs an id that is not nil');
  touched := wh_streams_of(instance, service, in_lane, ids, epochs);
  perform from wh_streams s where s.stream_no = any(touched) order by s.stream_id for update;
  if found then perform wh_note_locks(); end if;
  if exists (select from wh_messages m where m.owner = instance) then
    perform from (select distinct u.id from unnest(ids) as u(id) order by u.id) as i
    cross join lateral (select from wh_messages x
                        where x.service_no = service and x.lane = in_lane and x.message_id = i.id and x.owner = instance
                        offset 0 for update) as m;
  end if;
  return touched;
end $$;
comment on function wh_hold_still is
  'Locks what these reports may change, and returns the streams among it. Nothing moves any more before the caller has acted.';

create function wh_lock_batch(
  instance uuid, gone uuid[], outbox_ids uuid[], outbox_epochs bigint[], inbox_ids uuid[], inbox_epochs bigint[],
  outbox_streams uuid[], inbox_streams uuid[], event_streams uuid[], partitions integer) returns void
language plpgsql set search_path from current
  set plan_cache_mode = force_generic_plan set jit = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  service constant integer := wh_service_of(instance);
  touched constant bigint[] := wh_streams_of(instance, service, 1::smallint, outbox_ids, outbox_epochs) ||
                               wh_streams_of(instance, service, 2::smallint, inbox_ids, inbox_epochs);
begin
  perform wh_require(partitions >= 1, 'the number of partitions is at least 1');
  perform wh_lock_streams(service, array_agg(i.lane), array_agg(i.id), partitions)
  from (select s.lane, s.stream_id as id from wh_streams s where s.stream_no = any(touched)
        union all select s.lane, s.stream_id from wh_streams s where s.owner = any(gone)
        union all select 1::smallint, u.id from unnest(outbox_streams) as u(id)
        union all select 2::smallint, u.id from unnest(inbox_streams) as u(id)) as i;
  perform wh_lock_event_streams(event_streams);
end $$;
comment on function wh_lock_batch is
  'Locks what a transaction of several parts needs, before the first of them: the streams reported on, those stored into, those of events, and those of instances that are gone.';

create function wh_begin_batch(
  instance uuid, service text, host text, process integer, about jsonb, stale_seconds integer,
  outbox_ids uuid[], outbox_epochs bigint[], inbox_ids uuid[], inbox_epochs bigint[],
  outbox_streams uuid[], inbox_streams uuid[], event_streams uuid[], partitions integer, out rank integer, out active integer)
language plpgsql set search_path from current
  set plan_cache_mode = force_generic_plan set jit = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  number constant integer := wh_register(instance, service, host, process, about, stale_seconds);
  gone constant uuid[] := wh_remove_stale(instance, number, stale_seconds);
begin
  perform wh_lock_batch(instance, gone, outbox_ids, outbox_epochs, inbox_ids, inbox_epochs, outbox_streams, inbox_streams, event_streams,
                        partitions);
  if gone <> '{}' then perform wh_give_back(number, gone, lost => true); end if;
  select s.rank, s.active into rank, active from wh_standing(instance, number, stale_seconds) s;
end $$;
comment on function wh_begin_batch is 'A heartbeat, and the locks that all of the batch will need.';

-- Nearly always what was handed out is what is reported on, so it is fetched stream by stream, and only the others are
-- looked for by id. A full join is the one kind that is never done row by row.
create function wh_judge(instance uuid, service integer, in_lane smallint, ids uuid[], epochs bigint[], touched bigint[])
returns table (nth integer, verdict text, stream_no bigint, epoch bigint, status integer, bytes integer, place tid)
language sql stable as $$
  with given as materialized (
    select m.*, s.epoch from unnest(touched) as t(stream_no)
    cross join lateral (select x.epoch, x.given_seq from wh_streams x
                        where x.stream_no = t.stream_no and x.owner = instance and x.lane = in_lane offset 0) as s
    cross join lateral (select x.message_id, x.stream_no, x.settled_epoch, x.status, x.bytes, x.ctid as place from wh_messages x
                        where x.stream_no = t.stream_no and x.seq <= s.given_seq offset 0) as m
  )
  select i.nth::integer,
         case
           when coalesce(g.message_id, m.message_id) is null then 'unknown'
           when coalesce(g.settled_epoch, m.settled_epoch) = coalesce(i.epoch, g.epoch, s.epoch, m.epoch)
             or row_number() over (partition by i.id order by i.nth) > 1 then 'duplicate'
           when g.epoch = coalesce(i.epoch, g.epoch)
             or (m.stream_no is null and m.owner = instance and m.epoch = coalesce(i.epoch, m.epoch)) then 'ok'
           else 'lost_lease'
         end,
         coalesce(g.stream_no, m.stream_no), coalesce(g.epoch, m.epoch), coalesce(g.status, m.status),
         coalesce(g.bytes, m.bytes), coalesce(g.place, m.place)
  from unnest(ids, epochs) with ordinality as i(id, epoch, nth)
  full join given g on g.message_id = i.id
  left join lateral (select x.message_id, x.stream_no, x.owner, x.epoch, x.settled_epoch, x.status, x.bytes, x.ctid as place
                     from wh_messages x
                     where g.place is null and x.service_no = service and x.lane = in_lane and x.message_id = i.id offset 0) as m on true
  left join lateral (select x.epoch from wh_streams x where g.place is null and x.stream_no = m.stream_no offset 0) as s on true
  where coalesce(i.nth, 0) > 0
$$;
comment on function wh_judge is
  'Says of each message whether the instance may report on it. What it is about is locked, with the streams in `touched`.';

create function wh_settle(streams bigint[], removed integer[], parks boolean[]) returns void
language plpgsql
as $$
begin
  update wh_streams s
  set outstanding = s.outstanding - r.reported,
      pending = s.pending - r.removed,
      bytes = s.bytes - r.bytes,
      retried = s.pending > r.removed and (s.retried or r.removed < r.reported),
      parked = s.parked or r.parks,
      owner = case when s.outstanding > r.reported then s.owner end,
      lease_until = case when s.outstanding > r.reported then s.lease_until end,
      ready_at = case
        when s.parked or r.parks then null
        -- Without a retry among them, whichever message is first is due.
        when s.outstanding > r.reported and r.removed = r.reported and not s.retried then s.ready_at
        when s.outstanding > r.reported then greatest(s.lease_until, wh_head_due(s.stream_no))
        when s.pending > r.removed then greatest(now(), wh_head_due(s.stream_no))
      end,
      idle_since = case when s.outstanding > r.reported then s.idle_since else now() end
  from (select i.stream, count(*)::integer as reported, count(i.gone)::integer as removed, coalesce(sum(i.gone), 0) as bytes,
               bool_or(i.parks) as parks
        from unnest(streams, removed, parks) as i(stream, gone, parks) where i.stream is not null group by i.stream) as r
  cross join lateral (select x.ctid as place from wh_streams x where x.stream_no = r.stream offset 0) as at
  where s.ctid = at.place;
end $$;
comment on function wh_settle is
  'Takes note that messages of these streams were reported on; of those that are gone, `removed` has their bytes. A stream is given back when nothing of what was handed out is open.';

create function wh_keep(places tid[], added integer[]) returns void
language sql as $$
  insert into wh_kept_messages
  select m.message_id, m.service_no, m.lane, m.stream_no, m.seq, m.target, m.message_type, m.envelope_type, m.event_data, m.metadata,
         m.scope, m.bytes, m.is_event, m.policy, m.status | i.added, m.deliveries, m.failures, m.failure_reason, m.error, null, null,
         m.stored_at, null, null, null, null, null, s.stream_id, s.partition_number, case when m.lane = 1 then now() end
  from unnest(places, added) as i(place, added)
  cross join lateral (select * from wh_messages x where x.ctid = i.place offset 0) as m
  left join lateral (select * from wh_streams x where x.stream_no = m.stream_no offset 0) as s on true
$$;
comment on function wh_keep is 'Copies messages that are about to be deleted to where people can look at them.';

create function wh_finish_whole(instance uuid, claim bigint, ids uuid[], touched bigint[]) returns boolean
language plpgsql
as $$
declare
  whole constant bigint[] := array(
    select s.stream_no from wh_streams s
    where s.stream_no = any(touched) and s.owner = instance and s.epoch = claim and s.outstanding = s.pending);
  given uuid[];
  places tid[];
begin
  select array_agg(m.message_id order by m.message_id), array_agg(m.place) into given, places
  from unnest(whole) as w(stream_no)
  cross join lateral (select x.message_id, x.ctid as place from wh_messages x where x.stream_no = w.stream_no offset 0) as m;
  if given is distinct from array(select id from unnest(ids) as u(id) order by id) then return false; end if;
  delete from wh_messages m where m.ctid = any(places);
  update wh_streams s
  set outstanding = 0, pending = 0, bytes = 0, retried = false, owner = null, lease_until = null, ready_at = null, idle_since = now()
  where s.stream_no = any(whole);
  return true;
end $$;
comment on function wh_finish_whole is
  'If these messages are all there is in streams that were handed out by one claim, as they nearly always are, they are done. False: they are not, and nothing has changed.';

create function wh_complete_all(instance uuid, lane smallint, ids uuid[], statuses integer[], epochs bigint[], keep boolean)
returns text[]
language plpgsql set search_path from current
  set plan_cache_mode = force_generic_plan set jit = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
as $$
declare
  done_bit constant integer := case lane when 1 then 4 else 2 end;
  service constant integer := wh_service_of(instance);
  in_lane constant smallint := lane;
  touched bigint[];
  verdicts text[];
  streams bigint[];
  removed integer[];
  done tid[];
  done_added integer[];
begin
  perform wh_require(cardinality(ids) = cardinality(statuses), 'every list has one entry for each message');
  perform wh_require(coalesce(statuses <@ array[0, 1, 2, 3, 4, 5, 6, 7], true), 'a status is made of stored (1), event stored (2) and published (4)');
  touched := wh_hold_still(instance, service, in_lane, ids, epochs);
  if not keep and array[done_bit] @> statuses and array[epochs[1]] @> epochs and wh_finish_whole(instance, epochs[1], ids, touched) then
    return array_fill('ok'::text, array[cardinality(ids)]);
  end if;
  with judged as materialized (
    select j.*, statuses[j.nth] as added, (j.status | statuses[j.nth]) & done_bit <> 0 as is_done
    from wh_judge(instance, service, in_lane, ids, epochs, touched) as j
  ), rest as (
    -- In part, or not at all: it stays, and can be claimed again.
    update wh_messages m
    set status = m.status | j.added, settled_epoch = j.epoch,
        owner = null, lease_until = null, ready_at = case when m.stream_no is null then now() end
    from judged j
    where j.verdict = 'ok' and not j.is_done and m.ctid = j.place
  )
  select array_agg(j.verdict order by j.nth), array_agg(j.stream_no) filter (where j.verdict = 'ok'),
         array_agg(case when j.is_done then j.bytes end) filter (where j.verdict = 'ok'), array_agg(j.place) filter (where j.verdict = 'ok' and j.is_done),
         array_agg(j.added) filter (where j.verdict = 'ok' and j.is_done)
  into verdicts, streams, removed, done, done_added
  from judged j;
  if done is not null then
    if keep then perform wh_keep(done, done_added); end if;
    delete from wh_messages m where m.ctid = any(done);
  end if;
  if streams is not null then
    perform wh_settle(streams, removed, array_fill(false, array[cardinality(streams)]));
  end if;
  return verdicts;
end $$;
comment on function wh_complete_all is 'As wh_complete, with the verdicts as a list in the order of the messages.';

create function wh_complete(instance uuid, lane smallint, ids uuid[], statuses integer[], epochs bigint[], keep boolean default false)
returns table (nth integer, verdict text)
language sql set search_path from current as $$
  select v.nth::integer, v.verdict
  from unnest(wh_complete_all(instance, lane, ids, statuses, epochs, keep)) with ordinality as v(verdict, nth)
$$;
comment on function wh_complete is
  'Adds to the status of messages. Done ones are deleted, or kept apart for people to look at; with status 0 a message is given back.';

create function wh_release(instance uuid, lane smallint, ids uuid[], epochs bigint[]) returns table (nth integer, verdict text)
language sql set search_path from current
as $$ select * from wh_complete(instance, lane, ids, array_fill(0, array[cardinality(ids)]), epochs) $$;
comment on function wh_release is 'Gives messages back unharmed.';

create function wh_retry_delay(failures integer) returns interval
language plpgsql stable as $$
begin
  return make_interval(secs => wh_setting('retry_seconds') * least(2 ^ least(failures, 10), 10));
end $$;
comment on function wh_retry_delay is 'How long a message waits after so many failures: twice as long each time, up to a limit.';

create function wh_fail(instance uuid, lane smallint, ids uuid[], statuses integer[], epochs bigint[], errors text[],
                        reasons integer[], policies smallint[])
returns table (nth integer, verdict text)
language plpgsql set search_path from current
  set plan_cache_mode = force_generic_plan set jit = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
as $$
declare
  service constant integer := wh_service_of(instance);
  in_lane constant smallint := lane;
  failures_max constant integer := wh_setting('max_failures');
  began constant timestamptz := wh_moment();
  touched bigint[];
  places integer[];
  verdicts text[];
  streams bigint[];
  dies boolean[];
  removed integer[];
  parks boolean[];
begin
  perform wh_require(cardinality(ids) = all(array[cardinality(statuses), cardinality(errors), cardinality(reasons), cardinality(policies)]),
                     'every list has one entry for each message');
  perform wh_require(coalesce(statuses <@ array[0, 1, 2, 3, 4, 5, 6, 7], true), 'a status is made of stored (1), event stored (2) and published (4)');
  perform wh_require(coalesce(array_remove(policies, null) <@ array[0, 1, 2]::smallint[], true), 'a failure policy is 0, 1 or 2');
  perform wh_check_errors(errors);
  touched := wh_hold_still(instance, service, in_lane, ids, epochs);
  with judged as materialized (
    select j.*, i.* from wh_judge(instance, service, in_lane, ids, epochs, touched) as j,
      lateral (select statuses[j.nth] as added, errors[j.nth] as said, reasons[j.nth] as reason, policies[j.nth] as wanted) as i
  ), failed as (
    update wh_messages m
    set status = m.status | j.added | 32768, error = j.said, failure_reason = coalesce(j.reason, 99),
        failures = m.failures + 1, deliveries = m.deliveries + 1,
        settled_epoch = j.epoch, scheduled_for = began + wh_retry_delay(m.failures + 1),
        owner = null, lease_until = null,
        ready_at = case when m.stream_no is null then began + wh_retry_delay(m.failures + 1) end
    from judged j
    where j.verdict = 'ok' and m.ctid = j.place
    -- What a failure asks for holds for this failure; the message keeps its own policy for the next one.
    returning m.message_id, m.stream_no, m.bytes, coalesce(j.wanted, m.policy) as policy,
              coalesce(j.wanted, m.policy) > 0 or (failures_max > 0 and m.failures >= failures_max) as dies
  )
  select (select array_agg(j.nth) from judged j), (select array_agg(j.verdict) from judged j),
         array_agg(f.stream_no), array_agg(f.dies), array_agg(case when f.dies then f.bytes end), array_agg(f.policy = 2),
         array_agg(f.message_id)
  into places, verdicts, streams, dies, removed, parks, ids
  from failed f;
  if array_position(dies, true) is not null then
    perform wh_bury(instance, service, in_lane, array_agg(i.id), array_agg(i.parks))
    from unnest(ids, dies, parks) as i(id, dies, parks) where i.dies;
  end if;
  if streams is not null then perform wh_settle(streams, removed, parks); end if;
  return query select * from unnest(places, verdicts);
end $$;
comment on function wh_fail is
  'Takes note of failures. A message is tried again after a while, with its stream waiting behind it, until it has failed too often or its policy says otherwise; then it is a dead letter.';

create function wh_renew(instance uuid, lane smallint, ids uuid[], epochs bigint[], lease_seconds integer default 300)
returns table (nth integer, verdict text)
language plpgsql set search_path from current
  set plan_cache_mode = force_generic_plan set jit = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
as $$
declare
  service constant integer := wh_service_of(instance);
  in_lane constant smallint := lane;
  until constant timestamptz := wh_moment() + make_interval(secs => lease_seconds);
  touched bigint[];
  places integer[];
  verdicts text[];
  streams bigint[];
begin
  perform wh_require(lease_seconds between 1 and 604800, 'lease_seconds is between 1 and 604800');
  touched := wh_hold_still(instance, service, in_lane, ids, epochs);
  with judged as materialized (
    select * from wh_judge(instance, service, in_lane, ids, epochs, touched)
  ), loose as (
    update wh_messages m set lease_until = greatest(m.lease_until, until), ready_at = greatest(m.lease_until, until)
    from judged j
    where j.verdict = 'ok' and j.stream_no is null and m.ctid = j.place
  )
  select array_agg(j.nth), array_agg(j.verdict), array_agg(j.stream_no) filter (where j.verdict = 'ok')
  into places, verdicts, streams from judged j;
  update wh_streams s
  set lease_until = greatest(s.lease_until, until),
      ready_at = case when not s.parked then greatest(s.lease_until, until, wh_head_due(s.stream_no)) end
  where s.stream_no = any(streams);
  return query select * from unnest(places, verdicts);
end $$;
comment on function wh_renew is
  'Holds messages for longer, and with them all their stream. Possible after the lease has ended too, as long as nobody else has claimed it.';
