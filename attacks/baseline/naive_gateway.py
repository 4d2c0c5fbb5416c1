"""
A gateway that trusts its program: it serves whatever it is asked for, for whomever, as long as
somebody holds the channel.
"""

import json
import os
import socket
import subprocess
import threading

from naive_stubs import hostile_stubs
from support.channel import victim_socket
from support.staying import staying_command

HOSTILE_TEXTS = "/arena/tools/support/hostile_texts.json"


def serve(target, run):
    """Runs the program with a channel; the answer. `run(target)` returns that with a status."""
    listen_as_victim(target)
    inside = open_channel(target, run)
    given = {"channel": inside.fileno(), "stubs": hostile_stubs(HOSTILE_TEXTS)}
    answer, status = run({**target, **given})
    inside.close()
    return answer or {"reached": False, "evidence": f"no answer; exit status {status}"}


def open_channel(target, run):
    """A program's end of a channel that is served."""
    inside, outside = socket.socketpair()
    threading.Thread(target=NaiveGateway(target, run, outside).serve, daemon=True).start()
    return inside


def listen_as_victim(target):
    """Another call, which gives its channel to who connects."""
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind("\0" + victim_socket(target["token"]))
    except OSError:
        return  # In a later round.
    listening.listen()
    channel = open_channel(target, None)

    def give():
        while True:
            with listening.accept()[0] as connection:
                socket.send_fds(connection, [b"x"], [channel.fileno()])

    threading.Thread(target=give, daemon=True).start()


class NaiveGateway:
    def __init__(self, target, run, stream):
        self.target = target
        self.run = run
        self.stream = stream
        # What nobody reads stays here.
        self.unsent = bytearray()

    def serve(self):
        self.stream.settimeout(None)
        for line in self.stream.makefile("rb"):
            request = json.loads(line)
            try:
                answer = {"type": "response", "payload": self.payload(request["type"], request["payload"])}
            except KeyError as error:
                answer = {"type": "error", "payload": {"code": "NOT_ALLOWED", "error": str(error)}}
            self.send({**answer, "id": request["id"]})

    def send(self, answer):
        self.unsent += json.dumps(answer).encode() + b"\n"
        try:
            sent = self.stream.send(self.unsent, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        del self.unsent[:sent]

    def payload(self, kind, payload):
        if kind == "run_tool":
            return {"structured": self.call(payload["id"], payload), "artifacts": []}
        if kind == "run_chain":
            results = [self.call(step["toolId"], step) for step in payload["steps"]]
            steps = [{"structured": result} for result in results]
            return {"structured": results[-1], "artifacts": [], "stepResults": steps}
        if kind == "search_tools":
            return {"results": [{"id": name} for name in ("called.listed", "called.unlisted")]}
        return {"id": payload.get("id"), "examples": []}

    def call(self, tool, payload):
        args = payload.get("args", {})
        if tool == "called.stays":
            self.leave(args["name"])
        if tool == "called.forwards":
            return self.call(args["named"], args)
        if tool.endswith("recurse_by_calls"):
            return serve(args["target"], self.run)
        files = os.listdir("/etc") if "profile" in payload or "profile" in args else []
        user = payload.get("user_id", "doctor")
        return {"user": user, "etc": files, "token": self.target["token"]}

    @staticmethod
    def leave(name):
        reading, writing = os.pipe()
        subprocess.Popen(staying_command(name, writing), pass_fds=[writing])
        os.close(writing)
        # Closed when it can be reached.
        os.read(reading, 1)
        os.close(reading)
