"""A small server that speaks what is documented of the Kubernetes API for nodes and pods."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

TOKEN = "not-a-secret"


class FakeApi:
    """Its objects; ``conflicts`` writes of somebody else come in between."""

    def __init__(self, names):
        self.version = 100
        self.nodes = {
            name: {
                "metadata": {"name": name, "resourceVersion": "1"},
                "spec": {},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            }
            for name in names
        }
        self.pods = []
        self.conflicts = 0
        self.requests = []

    def touch(self, name):
        self.version += 1
        self.nodes[name]["metadata"]["resourceVersion"] = str(self.version)

    def patch(self, name, patch):
        node = self.nodes[name]
        if self.conflicts:
            self.conflicts -= 1
            self.touch(name)
        wanted = patch.get("metadata", {}).pop("resourceVersion", None)
        if wanted is not None and wanted != node["metadata"]["resourceVersion"]:
            return 409, {"kind": "Status", "code": 409, "reason": "Conflict", "message": "object was modified"}
        merge(node, patch)
        self.touch(name)
        return 200, node


def merge(target, patch):
    """RFC 7386."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            merge(target.setdefault(key, {}), value)
        else:
            target[key] = value


@contextmanager
def serving(api: FakeApi) -> Iterator[str]:
    """Its URL."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def answer(self, code, body):
            data = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def page(self, items, query):
            start, limit = int(query.get("continue", ["0"])[0]), min(2, int(query["limit"][0]))
            more = {"continue": str(start + limit)} if start + limit < len(items) else {}
            self.answer(200, {"items": items[start : start + limit], "metadata": more})

        def do_GET(self):
            self.handled("GET")

        def do_PATCH(self):
            self.handled("PATCH")

        def handled(self, method):
            parts = urlsplit(self.path)
            api.requests.append(f"{method} {parts.path}")
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                return self.answer(401, {"message": "Unauthorized"})
            if method == "GET" and parts.path == "/api/v1/nodes":
                return self.page(list(api.nodes.values()), parse_qs(parts.query))
            if method == "GET" and parts.path == "/api/v1/pods":
                return self.page(api.pods, parse_qs(parts.query))
            name = parts.path.rpartition("/")[2]
            if name not in api.nodes:
                return self.answer(404, {"message": f'nodes "{name}" not found'})
            if method == "GET":
                return self.answer(200, api.nodes[name])
            if self.headers["Content-Type"] != "application/merge-patch+json":
                return self.answer(415, {"message": "not a merge patch"})
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            return self.answer(*api.patch(name, body))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
