"""What lies in a bucket, for the tests: as git has it, and as it was. Only what the layout of a store says is used."""

import base64
import datetime
import email.utils
import hashlib
import http.client
import http.server
import json
import os
import subprocess
import sys
import threading

import boto3
import botocore.exceptions

PREFIX = "team/"
endpoint, bucket, command, *rest = sys.argv[1:]
s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")


def git(*words, data=None):
    ran = subprocess.run(["git", "-C", rest[0], *words], input=data, capture_output=True)
    if ran.returncode:
        sys.exit(f"git {words}: {ran.stderr.decode()}")
    return ran.stdout.decode()


def keys(folder):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=PREFIX + folder)
    return [one["Key"][len(PREFIX):] for page in pages for one in page.get("Contents", [])]


def get(key, **more):
    return s3.get_object(Bucket=bucket, Key=PREFIX + key, **more)["Body"].read()


def name_of(key):
    folder, rest_of_key = key.split("/", 1)
    there = {"runs": "refs/recover-runs/", "side": "refs/recover-runs-side/"}[folder]
    plain = rest_of_key.removesuffix("/head.json").removesuffix(".json")
    return there + plain.replace("~.", "+").replace("~", "%")


def index(pack):
    name = hashlib.sha256(pack).hexdigest()
    place = os.path.join(rest[0], "objects/pack", f"pack-{name}.pack")
    if not os.path.exists(place.replace(".pack", ".idx")):
        with open(place, "wb") as file:
            file.write(pack)
        git("index-pack", place)
    return name


def heads():
    return {key: json.loads(get(key)) for folder in ["runs/", "side/"] for key in keys(folder)}


def sync():
    known = heads()
    for key in keys("packs/"):
        pack = get(key)
        assert f"packs/{hashlib.sha256(pack).hexdigest()}.pack" == key, key
        index(pack)
    named = {}
    for key, head in known.items():
        if head["tail"]:
            assert index(base64.b64decode(head["tail"]["content"])) == head["tail"]["sha256"]
        if head["commit"]:
            named[name_of(key)] = head["commit"]
    there = git("for-each-ref", "--format=%(refname)", "refs/recover-runs", "refs/recover-runs-side").split()
    for name in there:
        if name not in named:
            git("update-ref", "-d", name)
    for name, commit in named.items():
        git("update-ref", name, commit)


def publish():
    """Has the bucket say what the repository does, whatever was there: what no machine of recover's would do."""
    for key, head in heads().items():
        name = name_of(key)
        commit = subprocess.run(["git", "-C", rest[0], "rev-parse", "-q", "--verify", name], capture_output=True)
        commit = commit.stdout.decode().strip() or None
        if commit == head["commit"]:
            continue
        head.update(commit=commit, bases=[], packs=[], tail=None, nonce=os.urandom(16).hex())
        if commit:
            ran = ["git", "-C", rest[0], "pack-objects", "--revs", "--stdout", "-q"]
            pack = subprocess.run(ran, input=commit.encode(), capture_output=True, check=True).stdout
            content = base64.b64encode(pack).decode()
            digest = hashlib.sha256(pack).hexdigest()
            head["tail"] = {"sha256": digest, "size": len(pack), "tip": commit, "content": content}
        s3.put_object(Bucket=bucket, Key=PREFIX + key, Body=json.dumps(head).encode())


def history():
    pages = s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=PREFIX)
    versions = [one for page in pages for one in page.get("Versions", [])]
    number = 0
    for key in dict.fromkeys(one["Key"] for one in versions):
        if not key.startswith((PREFIX + "runs/", PREFIX + "side/")):
            continue
        before = "0" * 40
        # The latest comes first.
        for one in reversed([one for one in versions if one["Key"] == key]):
            new = json.loads(get(key[len(PREFIX):], VersionId=one["VersionId"]))["commit"] or "0" * 40
            claim = subprocess.run(["git", "-C", rest[0], "cat-file", "blob", f"{new}:claim.json"], capture_output=True)
            number += 1
            print(number, name_of(key[len(PREFIX):]), before, new, claim.stdout.decode().replace("\n", ""), sep="\t")
            before = new


def make():
    s3.create_bucket(Bucket=bucket)
    try:
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    except botocore.exceptions.ClientError:
        # s3rver has no versions.
        pass


def proxy():
    """Stands between a machine and the store, and does what the file at the end of the command line says."""
    target = endpoint.removeprefix("http://")
    port, mode = int(rest[1]), rest[2]
    seen, lock = {}, threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self, body):
            connection = http.client.HTTPConnection(target)
            # The signature is of the host that was asked.
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()

        def handle_one(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with open(mode) as file:
                what = file.read().strip()
            asked = (what, self.command, self.path.split("?")[0])
            with lock:
                seen[asked] = seen.get(asked, 0) + 1
                times = seen[asked]
            if what in ["503", "429", "412"] and times <= 2 and (what != "412" or self.command == "PUT"):
                return self.reply(int(what), [("Retry-After", "1")] if what == "429" else [], b"")
            status, headers, content = self.forward(body)
            if what == "twice":
                status, headers, content = self.forward(body)
            if what == "lost" and self.command == "PUT" and times == 1:
                self.close_connection = True
                return
            self.reply(status, headers, content, datetime.timedelta(days=8 if what == "late" else 0))

        do_GET = do_PUT = do_DELETE = handle_one

        def reply(self, status, headers, content, later=datetime.timedelta()):
            self.send_response_only(status)
            now = datetime.datetime.now(datetime.timezone.utc) + later
            self.send_header("Date", email.utils.format_datetime(now, usegmt=True))
            for name, value in headers:
                if name.lower() not in ["date", "transfer-encoding", "content-length", "connection"]:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


{"make": make, "proxy": proxy, "sync": sync, "publish": publish, "history": history, "keys": lambda: print("\n".join(keys("")))}[command]()
