"""A Kubernetes API of a few objects, for templates that look up what is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

KINDS = {"v1": ("ConfigMap", "configmaps"), "apps/v1": ("StatefulSet", "statefulsets")}


@contextmanager
def cluster(version: str, objects: list[dict[str, Any]]) -> Iterator[str]:
    """Serve objects of the namespace `jobs`; yield the address of the API."""
    major, minor = version.split(".")
    found: dict[str, dict[str, Any]] = {
        "/version": {"major": major, "minor": minor, "gitVersion": f"v{version}.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group("apps", "apps/v1")]},
    }
    for group, (kind, plural) in KINDS.items():
        resource = {"name": plural, "kind": kind, "namespaced": True, "verbs": ["get"]}
        found[_root(group)] = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group,
            "resources": [resource],
        }
    for each in objects:
        group = each["apiVersion"]
        if each["kind"] == KINDS.get(group, ("",))[0]:
            found[f"{_root(group)}/namespaces/jobs/{KINDS[group][1]}/{each['metadata']['name']}"] = each

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            missing = {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "reason": "NotFound",
                "code": 404,
            }
            body = json.dumps(found.get(path, missing)).encode()
            self.send_response(200 if path in found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def _root(group: str) -> str:
    return f"/apis/{group}" if "/" in group else f"/api/{group}"


def _group(name: str, version: str) -> dict[str, Any]:
    named = {"groupVersion": version, "version": version.rpartition("/")[2]}
    return {"name": name, "versions": [named], "preferredVersion": named}
