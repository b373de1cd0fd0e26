-- Dead letters: messages that nobody tries any more, until somebody has looked at them.

create function wh_bury(instance uuid, service integer, in_lane smallint, ids uuid[], parks boolean[]) returns void
language sql as $$
  with dead as (
    delete from wh_messages m where m.ctid = any(array(
      select at.place from unnest(ids) as i(id)
      cross join lateral (select x.ctid as place from wh_messages x
                          where x.service_no = service and x.lane = in_lane and x.message_id = i.id offset 0) as at))
    returning m.*
  )
  insert into wh_dead_letters (
    message_id, service_no, lane, stream_no, seq, target, message_type, envelope_type, event_data, metadata, scope, bytes,
    is_event, policy, status, deliveries, failures, failure_reason, error, stored_at, stream_id, partition_number,
    parks_stream, dead_lettered_by)
  select d.message_id, d.service_no, d.lane, d.stream_no, d.seq, d.target, d.message_type, d.envelope_type, d.event_data,
         d.metadata, d.scope, d.bytes, d.is_event, d.policy, d.status, d.deliveries, d.failures, d.failure_reason, d.error,
         d.stored_at, s.stream_id, s.partition_number, parks[array_position(ids, d.message_id)] and d.stream_no is not null, instance
  from dead d left join wh_streams s on s.stream_no = d.stream_no
$$;
comment on function wh_bury is 'Moves messages to the dead letters, with all that is known of them; streams stop behind those that park.';

create function wh_wake(streams bigint[]) returns void
language sql as $$
  update wh_streams s
  set parked = p.parks,
      ready_at = case when s.pending > 0 and not p.parks then greatest(coalesce(s.lease_until, now()), wh_head_due(s.stream_no)) end
  from (select u.stream, exists (select from wh_dead_letters d where d.stream_no = u.stream and d.parks_stream) as parks
        from unnest(streams) as u(stream)) as p
  where s.stream_no = p.stream
$$;
comment on function wh_wake is 'Streams go on if none of their dead letters is in the way any more.';

create function wh_put_back(letter bigint) returns boolean
language plpgsql as $$
declare
  dead wh_dead_letters;
begin
  select * into dead from wh_dead_letters where dead_letter_id = letter;
  perform from wh_streams where stream_no = dead.stream_no for update;
  select * into dead from wh_dead_letters where dead_letter_id = letter for update;
  if not found then return false; end if;
  -- What waits is remembered. This comes first, as with whoever stores. The row changes in any case: maintenance, which
  -- does not see the message yet, must not take it for one that is past its time.
  if dead.lane = 2 then
    insert into wh_message_deduplication (service_no, message_id) values (dead.service_no, dead.message_id)
    on conflict (service_no, message_id) do update set first_seen_at = now();
  end if;
  -- In its old place, and if somebody holds the stream, as one that was not handed out.
  insert into wh_messages (message_id, service_no, lane, stream_no, seq, target, message_type, envelope_type, event_data, metadata,
                           scope, bytes, is_event, policy, status, error, failure_reason, stored_at, settled_epoch, ready_at)
  select dead.message_id, dead.service_no, dead.lane, dead.stream_no, dead.seq, dead.target, dead.message_type, dead.envelope_type,
         dead.event_data, dead.metadata, dead.scope, dead.bytes, dead.is_event, dead.policy, dead.status & ~32768,
         dead.error, dead.failure_reason, dead.stored_at, (select s.epoch from wh_streams s where s.stream_no = dead.stream_no),
         case when dead.stream_no is null then now() end
  on conflict do nothing;
  if not found then return null; end if;
  delete from wh_dead_letters where dead_letter_id = letter;
  update wh_streams set pending = pending + 1, bytes = bytes + dead.bytes where stream_no = dead.stream_no;
  perform wh_wake(array[dead.stream_no]);
  perform wh_ring(dead.service_no);
  return true;
end $$;
comment on function wh_put_back is
  'Puts a dead letter back into its old place, as if it had never been handed out. False: there is no such letter. Null: its message waits already, for it was stored once more.';

create function wh_replay_dead_letters(letters bigint[] default null, at_most integer default null, last bigint default null) returns integer
language plpgsql set search_path from current as $$
declare
  chosen bigint[];
  streams bigint[];
  dead record;
  is_back boolean;
  replayed integer := 0;
begin
  -- Once: a letter that comes while we wait for the locks stays, for its stream would be locked out of turn.
  -- One whose message waits already would be passed over each time, and keep those behind it from being chosen.
  select array_agg(c.dead_letter_id), array_agg(distinct c.stream_no) into chosen, streams
  from (select d.dead_letter_id, d.stream_no from wh_dead_letters d
        where d.dead_letter_id <= coalesce(last, d.dead_letter_id)
          and case when letters is not null then d.dead_letter_id = any(letters)
                   else not exists (select from wh_messages m where m.service_no = d.service_no and m.lane = d.lane
                                                                and m.message_id = d.message_id) end
        order by d.dead_letter_id limit at_most) as c;
  perform from wh_streams where stream_no = any(streams) order by service_no, lane, stream_id for update;
  if found then perform wh_note_locks(); end if;
  -- In the order in which messages are stored.
  for dead in
    select d.dead_letter_id, d.message_id from wh_dead_letters d where d.dead_letter_id = any(chosen)
    order by d.service_no, d.lane, d.message_id, d.dead_letter_id
  loop
    is_back := wh_put_back(dead.dead_letter_id);
    if is_back is null and letters is not null then
      perform wh_refuse('WH006', 'message ' || dead.message_id || ' of dead letter ' || dead.dead_letter_id ||
                                 ' waits already, for it was stored once more');
    end if;
    if is_back then replayed := replayed + 1; end if;
  end loop;
  return replayed;
end $$;
comment on function wh_replay_dead_letters is
  'Puts dead letters back into their old places, as if they had never been handed out: all but those whose message waits already, or the ones given. How many it put back. Whoever has many says `at_most`, since all their streams are locked until the end, and calls again until nothing is left; with `last`, the number of the newest letter when that began, those that die meanwhile are left alone.';

create function wh_replay_dead_letter(letter bigint) returns boolean
language plpgsql set search_path from current as $$
begin
  return wh_replay_dead_letters(array[letter]) = 1;
end $$;
comment on function wh_replay_dead_letter is 'The same for one. False if there is no such letter, or it was replayed before.';

create function wh_purge_dead_letters(
  older_than interval default '0', letters bigint[] default null, at_most integer default null, last bigint default null) returns integer
language plpgsql set search_path from current as $$
declare
  old bigint[];
  streams bigint[];
  purged integer;
begin
  -- Once: a letter that comes while we wait for the locks stays, for its stream is none of those that are woken.
  select array_agg(c.dead_letter_id), array_agg(distinct c.stream_no) into old, streams
  from (select d.dead_letter_id, d.stream_no from wh_dead_letters d
        where d.dead_lettered_at <= now() - older_than and d.dead_letter_id <= coalesce(last, d.dead_letter_id)
          and (letters is null or d.dead_letter_id = any(letters))
        order by d.dead_letter_id limit at_most) as c;
  perform from wh_streams where stream_no = any(streams) order by service_no, lane, stream_id for update;
  if found then perform wh_note_locks(); end if;
  -- Those without a stream too in the order of whoever replays them.
  perform from wh_dead_letters d where d.dead_letter_id = any(old)
  order by d.service_no, d.lane, d.message_id, d.dead_letter_id for update;
  delete from wh_dead_letters d where d.dead_letter_id = any(old);
  get diagnostics purged = row_count;
  perform wh_wake(streams);
  perform wh_ring(s.service_no) from (select distinct service_no from wh_streams where stream_no = any(streams)) as s;
  return purged;
end $$;
comment on function wh_purge_dead_letters is
  'Forgets dead letters, all or some, for good. Streams that were parked behind them go on. `at_most` and `last` are as in wh_replay_dead_letters.';
