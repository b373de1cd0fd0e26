-- What operators ask. Everything here only looks.

create function wh_span(seconds numeric) returns text
language sql immutable as $$
  select case when t.s < 60 then t.s || ' s'
              when t.s < 3600 then concat_ws(' ', t.s / 60 || ' min', nullif(t.s % 60, 0) || ' s')
              when t.s < 86400 then concat_ws(' ', t.s / 3600 || ' h', nullif(t.s % 3600 / 60, 0) || ' min')
              else concat_ws(' ', t.s / 86400 || ' d', nullif(t.s % 86400 / 3600, 0) || ' h') end
  from (select greatest(0, seconds)::bigint as s) as t
$$;
comment on function wh_span is 'A length of time as people say it, two units at most: 53 s, 6 min 53 s, 2 h 10 min, 4 d.';

create function wh_until(moment timestamptz) returns text
language sql stable as $$ select wh_span(ceil(extract(epoch from moment - now()))) $$;

create function wh_ago(moment timestamptz) returns text
language sql stable as $$ select wh_span(round(extract(epoch from now() - moment))) || ' ago' $$;

create function wh_status()
returns table (service text, lane text, waiting bigint, held bigint, dead bigint, streams bigint, held_streams bigint, parked_streams bigint,
               oldest_claimable_seconds bigint)
language plpgsql stable set search_path from current as $$
begin
  return query
  with stream as (
    select s.service_no, s.lane, sum(s.pending) as messages, coalesce(sum(s.outstanding) filter (where s.owner is not null), 0) as given,
           count(*) filter (where s.pending > 0) as streams, count(*) filter (where s.owner is not null) as held_streams,
           count(*) filter (where s.parked) as parked_streams, min(s.ready_at) filter (where s.ready_at <= now()) as oldest
    from wh_streams s group by s.service_no, s.lane
  ), loose as (
    select m.service_no, m.lane, count(*) as messages, count(m.owner) as given, min(m.ready_at) filter (where m.ready_at <= now()) as oldest
    from wh_messages m where m.stream_no is null group by m.service_no, m.lane
  ), dead as (
    select d.service_no, d.lane, count(*) as letters from wh_dead_letters d group by d.service_no, d.lane
  )
  select v.service_name::text, case l.lane when 1 then 'outbox' else 'inbox' end,
         (coalesce(s.messages, 0) + coalesce(f.messages, 0) - coalesce(s.given, 0) - coalesce(f.given, 0))::bigint,
         (coalesce(s.given, 0) + coalesce(f.given, 0))::bigint, coalesce(d.letters, 0), coalesce(s.streams, 0),
         coalesce(s.held_streams, 0), coalesce(s.parked_streams, 0), extract(epoch from now() - least(s.oldest, f.oldest))::bigint
  from wh_services v cross join (values (1::smallint), (2::smallint)) as l(lane)
  left join stream s on s.service_no = v.service_no and s.lane = l.lane
  left join loose f on f.service_no = v.service_no and f.lane = l.lane
  left join dead d on d.service_no = v.service_no and d.lane = l.lane
  order by 1, 2 desc;
end $$;
comment on function wh_status is
  'The lanes of every service: what waits, is held and is dead, and for how long the oldest message has waited that could be claimed. A retry that is not due does not count as waiting for long.';

create function wh_instances(stale_seconds integer default 600)
returns table (service text, instance uuid, rank integer, host text, process integer, silent_seconds bigint, is_stale boolean,
               held_streams bigint, held_messages bigint)
language plpgsql stable set search_path from current as $$
begin
  return query
  select i.service_name::text, i.instance_id,
         case when a.has_rank then (rank() over (partition by i.service_no, a.has_rank order by i.instance_id))::integer - 1 end,
         i.host_name::text, i.process_id, extract(epoch from now() - i.last_heartbeat_at)::bigint, a.stale,
         h.streams, h.messages + (select count(*) from wh_messages m where m.owner = i.instance_id)
  from wh_service_instances i
  cross join lateral (select i.last_heartbeat_at < now() - make_interval(secs => stale_seconds) as stale) as t
  cross join lateral (select t.stale, i.claims_work and not t.stale as has_rank) as a
  cross join lateral (select count(*) as streams, coalesce(sum(s.outstanding), 0)::bigint as messages from wh_streams s
                      where s.owner = i.instance_id) as h
  order by i.service_name, i.instance_id;
end $$;
comment on function wh_instances is
  'Every instance, with its rank among the active ones of its service that ask for work, and what it holds. A stale one is evicted by the next call of another.';

create function wh_lag(at_most integer default 20)
returns table (service text, lane text, stream uuid, partition_number integer, messages integer, waits_seconds bigint, state text)
language plpgsql stable set search_path from current as $$
begin
  return query
  select v.service_name::text, case s.lane when 1 then 'outbox' else 'inbox' end, s.stream_id, s.partition_number, s.pending,
         greatest(extract(epoch from now() - h.stored_at), 0)::bigint,
         case when s.parked then 'parked behind a dead letter'
              when s.owner is not null and s.lease_until > now() then 'held by ' || s.owner
              when s.owner is not null then 'lost by ' || s.owner
              when s.ready_at > now() then 'to be tried again in ' || wh_until(s.ready_at)
              else 'can be claimed' end
  from wh_streams s join wh_services v on v.service_no = s.service_no
  cross join lateral (select m.stored_at from wh_messages m where m.stream_no = s.stream_no order by m.seq limit 1) as h
  where s.pending > 0
  order by h.stored_at
  limit at_most;
end $$;
comment on function wh_lag is 'The streams whose first message has been there for longest, and what is the matter with each.';

create function wh_partition_owner(service integer, partition integer, stale_seconds integer) returns uuid
language plpgsql stable as $$
declare
  active constant uuid[] := array(
    select i.instance_id from wh_service_instances i
    where i.service_no = service and i.claims_work and i.last_heartbeat_at >= now() - make_interval(secs => stale_seconds)
    order by i.instance_id);
begin
  return case when cardinality(active) > 0 then active[1 + mod(partition, cardinality(active))] end;
end $$;
comment on function wh_partition_owner is 'The active instance that streams of a partition are offered to first.';

create function wh_partitions(at_most integer default 20, stale_seconds integer default 600)
returns table (service text, lane text, partition_number integer, streams bigint, messages bigint, oldest_claimable_seconds bigint, offered_to uuid)
language plpgsql stable set search_path from current as $$
begin
  return query
  select v.service_name::text, case p.lane when 1 then 'outbox' else 'inbox' end, p.partition_number, p.streams, p.messages,
         extract(epoch from now() - p.oldest)::bigint, wh_partition_owner(p.service_no, p.partition_number, stale_seconds)
  from (select s.service_no, s.lane, s.partition_number, count(*) as streams, sum(s.pending) as messages,
               min(s.ready_at) filter (where s.ready_at <= now()) as oldest
        from wh_streams s where s.pending > 0
        group by s.service_no, s.lane, s.partition_number
        order by messages desc, s.service_no, s.lane, s.partition_number limit at_most) as p
  join wh_services v on v.service_no = p.service_no
  order by p.messages desc, 1, 2, 3;
end $$;
comment on function wh_partitions is 'The partitions with the most messages, and to whom each is offered first.';

create function wh_label(value text) returns text
language sql immutable as $$ select replace(replace(replace(value, '\', '\\'), '"', '\"'), E'\n', '\n') $$;
comment on function wh_label is 'A value as it stands between quotes in the text format of Prometheus.';

create function wh_metrics(stale_seconds integer default 600) returns table (line text)
language plpgsql stable set search_path from current as $$
begin
  return query
  with lane as (
    select format('service="%s",lane="%s"', wh_label(s.service), s.lane) as labels, s.* from wh_status() as s
  ), instance as (
    -- That none is active is what an alert is for.
    select format('service="%s"', wh_label(v.service_name)) as labels, s.is_stale, count(i.instance) as count
    from wh_services v cross join (values (false), (true)) as s(is_stale)
    left join wh_instances(stale_seconds) as i on i.service = v.service_name and i.is_stale = s.is_stale
    group by v.service_name, s.is_stale having not s.is_stale or count(i.instance) > 0
  ), metric (nth, name, about) as (values
    (1, 'messages', 'Messages by what is happening to them'),
    (2, 'streams', 'Streams that have messages'),
    (3, 'oldest_claimable_seconds', 'For how long the oldest message has waited that could be claimed'),
    (4, 'instances', 'Instances that have called'),
    (5, 'partition_messages', 'Messages of the partitions that have the most')
  ), value (nth, labels, value) as (
    select 1, format('%s,state="%s"', l.labels, v.state), v.value from lane l
    cross join lateral (values ('waiting', l.waiting), ('held', l.held), ('dead', l.dead)) as v(state, value)
    union all
    select 2, format('%s,state="%s"', l.labels, v.state), v.value from lane l
    cross join lateral (values ('all', l.streams), ('held', l.held_streams), ('parked', l.parked_streams)) as v(state, value)
    union all
    select 3, l.labels, coalesce(l.oldest_claimable_seconds, 0) from lane l
    union all
    select 4, format('%s,state="%s"', i.labels, case when i.is_stale then 'stale' else 'active' end), i.count from instance i
    union all
    select 5, format('service="%s",lane="%s",partition="%s"', wh_label(p.service), p.lane, p.partition_number), p.messages
    from wh_partitions(10, stale_seconds) as p
  )
  select l.line from (
    select m.nth, 1, '', '# HELP baton_stream_' || m.name || ' ' || m.about from metric m
    union all
    select m.nth, 2, '', '# TYPE baton_stream_' || m.name || ' gauge' from metric m
    union all
    select m.nth, 3, v.labels, format('baton_stream_%s{%s} %s', m.name, v.labels, v.value) from metric m join value v using (nth)
  ) as l(nth, part, labels, line)
  order by l.nth, l.part, l.labels;
end $$;
comment on function wh_metrics is 'The same as text for Prometheus, a row for each line.';

create function wh_why_elsewhere(message uuid) returns table (question text, answer text)
language plpgsql stable as $$
begin
  return query
  select 'where is it?', 'it became dead letter ' || d.dead_letter_id || ' of ' || v.service_name || ' ' || wh_ago(d.dead_lettered_at) ||
         '. Failures: ' || d.failures || ', deliveries: ' || d.deliveries || '. The last said: ' || coalesce(d.error, 'nothing') ||
         '. Replay it, or purge it.'
  from wh_dead_letters d join wh_services v using (service_no) where d.message_id = message
  union all
  select 'where is it?', 'it was done ' || wh_ago(k.processed_at) || ', and is kept for people to look at'
  from wh_kept_messages k where k.message_id = message
  union all
  select 'where is it?', 'the inbox of ' || v.service_name || ' has seen it ' || wh_ago(d.first_seen_at) || ', and it is done'
  from wh_services v join wh_message_deduplication d on d.service_no = v.service_no and d.message_id = message
  -- A service may send to itself: what its outbox still has, its inbox may be done with.
  where not exists (select from wh_messages m where m.service_no = v.service_no and m.lane = 2 and m.message_id = message)
    and not exists (select from wh_dead_letters l where l.message_id = message and l.service_no = d.service_no and l.lane = 2);
  if not found then
    return query
    select 'where is it?', 'nowhere: it was never stored here, or it is done and forgotten. Look at the sender, and at the service name.'
    where not exists (select from wh_services v join wh_messages m
                      on m.service_no = v.service_no and m.lane in (1, 2) and m.message_id = message);
  end if;
end $$;

create function wh_why_blocked(m wh_messages, s wh_streams) returns text
language plpgsql stable as $$
declare
  ahead wh_messages;
begin
  if s.stream_no is null then return 'no: it belongs to no stream, so nothing is before it. If it should be in order, its stream id is missing.'; end if;
  if s.parked then
    return 'yes: its stream is parked behind dead letter ' ||
           coalesce((select min(d.dead_letter_id)::text from wh_dead_letters d where d.stream_no = s.stream_no and d.parks_stream), '?') ||
           '. Replay it, or purge it.';
  end if;
  select * into ahead from wh_messages x where x.stream_no = s.stream_no and x.seq < m.seq order by x.seq limit 1;
  if not found then return 'no: it is the first of its stream'; end if;
  -- One that came back, and is handed out when this one is done.
  if wh_is_out(s.owner, s.given_seq, s.epoch, m.seq, m.settled_epoch) and s.lease_until > now()
     and not wh_is_out(s.owner, s.given_seq, s.epoch, ahead.seq, ahead.settled_epoch) and ahead.scheduled_for <= now() is not false then
    return 'no: it was handed out';
  end if;
  return 'yes: message ' || ahead.message_id || ', number ' || ahead.seq || ' of the stream, comes first' ||
         case when ahead.scheduled_for > now()
              then '. It failed (' || ahead.failures || ' so far), is to be tried again in ' || wh_until(ahead.scheduled_for) ||
                   ', and said: ' || coalesce(ahead.error, 'nothing')
              else '' end;
end $$;

-- Others of its stream may have been handed out without it: it came back, or came, after they were claimed.
create function wh_why_held(m wh_messages, s wh_streams, stale_seconds integer) returns text
language plpgsql stable as $$
declare
  holder constant uuid := coalesce(s.owner, m.owner);
  until constant timestamptz := coalesce(s.lease_until, m.lease_until);
  is_out constant boolean := s.stream_no is null or wh_is_out(s.owner, s.given_seq, s.epoch, m.seq, m.settled_epoch);
  i wh_service_instances;
begin
  if holder is null then return 'no: nobody holds it'; end if;
  select * into i from wh_service_instances where instance_id = holder;
  return case when is_out then 'yes: by ' else 'no, but its stream is held: by ' end || holder || coalesce(' (process ' || i.process_id || ' on ' || nullif(i.host_name, '') || ')', '') ||
         case when until > now() then ', for ' || wh_until(until) || ' more'
              else ', whose lease ended ' || wh_ago(until) || ': whoever asks next has it' end ||
         case when i.last_heartbeat_at < now() - make_interval(secs => stale_seconds)
              then '. It was last heard of ' || wh_ago(i.last_heartbeat_at) || ', and is evicted by the next call of another instance'
              else '' end;
end $$;

create function wh_why(message uuid, stale_seconds integer default 600) returns table (question text, answer text)
language plpgsql stable set search_path from current as $$
declare
  m wh_messages;
  s wh_streams;
  service text;
  heard record;
  owner uuid;
begin
  return query select * from wh_why_elsewhere(message);
  for m in
    select x.* from wh_services v cross join (values (1::smallint), (2::smallint)) as l(lane)
    join wh_messages x on x.service_no = v.service_no and x.lane = l.lane and x.message_id = message
    order by x.service_no, x.lane
  loop
    s := null;
    select * into s from wh_streams x where x.stream_no = m.stream_no;
    select v.service_name into service from wh_services v where v.service_no = m.service_no;
    select count(*) filter (where a.active) as active, count(*) filter (where a.active and i.claims_work) as asking,
           max(i.last_heartbeat_at) as last
    into heard from wh_service_instances i
    cross join lateral (select i.last_heartbeat_at >= now() - make_interval(secs => stale_seconds) as active) as a
    where i.service_no = m.service_no;
    owner := wh_partition_owner(m.service_no, s.partition_number, stale_seconds);
    question := 'where is it?';
    answer := 'it waits in the ' || case m.lane when 1 then 'outbox' else 'inbox' end || ' of ' || service || ', stored ' || wh_ago(m.stored_at) ||
              coalesce(', number ' || m.seq || ' of stream ' || s.stream_id, '');
    return next;
    question := 'is anybody at work?';
    answer := case when heard.asking > 0 then 'yes: ' || heard.asking || ' active, the last one heard of ' || wh_ago(heard.last)
                   when heard.active > 0 then 'no: ' || heard.active || ' active, but none has asked for work. Let one claim.'
                   else 'no: ' || coalesce('the last one was heard of ' || wh_ago(heard.last), 'no instance of this service has ever called') ||
                        '. Start one, and let it call at least every ' || wh_span(stale_seconds) || '.' end;
    return next;
    if s.stream_no is not null then
      question := 'whose is it?';
      answer := 'partition ' || s.partition_number || coalesce(' is offered to ' || owner || ' first, and after ' ||
                wh_span(wh_setting('steal_after_seconds')) || ' to everybody', ' is nobody''s, since nobody is at work');
      return next;
    end if;
    question := 'is another message in its way?';
    answer := wh_why_blocked(m, s);
    return next;
    question := 'does somebody hold it?';
    answer := wh_why_held(m, s, stale_seconds);
    return next;
    question := 'may it be tried?';
    answer := case when m.scheduled_for > now()
                   then 'in ' || wh_until(m.scheduled_for) || ': it failed (' || m.failures || ' so far), and said: ' ||
                        coalesce(m.error, 'nothing')
                   else 'yes' end || case when m.deliveries > m.failures
                   then '. Of those it was handed out to, some were never heard of again: ' || m.deliveries - m.failures else '' end;
    return next;
  end loop;
end $$;
comment on function wh_why is 'Why a message is not being handled: where it is, who is at work, and what is in its way. Times are the database''s, so no clock of an instance plays a part.';
