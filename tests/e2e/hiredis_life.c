// A task's whole life through hiredis: hiredis_life PORT. Ends with 0 if all was as it should be.
// X8
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static redisContext* server;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "hiredis: %s: %s\n", what, server != NULL ? server->errstr : "");
  exit(1);
}

// The value of a name. RESP 2 has no maps: names and values stand in a list in turn.
static redisReply* field(const redisReply* reply, const char* name) {
  expect(reply != NULL && reply->type == REDIS_REPLY_ARRAY, name);
  for (size_t at = 0; at + 1 < reply->elements; at += 2) {
    if (strcmp(reply->element[at]->str, name) == 0) return reply->element[at + 1];
  }
  expect(0, name);
  return NULL;
}

static int is(const redisReply* reply, const char* text) {
  return reply->len == strlen(text) && memcmp(reply->str, text, strlen(text)) == 0;
}

static void one_life(void) {
  redisReply* submitted = redisCommand(server, "SUBMIT mail %b KEY greet PRIORITY 3", "hel\0lo", (size_t)6);
  redisReply* leased = redisCommand(server, "LEASE worker-1 mail WAIT_MS 5000");
  expect(field(leased, "tasks")->elements == 1, "a task is leased");
  const redisReply* grant = field(leased, "tasks")->element[0];
  const char* task = field(grant, "task")->str;
  const char* lease = field(grant, "lease")->str;
  expect(is(field(submitted, "task"), task), "it is the one that was submitted");
  expect(field(grant, "payload")->len == 6 && memcmp(field(grant, "payload")->str, "hel\0lo", 6) == 0,
         "its payload is any bytes");

  redisReply* extended = redisCommand(server, "EXTEND %s %s TTL_MS 60000", task, lease);
  expect(field(extended, "ttl_ms")->integer == 60000, "the lease is extended");
  redisReply* completed = redisCommand(server, "COMPLETE %s %s RESULT done", task, lease);
  expect(is(field(completed, "status"), "COMMITTED"), "it is completed");
  expect(field(completed, "lsn")->integer > field(submitted, "lsn")->integer, "the log goes on");
  redisReply* late = redisCommand(server, "EXTEND %s %s", task, lease);
  expect(late->type == REDIS_REPLY_ERROR && strncmp(late->str, "LEASE_LOST ", 11) == 0, "it is held no more");
  redisReply* ended = redisCommand(server, "GET key:greet");
  expect(is(field(field(ended, "task"), "state"), "completed"), "its end is known");
  expect(is(field(ended, "result"), "done"), "and so is its result");

  redisReply* all[] = {submitted, leased, extended, completed, late, ended};
  for (size_t at = 0; at < sizeof all / sizeof *all; ++at) freeReplyObject(all[at]);
}

// Many commands in one breath; the answers come in the same order.
static void a_pipeline(void) {
  long long last_lsn = 0;
  for (int number = 0; number < 500; ++number) redisAppendCommand(server, "SUBMIT many payload-%d", number);
  for (int number = 0; number < 500; ++number) {
    redisReply* reply = NULL;
    expect(redisGetReply(server, (void**)&reply) == REDIS_OK, "every command is answered");
    expect(field(reply, "lsn")->integer > last_lsn, "in order");
    last_lsn = field(reply, "lsn")->integer;
    freeReplyObject(reply);
  }
}

int main(int argc, char** argv) {
  expect(argc == 2, "usage: hiredis_life PORT");
  const struct timeval patience = {30, 0};
  server = redisConnectWithTimeout("127.0.0.1", atoi(argv[1]), patience);
  expect(server != NULL && server->err == 0, "connecting");
  redisSetTimeout(server, patience);
  one_life();
  a_pipeline();
  redisFree(server);
  return 0;
}
