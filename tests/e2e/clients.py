#!/usr/bin/python3 -B
"""A task's whole life through clients that others wrote: redis-cli, redis-benchmark, python3-redis and curl.

usage: clients.py BATON                       those that are programs or speak Python
       clients.py BATON PROGRAM [ARGUMENT…]   one that lives a life by itself; it is given the port behind its arguments
"""
# X8
import json
import os
import pty
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import metrics

BATON, *PROGRAM = sys.argv[1:]


class Server:
    """The program on a directory of its own and free ports; gone with the block."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            [BATON, "serve", "--data", self.folder.name + "/data", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0",
             *self.arguments], stdout=subprocess.PIPE, text=True)
        ports = re.findall(r"127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        self.port, self.http_port = int(ports[0]), int(ports[1])
        return self

    def __exit__(self, *_):
        self.process.terminate()
        code = self.process.wait(timeout=30)
        self.folder.cleanup()
        assert code == 0, f"the server ended with {code}"


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def life(call):
    """`call(verb, **arguments)` returns the reply as a dictionary."""
    task = call("submit", queue="mail", payload="hello", key="k1")["task"]
    again = call("submit", queue="mail", payload="hello", key="k1")
    expect(again["task"] == task and again["existed"] in (True, 1), again)
    leased = call("lease", worker="w", queue="mail")["tasks"][0]
    expect((leased["task"], leased["payload"], leased["queue"]) == (task, "hello", "mail"), leased)
    expect(call("extend", task=task, lease=leased["lease"], ttl_ms=60000)["ttl_ms"] == 60000, "extend")
    expect(call("complete", task=task, lease=leased["lease"], result="done")["status"] == "COMMITTED", "complete")
    ended = call("get", task="key:k1")
    expect(ended["task"]["state"] == "completed" and ended["result"] == "done", ended)


ORDER = {"submit": ["queue", "payload"], "lease": ["worker", "queue"], "extend": ["task", "lease"],
         "complete": ["task", "lease"], "get": ["task"]}


def words(verb, arguments):
    positions = [str(arguments[name]) for name in ORDER[verb]]
    options = [part for name, value in arguments.items() if name not in ORDER[verb] for part in (name, str(value))]
    return [verb.upper(), *positions, *options]


def from_pairs(value):
    """RESP 2 has no maps: names and values in turn, which is told from a list by the names."""
    if isinstance(value, list) and value and len(value) % 2 == 0 and all(isinstance(v, str) for v in value[::2]):
        return {name: from_pairs(inner) for name, inner in zip(value[::2], value[1::2])}
    return [from_pairs(inner) for inner in value] if isinstance(value, list) else value


def redis_cli(server):
    life(lambda verb, **arguments: json.loads(
        run("redis-cli", "-p", str(server.port), "-3", "--json", *words(verb, arguments))))
    expect("PONG" in run("redis-cli", "-p", str(server.port), "PING"), "PING")
    expect("UNKNOWN_COMMAND" in run("redis-cli", "-p", str(server.port), "FROB"), "an unknown command")
    expect("queue_mail:paused=0" in run("redis-cli", "-p", str(server.port), "INFO"), "INFO")
    expect("priority" in typed_into_redis_cli(server, "help submit"), "what redis-cli makes of COMMAND DOCS")
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        line.sendall(b'SUBMIT typed "hello world"\r\nLEASE w typed\r\nQUIT\r\n')
        expect(b"hello world" in b"".join(iter(lambda: line.recv(4096), b"")), "commands typed as lines")


def typed_into_redis_cli(server, line):
    """What it shows a person: on a terminal it asks for all commands and their arguments first."""
    terminal, its_end = pty.openpty()
    cli = subprocess.Popen(["redis-cli", "-p", str(server.port)], stdin=its_end, stdout=its_end, stderr=its_end,
                           env={**os.environ, "TERM": "dumb"})
    os.close(its_end)
    os.write(terminal, f"{line}\nquit\n".encode())
    shown = b""
    try:
        while more := os.read(terminal, 4096):
            shown += more
    except OSError:
        pass  # the terminal's other end is closed
    cli.wait(timeout=60)
    os.close(terminal)
    return shown.decode(errors="replace")


def redis_benchmark(server):
    said = run("redis-benchmark", "-p", str(server.port), "-n", "2000", "-c", "8", "-P", "16", "SUBMIT", "bench", "x")
    expect("throughput summary" in said or "requests per second" in said, said)
    queues = json.loads(run("curl", "-s", f"http://127.0.0.1:{server.http_port}/v1/queues"))["queues"]
    expect([q["waiting"] for q in queues if q["queue"] == "bench"] == [2000], queues)


def python_redis(server):
    import redis
    client = redis.Redis(port=server.port, decode_responses=True)
    life(lambda verb, **arguments: from_pairs(client.execute_command(*words(verb, arguments))))
    with client.pipeline(transaction=False) as pipeline:
        for number in range(500):
            pipeline.execute_command("SUBMIT", "many", f"payload {number}")
        expect(len(pipeline.execute()) == 500, "a pipeline")
    with client.pipeline(transaction=True) as pipeline:
        pipeline.execute_command("SUBMIT", "framed", "x").execute_command("LEASE", "w", "framed", "WAIT_MS", 60000)
        submitted, leased = [from_pairs(reply) for reply in pipeline.execute()]
        expect(leased["tasks"][0]["task"] == submitted["task"], "MULTI and EXEC")
    expect(client.info("server")["redis_mode"] == "standalone" and client.ping() and client.client_id() > 0, "INFO")
    expect(client.config_get("appendfsync") == {"appendfsync": "always"}, "CONFIG GET")
    expect("submit" in client.command(), "COMMAND")
    try:
        client.execute_command("EXTEND", "1-2", "1-2-3")
        raise AssertionError("an unknown task was extended")
    except redis.ResponseError as error:
        expect(str(error).startswith("NOT_FOUND "), error)


def curl(server):
    def call(verb, **arguments):
        return json.loads(run("curl", "-s", f"http://127.0.0.1:{server.http_port}/v1/{verb}", "-d", json.dumps(arguments)))
    life(call)
    said = run("curl", "-s", f"http://127.0.0.1:{server.http_port}/metrics")
    samples = metrics.check(said)
    expect(samples["baton_tasks", 'namespace="default",queue="mail",state="completed"'] == 1, said)
    expect(samples["baton_commands_total", 'verb="complete"'] == 1 and samples["baton_flush_seconds_count", None] > 0, said)
    if shutil.which("promtool"):
        run("promtool", "check", "metrics", input=said)
    watching = subprocess.Popen(["curl", "-sN", f"http://127.0.0.1:{server.http_port}/v1/events?queue=seen"],
                                stdout=subprocess.PIPE, text=True)
    events = (line.split()[1] for line in watching.stdout if line.startswith("event: "))
    expect(next(events) == "begin", "the beginning of the events")
    call("submit", queue="unseen", payload="x")
    leased = [call("submit", queue="seen", payload="x"), call("lease", worker="w", queue="seen")][1]["tasks"][0]
    call("complete", task=leased["task"], lease=leased["lease"])
    expect([next(events) for _ in range(3)] == ["TaskCreated", "LeaseGranted", "TaskCompleted"], "a life in events")
    watching.terminate()
    watching.wait(timeout=60)
    watching.stdout.close()


def client_certificates(folder):
    """One that counts, one that is out of date, none at all."""
    # X4
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    run("openssl", "req", "-x509", *key, "-subj", "/CN=ca", "-days", "2", "-keyout", folder + "/ca.key", "-out",
        folder + "/ca.pem")
    run("openssl", "req", *key, "-subj", "/CN=ci", "-keyout", folder + "/ci.key", "-out", folder + "/ci.csr")
    for name, days in (("good", "1"), ("old", "-1")):
        run("openssl", "x509", "-req", "-in", folder + "/ci.csr", "-CA", folder + "/ca.pem", "-CAkey",
            folder + "/ca.key", "-days", days, "-out", f"{folder}/{name}.pem")
    with Server("--tls-certificate", folder + "/cert.pem", "--tls-key", folder + "/key.pem", "--tls-client-ca",
                folder + "/ca.pem", "--stuck-max", "2s") as server:
        def pings(*certificate):
            done = subprocess.run(["redis-cli", "-p", str(server.port), "--tls", "--cacert", folder + "/cert.pem",
                                   *certificate, "PING"], capture_output=True, text=True, timeout=60)
            return "PONG" in done.stdout
        expect(pings("--cert", folder + "/good.pem", "--key", folder + "/ci.key"), "a certificate that counts")
        expect(not pings("--cert", folder + "/old.pem", "--key", folder + "/ci.key"), "a certificate out of date")
        expect(not pings(), "no certificate")
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as line:
            line.sendall(b"\x16\x03\x01")
            expect(line.recv(1) == b"", "half a handshake, waited for without end")


def tokens_and_tls():
    # X4
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([BATON, "token", "ci", "--allow", "default=submit"], capture_output=True, text=True)
        token = made.stderr.strip().splitlines()[-1]
        with open(folder + "/tokens", "w") as file:
            file.write(made.stdout)
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
            "/CN=localhost", "-days", "2", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder + "/key.pem",
            "-out", folder + "/cert.pem")
        with Server("--tokens", folder + "/tokens", "--tls-certificate", folder + "/cert.pem", "--tls-key",
                    folder + "/key.pem") as server:
            cli = ["redis-cli", "-p", str(server.port), "--tls", "--cacert", folder + "/cert.pem"]
            expect("NOAUTH" in run(*cli, "SUBMIT", "q", "x"), "no token")
            env = {**os.environ, "REDISCLI_AUTH": token}
            expect("task" in run(*cli, "SUBMIT", "q", "x", env=env), "a token")
            expect("NOPERM" in run(*cli, "LEASE", "w", "q", env=env), "more than is allowed")
            url = f"https://127.0.0.1:{server.http_port}/v1/submit"
            body = json.dumps({"queue": "q", "payload": "x"})
            ask = ["curl", "-s", "--cacert", folder + "/cert.pem", url, "-d", body]
            expect("NOAUTH" in run(*ask), "no token over HTTP")
            expect("task" in run(*ask, "-H", "Authorization: Bearer " + token), "a token over HTTP")
            wrong = {**os.environ, "REDISCLI_AUTH": token[:-1]}
            expect("NOAUTH" in run(*cli, "SUBMIT", "q", "x", env=wrong), "a wrong token")
            plain = subprocess.run(["redis-cli", "-p", str(server.port), "PING"], capture_output=True, text=True, timeout=60)
            expect("PONG" not in plain.stdout, "an answer without TLS")
        client_certificates(folder)
        refused = subprocess.run([BATON, "serve", "--data", folder + "/data", "--listen", "0.0.0.0:0"],
                                 capture_output=True, text=True, timeout=60)
        expect(refused.returncode == 1 and "can be reached from other machines" in refused.stderr, refused.stderr)


if PROGRAM:
    with Server() as server:
        sys.exit(subprocess.run([*PROGRAM, str(server.port)], timeout=110).returncode)
missing = [tool for tool in ("redis-cli", "redis-benchmark", "curl", "openssl") if not shutil.which(tool)]
if missing:
    print("skipped, for want of", *missing)
    sys.exit(77)
for check in (redis_cli, redis_benchmark, python_redis, curl):
    with Server() as fresh:
        check(fresh)
    print(check.__name__, "does a whole life")
tokens_and_tls()
print("tokens and TLS hold")
