#!/usr/bin/env python3
"""A small S3-compatible service in memory, which checks signatures and stumbles on purpose.

usage: s3_stub.py [--faults PERCENT] [--unconditional] [--busy PATTERN]

It prints its port, and serves bucket "bucket" to access key "key" with secret "secret" until it is killed. Once there
is an object called "…/read-only", nothing more may be written or removed.
Of --faults PERCENT a quarter of the requests are refused with 503, a quarter are dropped before they are done,
a quarter are done and then dropped, and of a quarter the answer ends in the middle. What has a name that --busy PATTERN
matches can be written, and whoever reads it is told to come later each time.
"""
import argparse
import hashlib
import hmac
import random
import re

import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

ACCESS, SECRET, BUCKET = "key", "secret", "bucket"
lock = threading.Lock()
objects = {}   # key: bytes
uploads = {}   # id: (key, {number: bytes})
dice = random.Random(7)


def keyed(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(request, path, query, body):
    """What the signature of this request has to be, computed without looking at the client's code."""
    names = re.search(r"SignedHeaders=([^,]+)", request.headers["Authorization"])[1]
    scope = re.search(rf"Credential={ACCESS}/([^,]+)", request.headers["Authorization"])
    if not scope or hashlib.sha256(body).hexdigest() != request.headers["x-amz-content-sha256"]:
        return None
    headers = "".join(f"{name}:{request.headers[name].strip()}\n" for name in names.split(";"))
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical_query = "&".join(f"{urllib.parse.quote(k, safe='-._~')}={urllib.parse.quote(v, safe='-._~')}"
                               for k, v in pairs)
    canonical = "\n".join([request.command, urllib.parse.quote(path, safe="/-._~"), canonical_query, headers, names,
                           hashlib.sha256(body).hexdigest()])
    day, region, _, _ = scope[1].split("/")
    to_sign = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope[1],
                         hashlib.sha256(canonical.encode()).hexdigest()])
    key = keyed(keyed(keyed(keyed(("AWS4" + SECRET).encode(), day), region), "s3"), "aws4_request")
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    faults = 0
    conditional = True
    busy = None

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=None, length=None):
        if self.drops_after:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.drops_within:
            self.close_connection = True
            body = body[: len(body) // 2]
        if self.command != "HEAD":
            self.wfile.write(body)

    def complain(self, status, code):
        self.answer(status, f"<Error><Code>{code}</Code><Message>as it happens</Message></Error>".encode())

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.drops_after = self.drops_within = False
        with lock:
            stumbles = dice.randrange(100) < self.faults and dice.choice(["busy", "before", "within", "after"])
        if stumbles == "before":
            self.close_connection = True
            return
        if stumbles == "busy":
            # Once it has begun to answer that an upload is complete, a service can only say so in the body.
            return self.complain(200 if self.command == "POST" and "uploadId" in self.path else 503, "SlowDown")
        self.drops_after, self.drops_within = stumbles == "after", stumbles == "within"
        raw, _, query_text = self.path.partition("?")
        path = urllib.parse.unquote(raw)
        query = dict(urllib.parse.parse_qsl(query_text, keep_blank_values=True))
        given = re.search(r"Signature=([0-9a-f]+)", self.headers.get("Authorization", ""))
        if not given or given[1] != signature(self, path, query_text, body):
            return self.complain(403, "SignatureDoesNotMatch")
        bucket, _, key = path[1:].partition("/")
        if bucket != BUCKET:
            return self.complain(404, "NoSuchBucket")
        if self.command == "GET" and self.busy and re.search(self.busy, key):
            return self.complain(503, "SlowDown")
        with lock:
            self.serve(key, query, body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_request

    def is_taken(self, key):
        return self.conditional and self.headers.get("If-None-Match") == "*" and key in objects

    def serve(self, key, query, body):
        if self.command in ("PUT", "POST", "DELETE") and any(name.endswith("/read-only") for name in objects):
            return self.complain(403, "AccessDenied")
        if self.command == "PUT" and "uploadId" in query:
            if query["uploadId"] not in uploads:
                return self.complain(404, "NoSuchUpload")
            uploads[query["uploadId"]][1][int(query["partNumber"])] = body
            return self.answer(200, headers={"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
        if self.command == "PUT":
            if self.is_taken(key):
                return self.complain(412, "PreconditionFailed")
            objects[key] = body
            return self.answer(200)
        if self.command == "POST" and "uploads" in query:
            upload = f"upload-{len(uploads)}"
            uploads[upload] = (key, {})
            return self.answer(200, f"<R><UploadId>{upload}</UploadId></R>".encode())
        if self.command == "POST":
            if query["uploadId"] not in uploads:
                return self.complain(404, "NoSuchUpload")
            if self.is_taken(key):
                return self.complain(412, "PreconditionFailed")
            _, parts = uploads.pop(query["uploadId"])
            named = [int(number) for number in re.findall(r"<PartNumber>(\d+)</PartNumber>", body.decode())]
            objects[key] = b"".join(parts[number] for number in named)
            return self.answer(200, b"<R></R>")
        if self.command == "DELETE":
            uploads.pop(query.get("uploadId"), None) if "uploadId" in query else objects.pop(key, None)
            return self.answer(204)
        if not key:
            return self.list_objects(query)
        if key not in objects:
            return self.complain(404, "NoSuchKey")
        whole = objects[key]
        if self.command == "HEAD":
            return self.answer(200, length=len(whole))
        if wanted := re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            return self.answer(206, whole[int(wanted[1]):int(wanted[2]) + 1])
        return self.answer(200, whole)

    def list_objects(self, query):
        """Three entries on a page, so that every list has several."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        entries = {}
        for key in sorted(objects):
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix):]
            if delimiter and delimiter in rest:
                entries[prefix + rest.split(delimiter)[0] + delimiter] = None
            else:
                entries[key] = objects[key]
        names = [name for name in sorted(entries) if name > query.get("continuation-token", "")]
        page, text = names[:3], ""
        for name in page:
            if entries[name] is None:
                text += f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            else:
                text += (f"<Contents><Key>{escape(name)}</Key><Size>{len(entries[name])}</Size>"
                         "<LastModified>2026-11-15T20:00:00.000Z</LastModified></Contents>")
        if len(names) > len(page):
            text += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        self.answer(200, f"<ListBucketResult><Prefix>{escape(prefix)}</Prefix>{text}</ListBucketResult>".encode())


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--faults", type=int, default=0)
    options.add_argument("--unconditional", action="store_true")
    options.add_argument("--busy")
    given = options.parse_args()
    Service.faults, Service.conditional, Service.busy = given.faults, not given.unconditional, given.busy
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.daemon_threads = True
    print(f"port {server.server_address[1]}", flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Event().wait()


main()
