"""
Plants canaries in a scratch system, and runs one attack there without protection.

worker/doctor/attacks/baseline.ts starts it in a sandbox with its own namespaces and all
capabilities in them. It reads its order, one JSON object, from descriptor 3. Its last line is the
attack's answer.
"""

import ctypes
import json
import os
import resource
import runpy
import select
import signal
import socket
import sys
import traceback

# An isolated Python does not look beside the program.
sys.path.insert(0, os.path.dirname(__file__))
from services import add_address, listen, listen_to_datagrams, serve, serve_listed, serve_proxy

TOOLS = "/arena/tools"
SCRATCH = "/scratch"
WORK_BASE = SCRATCH + "/work"
WORK_DIR = WORK_BASE + "/call"
TEMPLATE_DIR = WORK_BASE + "/template"
SECRET = SCRATCH + "/secret"
SOCKET = SCRATCH + "/socket"
ABSTRACT = "str-attack-baseline"

# Seconds that one call of an attack may take, on a host that is busy with other things.
PATIENCE_SECONDS = 60
# Multiple of each limit that an attack's processes get; attacks take at most twice a limit.
HEADROOM = 4
# As much as a pipe holds, so that writing an answer never waits.
MAX_ANSWER_BYTES = 60_000
NAMESPACES = ("user", "mnt", "pid", "ipc", "uts", "cgroup")
# Flags of unshare(2).
NEW_MOUNTS, NEW_PIDS = 0x0002_0000, 0x2000_0000
HTTP_PORT = 80
DNS_PORT = 53
PROXY_PORT = 3128
# A proxy of a baseline waits for ever, so that attacks on its patience need not wait long.
HEADER_SECONDS = 1


def main():
    with os.fdopen(3) as file:
        order = json.load(file)
    target = plant(order)
    answer = None
    for number in range(1, order["rounds"] + 1):
        answer = perform(order, {**target, "round": number})
    print(json.dumps(answer), flush=True)
    # The sandbox's first command ends, and with it everything that the attack left.
    os._exit(0)


def perform(order, target):
    """One call: the answer of the program, or of the naive worker."""

    def run(stdout=None):
        return run_program(order["id"], target, stdout, order.get("baseline") == "naive-template")

    if order.get("baseline") == "naive-worker":
        import naive_worker

        return naive_worker.serve(order["id"], WORK_DIR, target, run)
    if order.get("baseline") == "naive-gateway":
        import naive_gateway

        return naive_gateway.serve(target, lambda given: run_program(order["id"], given))
    # Nobody reads statuses, but they can be written.
    status_pipe = os.open(WORK_DIR + "/status.pipe", os.O_RDWR)
    answer, status = run()
    os.close(status_pipe)
    return answer or {"reached": False, "evidence": f"no answer; exit status {status}"}


def run_program(attack, target, stdout=None, by_template=False):
    """
    Runs the program in a child, with its standard output at a descriptor or nowhere.
    By a template, that child imports the program, and a child of it calls it.
    Returns its answer, or None, and its exit status, negative for a signal.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            become_tool(target["limits"], stdout)
            os.chdir(TEMPLATE_DIR if by_template else WORK_DIR)
            program = runpy.run_path(f"{TOOLS}/{attack}.py", run_name=attack)
            if by_template:
                become_naive_child()
            os.write(writing, json.dumps(program["attack"](target)).encode()[:MAX_ANSWER_BYTES])
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    status = end_of(pid)
    os.set_blocking(reading, False)
    try:
        answer = os.read(reading, MAX_ANSWER_BYTES)
    except BlockingIOError:
        # A process that it left has the other end.
        answer = b""
    os.close(reading)
    return (json.loads(answer) if answer else None), status


def become_naive_child():
    """
    Continues in a child with its own namespaces, in which everything of its parent is mounted.
    """
    if ctypes.CDLL(None).unshare(NEW_MOUNTS | NEW_PIDS) != 0:
        raise OSError("no namespaces for a child")
    pid = os.fork()
    if pid != 0:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os.chdir(WORK_DIR)


def become_tool(limits, stdout):
    sys.path.insert(0, TOOLS)
    nothing = os.open("/dev/null", os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing if stdout is None else stdout, 1)
    for kind, most in (
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_CPU, limits["cpu_seconds"]),
        (resource.RLIMIT_FSIZE, limits["file_size_bytes"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
    ):
        # Beyond the soft limit there is room, for what tries to raise it.
        resource.setrlimit(kind, (HEADROOM * most, 2 * HEADROOM * most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_of(pid):
    """Exit status of a process, which is killed after PATIENCE_SECONDS."""
    process = os.pidfd_open(pid)
    if not select.select([process], [], [], PATIENCE_SECONDS)[0]:
        signal.pidfd_send_signal(process, signal.SIGKILL)
    os.close(process)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def plant(order):
    token, metadata, variable = order["token"], order["metadata_address"], order["variable"]
    for name in (SCRATCH + "/open", TEMPLATE_DIR, WORK_DIR + "/input", WORK_DIR + "/output"):
        os.makedirs(name)
    os.mkfifo(WORK_DIR + "/status.pipe")
    for path in (
        SECRET,
        "/root/.ssh/id_ed25519",
        "/home/somebody/.netrc",
        "/etc/passwd",
        "/etc/shadow",
        "/etc/machine-id",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/etc/nsswitch.conf",
    ):
        put(path, token)
    for path in (WORK_BASE + "/victim/data", "/tmp/victim", "/dev/shm/victim"):
        put(path, "victim " + token)
    # Left open, as by a program that does not close its files before it starts others.
    os.open(SECRET, os.O_RDONLY)
    add_address("lo", metadata)
    loopback = listen(socket.AF_INET, ("127.0.0.1", 0))
    port = loopback.getsockname()[1]
    listed = listen(socket.AF_INET, ("127.0.0.1", 0))
    datagrams = listen_to_datagrams("127.0.0.1")
    listed_port, datagram_port = listed.getsockname()[1], datagrams.getsockname()[1]
    serve_listed(order, listed, datagrams)
    serve_proxy(listen(socket.AF_INET, ("127.0.0.1", PROXY_PORT)))
    sys.path.insert(0, TOOLS)
    from support.listed import victim_port, victim_socket

    serve(
        token,
        [
            loopback,
            listen(socket.AF_INET, ("0.0.0.0", victim_port(token))),
            listen(socket.AF_UNIX, "\0" + victim_socket(token)),
            listen(socket.AF_INET, (metadata, HTTP_PORT)),
            # Where its name leads: name service knows none.
            listen(socket.AF_INET, ("127.0.0.1", HTTP_PORT)),
            listen(socket.AF_UNIX, SOCKET),
            listen(socket.AF_UNIX, "\0" + ABSTRACT),
        ],
        [listen_to_datagrams(address, DNS_PORT) for address in ("127.0.0.1", metadata)],
    )
    return {
        "token": token,
        "secret_file": SECRET,
        "open_directory": SCRATCH + "/open",
        "sibling_pid": start_sibling(token, variable),
        "worker_pid": os.getpid(),
        "work_base": WORK_BASE,
        "variable": variable,
        "loopback_port": port,
        "listed_port": listed_port,
        "datagram_port": datagram_port,
        "unlisted_port": port,
        "rebinding_name": order["rebinding_name"],
        "header_seconds": HEADER_SECONDS,
        "max_connections_in_all": order["max_connections_in_all"],
        "listed_name": order["listed_name"],
        "unlisted_name": order["unlisted_name"],
        "max_connections": order["max_connections"],
        "metadata_address": metadata,
        "metadata_name": order["metadata_name"],
        # Some clouds have it there. 127.0.0.1 answers as well.
        "name_servers": [metadata],
        "socket_path": SOCKET,
        "abstract_socket": ABSTRACT,
        "namespaces": own_namespaces(),
        "limits": order["limits"],
    }


def own_namespaces():
    try:
        return {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in NAMESPACES}
    except OSError:
        return {}  # A /proc that is masked.


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def start_sibling(token, variable):
    pid = os.fork()
    if pid == 0:
        script = "secret=$0; while :; do sleep 1; done"
        environment = {variable: token, "PATH": "/usr/bin:/bin"}
        os.execve("/bin/sh", ["sh", "-c", script, token], environment)
    return pid


if __name__ == "__main__":
    main()
