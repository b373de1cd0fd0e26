-- Messages as a plain reader of SQL looks for them: one relation for each lane, with lease and status.

create view wh_all_messages as
  select m.lane, m.service_no, m.message_id, m.target, m.message_type, m.envelope_type, m.event_data, m.metadata, m.scope,
         s.stream_id, s.partition_number, m.seq, m.is_event, m.status, m.deliveries, m.failures as attempts, m.error,
         case when s.stream_no is null then m.owner when m.seq <= s.given_seq and m.settled_epoch is distinct from s.epoch then s.owner end as instance_id,
         case when s.stream_no is null then m.lease_until when m.seq <= s.given_seq and m.settled_epoch is distinct from s.epoch then s.lease_until end as lease_expiry,
         m.failure_reason, m.scheduled_for, m.stored_at, null::timestamptz as published_at, null::timestamptz as processed_at
  from wh_messages m left join wh_streams s on s.stream_no = m.stream_no
  union all
  select lane, service_no, message_id, target, message_type, envelope_type, event_data, metadata, scope, stream_id, partition_number, seq,
         is_event, status, deliveries, failures, error, null, null, failure_reason, null, stored_at, published_at, processed_at
  from wh_kept_messages;

create view wh_outbox as
  select message_id, target as destination, message_type, envelope_type, event_data, metadata, scope, stream_id, partition_number, seq, is_event,
         status, deliveries, attempts, error, instance_id, lease_expiry, failure_reason, scheduled_for, stored_at as created_at, published_at, processed_at,
         service_name
  from wh_all_messages join wh_services using (service_no) where lane = 1;

create view wh_inbox as
  select message_id, target as handler_name, message_type, event_data, metadata, scope, stream_id, partition_number, seq, is_event,
         status, deliveries, attempts, error, instance_id, lease_expiry, failure_reason, scheduled_for, stored_at as received_at, processed_at,
         service_name
  from wh_all_messages join wh_services using (service_no) where lane = 2;

create view wh_active_streams as
  select stream_id, case lane when 1 then 'outbox' else 'inbox' end as lane, service_name, partition_number, owner as assigned_instance_id,
         lease_until as lease_expiry, pending, ready_at, parked, idle_since as last_activity_at
  from wh_streams join wh_services using (service_no);
