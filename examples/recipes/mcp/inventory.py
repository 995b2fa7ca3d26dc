"""An MCP server with one tool, in Python's standard library: on standard input and output, or over HTTP with `--http PORT`."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional

STOCK = {"bolts": 140, "nuts": 96, "washers": 0}
TOOL = {
    "name": "count",
    "description": "How many pieces of an item are in stock.",
    "inputSchema": {"type": "object", "properties": {"item": {"type": "string", "enum": sorted(STOCK)}}, "required": ["item"]},
}


def answer(message: dict[str, Any]) -> Optional[dict[str, Any]]:
    """The reply to a message; None for a notification."""
    if "id" not in message:
        return None
    head = {"jsonrpc": "2.0", "id": message["id"]}
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        about = {"serverInfo": {"name": "inventory", "version": "1"}, "capabilities": {"tools": {}}}
        return {**head, "result": {"protocolVersion": params["protocolVersion"], **about}}
    if method == "tools/list":
        return {**head, "result": {"tools": [TOOL]}}
    if method == "tools/call":
        item = params.get("arguments", {}).get("item")
        text = str(STOCK[item]) if item in STOCK else f"there is no {item}"
        return {**head, "result": {"content": [{"type": "text", "text": text}], "isError": item not in STOCK}}
    return {**head, "error": {"code": -32601, "message": f"no method {method}"}}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        reply = answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        body = b"" if reply is None else json.dumps(reply).encode()
        self.send_response(202 if reply is None else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)  # it sends nothing by itself

    do_DELETE = do_GET

    def log_message(self, *_: Any) -> None:
        pass


if "--http" in sys.argv:
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler)
    print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
    server.serve_forever()
for line in sys.stdin:
    reply = answer(json.loads(line))
    if reply is not None:
        print(json.dumps(reply), flush=True)
