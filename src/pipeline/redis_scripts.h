// What the Redis server does of a run, in its own language. Each script answers a word and what belongs to
// it.
#pragma once

namespace baton::pipeline::redis_scripts {

// Before each of the others. ARGV[1]: how long a lease lasts, in ms, as long as no master has said so for
// all.
inline constexpr char kCommon[] = R"lua(
local run, modules, waiting, leases, feed, wake, bell, workers, assignments, results = unpack(KEYS)
local lease_ms = tonumber(redis.call('HGET', run, 'lease_ms') or ARGV[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, 86400000) end

local function load(module)
  local text = redis.call('HGET', modules, module)
  return text and cjson.decode(text)
end
local function save(module, entry) redis.call('HSET', modules, module, cjson.encode(entry)) end
local function end_lease(entry)
  if entry.lease then redis.call('HDEL', run, 'lease ' .. entry.lease) end
end
local function put(module, entry)
  end_lease(entry)
  entry.state = 'waiting'
  entry.lease = ''
  redis.call('ZADD', waiting, (9 - entry.priority) * 1e12 + entry.number, module)
  save(module, entry)
  redis.call('RPUSH', wake, '1')
  redis.call('LTRIM', wake, -1000, -1)
end
-- What a master goes by from then on.
local function step() redis.call('HINCRBY', run, 'steps', 1) end
local function settle(module, entry, result, is_told)
  end_lease(entry)
  entry.state = 'done'
  save(module, entry)
  redis.call('HSET', results, module, result)
  if is_told then
    redis.call('RPUSH', feed, module)
    redis.call('RPUSH', bell, '1')
    redis.call('LTRIM', bell, -1, -1)
  else
    step()
  end
end
for _, module in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now - 1)) do
  redis.call('ZREM', leases, module)
  local entry = load(module)
  if entry.attempt < entry.attempts_max then put(module, entry) else settle(module, entry, entry.lost, true) end
end
local function is_another_pipeline(fingerprint)
  local known = redis.call('HGET', run, 'fingerprint')
  return known and known ~= fingerprint
end
local function is_there(worker) return not worker.left and now - worker.heard_of <= lease_ms end
)lua";

// Around those of the master, whose last arguments are its session and how many steps it has heard of. What
// they answer is followed by how many there are now. They only grow, so that a Redis which has fewer has lost
// some: it was started again from an older file, or emptied.
inline constexpr char kMasterBegins[] = R"lua(
local heard_of, session = tonumber(table.remove(ARGV)), table.remove(ARGV)
local known = redis.call('HGET', run, 'session')
local function steps() return redis.call('HGET', run, 'steps') or '0' end
if not known or tonumber(steps()) < heard_of then return {'forgotten'} end
if known ~= session then return {'taken over'} end
local function act()
)lua";
inline constexpr char kMasterEnds[] = R"lua(
end
local answer = act()
table.insert(answer, steps())
return answer
)lua";

// session, fingerprint, opening, how long leases last by that, hash of the whole pipeline. A run keeps the
// lease that it was begun with: another is answered with it, and nothing is done.
inline constexpr char kOpen[] = R"lua(
local session = redis.call('HGET', run, 'session')
local heard_of = tonumber(redis.call('HGET', run, 'heard_of') or 0)
if redis.call('HEXISTS', run, 'closed') == 1 then return {'over'} end
if session and session ~= ARGV[2] and now - heard_of <= lease_ms then return {'conflict'} end
local pipeline = redis.call('HGET', run, 'pipeline')
if is_another_pipeline(ARGV[3]) or pipeline and pipeline ~= ARGV[6] then return {'another pipeline'} end
local first = redis.call('HGET', run, 'lease_ms')
if first and first ~= ARGV[5] then return {'another lease', first} end
redis.call('HSET', run, 'session', ARGV[2], 'fingerprint', ARGV[3], 'opening', ARGV[4], 'heard_of', now,
           'lease_ms', ARGV[5], 'pipeline', ARGV[6])
step()
return {'ok'}
)lua";

inline constexpr char kOpening[] = R"lua(
local opening = redis.call('HGET', run, 'opening')
if opening then return {'opening', opening} end
return {'none'}
)lua";

// Nothing; answers all that was enqueued, and the feed begins anew, with all that have ended.
inline constexpr char kEnqueued[] = R"lua(
local all = redis.call('HKEYS', assignments)
redis.call('DEL', feed)
step()
for _, module in ipairs(all) do
  if redis.call('HEXISTS', results, module) == 1 then redis.call('RPUSH', feed, module) end
end
table.insert(all, 1, 'ok')
return all
)lua";

// Nothing; answers the results of what was never enqueued: the master's own.
inline constexpr char kOwnResults[] = R"lua(
local all = {'ok'}
for _, module in ipairs(redis.call('HKEYS', results)) do
  if redis.call('HEXISTS', assignments, module) == 0 then table.insert(all, redis.call('HGET', results, module)) end
end
return all
)lua";

// module, assignment, priority, attempts_max, result if it is lost, capabilities…
inline constexpr char kEnqueue[] = R"lua(
local module = ARGV[2]
local known = redis.call('HGET', assignments, module)
if known then return {known == ARGV[3] and 'ok' or 'conflict'} end
redis.call('HSET', assignments, module, ARGV[3])
step()
local entry = {number = redis.call('HINCRBY', run, 'numbers', 1), priority = tonumber(ARGV[4]), attempts_max = tonumber(ARGV[5]),
               lost = ARGV[6], attempt = 0, capabilities = {}}
for i = 7, #ARGV do entry.capabilities[i - 6] = ARGV[i] end
put(module, entry)
return {'ok'}
)lua";

// fingerprint, a name for the lease, capabilities…
inline constexpr char kDequeue[] = R"lua(
local function assigned(module, entry)
  return {'assigned', redis.call('HGET', assignments, module), tostring(entry.attempt), module}
end
if is_another_pipeline(ARGV[2]) then return {'conflict'} end
local before = redis.call('HGET', run, 'lease ' .. ARGV[3])
if before then return assigned(before, load(before)) end -- it was asked before, and the answer was lost
local closed = redis.call('HGET', run, 'closed')
if closed then return {'closed', closed} end
local has = {}
for i = 4, #ARGV do has[ARGV[i]] = true end
for _, module in ipairs(redis.call('ZRANGE', waiting, 0, -1)) do
  local entry = load(module)
  local fits = true
  for _, name in ipairs(entry.capabilities) do fits = fits and has[name] end
  if fits then
    redis.call('ZREM', waiting, module)
    entry.attempt = entry.attempt + 1
    entry.state = 'leased'
    entry.lease = ARGV[3]
    save(module, entry)
    redis.call('ZADD', leases, now + lease_ms, module)
    redis.call('HSET', run, 'lease ' .. entry.lease, module)
    return assigned(module, entry)
  end
end
return {'empty'}
)lua";

// module, lease, result; without a lease it is the master's own, or what it withdraws
inline constexpr char kPublish[] = R"lua(
local module, lease, result = ARGV[2], ARGV[3], ARGV[4]
local entry = load(module)
local known = redis.call('HGET', results, module)
if known then return {known == result and 'duplicate' or 'stale'} end
if lease == '' then
  if entry and entry.state ~= 'waiting' then return {'stale'} end
  redis.call('ZREM', waiting, module)
  settle(module, entry or {attempt = 1, capabilities = {}}, result, false)
  return {'first'}
end
if not entry or entry.state ~= 'leased' or entry.lease ~= lease then return {'stale'} end
redis.call('ZREM', leases, module)
settle(module, entry, result, true)
return {'first'}
)lua";

// module
inline constexpr char kResult[] = R"lua(
local result = redis.call('HGET', results, ARGV[2])
if result then return {'done', result} end
return {'none'}
)lua";

// How many were told already; answers the results of those that ended since. Nothing is removed, so that it
// may be asked again when the answer was lost.
inline constexpr char kFeed[] = R"lua(
local all = {'ok'}
for _, module in ipairs(redis.call('LRANGE', feed, ARGV[2], tonumber(ARGV[2]) + 999)) do
  table.insert(all, redis.call('HGET', results, module))
end
if #all > 1 then step() end
return all
)lua";

// Nothing; answers triples: registration, status and how long it has been silent, current modules as a list.
inline constexpr char kWorkers[] = R"lua(
redis.call('HSET', run, 'heard_of', now)
local all = {'ok'}
for _, text in ipairs(redis.call('HVALS', workers)) do
  local worker = cjson.decode(text)
  local status = 'connected'
  if worker.left then status = 'disconnected'
  elseif not is_there(worker) then status = 'timed out'
  elseif worker.current ~= '[]' then status = 'executing'
  elseif worker.active then status = 'active' end
  table.insert(all, worker.registration)
  table.insert(all, status .. ':' .. tostring(now - worker.heard_of))
  table.insert(all, worker.current)
end
return all
)lua";

// index, session, registration, fingerprint
inline constexpr char kRegister[] = R"lua(
if is_another_pipeline(ARGV[5]) then return {'another pipeline'} end
local known = redis.call('HGET', workers, ARGV[2])
if known then
  local worker = cjson.decode(known)
  if worker.session ~= ARGV[3] and is_there(worker) then return {'conflict'} end
end
redis.call('HSET', workers, ARGV[2], cjson.encode({session = ARGV[3], registration = ARGV[4], heard_of = now, active = false, left = false, current = '[]'}))
return {'ok'}
)lua";

// index, session, current modules as a list, '1' if it leaves, pairs of module and lease…
// Answers: cancelled or '', closed or '', how long the master has been silent, and the leases that are lost.
inline constexpr char kHeartbeat[] = R"lua(
local known = redis.call('HGET', workers, ARGV[2])
if not known then return {'unknown'} end
local worker = cjson.decode(known)
if worker.session ~= ARGV[3] then return {'conflict'} end
worker.heard_of, worker.active, worker.left, worker.current = now, true, ARGV[5] == '1', ARGV[4]
redis.call('HSET', workers, ARGV[2], cjson.encode(worker))
local heard_of = redis.call('HGET', run, 'heard_of')
local answer = {'ok', redis.call('HGET', run, 'cancelled') or '', redis.call('HGET', run, 'closed') or '',
                tostring(heard_of and now - tonumber(heard_of) or 0)}
for i = 6, #ARGV, 2 do
  local entry = load(ARGV[i])
  if entry and entry.state == 'leased' and entry.lease == ARGV[i + 1] then
    redis.call('ZADD', leases, now + lease_ms, ARGV[i])
  else
    table.insert(answer, ARGV[i + 1])
  end
end
return answer
)lua";

// 'cancelled' or 'closed', and the reason
inline constexpr char kSignal[] = R"lua(
redis.call('HSETNX', run, ARGV[2], ARGV[3])
step()
if ARGV[2] == 'closed' then for i = 1, 1000 do redis.call('RPUSH', wake, '1') end end
return {'ok'}
)lua";
inline constexpr char kCancelled[] = R"lua(
local reason = redis.call('HGET', run, 'cancelled')
if reason then return {'cancelled', reason} end
return {'none'}
)lua";

}  // namespace baton::pipeline::redis_scripts
