// A task's whole life through ioredis: node life.cjs PORT. Ends with 0 if all was as it should be.
// X8
const assert = require('node:assert/strict');
const Redis = require('ioredis');

// RESP 2 has no maps: names and values stand in a list in turn.
function fields(list) {
  const map = {};
  for (let at = 0; at + 1 < list.length; at += 2) map[list[at]] = list[at + 1];
  return map;
}

async function oneLife(server) {
  const submitted = fields(await server.call('SUBMIT', 'mail', 'hello', 'KEY', 'greet', 'PRIORITY', 3));
  const leased = fields(await server.call('LEASE', 'worker-1', 'mail', 'WAIT_MS', 5000));
  const {task, lease, payload} = fields(leased.tasks[0]);
  assert.deepEqual([task, payload], [submitted.task, 'hello']);

  assert.equal(fields(await server.call('EXTEND', task, lease, 'TTL_MS', 60000)).ttl_ms, 60000);
  assert.equal(fields(await server.call('COMPLETE', task, lease, 'RESULT', 'done')).status, 'COMMITTED');
  await assert.rejects(server.call('EXTEND', task, lease), /^ReplyError: LEASE_LOST /);
  const ended = fields(await server.call('GET', 'key:greet'));
  assert.equal(fields(ended.task).state, 'completed');
  assert.equal(ended.result, 'done');
}

async function aPipeline(server) {
  const pipeline = server.pipeline();
  for (let number = 0; number < 500; ++number) pipeline.call('SUBMIT', 'many', `payload ${number}`);
  const lsns = (await pipeline.exec()).map(([error, reply]) => error ?? fields(reply).lsn);
  assert.equal(lsns.length, 500);
  assert.deepEqual(lsns, [...lsns].sort((a, b) => a - b));
}

// A worker that waits has a connection to itself, as the protocol asks for.
async function aWaitingWorker(server) {
  const worker = server.duplicate();
  const leased = worker.call('LEASE', 'worker-2', 'late', 'WAIT_MS', 30000);
  const submitted = fields(await server.call('SUBMIT', 'late', 'hello'));
  assert.equal(fields(fields(await leased).tasks[0]).task, submitted.task);
  await worker.quit();
}

async function main() {
  const server = new Redis({host: '127.0.0.1', port: Number(process.argv[2])});
  for (const check of [oneLife, aPipeline, aWaitingWorker]) await check(server);
  await server.quit();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
