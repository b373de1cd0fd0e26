-- Cleaning up. Any instance may call it at any time; only one does the work, a bounded amount each time.

create function wh_maintain(at_most integer default 10000, unless_within interval default '0') returns table (task text, affected integer)
language plpgsql set search_path from current
  set plan_cache_mode = force_generic_plan set jit = off
  set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off as $$
declare
  days constant integer := wh_setting('dedup_retention_days');
begin
  if not pg_try_advisory_xact_lock(hashtext('wh_maintain')) then return; end if;
  update wh_maintenance set done_at = now() where done_at <= now() - unless_within;
  if not found then return; end if;
  if days > 0 then
    -- One that somebody is just seeing again is not past its time.
    delete from wh_message_deduplication where ctid = any(array(
      select ctid from wh_message_deduplication d where first_seen_at < now() - make_interval(days => days)
        and not exists (select from wh_messages m where m.service_no = d.service_no and m.lane = 2 and m.message_id = d.message_id)
      limit at_most for update skip locked));
    get diagnostics affected = row_count;
    task := 'deduplication';
    return next;
  end if;
  delete from wh_kept_messages where ctid = any(array(
    select ctid from wh_kept_messages where processed_at < now() - make_interval(hours => wh_setting('kept_message_hours')) limit at_most));
  get diagnostics affected = row_count;
  task := 'kept messages';
  return next;
  -- A dead letter may come back to its stream.
  delete from wh_streams where stream_no = any(array(
    select s.stream_no from wh_streams s
    where s.ready_at is null and s.owner is null and s.pending = 0 and s.idle_since < now() - make_interval(hours => wh_setting('idle_stream_hours'))
      and not exists (select from wh_dead_letters d where d.stream_no = s.stream_no)
    limit at_most for update skip locked));
  get diagnostics affected = row_count;
  task := 'idle streams';
  return next;
  delete from wh_evicted_instances where evicted_at < now() - make_interval(days => wh_setting('tombstone_days'));
  get diagnostics affected = row_count;
  task := 'tombstones';
  return next;
end $$;
comment on function wh_maintain is
  'Forgets what is past its time: ids seen by the inbox, messages kept by debug mode, rows of idle streams, tombstones. Call it again while one of them comes to as much as it may. Nothing happens while somebody else is at it, or was less than `unless_within` ago.';
