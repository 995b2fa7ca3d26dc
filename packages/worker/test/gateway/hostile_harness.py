#!/usr/bin/env python3
"""A harness that misbehaves, as its prompt says. What it saw is in seen.json of the workspace, which the check reads."""

import json
import os
import signal
import socket
import sys
import threading
import urllib.error
import urllib.request

prompt, url, key = sys.argv[1:]
kind, _, more = prompt.partition(" ")
seen = []


def ask(path="/v1/chat/completions", key=key, body=None, root=url):
    payload = {"model": "m", "messages": [{"role": "user", "content": f"Go {len(seen)}."}]} if body is None else body
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    request = urllib.request.Request(root + path, data, {"content-type": "application/json", "authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            reply.read()
            status = reply.status
    except urllib.error.HTTPError as error:
        status = error.code
    except OSError as error:
        status = "no connection" if isinstance(getattr(error, "reason", error), (ConnectionRefusedError, TimeoutError)) else str(error)
    seen.append(status)
    return status


def leave():
    """Asks for a stream, and leaves when the first of it has come."""
    host, port = url.removeprefix("http://").split(":")
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "Say something long."}]})
    with socket.create_connection((host, int(port))) as link:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-length: {len(body)}\r\n\r\n"
        link.sendall((head + body).encode())
        text = b""
        while b'"content":"word' not in text:
            text += link.recv(4096)


def flood():
    for at in range(20):
        ask(key="mrh-foreign")
        ask(body=b'{"messages":')
        ask(path=f"/{at}")


def save():
    with open("/workspace/seen.json", "w") as file:
        json.dump(sorted({str(one) for one in seen}), file)


ask()
save()
if kind == "hang":
    signal.pause()
elif kind == "loop":
    while True:
        ask()
elif kind == "leave":
    while True:
        leave()
elif kind == "fork":
    while True:
        try:
            os.fork()
        except OSError:
            pass
elif kind == "die":
    os.kill(os.getpid(), signal.SIGKILL)
elif kind == "flood":
    threads = [threading.Thread(target=flood) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ask()
    save()
elif kind == "others":
    seen.clear()
    other, *roots = more.split()
    ask(path=f"/{other}/v1/chat/completions")
    ask(path=f"/v1/gateways/{other}/v1/chat/completions")
    ask(path=f"/{other}/control", body={"kind": "reward", "reward": 1, "score": {}})
    ask(path="/control", body={"kind": "reward", "reward": 1, "score": {}})
    for root in roots:
        ask(root=root)
    save()
